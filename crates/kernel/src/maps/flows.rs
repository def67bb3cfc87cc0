//! The table of flows, read whole.

use crate::system::clock;
use libbpf_rs::{MapCore, MapHandle};
use serde::Serialize;
use sluice_abi as abi;
use sluice_error::{Error, Result};
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};

/// Identity of a flow: the fields that its packets have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct FlowKey {
    /// IP protocol number.
    pub protocol: u16,
    /// Source address.
    pub src: IpAddr,
    /// Source port. None: the protocol has none.
    pub src_port: Option<u16>,
    /// Destination address.
    pub dst: IpAddr,
    /// Destination port.
    pub dst_port: Option<u16>,
    /// Whether the flow's packets arrive; else they depart.
    pub arriving: bool,
}

impl FlowKey {
    /// The flow in the opposite direction.
    pub fn reverse(self) -> FlowKey {
        FlowKey {
            src: self.dst,
            src_port: self.dst_port,
            dst: self.src,
            dst_port: self.src_port,
            arriving: !self.arriving,
            ..self
        }
    }
}

/// A flow and its counters, taken before the queues: packets that are dropped there are counted too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowCount {
    /// Identity of the flow.
    pub key: FlowKey,
    /// Packets; a super-packet counts as its segments.
    pub pkts: u64,
    /// Bytes, link-layer header included.
    pub bytes: u64,
    /// Time of the first packet, CLOCK_MONOTONIC, ns.
    pub first_ns: u64,
    /// Time of the last packet, CLOCK_MONOTONIC, ns: up to 2^20 ns too early.
    pub last_ns: u64,
    /// Number of the configuration that chose its class.
    pub generation: u32,
    /// Class of the flow, by number.
    pub class: u8,
    /// Rule of the flow, by its index in [`FlowTable::rules`].
    pub rule: u16,
}

/// The flow table of an interface.
#[derive(Debug, Clone, Default)]
pub struct FlowTable {
    /// The flows, in no order.
    pub flows: Vec<FlowCount>,
    /// Most flows that the table keeps. A new flow takes the place of the one of a few that has been silent for longest.
    pub capacity: u32,
    /// Names of the rules in force, by index; built-in rules and the default have the indices of `enum sl_no_rule`.
    pub rules: Vec<(u16, String)>,
    /// Number of the configuration in force: a choice by another one is out of date.
    pub generation: u32,
}

impl FlowTable {
    /// The name of the rule that chose a flow's class. None: the rules have changed since.
    pub fn rule_name(&self, flow: &FlowCount) -> Option<&str> {
        if flow.generation != self.generation {
            return None;
        }
        let place = self.rules.binary_search_by_key(&flow.rule, |(index, _)| *index).ok()?;
        Some(&self.rules[place].1)
    }
}

/// Sets of flows that are read at once.
const BATCH: usize = 1024;

/// Every flow of a table. A flow that comes or goes meanwhile may be missed.
pub(crate) fn read(map: &MapHandle) -> Result<Vec<FlowCount>> {
    if (map.key_size() as usize, map.value_size() as usize) != (size_of::<u32>(), size_of::<abi::sl_flow_set>()) {
        return Err(Error::system("the map flows does not hold what this version expects")
            .help("it was made by another version of sluice: use that one for `sluice down`, then this one"));
    }
    let now_ns = clock::monotonic().as_nanos() as u64;
    let mut flows = Vec::new();
    let mut behind = None;
    loop {
        // The kernel copies sets while programs may write to them. An entry that has the same key in a second copy is not half of another.
        let (batch, again) = (Batch::read(map, behind)?, Batch::read(map, behind)?);
        for (set, again) in batch.sets().zip(again.sets()) {
            for ((entry, detail), again) in set.flow.iter().zip(&set.detail).zip(&again.flow) {
                if is_complete(entry) && is_complete(again) && entry.key == again.key {
                    flows.push(flow(entry, detail, now_ns));
                }
            }
        }
        if batch.is_last {
            return Ok(merged(flows));
        }
        behind = Some(batch.last);
    }
}

/// Whether an entry has a flow, and is not being replaced.
fn is_complete(entry: &abi::sl_flow) -> bool {
    entry.choice > u64::from(abi::SL_FLOW_CLAIMED)
}

/// Flows, each once: two CPUs that see the first packets of a flow at the same moment may both enter it.
fn merged(mut flows: Vec<FlowCount>) -> Vec<FlowCount> {
    flows.sort_unstable_by_key(|flow| (flow.key, flow.first_ns));
    flows.dedup_by(|later, first| {
        let same = later.key == first.key;
        if same {
            let last = if later.last_ns > first.last_ns { *later } else { *first };
            *first = FlowCount {
                pkts: first.pkts + later.pkts,
                bytes: first.bytes + later.bytes,
                first_ns: first.first_ns,
                ..last
            };
        }
        same
    });
    flows
}

/// Successive sets of a table.
struct Batch {
    bytes: Vec<u8>,
    /// Number of the last of them.
    last: u32,
    /// Whether no set is behind it.
    is_last: bool,
}

