//! Addresses as programs keep them: four words in network order, IPv4 as ::ffff:a.b.c.d.

use std::net::{IpAddr, Ipv6Addr};

/// The words of an address.
pub fn address_words(address: IpAddr) -> [u32; 4] {
    let bits = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    };
    [96, 64, 32, 0].map(|shift| ((bits >> shift) as u32).to_be())
}

/// The address of these words. Zeroes stand for the unspecified address of IPv6, and for that of a packet which is not IP.
pub fn address(words: [u32; 4]) -> IpAddr {
    let bits = words.iter().fold(0u128, |bits, word| bits << 32 | u128::from(u32::from_be(*word)));
    Ipv6Addr::from_bits(bits).to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_for_one_address() {
        for text in ["192.0.2.1", "2001:db8::7", "::", "255.255.255.255"] {
            let parsed: IpAddr = text.parse().expect("an address");
            assert_eq!(address(address_words(parsed)), parsed);
        }
        let words = address_words([192, 0, 2, 1].into());
        assert_eq!(words.map(u32::to_ne_bytes), [[0; 4], [0; 4], [0, 0, 255, 255], [192, 0, 2, 1]]);
    }
}
