//! The headers of a packet, read from its bytes: the formats once more, written for clarity.

use sluice_abi as abi;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The fields that the classifier may know of a packet's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// `enum sl_parse_kind`.
    pub kind: u32,
    /// `enum sl_proto_index`.
    pub proto: u32,
    /// Source and destination addresses.
    pub addresses: Option<(IpAddr, IpAddr)>,
    /// Source and destination ports.
    pub ports: Option<(u16, u16)>,
    /// Length by the IP header, that header included.
    pub length: Option<u16>,
    /// DSCP.
    pub dscp: Option<u8>,
    /// The ECN field of the outer IP header; 0 where there is none.
    pub ecn: u8,
    /// Id and priority of the outer VLAN tag.
    pub tag: Option<(u16, u8)>,
    /// Flags of TCP.
    pub tcp_flags: Option<u8>,
    /// Whether it is ICMPv6, and the ICMP type.
    pub icmp: Option<(bool, u8)>,
    /// The hop limit of an IPv6 packet that is in no tunnel; 0 of one that is.
    pub hop_limit: Option<u8>,
    /// Whether a fragment is the first, and the id of its packet; none: no fragment.
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

/// The reason why parsing ended early: an `enum sl_parse_kind`.
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
        hop_limit: None,
        fragment: None,
    };
    if let Err(Stop(kind)) = whole(&mut seen, Bytes(frame)) {
        seen.kind = kind;
    }
    seen
}

