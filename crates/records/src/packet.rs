//! The record of a packet, validated.

use crate::address::{Address, AddressKey};
use crate::column::{Column, Record, Type, Values};
use crate::labels::Labels;
use crate::verdict::Verdict;
use sluice_abi as abi;
use sluice_error::{Error, Result};

/// What a row of a stream of packets is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A packet.
    Packet,
    /// The last row: `missed` counts the records that found no room after the last one that did.
    End,
}

/// The direction of a packet on its interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// It leaves the host.
    Egress,
    /// It arrives.
    Ingress,
}

impl Direction {
    /// The name of the direction.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Egress => "egress",
            Direction::Ingress => "ingress",
        }
    }
}

/// The fields that packets of TCP alone have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp {
    /// The low eight flags: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128.
    pub flags: u8,
    /// The window as the header has it, not scaled.
    pub window: u16,
}

/// The fields that packets of IP alone have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip {
    /// Source.
    pub src: Address,
    /// Destination.
    pub dst: Address,
    /// Time to live, or hop limit, of the outer header.
    pub ttl: u8,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Explicit congestion notification.
    pub ecn: u8,
}

/// A packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// What the row is.
    pub kind: Kind,
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    /// Number of its interface among those that are observed; none at the end of a stream of several.
    pub interface: Option<u16>,
    /// Direction on the interface; none at the end.
    pub direction: Option<Direction>,
    /// Length in bytes, with the link header.
    pub length: u32,
    /// Frames that a super-packet becomes; 1 for others.
    pub segments: u16,
    /// Packets that it stands for, or flows where flows are sampled.
    pub weight: u32,
    /// Records of the same CPU that found no room between the last one and this.
    pub missed: u64,
    /// What IP knows.
    pub ip: Option<Ip>,
    /// Source port.
    pub sport: Option<u16>,
    /// Destination port.
    pub dport: Option<u16>,
    /// `enum sl_proto_index`: an IP protocol number, 256 neighbour discovery, 257 ARP, 258 neither IP nor ARP; none at the end.
    pub protocol: Option<u16>,
    /// What TCP knows.
    pub tcp: Option<Tcp>,
    /// VLAN id.
    pub vlan: Option<u16>,
    /// Number of its class.
    pub class: Option<u8>,
    /// What became of it.
    pub verdict: Verdict,
    /// Low byte of the number of the CPU that saw it.
    pub cpu: u8,
}

/// How records of the kernel's program become packets.
pub struct Reader {
    /// Unix time less CLOCK_MONOTONIC, ns.
    pub clock_offset_ns: i64,
    /// The key by which addresses are hashed; none: they stay.
    pub key: Option<AddressKey>,
}

impl Reader {
    fn address(&self, words: [u32; 4]) -> Address {
        let address = abi::address(words);
        match &self.key {
            Some(key) => Address::Hash(key.hash(address)),
            None => Address::Ip(address),
        }
    }
}

impl Packet {
    /// The packet of a record of an interface.
    ///
    /// # Errors
    ///
    /// A value that no program of this version sends.
    pub fn read(record: &abi::sl_packet_record, interface: u16, reader: &Reader) -> Result<Packet> {
        let broken = |what: &str, value: u64| {
            Error::system(format!("a record of a packet has {value} for {what}, which this version does not know"))
                .help("the programs in the kernel are of another version: sluice upgrade, or start again")
        };
        let direction = match u32::from(record.direction) {
            abi::SL_EGRESS => Direction::Egress,
            abi::SL_INGRESS => Direction::Ingress,
            other => return Err(broken("its direction", other.into())),
        };
        if record.weight == 0 {
            return Err(broken("its weight", 0));
        }
        if u32::from(record.proto) >= abi::SL_PROTOS {
            return Err(broken("its protocol", record.proto.into()));
        }
        let verdict = Verdict::of(record.verdict).ok_or_else(|| broken("its verdict", record.verdict.into()))?;
        let is_ip = record.dscp != u8::MAX;
        let ip = is_ip.then(|| Ip {
            src: reader.address(record.src),
            dst: reader.address(record.dst),
            ttl: record.ttl,
            dscp: record.dscp,
            ecn: record.ecn,
        });
        let is_tcp = u32::from(record.proto) == abi::SL_PROTO_TCP;
        let port = |number: u16| (number != 0).then_some(number);
        Ok(Packet {
            kind: Kind::Packet,
            time_ns: record.at_ns.saturating_add_signed(reader.clock_offset_ns),
            interface: Some(interface),
            direction: Some(direction),
            length: record.length,
            segments: record.segments.max(1),
            weight: record.weight,
            missed: record.missed.into(),
            ip,
            sport: port(record.sport),
            dport: port(record.dport),
            protocol: Some(record.proto),
            tcp: is_tcp.then_some(Tcp { flags: record.tcp_flags, window: record.window }),
            vlan: (record.vlan != u16::MAX).then_some(record.vlan),
            class: (record.class != u8::MAX).then_some(record.class),
            verdict,
            cpu: record.cpu,
        })
    }

    /// The last row of a stream.
    pub fn end(time_ns: u64, missed: u64) -> Packet {
        Packet {
            kind: Kind::End,
            time_ns,
            interface: None,
            direction: None,
            length: 0,
            segments: 0,
            weight: 0,
            missed,
            ip: None,
            sport: None,
            dport: None,
            protocol: None,
            tcp: None,
            vlan: None,
            class: None,
            verdict: Verdict::Unknown,
            cpu: 0,
        }
    }
}

