//! The packet parser of the BPF programs against the model of it, on any frame.

use sluice_abi as abi;
use sluice_model::parse::{Seen, parse};
use std::net::IpAddr;

unsafe extern "C" {
    fn sl_fuzz_parse(
        bytes: *const u8,
        length: u32,
        ethertype: u16,
        tag: u32,
        fields: u32,
        wholly: u32,
        headers: *mut abi::sl_headers,
    );
}

/// The arguments of the parser besides the frame.
#[derive(Debug, Clone, Copy)]
struct Told {
    /// 0: the frame starts with an Ethernet header.
    ethertype: u16,
    /// The VLAN tag that the host has taken out.
    tag: u32,
    /// `enum sl_field`.
    fields: u32,
    /// The front is not looked at first.
    wholly: bool,
}

const PLAIN: Told = Told { ethertype: 0, tag: abi::SL_NO_TAG, fields: abi::SL_FIELD_TCP_FLAGS, wholly: false };
const WAYS: &[Told] = &[
    PLAIN,
    Told { wholly: true, ..PLAIN },
    Told { fields: 0, ..PLAIN },
    Told { tag: 0xa123, ..PLAIN },
    Told { ethertype: 0x0800, ..PLAIN },
    Told { ethertype: 0x86dd, ..PLAIN },
    Told { ethertype: 0x0806, ..PLAIN },
];

/// Parses a frame in every way in which programs do. Panics where the model sees something else.
pub fn run(frame: &[u8]) {
    for &told in WAYS {
        let (parsed, due) = (by_program(frame, told), expected(&by_model(frame, told)));
        let same = abi::bytes_of(&parsed) == abi::bytes_of(&due);
        assert!(same, "parsed as {parsed:x?}\nby the model as {due:x?}\ntold {told:x?}, of {frame:02x?}");
    }
}

fn by_program(frame: &[u8], told: Told) -> abi::sl_headers {
    let mut headers = *abi::boxed_zeroed::<abi::sl_headers>();
    let length = frame.len().try_into().expect("no frame is that long");
    // SAFETY: the parser reads length bytes of the frame at most, and writes the headers alone.
    unsafe {
        let wholly = told.wholly.into();
        sl_fuzz_parse(frame.as_ptr(), length, told.ethertype, told.tag, told.fields, wholly, &mut headers);
    }
    if u32::from(headers.fragment) == abi::SL_WHOLE {
        // The identification of a tunnel's fragment may be left.
        headers.fragment_id = 0;
    }
    headers
}

fn by_model(frame: &[u8], told: Told) -> Seen {
    let mut seen = match told.ethertype {
        0 => parse(frame),
        ethertype => parse(&[&[0; 12], &ethertype.to_be_bytes()[..], frame].concat()),
    };
    if told.tag != abi::SL_NO_TAG {
        seen.tag = Some(((told.tag & 0xfff) as u16, (told.tag >> 13) as u8));
    }
    seen.tcp_flags = seen.tcp_flags.filter(|_| told.fields & abi::SL_FIELD_TCP_FLAGS != 0);
    seen
}

fn expected(seen: &Seen) -> abi::sl_headers {
    let (src, dst) = seen.addresses.map_or_else(Default::default, |(src, dst)| (words(src), words(dst)));
    let (sport, dport) = seen.ports.unwrap_or_default();
    let (fragment, fragment_id) = match seen.fragment {
        None => (abi::SL_WHOLE, 0),
        Some((true, id)) => (abi::SL_FIRST_FRAGMENT, id),
        Some((false, id)) => (abi::SL_LATER_FRAGMENT, id),
    };
    abi::sl_headers {
        src,
        dst,
        proto: seen.proto as u16,
        sport,
        dport,
        length: seen.length.unwrap_or(0),
        has_ports: seen.ports.is_some().into(),
        kind: seen.kind as u8,
        is_ip: if seen.addresses.is_some() { 1 | seen.ecn << 1 } else { 0 },
        fragment: fragment as u8,
        fragment_id,
        vlan: seen.tag.map_or(u16::MAX, |(id, _)| id),
        tcp_flags: seen.tcp_flags.map_or(u16::MAX, u16::from),
        icmp: seen.icmp.map_or(u16::MAX, |(v6, kind)| u16::from(kind) + if v6 { 256 } else { 0 }),
        dscp: seen.dscp.unwrap_or(u8::MAX),
        pcp: seen.tag.map_or(u8::MAX, |(_, pcp)| pcp),
        hop_limit: seen.hop_limit.unwrap_or(0).into(),
        mark: 0,
        interface: 0,
    }
}

/// An address as tables have it, IPv4 in IPv6.
fn words(address: IpAddr) -> [u32; 4] {
    let octets = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        // Kept apart from IPv4.
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => (address.to_bits() ^ 1 << 32).to_be_bytes(),
        IpAddr::V6(address) => address.octets(),
    };
    std::array::from_fn(|n| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| octets[4 * n + byte])))
}