fn whole(seen: &mut Seen, mut bytes: Bytes) -> Result<(), Stop> {
    let mut ethertype = link(seen, &mut bytes).ok_or(Stop(abi::SL_PARSE_TRUNCATED_L2))?;
    // A tunnelled packet is classified by its inner packet; a tunnel in that is not looked into.
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
            // Later fragments know the outer header alone, so the first goes by it too.
            _ if seen.fragment.is_some() => break,
            4 => ethertype = 0x0800,
            41 => ethertype = 0x86dd,
            _ => break,
        }
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
        let session = bytes.peek(8)?;
        let short = session[6] % 2 == 1;
        bytes.take(if short { 7 } else { 8 });
        ethertype = match if short { session[6].into() } else { be16(session, 6) } {
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
    // A length of 0 means all bytes that are there.
    let length = Some(usize::from(be16(header, 2))).filter(|length| *length > 0).unwrap_or(bytes.0.len());
    if header[0] >> 4 != 4 || words < 5 || length < 4 * words {
        return Err(Stop(abi::SL_PARSE_BAD_IPV4));
    }
    seen.kind = abi::SL_PARSE_IPV4;
    seen.proto = header[9].into();
    if seen.dscp.is_none() {
        seen.ecn = header[1] & 3;
    }
    seen.dscp = Some(header[1] >> 2);
    seen.length = Some(length as u16);
    let address = |at: usize| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
    seen.addresses = Some((address(12), address(16)));
    let (more, offset) = (be16(header, 6) & 0x2000 != 0, be16(header, 6) & 0x1fff);
    if more || offset > 0 {
        seen.fragment = Some((offset == 0, u32::from(be16(header, 4)) | seen.proto << 16));
    }
    if offset > 0 {
        return Err(Stop(abi::SL_PARSE_FRAGMENT));
    }
    // Bytes behind the packet's end are padding.
    bytes.0 = &bytes.0[..length.min(bytes.0.len())];
    // Options may be cut off: then nothing is left for the next header.
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
    seen.hop_limit = Some(if seen.dscp.is_none() { header[7] } else { 0 });
    if seen.dscp.is_none() {
        seen.ecn = (be16(header, 0) >> 4 & 3) as u8;
    }
    seen.dscp = Some((be16(header, 0) >> 6 & 0x3f) as u8);
    let mut length = usize::from(be16(header, 4));
    if length == 0 && header[6] != 59 {
        length = bytes.0.len();
    }
    seen.length = Some((length + 40).min(65535) as u16);
    bytes.0 = &bytes.0[..length.min(bytes.0.len())];
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
        let (kind, code) = (bytes.peek(4)?[0], bytes.peek(4)?[1]);
        seen.icmp = Some((icmp6, kind));
        if icmp6 && (133..=137).contains(&kind) && code == 0 && seen.hop_limit == Some(255) {
            seen.proto = abi::SL_PROTO_ND;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 packet of UDP, padded to the least frame, whose header says this length and these more bytes of flags and fragment offset.
    fn ipv4_frame(length: u16, place: u16) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend(length.to_be_bytes());
        frame.extend([0, 7]);
        frame.extend(place.to_be_bytes());
        frame.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 53, 0, 54, 0, 8, 0, 0]);
        frame.resize(60, 0);
        frame
    }

    fn ipv6_frame(next: u8, hop_limit: u8, src: Ipv6Addr, payload: &[u8], length: u16) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(length.to_be_bytes());
        frame.extend([next, hop_limit]);
        frame.extend(src.octets());
        frame.extend(Ipv6Addr::LOCALHOST.octets());
        frame.extend(payload);
        frame.resize(frame.len().max(60), 0x87);
        frame
    }

    #[test]
    fn a_length_of_0_is_all_there_is() {
        let seen = parse(&ipv4_frame(0, 0));
        assert_eq!((seen.kind, seen.length, seen.ports), (abi::SL_PARSE_IPV4, Some(46), Some((53, 54))));
        let seen = parse(&ipv6_frame(17, 64, Ipv6Addr::LOCALHOST, &[0, 53, 0, 54, 0, 8, 0, 0], 0));
        assert_eq!((seen.length, seen.ports), (Some(48), Some((53, 54))));
    }

    #[test]
    fn a_length_below_the_header_is_broken() {
        assert_eq!(parse(&ipv4_frame(19, 0)).kind, abi::SL_PARSE_BAD_IPV4);
        assert_eq!(parse(&ipv4_frame(28, 0)).kind, abi::SL_PARSE_IPV4);
    }

    #[test]
    fn nothing_is_read_from_padding() {
        assert_eq!(parse(&ipv4_frame(22, 0)).kind, abi::SL_PARSE_TRUNCATED_L4);
        let seen = parse(&ipv6_frame(58, 255, Ipv6Addr::LOCALHOST, &[], 2));
        assert_eq!((seen.kind, seen.icmp, seen.proto), (abi::SL_PARSE_TRUNCATED_L4, None, 58));
    }

    #[test]
    fn neighbour_discovery_has_not_been_routed() {
        let solicitation = [135, 0, 0, 0];
        let proto = |hop_limit| parse(&ipv6_frame(58, hop_limit, Ipv6Addr::LOCALHOST, &solicitation, 4)).proto;
        assert_eq!((proto(255), proto(254)), (abi::SL_PROTO_ND, 58));
    }

    #[test]
    fn both_fragments_of_a_tunnel_go_by_its_outer_header() {
        let mut frame = ipv4_frame(46, 0x2000);
        frame[23] = 41;
        let first = parse(&frame);
        assert_eq!((first.proto, first.fragment), (41, Some((true, 7 | 41 << 16))));
        frame[20..22].copy_from_slice(&3u16.to_be_bytes());
        let later = parse(&frame);
        assert_eq!((later.proto, later.fragment, later.addresses), (41, Some((false, 7 | 41 << 16)), first.addresses));
    }

    #[test]
    fn ppp_may_name_its_protocol_in_one_byte() {
        let mut frame = vec![0; 12];
        frame.extend([0x88, 0x64, 0x11, 0, 0, 1, 0, 47, 0x21]);
        frame.extend(&ipv4_frame(28, 0)[14..]);
        assert_eq!(parse(&frame).ports, Some((53, 54)));
    }
}
