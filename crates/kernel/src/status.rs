//! What an interface's queues and hooks have done: read from the pinned maps, and for engine `tc` from tc.

use crate::error::Result;
use crate::record::{Engine, Phase, Record};
use crate::{bpffs, htb, iproute, manage, managed, recorded, tables};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use serde::{Deserialize, Serialize};
use sluice_abi as abi;
use std::collections::BTreeMap;
use std::path::Path;

/// A managed interface at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// Name of the interface.
    pub interface: String,
    /// Its number.
    pub ifindex: u32,
    /// How far the last command came.
    pub phase: Phase,
    /// What queues: qdisc, tc or none.
    pub engine: Engine,
    /// What classifies on arrival.
    pub classifier: crate::record::Hook,
    /// Type of the root qdisc, with engine `qdisc`.
    pub qdisc: String,
    /// Whether its queues are still in place; something else may have replaced them.
    pub in_place: bool,
    /// The policy in force.
    pub policy: PolicyStatus,
    /// What happens unless it is confirmed.
    pub unconfirmed: Option<UnconfirmedStatus>,
    /// Rate that departures are shaped to, bits per second.
    pub rate_bps: Option<u64>,
    /// Rate that arrivals are shaped to, bits per second.
    pub ingress_rate_bps: Option<u64>,
    /// Whether super-packets are split on their way out.
    pub split: bool,
    /// Queues with a scheduler each; 0: one serves all.
    pub queues: u32,
    /// Departures, and arrivals where they are queued or counted.
    pub directions: Vec<DirectionStatus>,
    /// The rules in the order in which they are asked, and what matched.
    pub rules: Vec<RuleStatus>,
    /// What matched no rule.
    pub unmatched: Count,
}

/// The policy in force.
#[derive(Debug, Clone, Serialize)]
pub struct PolicyStatus {
    /// Its name.
    pub name: String,
    /// Where it was read from.
    pub source: String,
    /// The discipline.
    pub scheduler: String,
    /// Number of the configuration.
    pub generation: u32,
    /// When it was applied, seconds since 1970.
    pub applied_s: u64,
}

/// The policy in force waits to be confirmed.
#[derive(Debug, Clone, Serialize)]
pub struct UnconfirmedStatus {
    /// Time until it is taken back, seconds.
    pub left_s: u64,
    /// Name of the policy that is brought back then.
    pub former: String,
}

/// Packets and their bytes. A super-packet counts as its segments where hooks count, as one where qdiscs do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Packets.
    pub pkts: u64,
    /// Bytes, link-layer header included.
    pub bytes: u64,
}

/// One direction.
#[derive(Debug, Clone, Serialize)]
pub struct DirectionStatus {
    /// egress or ingress.
    pub direction: &'static str,
    /// Whether packets are queued; else only counted.
    pub queued: bool,
    /// Classes by id.
    pub classes: Vec<ClassStatus>,
    /// Packets by what the parser made of them, where it saw them.
    pub parsed: BTreeMap<&'static str, Count>,
}

/// One class in one direction.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ClassStatus {
    /// Its number.
    pub id: u8,
    /// Its name.
    pub name: String,
    /// What left.
    pub sent: Count,
    /// What was dropped.
    pub dropped: Count,
    /// Of that, packets by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// Now in the queue.
    pub backlog: Count,
    /// The most bytes that were ever in the queue.
    pub peak_backlog_bytes: Option<u64>,
    /// Median time in the queue, microseconds, to 25 %.
    pub sojourn_p50_us: Option<f64>,
    /// 99th percentile of it.
    pub sojourn_p99_us: Option<f64>,
    /// Deficit round robin's credit, bytes; negative: debt.
    pub deficit_bytes: Option<i64>,
    /// What the class may not exceed, bits per second.
    pub ceil_bps: Option<u64>,
    /// What the class is guaranteed, bits per second.
    pub rate_bps: Option<u64>,
}

/// A rule and what it matched.
#[derive(Debug, Clone, Serialize)]
pub struct RuleStatus {
    /// Its name, if it has one.
    pub name: String,
    /// Its priority; built-in rules have none.
    pub priority: Option<u32>,
    /// Its line in the policy file.
    pub line: Option<u16>,
    /// Its class.
    pub class: u8,
    /// What it matched.
    pub matched: Count,
}

