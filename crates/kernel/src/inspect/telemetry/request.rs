//! The request to an observer, and the constants that its programs get from it.

use crate::inspect::events;
use crate::record::Hook;
use sluice_abi as abi;
use sluice_error::{Error, Result};
use std::net::IpAddr;

/// The packets that are observed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Direction {
    /// Those that arrive.
    #[default]
    Arriving,
    /// Those that depart.
    Departing,
    /// Both.
    Both,
}

impl Direction {
    /// Whether arriving packets are observed.
    pub fn arriving(self) -> bool {
        self != Direction::Departing
    }

    /// Whether departing packets are observed.
    pub fn departing(self) -> bool {
        self != Direction::Arriving
    }
}

/// A part of a key that packets are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyPart {
    /// Arriving or departing.
    Direction,
    /// The IP protocol, or ARP.
    Protocol,
    /// The class of the interface's policy.
    Class,
    /// The DSCP.
    Dscp,
    /// The decision of the arrival hook.
    Verdict,
    /// The id of the outer VLAN tag.
    Vlan,
    /// The source port.
    SrcPort,
    /// The destination port.
    DstPort,
    /// The source's network, of so many bits for IPv4 and IPv6.
    Src(u8, u8),
    /// The destination's network, of so many bits for IPv4 and IPv6.
    Dst(u8, u8),
}

impl KeyPart {
    fn bit(self) -> u32 {
        match self {
            KeyPart::Direction => abi::SL_KEY_DIRECTION,
            KeyPart::Protocol => abi::SL_KEY_PROTO,
            KeyPart::Class => abi::SL_KEY_CLASS,
            KeyPart::Dscp => abi::SL_KEY_DSCP,
            KeyPart::Verdict => abi::SL_KEY_VERDICT,
            KeyPart::Vlan => abi::SL_KEY_VLAN,
            KeyPart::SrcPort => abi::SL_KEY_SPORT,
            KeyPart::DstPort => abi::SL_KEY_DPORT,
            KeyPart::Src(..) => abi::SL_KEY_SRC,
            KeyPart::Dst(..) => abi::SL_KEY_DST,
        }
    }
}

/// Bits of each part of the number of a cell, in the order in which they stand there.
pub(super) const CELL_PARTS: [(u32, u32); 8] = [
    (abi::SL_KEY_DIRECTION, abi::SL_BITS_DIRECTION),
    (abi::SL_KEY_PROTO, abi::SL_BITS_PROTO),
    (abi::SL_KEY_CLASS, abi::SL_BITS_CLASS),
    (abi::SL_KEY_DSCP, abi::SL_BITS_DSCP),
    (abi::SL_KEY_VERDICT, abi::SL_BITS_VERDICT),
    (abi::SL_KEY_VLAN, abi::SL_BITS_VLAN),
    (abi::SL_KEY_SPORT, abi::SL_BITS_SPORT),
    (abi::SL_KEY_DPORT, abi::SL_BITS_DPORT),
];

/// Which packets become records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// One in so many packets, at random; 1: each.
    Packets(u32),
    /// Each packet of one in so many flows, both directions of a flow alike.
    Flows(u32),
    /// As many as the ring has room for: each packet while it is half empty, then one in 2, 4, 8 ... at random.
    Adaptive,
}

/// The records that are made of packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Records {
    /// None.
    #[default]
    None,
    /// Their headers: `struct sl_packet_record`.
    Headers,
    /// Their bytes, so many of each at most: `struct sl_captured`.
    Bytes(u32),
}

/// A filter of packets. None: any value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// IP protocol number.
    pub protocol: Option<u16>,
    /// Source address, and how many bits of it count.
    pub src: Option<(IpAddr, u8)>,
    /// Destination address, and how many bits of it count.
    pub dst: Option<(IpAddr, u8)>,
    /// Source port.
    pub src_port: Option<u16>,
    /// Destination port.
    pub dst_port: Option<u16>,
    /// Number of the class.
    pub class: Option<u8>,
    /// DSCP.
    pub dscp: Option<u8>,
    /// Id of the outer VLAN tag.
    pub vlan: Option<u16>,
}

impl From<&events::Filter> for Filter {
    fn from(filter: &events::Filter) -> Filter {
        let whole = |address: IpAddr| (address, if address.is_ipv4() { 32 } else { 128 });
        Filter {
            protocol: filter.protocol,
            src: filter.src.map(whole),
            dst: filter.dst.map(whole),
            src_port: filter.src_port,
            dst_port: filter.dst_port,
            ..Filter::default()
        }
    }
}