impl Batch {
    /// Reads the sets behind the one with this number. None: the first ones.
    fn read(map: &MapHandle, behind: Option<u32>) -> Result<Batch> {
        let (mut keys, mut bytes) = (vec![0u32; BATCH], vec![0u8; BATCH * size_of::<abi::sl_flow_set>()]);
        let (mut from, mut last) = (behind.unwrap_or(0), 0u32);
        let options = libbpf_sys::bpf_map_batch_opts {
            sz: size_of::<libbpf_sys::bpf_map_batch_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        loop {
            let mut count = BATCH as u32;
            let from = if behind.is_some() { &raw mut from } else { std::ptr::null_mut() };
            // SAFETY: the buffers hold `count` keys and values, the sizes are those of the map, and `from` and `last` are keys.
            let result = unsafe {
                libbpf_sys::bpf_map_lookup_batch(
                    map.as_fd().as_raw_fd(),
                    from.cast(),
                    (&raw mut last).cast(),
                    keys.as_mut_ptr().cast(),
                    bytes.as_mut_ptr().cast(),
                    &mut count,
                    &options,
                )
            };
            match -result {
                0 | libc::ENOENT => {
                    bytes.truncate(count as usize * size_of::<abi::sl_flow_set>());
                    return Ok(Batch { bytes, last, is_last: result != 0 });
                }
                libc::EINTR | libc::EAGAIN => {}
                error => {
                    let error = std::io::Error::from_raw_os_error(error);
                    return Err(Error::system(format!("reading the table of flows: {error}")));
                }
            }
        }
    }

    fn sets(&self) -> impl Iterator<Item = Box<abi::sl_flow_set>> {
        self.bytes.chunks_exact(size_of::<abi::sl_flow_set>()).filter_map(abi::read_pod)
    }
}

/// An entry of the table. now_ns: CLOCK_MONOTONIC, of which the entry has the lower part in ticks.
fn flow(entry: &abi::sl_flow, detail: &abi::sl_flow_detail, now_ns: u64) -> FlowCount {
    let mut words = entry.key;
    words[4] &= !(abi::SL_FLOW_TAG as u64);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let key = abi::read_pod::<abi::sl_flow_key>(&bytes).unwrap_or_else(abi::boxed_zeroed);
    let address = |bytes: [u8; 16]| Ipv6Addr::from(bytes).to_canonical();
    let port = |port: u16| (key.has_ports != 0).then_some(u16::from_be(port));
    FlowCount {
        key: FlowKey {
            protocol: key.proto,
            src: address(key.src),
            src_port: port(key.sport),
            dst: address(key.dst),
            dst_port: port(key.dport),
            arriving: u32::from(key.direction) == abi::SL_INGRESS,
        },
        pkts: u64::from(detail.pkts_high) << 32 | u64::from(entry.pkts),
        bytes: entry.bytes,
        first_ns: detail.first_ns,
        last_ns: last_ns(entry.last_tick, now_ns).max(detail.first_ns),
        generation: (entry.choice >> 32) as u32,
        class: ((entry.choice >> 16) & 0xff) as u8 & (abi::SL_CLASSES - 1) as u8,
        rule: (entry.choice & 0xffff) as u16,
    }
}

/// The time of a tick that is in the past, or a moment ahead of this CPU's clock.
fn last_ns(tick: u32, now_ns: u64) -> u64 {
    let now = now_ns >> abi::SL_TICK_SHIFT;
    let age = (now as u32).wrapping_sub(tick);
    let ahead = tick.wrapping_sub(now as u32);
    let last = if ahead < abi::SL_TICKS_AHEAD { now + u64::from(ahead) } else { now.saturating_sub(age.into()) };
    last << abi::SL_TICK_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn ticks_are_of_the_last_weeks() {
        let tick = 1u64 << abi::SL_TICK_SHIFT;
        let far = (1u64 << 33) + 9;
        for (last, now) in [(0, 0), (5, 7), (7, 5), (u64::from(u32::MAX), 1 << 32), (far - (3 << 30), far)] {
            assert_eq!(last_ns(last as u32, now * tick), last * tick, "{last} {now}");
        }
    }

    #[test]
    fn a_flow_with_two_entries_is_one() {
        let key = |port| FlowKey {
            protocol: 17,
            src: Ipv4Addr::LOCALHOST.into(),
            src_port: Some(port),
            dst: Ipv4Addr::LOCALHOST.into(),
            dst_port: Some(9),
            arriving: false,
        };
        let count = |port, pkts, first_ns, last_ns, class| FlowCount {
            key: key(port),
            pkts,
            bytes: 100 * pkts,
            first_ns,
            last_ns,
            generation: 1,
            class,
            rule: 0,
        };
        let flows = merged(vec![count(1, 5, 10, 90, 3), count(2, 7, 20, 30, 1), count(1, 2, 11, 12, 4)]);
        assert_eq!(flows, [count(1, 7, 10, 90, 3), count(2, 7, 20, 30, 1)]);
    }
}
