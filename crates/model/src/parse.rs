//! What a packet says, read from its bytes: the formats once more, written for clarity.

use sluice_abi as abi;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What the classifier may know of a packet's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// `enum sl_parse_kind`.
    pub kind: u32,
    /// `enum sl_proto_index`.
    pub proto: u32,
    /// Source and destination.
    pub addresses: Option<(IpAddr, IpAddr)>,
    /// Source and destination.
    pub ports: Option<(u16, u16)>,
    /// As the IP header has it, that header included.
    pub length: Option<u16>,
    /// DSCP.
    pub dscp: Option<u8>,
    /// The ECN field of the outer IP header; 0 where there is none.
    pub ecn: u8,
    /// Id and priority of the outer tag.
    pub tag: Option<(u16, u8)>,
    /// Of TCP.
    pub tcp_flags: Option<u8>,
    /// Whether it is ICMPv6, and the type.
    pub icmp: Option<(bool, u8)>,
    /// Of a fragment: whether it is the first, and the id of the packet that it is of.
    pub fragment: Option<(bool, u32)>,
}

/// The rest of a packet.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn peek(&self, count: usize) -> Option<&'a [u8]> {
        self.0.get(..count)
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Where parsing ended, and why.
struct Stop(u32);

/// Reads a frame that starts with an Ethernet header.
pub fn parse(frame: &[u8]) -> Seen {
    let mut seen = Seen {
        kind: abi::SL_PARSE_OTHER,
        proto: abi::SL_PROTO_OTHER,
        addresses: None,
        ports: None,
        length: None,
        dscp: None,
        ecn: 0,
        tag: None,
        tcp_flags: None,
        icmp: None,
        fragment: None,
    };
    if let Err(Stop(kind)) = whole(&mut seen, Bytes(frame)) {
        seen.kind = kind;
    }
    seen
}

fn whole(seen: &mut Seen, mut bytes: Bytes) -> Result<(), Stop> {
    let mut ethertype = link(seen, &mut bytes).ok_or(Stop(abi::SL_PARSE_TRUNCATED_L2))?;
    // A packet in a packet is known by the inner one; one in that is not looked into.
    for _ in 0..2 {
        match ethertype {
            0x0800 => ipv4(seen, &mut bytes)?,
            0x86dd => ipv6(seen, &mut bytes)?,
            0x0806 => {
                seen.proto = abi::SL_PROTO_ARP;
                return Err(Stop(abi::SL_PARSE_ARP));
            }
            _ => return Ok(()),
        }
        match seen.proto {
            4 => ethertype = 0x0800,
            41 => ethertype = 0x86dd,
            _ => break,
        }
        seen.fragment = None;
    }
    transport(seen, &mut bytes).ok_or(Stop(abi::SL_PARSE_TRUNCATED_L4))
}

fn link(seen: &mut Seen, bytes: &mut Bytes) -> Option<u16> {
    let mut ethertype = be16(bytes.take(14)?, 12);
    for _ in 0..2 {
        if ![0x8100, 0x88a8, 0x9100].contains(&ethertype) {
            break;
        }
        let tag = bytes.take(4)?;
        let control = be16(tag, 0);
        seen.tag.get_or_insert((control & 0xfff, (control >> 13) as u8));
        ethertype = be16(tag, 2);
    }
    if ethertype == 0x8864 {
        let session = bytes.take(8)?;
        ethertype = match be16(session, 6) {
            0x0021 => 0x0800,
            0x0057 => 0x86dd,
            _ => ethertype,
        };
    }
    Some(ethertype)
}

