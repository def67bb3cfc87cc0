//! The bit-vector tables: for each field, each value's row of the rules that it satisfies.

use crate::bitmap::{Rows, RuleSet};
use crate::by_port;
use crate::error::MatchError;
use crate::keys;
use crate::ranges::{self, Span};
use crate::rule::{Match, Proto, rules_without};
use sluice_abi as abi;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The parts of the rules' tables outside of `sl_tables`.
pub(crate) struct MatchTables {
    /// The rows of more than 64 rules; else empty.
    pub(crate) rows: Vec<abi::sl_row>,
    /// The ranges by `enum sl_range_field`; none without a condition.
    pub(crate) ranges: [Option<Box<abi::sl_ranges>>; abi::SL_RANGE_FIELDS as usize],
    /// Whether `sl_tables.by_sport` and `by_dport` are filled.
    pub(crate) by_ports: bool,
}

/// Fills everything in `t` that matching reads, and returns the rest of it. `t.default_class` is set before.
pub(crate) fn fill(t: &mut abi::sl_tables, rules: &[Match]) -> Result<MatchTables, MatchError> {
    if rules.len() > abi::SL_RULES as usize {
        return Err(MatchError::TooManyRules);
    }
    let mut rows = Rows::default();
    let mut ranges: [Option<Box<abi::sl_ranges>>; abi::SL_RANGE_FIELDS as usize] = Default::default();

    let by_proto = ByValue::new(rules, |rule| rule.proto != Proto::Any || rule.asks_ports(), |rule| rule.protos());
    by_proto.fill(&mut t.proto_row[..=abi::SL_PROTO_OTHER as usize], &mut rows)?;
    let dscp = ByValue::new(rules, |rule| rule.dscp.is_some(), |rule| once(rule.dscp));
    t.dscp_none_row = dscp.fill(&mut t.dscp_row, &mut rows)?;
    let vlan = ByValue::new(rules, |rule| rule.vlan.is_some(), |rule| once(rule.vlan));
    t.vlan_none_row = vlan.fill(&mut t.vlan_row, &mut rows)?;
    let pcp = ByValue::new(rules, |rule| rule.pcp.is_some(), |rule| once(rule.pcp));
    t.pcp_none_row = pcp.fill(&mut t.pcp_row, &mut rows)?;
    let flags = ByValue::new(rules, |rule| rule.tcp_flags.is_some(), |rule| rule.tcp_flag_bytes());
    t.tcp_flags_none_row = flags.fill(&mut t.tcp_flags_row, &mut rows)?;
    let icmp = ByValue::new(rules, |rule| rule.icmp.is_some(), |rule| rule.icmp_types());
    t.icmp_none_row = icmp.fill(&mut t.icmp_row, &mut rows)?;
    t.sport_none_row = ports(&mut t.sport_row, rules, |rule| &rule.src_ports, &mut rows)?;
    t.dport_none_row = ports(&mut t.dport_row, rules, |rule| &rule.dst_ports, &mut rows)?;

    let src = Numbers::new(rules, |rule| rule.src.iter().flat_map(|&net| ranges::addresses(net)).collect());
    (t.src_none_row, ranges[abi::SL_RANGE_SRC as usize]) = src.fill(&mut rows)?;
    let dst = Numbers::new(rules, |rule| rule.dst.iter().flat_map(|&net| ranges::addresses(net)).collect());
    (t.dst_none_row, ranges[abi::SL_RANGE_DST as usize]) = dst.fill(&mut rows)?;
    let length = Numbers::new(rules, |rule| rule.length.iter().map(|&(low, high)| low.into()..=high.into()).collect());
    (t.length_none_row, ranges[abi::SL_RANGE_LENGTH as usize]) = length.fill(&mut rows)?;

    t.interface_row = by_key(rules, |rule| rule.interface, &mut rows)?;
    t.mark_row = by_key(rules, |rule| rule.mark, &mut rows)?;

    t.fields = fields(rules);
    (t.metadata, t.metadata_mark) = metadata(t.fields.into());
    let by_ports = by_port::fill(t, rules, rows.sets());
    let small = rows.are_small(rules.len());
    t.many = u8::from(!small);
    if small {
        rows.write_small(&mut t.small);
        return Ok(MatchTables { rows: Vec::new(), ranges, by_ports });
    }
    Ok(MatchTables { rows: rows.into_rows(), ranges, by_ports })
}

fn once(value: Option<impl Into<usize>>) -> Vec<usize> {
    value.into_iter().map(Into::into).collect()
}

/// A field with few values, by the values that each rule takes.
struct ByValue {
    indifferent: RuleSet,
    /// The rules that take each value.
    asking: BTreeMap<usize, Vec<usize>>,
}

impl ByValue {
    fn new(rules: &[Match], asks: impl Fn(&Match) -> bool, takes: impl Fn(&Match) -> Vec<usize>) -> ByValue {
        let mut asking: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (i, rule) in rules.iter().enumerate().filter(|(_, rule)| asks(rule)) {
            takes(rule).into_iter().for_each(|value| asking.entry(value).or_default().push(i));
        }
        ByValue { indifferent: rules_without(rules, asks), asking }
    }