/// The packets that are to be observed, and the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The packets.
    pub direction: Direction,
    /// The hook of arriving packets, on an interface without a policy. None: XDP where the driver has it and it costs nothing; else tcx, or XDP in
    /// the stack before Linux 6.6.
    pub hook: Option<Hook>,
    /// The key that packets are counted by; empty: they are not.
    pub by: Vec<KeyPart>,
    /// Keys that have a place, for each CPU, where not every key can have one.
    pub keys: u32,
    /// Whether sizes of packets and of keys are counted.
    pub sizes: bool,
    /// The filter that packets must pass.
    pub filter: Filter,
    /// The records that are made.
    pub records: Records,
    /// The packets that become records.
    pub sampling: Sampling,
    /// Bytes of the ring of each CPU: a power of two.
    pub ring_bytes: u32,
}

impl Default for Request {
    fn default() -> Request {
        Request {
            direction: Direction::default(),
            hook: None,
            by: Vec::new(),
            keys: 4096,
            sizes: false,
            filter: Filter::default(),
            records: Records::default(),
            sampling: Sampling::Packets(1),
            ring_bytes: 16 << 20,
        }
    }
}

/// Fewest and most bytes of a ring: the kernel wants a page, and 32 bits count them.
const RING_BYTES: std::ops::RangeInclusive<u32> = 4096..=1 << 30;
/// Most keys that have a place, for each CPU.
const KEYS: u32 = 1 << 20;

impl Request {
    /// Refuses a request that contradicts itself.
    pub(in crate::inspect) fn check(&self) -> Result<()> {
        if !RING_BYTES.contains(&self.ring_bytes) || !self.ring_bytes.is_power_of_two() {
            return Err(Error::input(format!("--ring: {} bytes", self.ring_bytes))
                .help("write a power of two from 4K to 1G, such as 16M"));
        }
        if self.keys == 0 || self.keys > KEYS {
            return Err(Error::input(format!("--keys: {}", self.keys)).help(format!("write a number from 1 to {KEYS}")));
        }
        if matches!(self.records, Records::Bytes(0 | 65_537..)) {
            return Err(Error::input("--snap: not a length of packets").help("write a number from 1 to 65536"));
        }
        if matches!(self.sampling, Sampling::Packets(0) | Sampling::Flows(0)) {
            return Err(Error::input("one in 0 packets").help("write 1 for every packet, 100 for one in 100"));
        }
        for part in &self.by {
            if let KeyPart::Src(v4, v6) | KeyPart::Dst(v4, v6) = part {
                if *v4 > 32 || *v6 > 128 {
                    return Err(Error::input(format!("a prefix of {v4} bits of IPv4 and {v6} of IPv6"))
                        .help("IPv4 addresses have 32 bits, those of IPv6 128"));
                }
            }
        }
        for (what, filter) in [("src", &self.filter.src), ("dst", &self.filter.dst)] {
            if let Some((address, bits)) = filter {
                let most = if address.is_ipv4() { 32 } else { 128 };
                if *bits > most {
                    return Err(Error::input(format!("the filter's {what} {address}/{bits}"))
                        .help(format!("{address} has {most} bits")));
                }
            }
        }
        Ok(())
    }

    /// Whether every key has a cell of its own.
    pub(super) fn is_dense(&self) -> bool {
        let parts = self.key_bits();
        let bits: u32 = CELL_PARTS.iter().filter(|(part, _)| parts & part != 0).map(|(_, bits)| bits).sum();
        parts != 0 && parts & (abi::SL_KEY_SRC | abi::SL_KEY_DST) == 0 && bits <= abi::SL_CELL_BITS
    }

    /// Sets of keys for each CPU: a power of two.
    pub(in crate::inspect) fn heavy_sets(&self) -> u32 {
        self.keys.div_ceil(abi::SL_HEAVY_WAYS).next_power_of_two()
    }

    pub(super) fn key_bits(&self) -> u32 {
        self.by.iter().fold(0, |bits, part| bits | part.bit())
    }

    /// The constants of the programs. by_policy: they have the tables of a policy.
    pub(in crate::inspect) fn conf(&self, by_policy: bool) -> abi::sl_telemetry_conf {
        let mut conf: abi::sl_telemetry_conf = *abi::boxed_zeroed();
        conf.keys = self.key_bits();
        conf.dense = self.is_dense().into();
        conf.heavy_sets = self.heavy_sets();
        conf.sizes = self.sizes.into();
        (conf.records, conf.snap_bytes) = match self.records {
            Records::None => (abi::SL_NO_RECORDS, 0),
            Records::Headers => (abi::SL_PACKET_RECORDS, 0),
            Records::Bytes(most) => (abi::SL_CAPTURES, most),
        };
        (conf.sampling, conf.one_in) = match self.sampling {
            Sampling::Packets(one_in) => (abi::SL_SAMPLE_PACKETS, one_in),
            Sampling::Flows(one_in) => (abi::SL_SAMPLE_FLOWS, one_in),
            Sampling::Adaptive => (abi::SL_SAMPLE_ADAPTIVE, 1),
        };
        let filtered = self.filter != Filter::default();
        if conf.dense != 0
            && self.records == Records::None
            && !self.sizes
            && !filtered
            && conf.keys & abi::SL_KEY_VLAN == 0
        {
            conf.plain_keys = conf.keys;
        }
        let headers_first = matches!(self.sampling, Sampling::Flows(_)) || filtered || conf.keys != 0 || self.sizes;
        conf.samples_unseen = u32::from(self.records != Records::None && !headers_first);
        conf.ring_bytes = self.ring_bytes;
        conf.by_policy = by_policy.into();
        for part in &self.by {
            match *part {
                KeyPart::Src(v4, v6) => {
                    (conf.src_mask_ipv4, conf.src_mask) = (mask(v4.into(), 0), mask_words(v6));
                }
                KeyPart::Dst(v4, v6) => {
                    (conf.dst_mask_ipv4, conf.dst_mask) = (mask(v4.into(), 0), mask_words(v6));
                }
                _ => {}
            }
        }
        self.filter.write(&mut conf.filter);
        conf
    }
}