fn ipv4(seen: &mut Seen, bytes: &mut Bytes) -> Result<(), Stop> {
    let header = bytes.peek(20).ok_or(Stop(abi::SL_PARSE_TRUNCATED_L3))?;
    let words = usize::from(header[0] & 0xf);
    if header[0] >> 4 != 4 || words < 5 {
        return Err(Stop(abi::SL_PARSE_BAD_IPV4));
    }
    seen.kind = abi::SL_PARSE_IPV4;
    seen.proto = header[9].into();
    if seen.dscp.is_none() {
        seen.ecn = header[1] & 3;
    }
    seen.dscp = Some(header[1] >> 2);
    seen.length = Some(be16(header, 2));
    let address = |at: usize| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
    seen.addresses = Some((address(12), address(16)));
    let (more, offset) = (be16(header, 6) & 0x2000 != 0, be16(header, 6) & 0x1fff);
    if more || offset > 0 {
        seen.fragment = Some((offset == 0, u32::from(be16(header, 4)) | seen.proto << 16));
    }
    if offset > 0 {
        return Err(Stop(abi::SL_PARSE_FRAGMENT));
    }
    // Options may be cut off: then nothing is left for what follows.
    bytes.0 = bytes.0.get(words * 4..).unwrap_or(&[]);
    Ok(())
}

fn ipv6(seen: &mut Seen, bytes: &mut Bytes) -> Result<(), Stop> {
    const EXTENSIONS: [u8; 6] = [0, 43, 44, 51, 60, 135];
    let header = bytes.peek(40).ok_or(Stop(abi::SL_PARSE_TRUNCATED_L3))?;
    if header[0] >> 4 != 6 {
        return Err(Stop(abi::SL_PARSE_BAD_IPV6));
    }
    bytes.take(40);
    seen.kind = abi::SL_PARSE_IPV6;
    if seen.dscp.is_none() {
        seen.ecn = (be16(header, 0) >> 4 & 3) as u8;
    }
    seen.dscp = Some((be16(header, 0) >> 6 & 0x3f) as u8);
    seen.length = Some(be16(header, 4).saturating_add(40));
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("16 bytes");
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    seen.addresses = Some((address(8), address(24)));
    let mut next = header[6];
    for walked in 0.. {
        seen.proto = next.into();
        if !EXTENSIONS.contains(&next) {
            return Ok(());
        }
        if walked == 6 {
            return Err(Stop(abi::SL_PARSE_DEEP_IPV6));
        }
        let extension = bytes.peek(8).ok_or(Stop(abi::SL_PARSE_TRUNCATED_L3))?;
        if next == 44 {
            let (more, offset) = (extension[3] & 1 != 0, be16(extension, 2) >> 3);
            if more || offset > 0 {
                let id = extension[4..8].try_into().expect("4 bytes");
                seen.fragment = Some((offset == 0, u32::from_ne_bytes(id)));
            }
            if offset > 0 {
                seen.proto = extension[0].into();
                return Err(Stop(abi::SL_PARSE_FRAGMENT));
            }
        }
        let length = match next {
            44 => 8,
            51 => (usize::from(extension[1]) + 2) * 4,
            _ => (usize::from(extension[1]) + 1) * 8,
        };
        next = extension[0];
        bytes.0 = bytes.0.get(length..).unwrap_or(&[]);
    }
    Ok(())
}

fn transport(seen: &mut Seen, bytes: &mut Bytes) -> Option<()> {
    let icmp6 = seen.proto == 58 && seen.kind == abi::SL_PARSE_IPV6;
    let icmp4 = seen.proto == 1 && seen.kind == abi::SL_PARSE_IPV4;
    if [6, 17, 33, 132, 136].contains(&seen.proto) {
        let ports = bytes.peek(4)?;
        seen.ports = Some((be16(ports, 0), be16(ports, 2)));
        if seen.proto == 6 {
            seen.tcp_flags = bytes.peek(14).map(|header| header[13]);
        }
    } else if icmp4 || icmp6 {
        let kind = bytes.peek(4)?[0];
        seen.icmp = Some((icmp6, kind));
        if icmp6 && (133..=137).contains(&kind) {
            seen.proto = abi::SL_PROTO_ND;
        }
    }
    Some(())
}
