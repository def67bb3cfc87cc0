//! What was counted by key, read from the programs' maps.

use super::attachment::Attachment;
use super::request::{CELL_PARTS, Request};
use sluice_abi as abi;
use std::collections::HashMap;
use std::net::IpAddr;

/// A key, as far as it was asked for. None: not asked for, or the packet has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Whether the packets departed.
    pub departing: Option<bool>,
    /// IP protocol number; 256 neighbour discovery, 257 ARP, 258 neither IP nor ARP.
    pub protocol: Option<u16>,
    /// Number of the class.
    pub class: Option<u8>,
    /// DSCP.
    pub dscp: Option<u8>,
    /// `enum sl_verdict`.
    pub verdict: Option<u8>,
    /// Id of the outer VLAN tag.
    pub vlan: Option<u16>,
    /// Source port.
    pub src_port: Option<u16>,
    /// Destination port.
    pub dst_port: Option<u16>,
    /// First address of the source's network.
    pub src: Option<IpAddr>,
    /// First address of the destination's network.
    pub dst: Option<IpAddr>,
}

/// What was counted of a key: at least this, and at most as much more as was missed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// The key.
    pub key: Key,
    /// Packets. Super-packets count as the frames that they become.
    pub pkts: u64,
    /// Bytes, with link headers.
    pub bytes: u64,
    /// Packets that the key may have had beside these.
    pub pkts_missed: u64,
    /// Bytes that it may have had beside these.
    pub bytes_missed: u64,
}

/// How much a key can have sent at most that is not among those that were counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rest {
    /// Packets.
    pub pkts: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The keys that were counted by a request, those with most bytes first.
pub(super) fn read(request: &Request, attachment: &Attachment) -> (Vec<Counted>, Rest) {
    let (mut counted, rest) = if request.is_dense() {
        (cells(request.key_bits(), attachment), Rest::default())
    } else {
        heavy(request, attachment)
    };
    counted.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.key.cmp(&b.key)));
    (counted, rest)
}

fn cells(parts: u32, attachment: &Attachment) -> Vec<Counted> {
    let mut sums = vec![(0u64, 0u64); 1 << abi::SL_CELL_BITS];
    for (n, cell) in attachment.cells.values().enumerate() {
        // SAFETY: `values` gives addresses of whole values, which stay mapped.
        let cell = unsafe { cell.read_volatile() };
        let sum = &mut sums[n & ((1 << abi::SL_CELL_BITS) - 1)];
        *sum = (sum.0 + cell.pkts, sum.1 + cell.bytes);
    }
    let used = sums.iter().enumerate().filter(|(_, (pkts, _))| *pkts > 0);
    used.map(|(cell, &(pkts, bytes))| Counted {
        key: key_of_cell(parts, cell as u32),
        pkts,
        bytes,
        ..Counted::default()
    })
    .collect()
}

/// The key of a cell: its number has the parts one after the other, the first in the highest bits.
fn key_of_cell(parts: u32, mut cell: u32) -> Key {
    let mut key = Key::default();
    for (part, bits) in CELL_PARTS.iter().rev().filter(|(part, _)| parts & part != 0) {
        let value = cell & ((1 << bits) - 1);
        cell >>= bits;
        let known = (value != (1 << bits) - 1).then_some(value);
        match *part {
            abi::SL_KEY_DIRECTION => key.departing = Some(value == abi::SL_EGRESS),
            abi::SL_KEY_PROTO => key.protocol = Some(value as u16),
            abi::SL_KEY_CLASS => key.class = known.map(|class| class as u8),
            abi::SL_KEY_DSCP => key.dscp = known.map(|dscp| dscp as u8),
            abi::SL_KEY_VERDICT => key.verdict = Some(value as u8),
            abi::SL_KEY_VLAN => key.vlan = known.map(|vlan| vlan as u16),
            abi::SL_KEY_SPORT => key.src_port = Some(value as u16),
            _ => key.dst_port = Some(value as u16),
        }
    }
    key
}

/// Keys of sets, added up over the CPUs. Where a CPU's set does not have a key, the key may have sent as much as has gone from that set.
fn heavy(request: &Request, attachment: &Attachment) -> (Vec<Counted>, Rest) {
    let sets = request.heavy_sets() as usize;
    let (mut found, mut rest) = (Vec::new(), Rest::default());
    // SAFETY: as above.
    let all: Vec<abi::sl_heavy_set> = attachment.heavy.values().map(|set| unsafe { set.read_volatile() }).collect();
    for number in 0..sets {
        let of_cpus: Vec<&abi::sl_heavy_set> = all.iter().skip(number).step_by(sets).collect();
        let (counted, gone) = merge(request.key_bits(), &of_cpus);
        found.extend(counted);
        rest = Rest { pkts: rest.pkts.max(gone.pkts), bytes: rest.bytes.max(gone.bytes) };
    }
    (found, rest)
}

/// The keys of one set of each CPU, and what any other key of these sets can have sent.
fn merge(parts: u32, sets: &[&abi::sl_heavy_set]) -> (Vec<Counted>, Rest) {
    let gone =
        Rest { pkts: sets.iter().map(|set| set.pkts_gone).sum(), bytes: sets.iter().map(|set| set.bytes_gone).sum() };
    let mut keys: HashMap<Key, Counted> = HashMap::new();
    for set in sets {
        for way in set.way.iter().filter(|way| way.pkts > 0) {
            let key = key_of(parts, &way.key);
            let counted = keys.entry(key.clone()).or_insert_with(|| Counted {
                key,
                pkts_missed: gone.pkts,
                bytes_missed: gone.bytes,
                ..Counted::default()
            });
            counted.pkts += way.pkts;
            counted.bytes += way.bytes;
            // This CPU's own bound takes the place of what has gone from its set.
            counted.pkts_missed = (counted.pkts_missed + way.pkts_missed).saturating_sub(set.pkts_gone);
            counted.bytes_missed = (counted.bytes_missed + way.bytes_missed).saturating_sub(set.bytes_gone);
        }
    }
    (keys.into_values().collect(), gone)
}