impl Filter {
    fn write(&self, to: &mut abi::sl_packet_filter) {
        let mut fields = 0;
        let mut ask = |asked: bool, part: u32| fields |= if asked { part } else { 0 };
        ask(self.protocol.is_some(), abi::SL_KEY_PROTO);
        ask(self.src.is_some(), abi::SL_KEY_SRC);
        ask(self.dst.is_some(), abi::SL_KEY_DST);
        ask(self.src_port.is_some(), abi::SL_KEY_SPORT);
        ask(self.dst_port.is_some(), abi::SL_KEY_DPORT);
        ask(self.class.is_some(), abi::SL_KEY_CLASS);
        ask(self.dscp.is_some(), abi::SL_KEY_DSCP);
        ask(self.vlan.is_some(), abi::SL_KEY_VLAN);
        to.fields = fields;
        to.value.proto = self.protocol.unwrap_or(0);
        to.value.sport = self.src_port.unwrap_or(0);
        to.value.dport = self.dst_port.unwrap_or(0);
        to.value.class = self.class.unwrap_or(0);
        to.value.dscp = self.dscp.unwrap_or(0);
        to.value.vlan = self.vlan.unwrap_or(0);
        (to.value.src, to.src_mask) = prefix(self.src);
        (to.value.dst, to.dst_mask) = prefix(self.dst);
    }
}

/// The words of an address, and of the mask that has its first bits.
fn prefix(prefix: Option<(IpAddr, u8)>) -> ([u32; 4], [u32; 4]) {
    prefix.map_or(([0; 4], [0; 4]), |(address, bits)| {
        let bits = if address.is_ipv4() { 96 + bits } else { bits };
        (abi::address_words(address), mask_words(bits))
    })
}

fn mask_words(bits: u8) -> [u32; 4] {
    [0, 1, 2, 3].map(|word| mask(bits.into(), word))
}

/// The mask of a word of an address, in network order, of which so many bits count.
fn mask(bits: u32, word: u32) -> u32 {
    let bits = bits.saturating_sub(32 * word).min(32);
    u32::MAX.checked_shl(32 - bits).unwrap_or(0).to_be()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(parts: &[KeyPart]) -> Request {
        Request { by: parts.to_vec(), ..Request::default() }
    }

    #[test]
    fn masks_keep_the_first_bits() {
        assert_eq!(mask(24, 0), u32::from_ne_bytes([255, 255, 255, 0]));
        assert_eq!([mask(0, 0), mask(32, 0), mask(32, 1)], [0, u32::MAX, 0]);
        assert_eq!(mask_words(64), [u32::MAX, u32::MAX, 0, 0]);
        assert_eq!(mask_words(96 + 8)[3], u32::from_ne_bytes([255, 0, 0, 0]));
    }

    #[test]
    fn keys_of_few_bits_have_cells() {
        assert!(by(&[KeyPart::Protocol]).is_dense());
        assert!(by(&[KeyPart::Protocol, KeyPart::Class]).is_dense());
        assert!(by(&[KeyPart::DstPort]).is_dense());
        assert!(!by(&[KeyPart::DstPort, KeyPart::Direction]).is_dense());
        assert!(!by(&[KeyPart::Src(32, 128)]).is_dense());
        assert!(!by(&[]).is_dense());
    }

    #[test]
    fn contradictions_are_refused() {
        let with = |change: fn(&mut Request)| {
            let mut request = Request::default();
            change(&mut request);
            request.check()
        };
        assert!(with(|_| {}).is_ok());
        assert!(with(|request| request.ring_bytes = 5000).is_err());
        assert!(with(|request| request.ring_bytes = 2048).is_err());
        assert!(with(|request| request.keys = 0).is_err());
        assert!(with(|request| request.sampling = Sampling::Flows(0)).is_err());
        assert!(with(|request| request.records = Records::Bytes(0)).is_err());
        assert!(with(|request| request.by = vec![KeyPart::Src(33, 64)]).is_err());
        assert!(with(|request| request.filter.src = Some(([10, 0, 0, 0].into(), 33))).is_err());
    }
}
