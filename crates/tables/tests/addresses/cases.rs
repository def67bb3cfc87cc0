//! Random tables and changes of them.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug, Clone)]
pub enum Change {
    Set(IpNet, u16),
    Remove(IpNet),
    /// Moves the prefix that was set by the change of this number, counted round.
    Move(usize, u16),
}

#[derive(Debug, Clone)]
pub struct Case {
    pub seed: [u64; 5],
    pub changes: Vec<Change>,
    /// Addresses that are looked up besides those at the borders of prefixes.
    pub strangers: Vec<IpAddr>,
}

/// With this seed, addresses of [`crowd`] have two buckets among eight, and keys must give way to each other.
pub const CROWDED: [u64; 5] = [0, 1 << 24, (1 << 32) - 0x2001_0db8, 0, 1 << 24];

const V4_LENGTHS: [u8; 12] = [32, 32, 32, 31, 29, 28, 25, 24, 17, 9, 1, 0];
const V6_LENGTHS: [u8; 15] = [128, 128, 127, 126, 96, 66, 65, 64, 63, 62, 56, 48, 33, 1, 0];

fn v4(bits: u32, length: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new(Ipv4Addr::from_bits(bits), length).expect("at most 32").trunc())
}

fn v6(bits: u128, length: u8) -> IpNet {
    IpNet::V6(Ipv6Net::new(Ipv6Addr::from_bits(bits), length).expect("at most 128").trunc())
}

/// Addresses that share prefixes of many lengths.
fn related() -> impl Strategy<Value = IpAddr> {
    let bits = prop::collection::vec(0..128u32, 0..3);
    (any::<bool>(), bits).prop_map(|(is_v4, bits)| {
        if is_v4 {
            let flipped = bits.iter().fold(0x0a01_0280_u32, |address, bit| address ^ 1 << (bit % 32));
            IpAddr::V4(Ipv4Addr::from_bits(flipped))
        } else {
            let base = 0x2001_0db8_0001_0280_8000_0000_0000_0001_u128;
            IpAddr::V6(Ipv6Addr::from_bits(bits.iter().fold(base, |address, bit| address ^ 1 << bit)))
        }
    })
}

fn prefix() -> impl Strategy<Value = IpNet> {
    (related(), any::<prop::sample::Index>()).prop_map(|(address, length)| match address {
        IpAddr::V4(address) => v4(address.to_bits(), V4_LENGTHS[length.index(V4_LENGTHS.len())]),
        IpAddr::V6(address) => v6(address.to_bits(), V6_LENGTHS[length.index(V6_LENGTHS.len())]),
    })
}

/// Whole addresses and short prefixes that crowd a few buckets.
pub fn crowd() -> impl Strategy<Value = IpNet> {
    let length = prop_oneof![3 => Just(0u8), 1 => Just(2)];
    (any::<bool>(), 1..5u32, 1..5u32, 0..4u32, length).prop_map(|(is_v4, first, second, last, shorter)| {
        if is_v4 {
            v4(first << 24 | 1 << 16 | second << 8 | last, 32 - shorter)
        } else {
            v6(0x2001_0db8 << 96 | u128::from(first << 24 | second << 8 | last), 128 - shorter)
        }
    })
}

fn changes(of: BoxedStrategy<IpNet>, most: usize) -> impl Strategy<Value = Vec<Change>> {
    let leaf = 0..32_768u16;
    let change = prop_oneof![
        5 => (of.clone(), leaf.clone()).prop_map(|(prefix, leaf)| Change::Set(prefix, leaf)),
        2 => of.prop_map(Change::Remove),
        2 => (any::<usize>(), leaf).prop_map(|(n, leaf)| Change::Move(n, leaf)),
    ];
    prop::collection::vec(change, 1..most)
}

impl Case {
    /// Prefixes of many lengths within each other.
    pub fn nested() -> BoxedStrategy<Case> {
        let strangers = prop::collection::vec(related(), 20);
        let case = (any::<[u64; 5]>(), changes(prefix().boxed(), 80), strangers);
        case.prop_map(|(seed, changes, strangers)| Case { seed, changes, strangers }).boxed()
    }

    /// More addresses than their buckets hold.
    pub fn crowded() -> BoxedStrategy<Case> {
        changes(crowd().boxed(), 200).prop_map(|changes| Case { seed: CROWDED, changes, strangers: Vec::new() }).boxed()
    }

    /// The prefix and the leaf that this change sets; no leaf: it removes the prefix.
    pub fn change(&self, n: usize) -> Option<(IpNet, Option<u16>)> {
        match self.changes[n] {
            Change::Set(prefix, leaf) => Some((prefix, Some(leaf))),
            Change::Remove(prefix) => Some((prefix, None)),
            Change::Move(of, leaf) => match self.changes[of % self.changes.len()] {
                Change::Set(prefix, _) => Some((prefix, Some(leaf))),
                _ => None,
            },
        }
    }
}

/// The addresses at the borders of a prefix, on either side.
pub fn borders(prefix: IpNet) -> Vec<IpAddr> {
    match prefix {
        IpNet::V4(net) => {
            let (first, last) = (net.network().to_bits(), net.broadcast().to_bits());
            [first.wrapping_sub(1), first, last, last.wrapping_add(1)]
                .map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits)))
                .to_vec()
        }
        IpNet::V6(net) => {
            let (first, last) = (net.network().to_bits(), net.broadcast().to_bits());
            let around = [first.wrapping_sub(1), first, last, last.wrapping_add(1)].map(Ipv6Addr::from_bits);
            // Programs take these for addresses of IPv4.
            around.into_iter().filter(|address| address.to_ipv4_mapped().is_none()).map(IpAddr::V6).collect()
        }
    }
}