fn key_of(parts: u32, key: &abi::sl_count_key) -> Key {
    let asked = |part: u32| parts & part != 0;
    Key {
        departing: asked(abi::SL_KEY_DIRECTION).then_some(u32::from(key.direction) == abi::SL_EGRESS),
        protocol: asked(abi::SL_KEY_PROTO).then_some(key.proto),
        class: (asked(abi::SL_KEY_CLASS) && key.class != 0xff).then_some(key.class),
        dscp: (asked(abi::SL_KEY_DSCP) && key.dscp != 0xff).then_some(key.dscp),
        verdict: asked(abi::SL_KEY_VERDICT).then_some(key.verdict),
        vlan: (asked(abi::SL_KEY_VLAN) && key.vlan != 0xffff).then_some(key.vlan),
        src_port: asked(abi::SL_KEY_SPORT).then_some(key.sport),
        dst_port: asked(abi::SL_KEY_DPORT).then_some(key.dport),
        src: asked(abi::SL_KEY_SRC).then(|| address(key.src)).flatten(),
        dst: asked(abi::SL_KEY_DST).then(|| address(key.dst)).flatten(),
    }
}

/// The address of a packet; none, if that is not IP.
fn address(words: [u32; 4]) -> Option<IpAddr> {
    (words != [0; 4]).then(|| abi::address(words))
}

/// Sizes in bins, each with its least size, the least size of the next one, and how many fell into it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Packets, by their bytes.
    pub packets: Vec<(u64, u64, u64)>,
    /// Keys that gave their place to others, by their bytes.
    pub keys_gone: Vec<(u64, u64, u64)>,
}

impl Sizes {
    pub(super) fn of(cpus: impl Iterator<Item = abi::sl_telemetry_cpu>) -> Sizes {
        let mut packets = [0u64; abi::SL_SIZE_BINS as usize];
        let mut keys = packets;
        for cpu in cpus {
            let add = |to: &mut [u64], from: &[u64]| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
            add(&mut packets, &cpu.packet_size);
            add(&mut keys, &cpu.flow_size);
        }
        Sizes { packets: bins(&packets), keys_gone: bins(&keys) }
    }

    /// All keys, by their bytes: those that have gone and those that are there.
    pub fn keys(&self, there: &[Counted]) -> Vec<(u64, u64, u64)> {
        let mut counts = [0u64; abi::SL_SIZE_BINS as usize];
        self.keys_gone.iter().for_each(|(first, _, keys)| counts[bin_of(*first) as usize] += keys);
        there.iter().for_each(|counted| counts[bin_of(counted.bytes) as usize] += 1);
        bins(&counts)
    }
}

fn bins(counts: &[u64]) -> Vec<(u64, u64, u64)> {
    let used = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    used.map(|(bin, &count)| (first_of(bin as u32), first_of(bin as u32 + 1), count)).collect()
}

/// The least size of a bin, as `bin_first` of `telemetry/bins.h`.
fn first_of(bin: u32) -> u64 {
    if bin < 8 { bin.into() } else { u64::from(8 | bin & 7) << ((bin >> 3) - 1) }
}

/// The bin of a size, as `bin_of` of `telemetry/bins.h`.
fn bin_of(size: u64) -> u32 {
    if size < 8 {
        return size as u32;
    }
    let power = size.ilog2();
    (power - 2) << 3 | (size >> (power - 3)) as u32 & 7
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_begin_where_they_are_said_to() {
        for bin in 0..490 {
            assert_eq!(bin_of(first_of(bin)), bin);
            assert_eq!(bin_of(first_of(bin + 1) - 1), bin);
        }
    }

    #[test]
    fn a_key_of_a_cell_has_its_parts() {
        let parts = abi::SL_KEY_PROTO | abi::SL_KEY_CLASS;
        let key = key_of_cell(parts, 17 << abi::SL_BITS_CLASS | 5);
        assert_eq!((key.protocol, key.class, key.dst_port), (Some(17), Some(5), None));
        assert_eq!(key_of_cell(parts, 6 << abi::SL_BITS_CLASS | 127).class, None, "a class that is not known");
    }

    #[test]
    fn a_key_that_one_cpu_lacks_may_have_sent_what_has_gone_there() {
        let mut sets = [*abi::boxed_zeroed::<abi::sl_heavy_set>(), *abi::boxed_zeroed::<abi::sl_heavy_set>()];
        sets[0].way[0].key.dport = 53;
        sets[0].way[0].pkts = 10;
        sets[0].way[0].bytes = 1000;
        sets[0].way[0].bytes_missed = 7;
        sets[0].bytes_gone = 9;
        sets[1].bytes_gone = 30;
        let (counted, rest) = merge(abi::SL_KEY_DPORT, &[&sets[0], &sets[1]]);
        assert_eq!(counted.len(), 1);
        assert_eq!((counted[0].bytes, counted[0].bytes_missed), (1000, 7 + 30));
        assert_eq!(rest.bytes, 39);
    }
}
