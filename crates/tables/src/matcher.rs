//! The bit-vector tables: for each field, each value's row of the rules that it satisfies.

use crate::bitmap::{Rows, RuleSet};
use crate::error::MatchError;
use crate::rule::{Match, Proto};
use ipnet::IpNet;
use sluice_abi as abi;
use std::collections::BTreeSet;

/// An entry of a prefix map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// Buffer that it belongs to.
    pub buffer: u32,
    /// Length in bits, of 128.
    pub bits: u32,
    /// IPv6 address; IPv4 as `::ffff:a.b.c.d`.
    pub addr: [u8; 16],
    /// Row of the rules that the prefix satisfies.
    pub row: u32,
}

impl Prefix {
    /// As the key of the map.
    pub fn key(&self) -> abi::sl_prefix {
        abi::sl_prefix { prefix_bits: 32 + self.bits, buffer: self.buffer, addr: self.addr }
    }
}

/// Fills everything in `t` that [matching](crate) reads. Returns the source and destination prefixes.
pub(crate) fn fill(
    t: &mut abi::sl_tables,
    rules: &[Match],
    buffer: u32,
) -> Result<(Vec<Prefix>, Vec<Prefix>), MatchError> {
    if rules.len() > abi::SL_RULES as usize {
        return Err(MatchError::TooManyRules);
    }
    let mut rows = Rows::default();
    let set = |admits: &dyn Fn(&Match) -> bool| -> RuleSet {
        rules.iter().enumerate().filter(|(_, rule)| admits(rule)).map(|(i, _)| i).collect()
    };

    for (index, row) in (0..=abi::SL_PROTO_OTHER).zip(t.proto_row.iter_mut()) {
        *row = rows.of(set(&|rule| rule.admits(index)))?;
    }
    t.src_none_row = rows.of(set(&|rule| rule.src.is_none()))?;
    t.dst_none_row = rows.of(set(&|rule| rule.dst.is_none()))?;
    t.sport_none_row = rows.of(set(&|rule| rule.src_ports.is_none()))?;
    t.dport_none_row = rows.of(set(&|rule| rule.dst_ports.is_none()))?;
    t.dscp_none_row = rows.of(set(&|rule| rule.dscp.is_none()))?;
    t.vlan_none_row = rows.of(set(&|rule| rule.vlan.is_none()))?;
    for (value, row) in t.dscp_row.iter_mut().enumerate() {
        *row = rows.of(set(&|rule| rule.dscp.is_none_or(|own| usize::from(own) == value)))?;
    }
    t.vlan_row.fill(t.vlan_none_row);
    for vlan in rules.iter().filter_map(|rule| rule.vlan) {
        t.vlan_row[usize::from(vlan)] = rows.of(set(&|rule| rule.vlan.is_none_or(|own| own == vlan)))?;
    }
    ports(&mut t.sport_row, rules, |rule| rule.src_ports, &mut rows)?;
    ports(&mut t.dport_row, rules, |rule| rule.dst_ports, &mut rows)?;
    let src = prefixes(rules, |rule| rule.src, buffer, &mut rows)?;
    let dst = prefixes(rules, |rule| rule.dst, buffer, &mut rows)?;

    rows.write(&mut t.row);
    t.rule_words = rules.len().div_ceil(64) as u8;
    t.fields = fields(rules);
    Ok((src, dst))
}

fn fields(rules: &[Match]) -> u16 {
    let asks = |field: u32, asks: &dyn Fn(&Match) -> bool| if rules.iter().any(asks) { field as u16 } else { 0 };
    asks(abi::SL_FIELD_PROTO, &|rule| rule.proto != Proto::Any)
        | asks(abi::SL_FIELD_SRC, &|rule| rule.src.is_some())
        | asks(abi::SL_FIELD_DST, &|rule| rule.dst.is_some())
        | asks(abi::SL_FIELD_SPORT, &|rule| rule.src_ports.is_some())
        | asks(abi::SL_FIELD_DPORT, &|rule| rule.dst_ports.is_some())
        | asks(abi::SL_FIELD_DSCP, &|rule| rule.dscp.is_some())
        | asks(abi::SL_FIELD_VLAN, &|rule| rule.vlan.is_some())
}

/// Ports fall into intervals between the ends of the rules' ranges; a whole interval has one row.
fn ports(
    table: &mut [u16; 65536],
    rules: &[Match],
    range: impl Fn(&Match) -> Option<(u16, u16)>,
    rows: &mut Rows,
) -> Result<(), MatchError> {
    let mut starts: BTreeSet<u32> = [0].into();
    for (low, high) in rules.iter().filter_map(&range) {
        starts.extend([u32::from(low), u32::from(high) + 1]);
    }
    let starts: Vec<u32> = starts.into_iter().chain([65536]).collect();
    for interval in starts.windows(2) {
        let (from, to) = (interval[0] as usize, (interval[1] as usize).min(65536));
        let inside =
            |rule: &Match| range(rule).is_none_or(|(low, high)| (usize::from(low)..=usize::from(high)).contains(&from));
        let row = rows.of(rules.iter().enumerate().filter(|(_, rule)| inside(rule)).map(|(i, _)| i).collect())?;
        if from < to {
            table[from..to].fill(row);
        }
    }
    Ok(())
}

/// Each distinct prefix with the rules that ask for it, for one that contains it, or for none.
fn prefixes(
    rules: &[Match],
    net: impl Fn(&Match) -> Option<IpNet>,
    buffer: u32,
    rows: &mut Rows,
) -> Result<Vec<Prefix>, MatchError> {
    let mut nets: BTreeSet<IpNet> = rules.iter().filter_map(&net).collect();
    if nets.iter().any(|net| matches!(net, IpNet::V6(_))) {
        // IPv4 lies inside ::/0 as the map sees it: this entry keeps it apart.
        nets.insert(IpNet::V4(ipnet::Ipv4Net::default()));
    }
    nets.into_iter()
        .map(|prefix| {
            let covers = |rule: &Match| net(rule).is_none_or(|own| own.contains(&prefix));
            let row = rows.of(rules.iter().enumerate().filter(|(_, rule)| covers(rule)).map(|(i, _)| i).collect())?;
            let (addr, bits) = match prefix {
                IpNet::V4(v4) => (v4.network().to_ipv6_mapped().octets(), 96 + u32::from(v4.prefix_len())),
                IpNet::V6(v6) => (v6.network().octets(), u32::from(v6.prefix_len())),
            };
            Ok(Prefix { buffer, bits, addr, row: u32::from(row) })
        })
        .collect()
}
