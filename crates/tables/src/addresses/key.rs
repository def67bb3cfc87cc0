//! Keys of the address table, as `abi/addresses.h` and `sched/addresses.h` have them.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use sluice_abi as abi;
use sluice_policy::network::Address;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// The random numbers of the hash.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seed(pub [u64; 5]);

/// The key that is looked for: a whole address, or a prefix with a bit behind it that marks its end. Marks and VLANs have keys as those of IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// The number; above it a bit for a whole address, a mark or a VLAN.
    V4(u64),
    V6 {
        /// `enum sl_address_kind`.
        kind: u64,
        key: u128,
    },
}

const V6_PREFIX: u64 = abi::SL_ADDRESS_V6_PREFIX as u64;
const V6_WHOLE: u64 = abi::SL_ADDRESS_V6_WHOLE as u64;
const KIND_BITS: u32 = abi::SL_ADDRESS_KIND_BITS;
const TAG_SHIFT: u32 = abi::SL_ADDRESS_TAG_SHIFT;
/// The length index of /0 of IPv6, behind those of IPv4.
const FIRST_V6: usize = 33;
/// The index of marks in the place of one of a length, and that of VLANs.
const MARKS: usize = FIRST_V6 + 129;
const VLANS: usize = MARKS + 1;

impl Key {
    /// Lengths of both families, and marks and VLANs, which have none.
    pub const LENGTHS: usize = VLANS + 1;

    pub fn of(address: Address) -> Key {
        match address {
            Address::Mark(mark) => Key::V4(u64::from(mark) | abi::SL_ADDRESS_MARK),
            Address::Vlan(vlan) => Key::V4(u64::from(vlan) | abi::SL_ADDRESS_VLAN),
            Address::Prefix(prefix) => Key::of_prefix(prefix),
        }
    }

    fn of_prefix(prefix: IpNet) -> Key {
        match prefix {
            IpNet::V4(net) => Key::of_v4(u64::from(net.network().to_bits()), net.prefix_len()),
            // Programs keep IPv4 as ::ffff:a.b.c.d, and look both up as IPv4.
            IpNet::V6(net) => match (net.network().to_ipv4_mapped(), net.prefix_len().checked_sub(96)) {
                (Some(v4), Some(length)) => Key::of_v4(u64::from(v4.to_bits()), length),
                _ => Key::of_v6(net.network().to_bits(), net.prefix_len()),
            },
        }
    }

    fn of_v4(address: u64, length: u8) -> Key {
        match 31u8.checked_sub(length) {
            None => Key::V4(address | abi::SL_ADDRESS_V4_WHOLE),
            Some(bit) => Key::V4(address | 1 << bit),
        }
    }

    fn of_v6(address: u128, length: u8) -> Key {
        match 127u8.checked_sub(length) {
            None => Key::V6 { kind: V6_WHOLE, key: address },
            Some(bit) => Key::V6 { kind: V6_PREFIX, key: address | 1 << bit },
        }
    }

    /// The key of a slot that is not free.
    pub fn read(word: u64, halves: (u64, u64)) -> Key {
        match word >> TAG_SHIFT & ((1 << KIND_BITS) - 1) {
            0 => Key::V4(word >> (TAG_SHIFT + KIND_BITS)),
            kind => Key::V6 { kind, key: whole(halves) },
        }
    }

    /// The key of the same kind that has these halves; none of IPv4.
    pub fn with_halves(&self, halves: (u64, u64)) -> Option<Key> {
        match *self {
            Key::V4(_) => None,
            Key::V6 { kind, .. } => Some(Key::V6 { kind, key: whole(halves) }),
        }
    }

    /// The halves of the key, beside the word.
    pub fn halves(&self) -> Option<(u64, u64)> {
        match *self {
            Key::V4(_) => None,
            Key::V6 { key, .. } => Some(((key >> 64) as u64, key as u64)),
        }
    }

    pub fn address(&self) -> Address {
        let length = self.length();
        match *self {
            Key::V4(key) if key & abi::SL_ADDRESS_MARK != 0 => Address::Mark(key as u32),
            Key::V4(key) if key & abi::SL_ADDRESS_VLAN != 0 => Address::Vlan(key as u16),
            Key::V4(key) => {
                let end = if length == 32 { 0 } else { 1 << (31 - length) };
                IpNet::V4(Ipv4Net::new(Ipv4Addr::from_bits(key as u32 & !end), length).expect("at most 32")).into()
            }
            Key::V6 { key, .. } => {
                let end = if length == 128 { 0 } else { 1 << (127 - length) };
                IpNet::V6(Ipv6Net::new(Ipv6Addr::from_bits(key & !end), length).expect("at most 128")).into()
            }
        }
    }

