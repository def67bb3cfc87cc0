//! The table of flows, read whole.

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
    /// Time of the last packet, CLOCK_MONOTONIC, ns.
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
    /// Most flows that the table keeps: beyond, the least recently used make room.
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

/// Entries that are read at once. No bucket of the table has nearly as many.
const BATCH: usize = 4096;

/// Every flow of a table. A flow that comes or goes meanwhile may be missed.
pub(crate) fn read(map: &MapHandle) -> Result<Vec<FlowCount>> {
    let (key_bytes, value_bytes) = (size_of::<abi::sl_flow_key>(), size_of::<abi::sl_flow>());
    if (map.key_size() as usize, map.value_size() as usize) != (key_bytes, value_bytes) {
        return Err(Error::system("the map flows does not hold what this version expects")
            .help("it was made by another version of sluice: use that one for `sluice down`, then this one"));
    }
    let mut flows = Vec::new();
    let (mut keys, mut values) = (vec![0u8; BATCH * key_bytes], vec![0u8; BATCH * value_bytes]);
    // The place at which the kernel has stopped: a bucket's number, in as many bytes as a key at most.
    let mut place = vec![0u8; key_bytes.max(8)];
    let mut begun = false;
    let options = libbpf_sys::bpf_map_batch_opts {
        sz: size_of::<libbpf_sys::bpf_map_batch_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    loop {
        let mut count = BATCH as u32;
        let from = if begun { place.as_mut_ptr() } else { std::ptr::null_mut() };
        // SAFETY: the buffers hold `count` keys and values, the sizes are those of the map, and `place` is a whole key.
        let result = unsafe {
            libbpf_sys::bpf_map_lookup_batch(
                map.as_fd().as_raw_fd(),
                from.cast(),
                place.as_mut_ptr().cast(),
                keys.as_mut_ptr().cast(),
                values.as_mut_ptr().cast(),
                &mut count,
                &options,
            )
        };
        let ended = match -result {
            0 => false,
            libc::ENOENT => true,
            libc::EINTR | libc::EAGAIN => continue,
            error => {
                let error = std::io::Error::from_raw_os_error(error);
                return Err(Error::system(format!("reading the table of flows: {error}")));
            }
        };
        let pairs = keys.chunks_exact(key_bytes).zip(values.chunks_exact(value_bytes)).take(count as usize);
        flows.extend(pairs.filter_map(|(key, value)| {
            let (key, value) = (abi::read_pod::<abi::sl_flow_key>(key)?, abi::read_pod::<abi::sl_flow>(value)?);
            Some(flow(&key, &value))
        }));
        if ended {
            return Ok(flows);
        }
        begun = true;
    }
}

fn flow(key: &abi::sl_flow_key, value: &abi::sl_flow) -> FlowCount {
    let address = |bytes: [u8; 16]| Ipv6Addr::from(bytes).to_canonical();
    let port = |port: u16| (key.has_ports != 0).then_some(port);
    FlowCount {
        key: FlowKey {
            protocol: key.proto,
            src: address(key.src),
            src_port: port(key.sport),
            dst: address(key.dst),
            dst_port: port(key.dport),
            arriving: u32::from(key.direction) == abi::SL_INGRESS,
        },
        pkts: value.pkts,
        bytes: value.bytes,
        first_ns: value.first_ns,
        last_ns: value.last_ns,
        generation: (value.choice >> 32) as u32,
        class: ((value.choice >> 16) & 0xffff) as u8,
        rule: (value.choice & 0xffff) as u16,
    }
}