/// The status of an interface in the process's namespace.
pub fn of(interface: &str) -> Result<Status> {
    manage::require_root()?;
    managed::put_right()?;
    let record = managed::managed(interface)?;
    let pins = record.pins(&bpffs::root()?);
    let live = tables::live(&pins)?;
    let resolved = recorded::resolved(&record)?;
    let mut directions = vec![direction(&record, &pins, &live, abi::SL_EGRESS)?];
    directions.push(direction(&record, &pins, &live, abi::SL_INGRESS)?);
    for direction in &mut directions {
        for class in &mut direction.classes {
            let known = resolved.classes.iter().find(|known| known.id.0 == class.id);
            class.ceil_bps = known.and_then(|known| known.ceil).map(|rate| rate.0);
            class.rate_bps = known.and_then(|known| known.rate).map(|rate| rate.0);
        }
    }
    let (rules, unmatched) = rules(&pins, &live)?;
    Ok(Status {
        interface: record.interface.clone(),
        ifindex: record.ifindex,
        phase: record.phase,
        engine: record.engine,
        classifier: record.hook,
        qdisc: record.qdisc.clone(),
        in_place: managed::in_place(&record)?,
        policy: PolicyStatus {
            name: record.policy_name.clone(),
            source: record.policy_source.clone(),
            scheduler: resolved.scheduler.name().to_owned(),
            generation: live.generation,
            applied_s: record.applied_s,
        },
        unconfirmed: record.unconfirmed.as_ref().map(|unconfirmed| UnconfirmedStatus {
            left_s: unconfirmed.left().as_secs_f64().ceil() as u64,
            former: unconfirmed.former.name.clone(),
        }),
        rate_bps: resolved.link_rate.map(|rate| rate.0),
        ingress_rate_bps: record.ingress_rate_bps,
        split: record.split,
        queues: record.queues,
        directions,
        rules,
        unmatched,
    })
}

fn direction(record: &Record, pins: &Path, live: &abi::sl_tables, direction: u32) -> Result<DirectionStatus> {
    let egress = direction == abi::SL_EGRESS;
    let device = if egress { record.interface.clone() } else { record.ingress_device() };
    let queued = record.engine != Engine::None && (egress || record.ingress_rate_bps.is_some());
    let mut classes: Vec<ClassStatus> = (0..abi::SL_CLASSES as usize)
        .filter(|id| live.classes >> id & 1 == 1)
        .map(|id| ClassStatus { id: id as u8, name: text(&live.class_name[id]), ..ClassStatus::default() })
        .collect();
    let hooks = class_counts(&tables::open(pins, "class_counts")?, direction)?;
    for class in &mut classes {
        let hook = &hooks[usize::from(class.id)];
        for (reason, count) in abi::limit_names().zip(hook.refused).chain([("malformed", hook.malformed)]) {
            class.dropped.add(count);
            add_drops(class, reason, count.pkts);
        }
        if !queued {
            class.sent = hook.seen;
            hook.refused.into_iter().for_each(|count| class.sent.take(count));
        }
    }
    match record.engine {
        Engine::Qdisc if queued => add_schedulers(&mut classes, pins, &device)?,
        Engine::Tc if queued => add_htb(&mut classes, &device)?,
        _ => {}
    }
    Ok(DirectionStatus {
        direction: if egress { "egress" } else { "ingress" },
        queued,
        classes,
        parsed: parsed(pins, direction, live)?,
    })
}

fn add_drops(class: &mut ClassStatus, reason: &'static str, pkts: u64) {
    if pkts > 0 {
        *class.drops.entry(reason).or_default() += pkts;
    }
}

impl Count {
    fn add(&mut self, other: Count) {
        self.pkts += other.pkts;
        self.bytes += other.bytes;
    }