impl Record for Packet {
    const WHAT: &'static str = "packets";
    const COLUMNS: &'static [Column] = &[
        Column::of("kind", Type::Text),
        Column::of("time_ns", Type::Time),
        Column::maybe("interface", Type::Text),
        Column::maybe("direction", Type::Text),
        Column::of("length_bytes", Type::U32),
        Column::of("segments", Type::U16),
        Column::of("weight", Type::U32),
        Column::of("missed", Type::U64),
        Column::maybe("src", Type::Address),
        Column::maybe("dst", Type::Address),
        Column::maybe("sport", Type::U16),
        Column::maybe("dport", Type::U16),
        Column::maybe("protocol", Type::U16),
        Column::maybe("tcp_flags", Type::U8),
        Column::maybe("tcp_window", Type::U16),
        Column::maybe("ttl", Type::U8),
        Column::maybe("dscp", Type::U8),
        Column::maybe("ecn", Type::U8),
        Column::maybe("vlan", Type::U16),
        Column::maybe("class", Type::U8),
        Column::maybe("class_name", Type::Text),
        Column::of("verdict", Type::Text),
        Column::of("cpu", Type::U8),
    ];

    #[inline]
    fn give(&self, labels: &Labels, to: &mut impl Values) {
        to.text(Some(match self.kind {
            Kind::Packet => "packet",
            Kind::End => "end",
        }));
        to.number(Some(self.time_ns));
        to.text(self.interface.and_then(|interface| labels.interface(interface)));
        to.text(self.direction.map(Direction::name));
        to.number(Some(self.length.into()));
        to.number(Some(self.segments.into()));
        to.number(Some(self.weight.into()));
        to.number(Some(self.missed));
        to.address(self.ip.map(|ip| ip.src));
        to.address(self.ip.map(|ip| ip.dst));
        to.number(self.sport.map(Into::into));
        to.number(self.dport.map(Into::into));
        to.number(self.protocol.map(Into::into));
        to.number(self.tcp.map(|tcp| tcp.flags.into()));
        to.number(self.tcp.map(|tcp| tcp.window.into()));
        to.number(self.ip.map(|ip| ip.ttl.into()));
        to.number(self.ip.map(|ip| ip.dscp.into()));
        to.number(self.ip.map(|ip| ip.ecn.into()));
        to.number(self.vlan.map(Into::into));
        to.number(self.class.map(Into::into));
        to.text(self.interface.and_then(|interface| labels.class(interface, self.class)));
        to.text(Some(self.verdict.name()));
        to.number(Some(self.cpu.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::tests::check;
    use proptest::prelude::*;

    fn record(bytes: &[u8]) -> abi::sl_packet_record {
        *abi::read_pod(bytes).expect("enough bytes")
    }

    const SIZE: usize = size_of::<abi::sl_packet_record>();

    #[test]
    fn fields_come_from_their_places() {
        assert_eq!(SIZE, 72);
        let record = abi::sl_packet_record {
            at_ns: 5,
            length: 1514,
            weight: 100,
            missed: 3,
            src: abi::address_words("192.0.2.1".parse().expect("an address")),
            dst: abi::address_words("198.51.100.2".parse().expect("an address")),
            sport: 5000,
            dport: 443,
            window: 502,
            vlan: 7,
            proto: 6,
            tcp_flags: 16,
            ttl: 64,
            dscp: 46,
            ecn: 1,
            class: 2,
            verdict: 2 + 3,
            direction: 1,
            cpu: 9,
            segments: 2,
        };
        let packet = Packet::read(&record, 1, &Reader { clock_offset_ns: 10, key: None }).expect("valid");
        assert_eq!((packet.time_ns, packet.interface, packet.direction), (15, Some(1), Some(Direction::Ingress)));
        let ip = packet.ip.expect("IP");
        assert_eq!(ip.src, Address::Ip("192.0.2.1".parse().expect("an address")));
        assert_eq!((ip.ttl, ip.dscp, ip.ecn), (64, 46, 1));
        assert_eq!(packet.tcp, Some(Tcp { flags: 16, window: 502 }));
        assert_eq!((packet.vlan, packet.class, packet.verdict), (Some(7), Some(2), Verdict::Refused(3)));
        let key = AddressKey::new([7; 16]);
        let hash = key.hash("192.0.2.1".parse().expect("an address"));
        let hashed = Packet::read(&record, 1, &Reader { clock_offset_ns: 0, key: Some(key) }).expect("valid");
        assert_eq!(hashed.ip.map(|ip| ip.src), Some(Address::Hash(hash)));
    }

    #[test]
    fn what_no_program_sends_is_refused() {
        let reader = Reader { clock_offset_ns: 0, key: None };
        let good = abi::sl_packet_record { weight: 1, ..record(&[0; SIZE]) };
        assert!(Packet::read(&good, 0, &reader).is_ok());
        let bad = [
            abi::sl_packet_record { weight: 0, ..good },
            abi::sl_packet_record { direction: 2, ..good },
            abi::sl_packet_record { proto: 512, ..good },
            abi::sl_packet_record { verdict: 255, ..good },
        ];
        for record in bad {
            let error = Packet::read(&record, 0, &reader).expect_err("refused");
            assert!(error.what.contains("a record of a packet has"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_record_fits_its_columns_or_is_refused(bytes in prop::collection::vec(any::<u8>(), SIZE), is_tame: bool) {
            let mut record = record(&bytes);
            if is_tame {
                (record.direction, record.proto, record.verdict) =
                    (record.direction & 1, record.proto & 511, record.verdict & 7);
            }
            let labels = Labels::new(vec!["eth0".to_owned()]);
            if let Ok(packet) = Packet::read(&record, 0, &Reader { clock_offset_ns: -5, key: None }) {
                check(&packet, &labels);
            }
            check(&Packet::end(1, u64::MAX), &labels);
        }
    }
}
