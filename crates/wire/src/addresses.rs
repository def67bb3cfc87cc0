//! The addresses of a frame, which the metadata of the hook has no room for: hosts of a group are told apart by them.

use etherparse::{LaxNetSlice, LaxSlicedPacket};
use std::net::IpAddr;

/// Source and destination of the packet of an Ethernet frame, if it is one of IP.
pub fn ends(frame: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match LaxSlicedPacket::from_ethernet(frame).ok()?.net? {
        LaxNetSlice::Ipv4(ip) => Some((ip.header().source_addr().into(), ip.header().destination_addr().into())),
        LaxNetSlice::Ipv6(ip) => Some((ip.header().source_addr().into(), ip.header().destination_addr().into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::ends;
    use etherparse::PacketBuilder;
    use std::net::IpAddr;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn both_families_have_ends_behind_a_tag_too() {
        let mut bytes = Vec::new();
        let step = PacketBuilder::ethernet2([2; 6], [4; 6]).single_vlan(5.try_into().expect("small"));
        step.ipv4([10, 1, 2, 3], [10, 200, 0, 255], 9).udp(5, 6).write(&mut bytes, &[7; 4]).expect("memory");
        assert_eq!(ends(&bytes), Some((address("10.1.2.3"), address("10.200.0.255"))));
        let mut bytes = Vec::new();
        let ends_v6 =
            ["2001:db8::1", "2001:db8::2"].map(|text| text.parse::<std::net::Ipv6Addr>().expect("one").octets());
        let step = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv6(ends_v6[0], ends_v6[1], 9);
        step.udp(5, 6).write(&mut bytes, &[7; 4]).expect("memory");
        assert_eq!(ends(&bytes), Some((address("2001:db8::1"), address("2001:db8::2"))));
        assert_eq!(ends(&[0xff; 60]), None);
        assert_eq!(ends(&[1; 13]), None);
    }
}