    /// Writes the row of each value, and returns that of packets that have none.
    fn fill(&self, table: &mut [u16], rows: &mut Rows) -> Result<u16, MatchError> {
        let none = rows.of(&self.indifferent)?;
        table.fill(none);
        for (&value, rules) in &self.asking {
            let mut set = self.indifferent.clone();
            rules.iter().for_each(|&rule| set.insert(rule));
            table[value] = rows.of(&set)?;
        }
        Ok(none)
    }
}

/// A field with many values, by the ranges that each rule takes; an empty list is no condition.
struct Numbers {
    indifferent: RuleSet,
    spans: Vec<Span>,
}

impl Numbers {
    fn new(rules: &[Match], takes: impl Fn(&Match) -> Vec<RangeInclusive<u128>>) -> Numbers {
        let of = |(rule, own): (usize, &Match)| takes(own).into_iter().map(move |numbers| Span { rule, numbers });
        let spans: Vec<Span> = rules.iter().enumerate().flat_map(of).collect();
        let asking: std::collections::BTreeSet<usize> = spans.iter().map(|span| span.rule).collect();
        let indifferent = (0..rules.len()).filter(|rule| !asking.contains(rule)).collect();
        Numbers { indifferent, spans }
    }

    fn fill(self, rows: &mut Rows) -> Result<(u16, Option<Box<abi::sl_ranges>>), MatchError> {
        let none = rows.of(&self.indifferent)?;
        if self.spans.is_empty() {
            return Ok((none, None));
        }
        let swept = ranges::sweep(self.spans.into_iter(), &self.indifferent, rows)?;
        Ok((none, Some(ranges::search_table(&swept)?)))
    }
}

fn ports(
    table: &mut [u16; 65536],
    rules: &[Match],
    takes: impl Fn(&Match) -> &Vec<(u16, u16)>,
    rows: &mut Rows,
) -> Result<u16, MatchError> {
    let own = |rule: &Match| takes(rule).iter().map(|&(low, high)| low.into()..=high.into()).collect();
    let Numbers { indifferent, spans } = Numbers::new(rules, own);
    let swept = ranges::sweep(spans.into_iter(), &indifferent, rows)?;
    for (i, &(start, row)) in swept.iter().enumerate().filter(|(_, range)| range.0 < 65536) {
        let end = swept.get(i + 1).map_or(65536, |next| next.0.min(65536));
        table[start as usize..end as usize].fill(row);
    }
    rows.of(&indifferent)
}

fn by_key(rules: &[Match], key: impl Fn(&Match) -> Option<u32>, rows: &mut Rows) -> Result<abi::sl_keys, MatchError> {
    let indifferent = rules_without(rules, |rule| key(rule).is_some());
    let mut asking: BTreeMap<u32, RuleSet> = BTreeMap::new();
    for (i, key) in rules.iter().enumerate().filter_map(|(i, rule)| Some((i, key(rule)?))) {
        asking.entry(key).or_insert_with(|| indifferent.clone()).insert(i);
    }
    let none = rows.of(&indifferent)?;
    let keys = asking.into_iter().map(|(key, set)| Ok((key, rows.of(&set)?))).collect::<Result<Vec<_>, _>>()?;
    keys::table(&keys, none)
}

fn fields(rules: &[Match]) -> u16 {
    let asks = |field: u32, asks: &dyn Fn(&Match) -> bool| if rules.iter().any(asks) { field as u16 } else { 0 };
    asks(abi::SL_FIELD_PROTO, &|rule| rule.proto != Proto::Any)
        | asks(abi::SL_FIELD_SRC, &|rule| !rule.src.is_empty())
        | asks(abi::SL_FIELD_DST, &|rule| !rule.dst.is_empty())
        | asks(abi::SL_FIELD_SPORT, &|rule| !rule.src_ports.is_empty())
        | asks(abi::SL_FIELD_DPORT, &|rule| !rule.dst_ports.is_empty())
        | asks(abi::SL_FIELD_DSCP, &|rule| rule.dscp.is_some())
        | asks(abi::SL_FIELD_VLAN, &|rule| rule.vlan.is_some())
        | asks(abi::SL_FIELD_PCP, &|rule| rule.pcp.is_some())
        | asks(abi::SL_FIELD_TCP_FLAGS, &|rule| rule.tcp_flags.is_some())
        | asks(abi::SL_FIELD_ICMP, &|rule| rule.icmp.is_some())
        | asks(abi::SL_FIELD_LENGTH, &|rule| rule.length.is_some())
        | asks(abi::SL_FIELD_INTERFACE, &|rule| rule.interface.is_some())
        | asks(abi::SL_FIELD_MARK, &|rule| rule.mark.is_some())
}

/// The bits of `sl_metadata` and `sl_metadata_mark` (bpf/lib/flows.h) that these fields look at.
fn metadata(fields: u32) -> (u64, u64) {
    let bits = |field: u32, bits: u64| if fields & field != 0 { bits } else { 0 };
    let headers = bits(abi::SL_FIELD_VLAN, 0xffff)
        | bits(abi::SL_FIELD_TCP_FLAGS, 0xffff << 16)
        | bits(abi::SL_FIELD_ICMP, 0xffff << 32)
        | bits(abi::SL_FIELD_DSCP, 0xff << 48)
        | bits(abi::SL_FIELD_PCP, 0xff << 56);
    let others = bits(abi::SL_FIELD_MARK, 0xffff_ffff) | bits(abi::SL_FIELD_INTERFACE, 0xffff_ffff << 32);
    (headers, others)
}