    fn length(&self) -> u8 {
        match *self {
            Key::V4(key) if key & abi::SL_ADDRESS_V4_WHOLE != 0 => 32,
            Key::V4(key) => 31 - key.trailing_zeros().min(31) as u8,
            Key::V6 { kind: V6_WHOLE, .. } => 128,
            Key::V6 { key, .. } => 127 - key.trailing_zeros().min(127) as u8,
        }
    }

    /// A number of its family and length.
    pub fn length_index(&self) -> usize {
        match self {
            Key::V4(key) if key & abi::SL_ADDRESS_MARK != 0 => MARKS,
            Key::V4(key) if key & abi::SL_ADDRESS_VLAN != 0 => VLANS,
            Key::V4(_) => self.length().into(),
            Key::V6 { .. } => FIRST_V6 + usize::from(self.length()),
        }
    }

    /// Those of its family, whole addresses aside.
    pub fn lengths_of_family(&self) -> RangeInclusive<usize> {
        match self {
            Key::V4(_) if self.length_index() >= MARKS => MARKS..=VLANS,
            Key::V4(_) => 0..=31,
            Key::V6 { .. } => FIRST_V6..=FIRST_V6 + 127,
        }
    }

    fn hash(&self, seed: &Seed) -> u64 {
        let Seed(seed) = seed;
        let half = |at: usize, half: u64| {
            seed[at].wrapping_add(half & 0xffff_ffff).wrapping_mul(seed[at + 1].wrapping_add(half >> 32))
        };
        match *self {
            Key::V4(key) => seed[0].wrapping_add(seed[1].wrapping_mul(key)),
            Key::V6 { key, .. } => seed[0].wrapping_add(half(1, (key >> 64) as u64)).wrapping_add(half(3, key as u64)),
        }
    }

    /// Its first and its second bucket.
    pub fn buckets(&self, seed: &Seed) -> [usize; 2] {
        let hash = self.hash(seed);
        [hash >> 48, hash >> 32 & u64::from(abi::SL_ADDRESS_BUCKETS - 1)].map(|bucket| bucket as usize)
    }

    /// Its word, without the leaf.
    pub fn tag(&self, seed: &Seed) -> u64 {
        let tag = match *self {
            Key::V4(key) => key << KIND_BITS,
            Key::V6 { kind, .. } => self.hash(seed) << KIND_BITS | kind,
        };
        tag << TAG_SHIFT
    }
}

fn whole((upper, lower): (u64, u64)) -> u128 {
    u128::from(upper) << 64 | u128::from(lower)
}

/// The word and the bit that tell look-ups of a length, of marks or of VLANs, by its index; none for whole addresses.
pub(super) fn length_bit(index: usize) -> Option<(usize, u64)> {
    match index {
        MARKS => return Some((abi::SL_LENGTHS_NONE as usize, abi::SL_ADDRESS_HAS_MARKS.into())),
        VLANS => return Some((abi::SL_LENGTHS_NONE as usize, abi::SL_ADDRESS_HAS_VLANS.into())),
        _ => {}
    }
    let (word, bit) = match index.checked_sub(FIRST_V6) {
        None => (abi::SL_LENGTHS_V4, 31usize.checked_sub(index)?),
        Some(length @ 0..64) => (abi::SL_LENGTHS_V6_UPPER, 63 - length),
        Some(length) => (abi::SL_LENGTHS_V6_LOWER, 127usize.checked_sub(length)?),
    };
    Some((word as usize, 1 << bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_for_one_address() {
        let seed = Seed([3, 5, 7, 11, 13]);
        for text in [
            "0.0.0.0/0",
            "0.0.0.0/32",
            "255.255.255.255/32",
            "128.0.0.0/1",
            "192.0.2.0/31",
            "192.0.2.7/32",
            "10.0.0.0/8",
            "::/0",
            "::/128",
            "2001:db8::/63",
            "2001:db8::/64",
            "2001:db8:0:0:8000::/65",
            "2001:db8::8000:0:0:0/128",
            "2001:db8::2/127",
            "mark:1",
            "mark:4294967295",
            "vlan:1",
            "vlan:4094",
        ] {
            let address: Address = text.parse().expect("an address");
            let key = Key::of(address);
            assert_eq!(key.address(), address);
            assert_eq!(Key::read(key.tag(&seed), key.halves().unwrap_or_default()), key);
        }
        let address = |text: &str| text.parse::<Address>().expect("a prefix");
        assert_eq!(Key::of(address("::ffff:192.0.2.0/120")).address(), address("192.0.2.0/24"));
    }
}