    fn take(&mut self, other: Count) {
        self.pkts = self.pkts.saturating_sub(other.pkts);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

impl From<abi::sl_count> for Count {
    fn from(count: abi::sl_count) -> Count {
        Count { pkts: count.pkts, bytes: count.bytes }
    }
}

/// The schedulers that run, with engine `qdisc`: their numbers and states.
pub(crate) fn schedulers(pins: &Path) -> Result<Vec<(u32, Box<abi::sl_sched>)>> {
    let state = tables::open(pins, "state")?;
    let instances = libbpf_rs::MapInfo::new(std::os::fd::AsFd::as_fd(&state)).map_or(0, |info| info.info.max_entries);
    let all: Result<Vec<_>> = (0..instances).map(|n| Ok((n, tables::read::<abi::sl_sched>(&state, n)?))).collect();
    Ok(all?.into_iter().filter(|(_, sched)| sched.ifindex != 0).collect())
}

/// Those of a device.
pub(crate) fn schedulers_of(pins: &Path, device: &str) -> Result<Vec<(u32, Box<abi::sl_sched>)>> {
    let ifindex = nix::net::if_::if_nametoindex(device).unwrap_or(0);
    Ok(schedulers(pins)?.into_iter().filter(|(_, sched)| sched.ifindex == ifindex).collect())
}

/// Adds what the schedulers of a device hold: one, or one for each of its queues.
fn add_schedulers(classes: &mut [ClassStatus], pins: &Path, device: &str) -> Result<()> {
    let mut waits = vec![vec![0u64; abi::SL_SOJOURN_BUCKETS as usize]; abi::SL_CLASSES as usize];
    for (_, sched) in schedulers_of(pins, device)? {
        for class in classes.iter_mut() {
            let id = usize::from(class.id);
            let own = &sched.classes[id];
            class.sent.add(Count { pkts: own.sent_pkts, bytes: own.sent_bytes });
            class.backlog.add(Count { pkts: own.backlog_pkts.into(), bytes: own.backlog_bytes.into() });
            class.dropped.add(Count { pkts: own.dropped_pkts.iter().sum(), bytes: own.dropped_bytes });
            for reason in abi::drop_reasons() {
                add_drops(class, reason.name, own.dropped_pkts[reason.index as usize]);
            }
            class.peak_backlog_bytes = Some(class.peak_backlog_bytes.unwrap_or(0).max(own.peak_backlog_bytes));
            class.deficit_bytes = Some(own.deficit_bytes.into());
            for (sum, count) in waits[id].iter_mut().zip(&sched.sojourn[id].count) {
                *sum += count;
            }
        }
    }
    for class in classes {
        let waits = &waits[usize::from(class.id)];
        class.sojourn_p50_us = percentile_us(waits, 0.50);
        class.sojourn_p99_us = percentile_us(waits, 0.99);
    }
    Ok(())
}

/// The middle of the bucket in which the quantile lies, microseconds.
fn percentile_us(counts: &[u64], quantile: f64) -> Option<f64> {
    let total: u64 = counts.iter().sum();
    let rank = (total as f64 * quantile).ceil() as u64;
    let mut seen = 0;
    for (bucket, count) in counts.iter().enumerate() {
        seen += count;
        if *count > 0 && seen >= rank {
            let (from, to) = abi::sojourn_bucket_ns(bucket);
            return Some((from + to) as f64 / 2e3);
        }
    }
    None
}

/// The queue of an HTB class. (tc shows qdiscs as JSON, but not classes.)
#[derive(Debug, Deserialize)]
struct Leaf {
    #[serde(default)]
    parent: String,
    bytes: u64,
    packets: u64,
    drops: u64,
    #[serde(default)]
    backlog: u64,
    #[serde(default)]
    qlen: u64,
}

fn leaves(device: &str) -> Result<Vec<Leaf>> {
    iproute::json("tc", &format!("-s -j qdisc show dev {device}"))
}

fn leaf(leaves: &[Leaf], class: u8) -> Option<&Leaf> {
    let parent = htb::parent_of(class);
    leaves.iter().find(|leaf| leaf.parent == parent)
}

/// What waits in the queue of a class below HTB.
pub(crate) fn queued_pkts(device: &str, class: u8) -> Result<u64> {
    Ok(leaf(&leaves(device)?, class).map_or(0, |leaf| leaf.qlen))
}

fn add_htb(classes: &mut [ClassStatus], device: &str) -> Result<()> {
    let leaves = leaves(device)?;
    for class in classes {
        let Some(leaf) = leaf(&leaves, class.id) else { continue };
        class.sent.add(Count { pkts: leaf.packets, bytes: leaf.bytes });
        class.backlog.add(Count { pkts: leaf.qlen, bytes: leaf.backlog });
        class.dropped.pkts += leaf.drops;
        add_drops(class, "queue", leaf.drops);
    }
    Ok(())
}

fn per_cpu<T: abi::Pod>(map: &MapHandle, keys: std::ops::Range<u32>) -> Result<Vec<Vec<Box<T>>>> {
    keys.map(|key| {
        let values = map.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY).ok().flatten().unwrap_or_default();
        Ok(values.iter().filter_map(|bytes| abi::read_pod::<T>(bytes)).collect())
    })
    .collect()
}

/// What the hooks before the queues have counted of a class.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HookCount {
    pub seen: Count,
    /// By `enum sl_limit`.
    pub refused: [Count; abi::SL_LIMITS as usize],
    pub malformed: Count,
}

