//! Handmade frames, and a socket that sends them: through the queues of an interface, or into its peer.

use crate::net::Ns;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// An address of no host here: hooks see the frames, and no host answers.
const TO: [u8; 6] = [2, 0, 0, 0, 0xee, 1];
const FROM: [u8; 6] = [2, 0, 0, 0, 0xee, 2];

pub const IPV4: u16 = 0x0800;
pub const ARP: u16 = 0x0806;
pub const IPV6: u16 = 0x86dd;
pub const VLAN: u16 = 0x8100;
pub const QINQ: u16 = 0x88a8;
pub const PPPOE: u16 = 0x8864;
pub const LLDP: u16 = 0x88cc;

/// A frame of Ethernet, these VLAN tags (type, id), and the payload.
pub fn ethernet(tags: &[(u16, u16)], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [&TO[..], &FROM[..]].concat();
    for (kind, id) in tags {
        frame.extend(kind.to_be_bytes());
        frame.extend(id.to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// An IPv4 packet. `fragment` is the field of flags and offset.
pub struct V4 {
    pub src: Ipv4Addr,
    pub dst: Ipv4Addr,
    pub proto: u8,
    pub dscp: u8,
    pub id: u16,
    pub fragment: u16,
    pub options: Vec<u8>,
}

impl Default for V4 {
    fn default() -> V4 {
        V4 {
            src: Ipv4Addr::new(192, 0, 2, 1),
            dst: Ipv4Addr::new(192, 0, 2, 2),
            proto: 17,
            dscp: 0,
            id: 0x1234,
            fragment: 0,
            options: Vec::new(),
        }
    }
}

impl V4 {
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        assert_eq!(self.options.len() % 4, 0, "options fill words");
        let words = 5 + self.options.len() / 4;
        let total = (words * 4 + payload.len()) as u16;
        let mut p = vec![0x40 | words as u8, self.dscp << 2];
        p.extend(total.to_be_bytes());
        p.extend(self.id.to_be_bytes());
        p.extend(self.fragment.to_be_bytes());
        p.extend([64, self.proto, 0, 0]);
        p.extend(self.src.octets());
        p.extend(self.dst.octets());
        p.extend(&self.options);
        let sum = checksum(&p);
        p[10..12].copy_from_slice(&sum.to_be_bytes());
        p.extend(payload);
        p
    }

    /// The packet of a TCP segment, whose checksum becomes right.
    pub fn segment(&self, tcp: &[u8]) -> Vec<u8> {
        let length = (tcp.len() as u16).to_be_bytes();
        let mut summed = [&self.src.octets(), &self.dst.octets(), &[0, 6, length[0], length[1]], tcp].concat();
        summed[12 + 16..][..2].fill(0);
        let sum = checksum(&summed).to_be_bytes();
        let tcp = [&tcp[..16], &sum, &tcp[18..]].concat();
        V4 { proto: 6, options: self.options.clone(), ..*self }.packet(&tcp)
    }
}

/// A session's header, and the protocol of what it carries: 0x21 IPv4, 0x57 IPv6.
pub fn pppoe(protocol: u16, payload: &[u8]) -> Vec<u8> {
    let mut p = vec![0x11, 0, 0, 7];
    p.extend((payload.len() as u16 + 2).to_be_bytes());
    p.extend(protocol.to_be_bytes());
    p.extend(payload);
    p
}

fn checksum(header: &[u8]) -> u16 {
    let mut sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// An IPv6 packet: headers of these types and bytes, one after the other, then the payload's own type.
pub fn v6(dst: Ipv6Addr, dscp: u8, extensions: &[(u8, Vec<u8>)], proto: u8, payload: &[u8]) -> Vec<u8> {
    let src: Ipv6Addr = "2001:db8:1::1".parse().expect("an address");
    let length = extensions.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() + payload.len();
    let mut p = vec![0x60 | dscp >> 2, dscp << 6, 0, 0];
    p.extend((length as u16).to_be_bytes());
    p.push(extensions.first().map_or(proto, |(kind, _)| *kind));
    p.push(64);
    p.extend(src.octets());
    p.extend(dst.octets());
    for (n, (_, bytes)) in extensions.iter().enumerate() {
        let next = extensions.get(n + 1).map_or(proto, |(kind, _)| *kind);
        p.push(next);
        p.extend(&bytes[1..]);
    }
    p.extend(payload);
    p
}

/// The beginning of UDP or TCP: ports, and enough of the rest to be parsed.
pub fn ports(src: u16, dst: u16) -> Vec<u8> {
    let mut p = src.to_be_bytes().to_vec();
    p.extend(dst.to_be_bytes());
    p.extend([0, 28, 0, 0]);
    p.resize(28, 0);
    p[12] = 0x50; // a TCP header of five words
    p
}

/// A packet socket on an interface.
pub struct Wire {
    socket: OwnedFd,
    ifindex: i32,
}

impl Wire {
    pub fn open(ns: &Ns, dev: &str) -> Wire {
        // SAFETY: the call takes numbers only; the descriptor is ours alone.
        let socket = ns.inside(|| unsafe {
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
            assert!(fd >= 0, "a packet socket: {}", std::io::Error::last_os_error());
            OwnedFd::from_raw_fd(fd)
        });
        Wire { socket, ifindex: ns.ifindex(dev) as i32 }
    }

    /// Sends a frame, which must be accepted.
    pub fn send(&self, frame: &[u8]) {
        assert_eq!(self.put(frame), frame.len() as isize, "sending a frame: {}", std::io::Error::last_os_error());
    }

    /// Sends a frame, which a queue may refuse.
    pub fn offer(&self, frame: &[u8]) {
        if self.put(frame) < 0 {
            let error = std::io::Error::last_os_error();
            assert_eq!(error.raw_os_error(), Some(libc::ENOBUFS), "sending a frame: {error}");
        }
    }

    fn put(&self, frame: &[u8]) -> isize {
        // SAFETY: zeroes are a valid address of no family.
        let mut to: libc::sockaddr_ll = unsafe { zeroed() };
        to.sll_family = libc::AF_PACKET as u16;
        to.sll_ifindex = self.ifindex;
        to.sll_halen = 6;
        to.sll_protocol = u16::from_ne_bytes([frame[12], frame[13]]);
        to.sll_addr[..6].copy_from_slice(&frame[..6]);
        // SAFETY: the frame and the address live through the call, and the lengths are theirs.
        unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                std::ptr::from_ref(&to).cast(),
                size_of::<libc::sockaddr_ll>() as u32,
            )
        }
    }
}
