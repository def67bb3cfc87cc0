//! The packet language of `sluice explain`: `udp 192.0.2.1:5000 to 198.51.100.2:3074 dscp ef` becomes a frame.

use crate::failure::Failure;
use etherparse::{
    EtherType, Ethernet2Header, IpDscp, IpNumber, Ipv4Header, Ipv6Header, SingleVlanHeader, TcpHeader, UdpHeader,
    VlanId, VlanPcp,
};
use sluice_kernel::probe::Metadata;
use sluice_policy::names;
use std::net::{IpAddr, SocketAddr};

const GRAMMAR: &str = "write PROTOCOL SOURCE to DESTINATION [KEY VALUE]...: udp 192.0.2.1:5000 to 198.51.100.2:3074 dscp ef.\n\
    PROTOCOL is tcp, udp, icmp, a number, or arp alone; KEY is dscp, vlan, pcp, length, flags, type, mark or in";

/// The fields of a packet as its description gives them.
#[derive(Debug, Default)]
struct PacketFields {
    protocol: u8,
    ends: Option<(SocketAddr, SocketAddr)>,
    dscp: u8,
    vlan: Option<u16>,
    pcp: u8,
    length: Option<u16>,
    flags: u8,
    icmp_type: Option<u8>,
}

/// The frame, and the metadata that the host would have with it.
pub fn frame(packet: &[String], metadata: Metadata) -> Result<(Vec<u8>, Metadata), Failure> {
    let text = packet.join(" ");
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|word| !["to", "->", ">", "from"].contains(&word.to_ascii_lowercase().as_str()))
        .collect();
    let bad = |what: String| Failure::input(&format!("the packet \"{text}\": {what}"), GRAMMAR);
    let mut words = words.into_iter();
    let protocol = words.next().ok_or_else(|| bad("it is empty".to_owned()))?;
    if protocol.eq_ignore_ascii_case("arp") {
        return match words.next() {
            None => Ok((arp(), metadata)),
            Some(word) => Err(bad(format!("arp needs no \"{word}\""))),
        };
    }
    let mut fields = PacketFields { flags: 0x10, ..PacketFields::default() };
    let (src, src_port) = end(words.next()).map_err(bad)?;
    let (dst, dst_port) = end(words.next()).map_err(bad)?;
    if src.is_ipv4() != dst.is_ipv4() {
        return Err(bad("its addresses are of two families".to_owned()));
    }
    fields.protocol = number(protocol, src).ok_or_else(|| bad(format!("\"{protocol}\" is no protocol")))?;
    // An IPv6 address without brackets takes the last group, meant as a port, as part of itself.
    let unclear = |address: &IpAddr, port: &Option<u16>| {
        let text = address.to_string();
        let (before, last) = text.rsplit_once(':')?;
        let meant = format!("[{}]:{last}", before.parse::<std::net::Ipv6Addr>().ok()?);
        (port.is_none() && last.parse::<u16>().is_ok()).then_some(meant)
    };
    if src_port.is_some() != dst_port.is_some() {
        if let Some(meant) = unclear(&src, &src_port).or_else(|| unclear(&dst, &dst_port)) {
            return Err(bad(format!(
                "one end has a port and the other none; if {meant} is meant, the brackets are needed"
            )));
        }
    }
    if (src_port.is_some() || dst_port.is_some()) && ![6, 17, 33, 132, 136].contains(&fields.protocol) {
        return Err(bad(format!("{protocol} has no ports")));
    }
    fields.ends = Some((SocketAddr::new(src, src_port.unwrap_or(0)), SocketAddr::new(dst, dst_port.unwrap_or(0))));
    let mut metadata = metadata;
    while let Some(key) = words.next() {
        let value = words.next().ok_or_else(|| bad(format!("\"{key}\" needs a value")))?;
        set(&mut fields, &mut metadata, key, value).map_err(bad)?;
    }
    Ok((build(&fields), metadata))
}

fn number(word: &str, src: IpAddr) -> Option<u8> {
    match word.to_ascii_lowercase().as_str() {
        "tcp" => Some(6),
        "udp" => Some(17),
        "icmp" => Some(if src.is_ipv4() { 1 } else { 58 }),
        "icmpv6" | "icmp6" => Some(58),
        "gre" => Some(47),
        "sctp" => Some(132),
        other => other.parse().ok(),
    }
}

