//! Random tables and changes of them.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use proptest::prelude::*;
use sluice_policy::network::Address;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug, Clone)]
pub enum Change {
    Set(Address, u16),
    Remove(Address),
    /// Moves the address that was set by the change of this number, counted round.
    Move(usize, u16),
}

#[derive(Debug, Clone)]
pub struct Case {
    pub seed: [u64; 5],
    pub changes: Vec<Change>,
    /// Packets that are looked up besides those at the borders of prefixes.
    pub strangers: Vec<Packet>,
}

/// The fields of a packet by which it is looked up.
#[derive(Debug, Clone, Copy)]
pub struct Packet {
    pub address: IpAddr,
    /// 0: none.
    pub mark: u32,
    /// 0: none.
    pub vlan: u16,
}

impl Packet {
    /// One without mark and VLAN.
    pub fn of(address: IpAddr) -> Packet {
        Packet { address, mark: 0, vlan: 0 }
    }
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

/// Marks, of which some are the bits of an address or the number of a VLAN.
fn mark() -> impl Strategy<Value = u32> {
    prop_oneof![1..4u32, Just(0x0a01_0280), Just(u32::MAX)]
}

fn vlan() -> impl Strategy<Value = u16> {
    prop_oneof![1..4u16, Just(4094)]
}

fn entry() -> impl Strategy<Value = Address> {
    let prefix = (related(), any::<prop::sample::Index>()).prop_map(|(address, length)| match address {
        IpAddr::V4(address) => v4(address.to_bits(), V4_LENGTHS[length.index(V4_LENGTHS.len())]),
        IpAddr::V6(address) => v6(address.to_bits(), V6_LENGTHS[length.index(V6_LENGTHS.len())]),
    });
    prop_oneof![
        8 => prefix.prop_map(Address::Prefix),
        1 => mark().prop_map(Address::Mark),
        1 => vlan().prop_map(Address::Vlan),
    ]
}

fn stranger() -> impl Strategy<Value = Packet> {
    let (mark, vlan) = (prop_oneof![3 => Just(0), 1 => mark()], prop_oneof![3 => Just(0), 1 => vlan()]);
    (related(), mark, vlan).prop_map(|(address, mark, vlan)| Packet { address, mark, vlan })
}

/// Whole addresses and short prefixes that crowd a few buckets.
pub fn crowd() -> impl Strategy<Value = Address> {
    let length = prop_oneof![3 => Just(0u8), 1 => Just(2)];
    (any::<bool>(), 1..5u32, 1..5u32, 0..4u32, length).prop_map(|(is_v4, first, second, last, shorter)| {
        if is_v4 {
            v4(first << 24 | 1 << 16 | second << 8 | last, 32 - shorter).into()
        } else {
            v6(0x2001_0db8 << 96 | u128::from(first << 24 | second << 8 | last), 128 - shorter).into()
        }
    })
}

fn changes(of: BoxedStrategy<Address>, most: usize) -> impl Strategy<Value = Vec<Change>> {
    let leaf = 0..32_768u16;
    let change = prop_oneof![
        5 => (of.clone(), leaf.clone()).prop_map(|(address, leaf)| Change::Set(address, leaf)),
        2 => of.prop_map(Change::Remove),
        2 => (any::<usize>(), leaf).prop_map(|(n, leaf)| Change::Move(n, leaf)),
    ];
    prop::collection::vec(change, 1..most)
}

impl Case {
    /// Prefixes of many lengths within each other, marks and VLANs.
    pub fn nested() -> BoxedStrategy<Case> {
        let strangers = prop::collection::vec(stranger(), 20);
        let case = (any::<[u64; 5]>(), changes(entry().boxed(), 80), strangers);
        case.prop_map(|(seed, changes, strangers)| Case { seed, changes, strangers }).boxed()
    }

    /// More addresses than their buckets hold.
    pub fn crowded() -> BoxedStrategy<Case> {
        changes(crowd().boxed(), 200).prop_map(|changes| Case { seed: CROWDED, changes, strangers: Vec::new() }).boxed()
    }

    /// The address and the leaf that this change sets; no leaf: it removes the address.
    pub fn change(&self, n: usize) -> Option<(Address, Option<u16>)> {
        match self.changes[n] {
            Change::Set(address, leaf) => Some((address, Some(leaf))),
            Change::Remove(address) => Some((address, None)),
            Change::Move(of, leaf) => match self.changes[of % self.changes.len()] {
                Change::Set(address, _) => Some((address, Some(leaf))),
                _ => None,
            },
        }
    }
}

/// Packets at the borders of a prefix, on either side; those with a mark or on a VLAN, and with the ones beside it.
pub fn borders(of: Address) -> Vec<Packet> {
    let stranger = Packet::of(IpAddr::V4(Ipv4Addr::LOCALHOST));
    match of {
        Address::Prefix(prefix) => addresses_at(prefix).into_iter().map(Packet::of).collect(),
        Address::Mark(mark) => {
            [mark - 1, mark, mark.wrapping_add(1)].map(|mark| Packet { mark, vlan: 1, ..stranger }).to_vec()
        }
        Address::Vlan(vlan) => [vlan - 1, vlan, vlan + 1].map(|vlan| Packet { vlan, ..stranger }).to_vec(),
    }
}

fn addresses_at(prefix: IpNet) -> Vec<IpAddr> {
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