/// By class, from the map `class_counts`.
pub(crate) fn class_counts(map: &MapHandle, direction: u32) -> Result<Vec<HookCount>> {
    let first = direction * abi::SL_CLASSES;
    let counts = per_cpu::<abi::sl_class_count>(map, first..first + abi::SL_CLASSES)?;
    let sum = |cpus: Vec<Box<abi::sl_class_count>>| {
        let mut sum = HookCount::default();
        for cpu in cpus {
            sum.seen.add(cpu.seen.into());
            sum.refused.iter_mut().zip(cpu.refused).for_each(|(sum, refused)| sum.add(refused.into()));
            sum.malformed.add(cpu.malformed.into());
        }
        sum
    };
    Ok(counts.into_iter().map(sum).collect())
}

fn counts(pins: &Path, map: &str, keys: std::ops::Range<u32>) -> Result<Vec<Count>> {
    let counts = per_cpu::<abi::sl_count>(&tables::open(pins, map)?, keys)?;
    let sum = |cpus: Vec<Box<abi::sl_count>>| {
        let mut sum = Count::default();
        cpus.into_iter().for_each(|cpu| sum.add((*cpu).into()));
        sum
    };
    Ok(counts.into_iter().map(sum).collect())
}

/// How many headers were of each kind. Plain IPv4, the commonest, is not counted by the programs: it is what is left.
fn parsed(pins: &Path, direction: u32, live: &abi::sl_tables) -> Result<BTreeMap<&'static str, Count>> {
    let first = direction * abi::SL_PARSES;
    let mut counts = counts(pins, "parse_counts", first..first + abi::SL_PARSES)?;
    let mut left = Count::default();
    rule_counts(pins, direction, live)?.into_iter().for_each(|count| left.add(count));
    for other in &counts {
        left.pkts = left.pkts.saturating_sub(other.pkts);
        left.bytes = left.bytes.saturating_sub(other.bytes);
    }
    counts[abi::SL_PARSE_IPV4 as usize] = left;
    Ok(abi::parse_kinds()
        .zip(counts)
        .filter(|(_, count)| count.pkts > 0)
        .map(|(kind, count)| (kind.name, count))
        .collect())
}

/// Of the policy's rules, then of `enum sl_no_rule`.
fn rule_counts(pins: &Path, direction: u32, live: &abi::sl_tables) -> Result<Vec<Count>> {
    let first = direction * abi::SL_RULE_COUNTS;
    let mut own = counts(pins, "rule_counts", first..first + live.rules)?;
    own.extend(counts(pins, "rule_counts", first + abi::SL_RULES..first + abi::SL_RULE_NONE + 1)?);
    Ok(own)
}

/// The built-in rules, in the order of `enum sl_no_rule` from `SL_RULE_ARP` on.
pub(crate) const BUILTIN: [&str; 4] = ["ARP", "neighbour discovery", "DHCP", "DHCPv6"];

/// The rules in the order in which they are asked, and what none of them matched.
fn rules(pins: &Path, live: &abi::sl_tables) -> Result<(Vec<RuleStatus>, Count)> {
    let mut counts = rule_counts(pins, abi::SL_EGRESS, live)?;
    for (count, arrived) in counts.iter_mut().zip(rule_counts(pins, abi::SL_INGRESS, live)?) {
        count.add(arrived);
    }
    let own = live.rule.iter().take(live.rules as usize).zip(&counts).map(|(rule, matched)| RuleStatus {
        name: text(&rule.name),
        priority: Some(rule.priority),
        line: (rule.line > 0).then_some(rule.line),
        class: rule.class,
        matched: *matched,
    });
    let mut rules: Vec<RuleStatus> = own.collect();
    if u32::from(live.class_from) == abi::SL_FROM_RULES {
        let builtin = BUILTIN.iter().zip(&counts[live.rules as usize..]).map(|(name, matched)| RuleStatus {
            name: (*name).to_owned(),
            priority: None,
            line: None,
            class: live.urgent_class,
            matched: *matched,
        });
        let at = (live.control_from as usize).min(rules.len());
        rules.splice(at..at, builtin);
    }
    Ok((rules, counts[live.rules as usize + BUILTIN.len()]))
}

pub(crate) fn text(name: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = name.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_in_their_bucket() {
        let mut counts = vec![0; abi::SL_SOJOURN_BUCKETS as usize];
        assert_eq!(percentile_us(&counts, 0.5), None);
        counts[2] = 98;
        counts[40] = 2;
        let (from, to) = abi::sojourn_bucket_ns(40);
        assert_eq!(percentile_us(&counts, 0.5), Some(2.56));
        assert!((from as f64 / 1e3..to as f64 / 1e3).contains(&percentile_us(&counts, 0.99).unwrap_or(0.0)));
    }
}