/// An address, with or without a port.
fn end(word: Option<&str>) -> Result<(IpAddr, Option<u16>), String> {
    let word = word.ok_or("it needs a source and a destination")?;
    if let Ok(address) = word.parse::<SocketAddr>() {
        return Ok((address.ip(), Some(address.port())));
    }
    let plain = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(word);
    let address = plain.parse().map_err(|_| {
        let what = format!("\"{word}\" is neither an address nor ADDRESS:PORT");
        // Colons stand in the address too, so that its last group is no port.
        let brackets = word
            .rsplit_once(':')
            .filter(|(address, port)| address.parse::<std::net::Ipv6Addr>().is_ok() && port.parse::<u16>().is_ok());
        brackets.map_or(what.clone(), |(address, port)| format!("{what}: write [{address}]:{port}"))
    })?;
    Ok((address, None))
}

fn set(fields: &mut PacketFields, metadata: &mut Metadata, key: &str, value: &str) -> Result<(), String> {
    let wrong = |range: &str| format!("{key} \"{value}\" is not {range}");
    let small = |most: u8, range: &str| value.parse::<u8>().ok().filter(|n| *n <= most).ok_or_else(|| wrong(range));
    match key.to_ascii_lowercase().as_str() {
        "dscp" => match names::dscp(value) {
            Some(dscp) => fields.dscp = dscp,
            None => fields.dscp = small(63, "a name such as ef, or 0 to 63")?,
        },
        "vlan" => {
            let id = value.parse::<u16>().ok().filter(|id| *id < 4096);
            fields.vlan = Some(id.ok_or_else(|| wrong("0 to 4095"))?);
        }
        "pcp" => {
            fields.pcp = small(7, "0 to 7")?;
            fields.vlan.get_or_insert(0);
        }
        "length" => {
            let length = value.parse::<u16>().ok().filter(|length| *length >= 20);
            fields.length = Some(length.ok_or_else(|| wrong("20 to 65535 bytes"))?);
        }
        "flags" => fields.flags = names::tcp_flags(value).ok_or_else(|| wrong("flags such as syn,ack"))?,
        "type" => {
            let named = names::icmp_type(value, fields.protocol == 58);
            fields.icmp_type = Some(match named {
                Some(kind) => kind,
                None => small(255, "an ICMP type: a name such as echo-request, or 0 to 255")?,
            });
        }
        "mark" => {
            let hex = value.strip_prefix("0x").map(|digits| u32::from_str_radix(digits, 16));
            let mark = hex.unwrap_or_else(|| value.parse());
            metadata.mark = mark.map_err(|_| wrong("0 to 4294967295, or 0x and hexadecimal digits"))?;
        }
        "in" => {
            metadata.interface =
                nix::net::if_::if_nametoindex(value).map_err(|_| wrong("an interface of this machine"))?;
        }
        _ => return Err(format!("\"{key}\" is not a key")),
    }
    Ok(())
}

fn arp() -> Vec<u8> {
    let mut frame = ethernet(EtherType::ARP).to_bytes().to_vec();
    frame.resize(42, 0);
    frame
}

fn ethernet(ether_type: EtherType) -> Ethernet2Header {
    Ethernet2Header { source: [2, 0, 0, 0, 0, 1], destination: [2, 0, 0, 0, 0, 2], ether_type }
}

fn build(fields: &PacketFields) -> Vec<u8> {
    let (src, dst) = fields.ends.expect("not ARP");
    let network = if src.is_ipv4() { EtherType::IPV4 } else { EtherType::IPV6 };
    let mut frame = Vec::new();
    match fields.vlan {
        None => frame.extend(ethernet(network).to_bytes()),
        Some(id) => {
            frame.extend(ethernet(EtherType::VLAN_TAGGED_FRAME).to_bytes());
            let tag = SingleVlanHeader {
                pcp: VlanPcp::try_new(fields.pcp).unwrap_or_default(),
                drop_eligible_indicator: false,
                vlan_id: VlanId::try_new(id).unwrap_or_default(),
                ether_type: network,
            };
            frame.extend(tag.to_bytes());
        }
    }
    let transport = transport(fields, src, dst);
    let protocol = IpNumber(fields.protocol);
    match (src.ip(), dst.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut header = Ipv4Header {
                dscp: IpDscp::try_new(fields.dscp).unwrap_or_default(),
                time_to_live: 64,
                protocol,
                source: source.octets(),
                destination: destination.octets(),
                ..Ipv4Header::default()
            };
            header.total_len = fields.length.unwrap_or(20 + transport.len() as u16);
            header.header_checksum = header.calc_header_checksum();
            frame.extend(header.to_bytes());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let header = Ipv6Header {
                traffic_class: fields.dscp << 2,
                payload_length: fields.length.map_or(transport.len() as u16, |length| length.saturating_sub(40)),
                next_header: protocol,
                hop_limit: 64,
                source: source.octets(),
                destination: destination.octets(),
                ..Ipv6Header::default()
            };
            frame.extend(header.to_bytes());
        }
        _ => unreachable!("one family"),
    }
    frame.extend(transport);
    frame
}

