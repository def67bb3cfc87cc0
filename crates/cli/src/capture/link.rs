//! Conversion of packets of several link types to Ethernet frames, the classifier's input.

use super::Packet;
use super::bytes::Order;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const PPPOE_SESSION: u16 = 0x8864;
/// The EtherType given to protocols of PPP other than IP.
const PPP: u16 = 0x880b;

/// The reason why a packet cannot become a frame, and the cure.
pub(super) struct Unsupported {
    pub what: String,
    pub cure: &'static str,
}

/// The packet with its own Ethernet header, or with one that is made up.
pub(super) fn framed(packet: &Packet) -> Result<Vec<u8>, Unsupported> {
    let bytes = packet.bytes.as_slice();
    match packet.link {
        1 => Ok(bytes.to_vec()),
        // RAW has had three numbers.
        12 | 14 | 101 => Ok(ethernet(by_version(bytes), bytes)),
        228 => Ok(ethernet(IPV4, bytes)),
        229 => Ok(ethernet(IPV6, bytes)),
        0 => loopback(bytes, &[Order::Little, Order::Big]),
        108 => loopback(bytes, &[Order::Big]),
        113 => cooked(bytes, 14, 16),
        276 => cooked(bytes, 0, 20),
        9 | 50 => ppp(bytes),
        51 => Ok(ethernet(PPPOE_SESSION, bytes)),
        105 => wireless(bytes),
        127 => {
            let length = bytes.get(2..4).map(|field| usize::from(Order::Little.u16(field)));
            wireless(length.and_then(|length| bytes.get(length..)).ok_or_else(short)?)
        }
        other => Err(Unsupported {
            what: format!("packets of link type {other} ({}) are not read", name(other)),
            cure: "capture where IP is carried, as in tcpdump -i eth0 -w FILE",
        }),
    }
}

fn name(link: u32) -> &'static str {
    match link {
        104 => "Cisco HDLC",
        107 => "frame relay",
        119 | 163 => "802.11 with a Prism or AVS header",
        147..=162 => "private",
        166 => "PPP as pppd writes it",
        187 | 201 => "Bluetooth",
        189 | 220 | 249 => "USB",
        195 | 230 => "802.15.4",
        227 => "CAN",
        253 => "netlink",
        _ => "see tcpdump.org/linktypes.html",
    }
}

fn short() -> Unsupported {
    Unsupported {
        what: "it is shorter than its own header".to_owned(),
        cure: "capture with a longer snap length, or without -s",
    }
}

fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], &ethertype.to_be_bytes()[..], payload].concat()
}

fn by_version(bytes: &[u8]) -> u16 {
    if bytes.first().is_some_and(|first| first >> 4 == 6) { IPV6 } else { IPV4 }
}

/// BSD loopback: the address family, in the byte order of the capturing machine (NULL) or of the network (LOOP).
fn loopback(bytes: &[u8], orders: &[Order]) -> Result<Vec<u8>, Unsupported> {
    let (family, payload) = bytes.split_at_checked(4).ok_or_else(short)?;
    let known = orders.iter().find_map(|order| match order.u32(family) {
        2 => Some(IPV4),
        // Linux, NetBSD and OpenBSD, FreeBSD, macOS.
        10 | 24 | 28 | 30 => Some(IPV6),
        _ => None,
    });
    known.map(|ethertype| ethernet(ethertype, payload)).ok_or_else(|| Unsupported {
        what: format!("family {} of a loopback's packet is neither IPv4 nor IPv6", orders[0].u32(family)),
        cure: "capture packets of IP",
    })
}

/// Linux cooked captures, as of `-i any`: the protocol is at `at`, and the header is `length` bytes long.
fn cooked(bytes: &[u8], at: usize, length: usize) -> Result<Vec<u8>, Unsupported> {
    let (header, payload) = bytes.split_at_checked(length).ok_or_else(short)?;
    let protocol = Order::Big.u16(&header[at..]);
    // Lower numbers are Linux's own, such as 802.2: no IP.
    let ethertype = if protocol < 0x0600 { payload.len().min(0x05dc) as u16 } else { protocol };
    Ok(ethernet(ethertype, payload))
}

/// PPP, with or without the address and control field of HDLC, with a protocol of one or two bytes.
fn ppp(bytes: &[u8]) -> Result<Vec<u8>, Unsupported> {
    let bytes = bytes.strip_prefix(&[0xff, 0x03]).unwrap_or(bytes);
    let (protocol, payload) = match bytes {
        // An odd first byte is the whole protocol (RFC 1661, section 6.5).
        [first, payload @ ..] if first & 1 == 1 => (u16::from(*first), payload),
        [first, second, payload @ ..] => (u16::from_be_bytes([*first, *second]), payload),
        _ => return Err(short()),
    };
    Ok(match protocol {
        0x0021 => ethernet(IPV4, payload),
        0x0057 => ethernet(IPV6, payload),
        _ => ethernet(PPP, bytes),
    })
}

/// An unencrypted data frame of 802.11; other frames carry no readable packet.
fn wireless(bytes: &[u8]) -> Result<Vec<u8>, Unsupported> {
    const DATA: u8 = 2;
    let (control, flags) = match bytes {
        [control, flags, ..] => (*control, *flags),
        _ => return Err(short()),
    };
    let (kind, subtype) = (control >> 2 & 3, control >> 4);
    let cure = "capture on the interface itself instead of in monitor mode";
    if flags & 0x40 != 0 {
        return Err(Unsupported { what: "an encrypted frame of 802.11".to_owned(), cure });
    }
    // Bit 2 of the subtype: no data.
    if kind != DATA || subtype & 4 != 0 {
        return Err(Unsupported { what: "a frame of 802.11 that carries no data".to_owned(), cure });
    }
    let four_addresses = flags & 3 == 3;
    let (qos, order) = (subtype & 8 != 0, flags & 0x80 != 0);
    let header = 24 + if four_addresses { 6 } else { 0 } + if qos { 2 } else { 0 } + if qos && order { 4 } else { 0 };
    match bytes.get(header..).ok_or_else(short)? {
        // LLC with SNAP: the type of Ethernet follows.
        [0xaa, 0xaa, 3, 0, 0, 0, high, low, payload @ ..] => Ok(ethernet(u16::from_be_bytes([*high, *low]), payload)),
        _ => Err(Unsupported { what: "a frame of 802.11 without the type of what it carries".to_owned(), cure }),
    }
}
