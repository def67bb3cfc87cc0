//! The mark of congestion in a frame (ECN: RFC 3168), for engines that move frames themselves.

use etherparse::{LaxNetSlice, LaxSlicedPacket};

/// The mark, in the byte behind the version of an IPv4 header.
const CE: u8 = 3;

/// Marks the packet of an Ethernet frame, if it is one of IP.
pub fn mark(frame: &mut [u8]) {
    match ip_header(frame) {
        Some((at, 4)) => mark_ipv4(&mut frame[at..]),
        // The two lowest bits of the traffic class: there is no checksum.
        Some((at, _)) => frame[at + 1] |= CE << 4,
        None => {}
    }
}

/// The place of the IP header in a frame, and its version.
fn ip_header(frame: &[u8]) -> Option<(usize, u8)> {
    let place = |header: &[u8]| header.as_ptr() as usize - frame.as_ptr() as usize;
    match LaxSlicedPacket::from_ethernet(frame).ok()?.net? {
        LaxNetSlice::Ipv4(ip) => Some((place(ip.header().slice()), 4)),
        LaxNetSlice::Ipv6(ip) => Some((place(ip.header().slice()), 6)),
        _ => None,
    }
}

/// Sets the mark, and changes the checksum by what the mark changes (RFC 1624, equation 3).
fn mark_ipv4(header: &mut [u8]) {
    let word = |bytes: &[u8]| u32::from(u16::from_be_bytes([bytes[0], bytes[1]]));
    let (before, sum) = (word(&header[0..2]), word(&header[10..12]));
    header[1] |= CE;
    let mut next = (!sum & 0xffff) + (!before & 0xffff) + word(&header[0..2]);
    while next >> 16 != 0 {
        next = (next & 0xffff) + (next >> 16);
    }
    header[10..12].copy_from_slice(&(!next as u16).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::mark;
    use etherparse::{IpNumber, Ipv4Header, Ipv6Header, PacketBuilder};

    fn frame(build: impl FnOnce(etherparse::PacketBuilderStep<etherparse::Ethernet2Header>) -> Vec<u8>) -> Vec<u8> {
        build(PacketBuilder::ethernet2([2; 6], [4; 6]))
    }

    fn ipv4(ecn: u8, vlan: bool) -> Vec<u8> {
        let mut ip = Ipv4Header::new(12, 9, IpNumber::UDP, [10, 1, 2, 3], [10, 200, 0, 255]).expect("short");
        ip.ecn = ecn.try_into().expect("two bits");
        ip.header_checksum = ip.calc_header_checksum();
        let write = |step: etherparse::PacketBuilderStep<etherparse::IpHeaders>| {
            let mut bytes = Vec::new();
            step.udp(5, 6).write(&mut bytes, &[7; 4]).expect("memory");
            bytes
        };
        let headers = etherparse::IpHeaders::Ipv4(ip, Default::default());
        frame(|begin| {
            if vlan {
                write(begin.single_vlan(5.try_into().expect("small")).ip(headers))
            } else {
                write(begin.ip(headers))
            }
        })
    }

    #[test]
    fn a_marked_ipv4_header_has_the_right_checksum() {
        for (vlan, at) in [(false, 14), (true, 18)] {
            for ecn in [1, 2, 3] {
                let mut bytes = ipv4(ecn, vlan);
                let before = bytes.clone();
                mark(&mut bytes);
                let (header, _) = Ipv4Header::from_slice(&bytes[at..]).expect("a header");
                assert_eq!(header.ecn.value(), 3);
                assert_eq!(header.header_checksum, header.calc_header_checksum(), "ecn {ecn}, vlan {vlan}");
                bytes[at + 1] = before[at + 1];
                bytes[at + 10..at + 12].copy_from_slice(&before[at + 10..at + 12]);
                assert_eq!(bytes, before, "nothing else has changed");
            }
        }
    }

    #[test]
    fn an_ipv6_header_is_marked() {
        let ip = Ipv6Header { traffic_class: 0xba, hop_limit: 3, next_header: IpNumber::UDP, ..Default::default() };
        let mut bytes = frame(|begin| {
            let mut bytes = Vec::new();
            let headers = etherparse::IpHeaders::Ipv6(ip.clone(), Default::default());
            begin.ip(headers).udp(5, 6).write(&mut bytes, &[7; 4]).expect("memory");
            bytes
        });
        mark(&mut bytes);
        let (header, _) = Ipv6Header::from_slice(&bytes[14..]).expect("a header");
        assert_eq!(header.traffic_class, 0xbb);
    }

    #[test]
    fn others_stay_as_they_are() {
        for bytes in [vec![0xff; 60], vec![1; 13], Vec::new()] {
            let mut own = bytes.clone();
            mark(&mut own);
            assert_eq!(own, bytes);
        }
    }
}