fn transport(fields: &PacketFields, src: SocketAddr, dst: SocketAddr) -> Vec<u8> {
    match fields.protocol {
        6 => {
            let flag = |bit: u8| fields.flags & bit != 0;
            let mut header = TcpHeader::new(src.port(), dst.port(), 0, 65_535);
            (header.fin, header.syn, header.rst, header.psh) = (flag(1), flag(2), flag(4), flag(8));
            (header.ack, header.urg, header.ece, header.cwr) = (flag(16), flag(32), flag(64), flag(128));
            header.to_bytes().to_vec()
        }
        1 | 58 => {
            let echo = if fields.protocol == 1 { 8 } else { 128 };
            vec![fields.icmp_type.unwrap_or(echo), 0, 0, 0, 0, 0, 0, 0]
        }
        17 => {
            let header = UdpHeader { source_port: src.port(), destination_port: dst.port(), length: 28, checksum: 0 };
            [&header.to_bytes()[..], &[0; 20]].concat()
        }
        _ => [&src.port().to_be_bytes()[..], &dst.port().to_be_bytes(), &[0; 24]].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &str) -> Result<(Vec<u8>, Metadata), Failure> {
        frame(&[words.to_owned()], Metadata::default())
    }

    #[test]
    fn packet_language_becomes_a_frame() {
        let (udp, _) = of("udp 192.0.2.1:5000 to 198.51.100.2:3074 dscp ef").ok().expect("valid");
        assert_eq!(udp[12..16], [0x08, 0x00, 0x45, 46 << 2]);
        assert_eq!(udp[26..38], [192, 0, 2, 1, 198, 51, 100, 2, 0x13, 0x88, 0x0c, 0x02]);
        let (tcp, metadata) =
            of("tcp [2001:db8::1]:1 -> [2001:db8::2]:443 vlan 7 pcp 5 flags syn mark 0x10").ok().expect("valid");
        assert_eq!(tcp[12..18], [0x81, 0x00, 0xa0, 0x07, 0x86, 0xdd]);
        assert_eq!((tcp[18 + 40 + 13], metadata.mark), (2, 16));
        let (icmp, _) = of("icmp 10.0.0.1 10.0.0.2 type echo-reply length 1500").ok().expect("valid");
        assert_eq!((&icmp[16..18], icmp[34]), (&[0x05, 0xdc][..], 0));
        assert_eq!(of("ARP").ok().expect("valid").0[12..14], [0x08, 0x06]);
    }

    #[test]
    fn errors_name_the_wrong_word() {
        for (words, message) in [
            ("", "it is empty"),
            ("udp", "a source and a destination"),
            ("udp 192.0.2.1:99999 10.0.0.1", "99999"),
            ("udp 2001:db8::1:5000 to [2001:db8::2]:3074", "if [2001:db8::1]:5000 is meant"),
            ("udp 2001:db8:0:0:0:0:0:1:5000 to [2001:db8::2]:3074", "write [2001:db8:0:0:0:0:0:1]:5000"),
            ("udp 192.0.2.1 2001:db8::1", "two families"),
            ("frob 192.0.2.1 10.0.0.1", "no protocol"),
            ("icmp 192.0.2.1:80 10.0.0.1", "no ports"),
            ("udp 192.0.2.1 10.0.0.1 dscp", "needs a value"),
            ("udp 192.0.2.1 10.0.0.1 dscp 64", "0 to 63"),
            ("udp 192.0.2.1 10.0.0.1 colour red", "not a key"),
            ("arp 192.0.2.1", "needs no"),
        ] {
            let failure = of(words).expect_err(words);
            assert!(failure.render(false).contains(message), "{words}: {}", failure.render(false));
            assert_eq!(failure.exit_code, 2);
        }
    }
}
