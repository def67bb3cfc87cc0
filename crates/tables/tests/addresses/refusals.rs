//! Prefixes that do not fit a table.

use crate::cases::{CROWDED, Packet};
use crate::model::Model;
use ipnet::IpNet;
use sluice_abi as abi;
use sluice_core::addresses::LookUp;
use sluice_tables::{AddressError, Addresses, NoReaders, address_table_words, build_addresses};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn random() -> impl FnMut() -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move || {
        // xorshift64* (Vigna, 2016)
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// So many prefixes: of five, three whole addresses of IPv4, one of its prefixes, one of IPv6.
fn prefixes(count: u32) -> Vec<(IpNet, u16)> {
    let v4 = |bits: u32, length| IpNet::new(IpAddr::V4(Ipv4Addr::from_bits(bits)), length).expect("at most 32");
    let v6 = |bits: u128, length| IpNet::new(IpAddr::V6(Ipv6Addr::from_bits(bits)), length).expect("at most 128");
    let one = |n: u32| match n % 5 {
        0..3 => v4(0x0a00_0000 + n, 32),
        3 => v4(0x6440_0000 + n / 5 * 32, 27 + (n / 5 % 3) as u8),
        _ => v6(0x2001_0db8 << 96 | u128::from(n) << 72, [56, 64, 128][n as usize / 5 % 3]),
    };
    (0..count).map(|n| (one(n), (n % abi::SL_ADDRESS_LEAVES) as u16)).collect()
}

#[test]
fn a_full_table_takes_no_more() {
    let prefixes = prefixes(abi::SL_ADDRESSES);
    let mut table = build_addresses(&prefixes, random()).expect("fits");
    let words = address_table_words(&mut table);
    for (prefix, leaf) in &prefixes {
        assert_eq!(LookUp::built_in().leaf(words, prefix.addr()), Some(*leaf), "{prefix}");
    }
    let mut addresses = Addresses::open(words, NoReaders);
    assert_eq!(addresses.len(), prefixes.len());
    let another: IpNet = "192.0.2.1/32".parse().expect("a prefix");
    assert_eq!(addresses.set(another, 1), Err(AddressError::Full));
    assert_eq!(addresses.set(prefixes[7].0, 1), Ok(Some(7)), "what is there may move");
    assert_eq!(addresses.remove(prefixes[8].0), Some(8));
    assert_eq!(addresses.set(another, 1), Ok(None));
    assert_eq!(LookUp::built_in().leaf(words, another.addr()), Some(1));
    let one_more: Vec<_> = prefixes.into_iter().chain([(another, 1)]).collect();
    assert_eq!(build_addresses(&one_more, random()).err(), Some(AddressError::Full));
}

#[test]
fn lengths_are_bounded() {
    let mut table = build_addresses::<IpNet>(&[], random()).expect("fits");
    let mut addresses = Addresses::open(address_table_words(&mut table), NoReaders);
    for first in ["10.0.0.0", "2001:db8::"] {
        let address: IpAddr = first.parse().expect("an address");
        let of_length = |length| IpNet::new(address, length).expect("fits").trunc();
        let most = abi::SL_ADDRESS_LENGTHS as u8;
        assert!((0..most).all(|length| addresses.set(of_length(length), 1) == Ok(None)));
        let another = of_length(most);
        assert_eq!(addresses.set(another, 1), Err(AddressError::TooManyLengths(another.into())));
        let whole = IpNet::from(address);
        assert_eq!(addresses.set(whole, 1), Ok(None), "whole addresses do not count");
        addresses.remove(of_length(3));
        assert_eq!(addresses.set(another, 1), Ok(None), "a length without prefixes counts no more");
    }
    let no_leaf = abi::SL_ADDRESS_LEAVES as u16;
    assert_eq!(addresses.set(IpAddr::from([10, 0, 0, 1]), no_leaf), Err(AddressError::NoLeaf(no_leaf)));
}

#[test]
fn another_seed_makes_place() {
    // Nine addresses, of which each has the same two buckets of four by this seed.
    let crowd: Vec<(IpNet, u16)> = (0..9).map(|n| (IpNet::from(IpAddr::from([1, 1, 2, n])), u16::from(n))).collect();
    let mut seeds = CROWDED.into_iter().chain(std::iter::from_fn({
        let mut next = random();
        move || Some(next())
    }));
    let mut table = abi::boxed_zeroed::<abi::sl_addresses>();
    table.seed = CROWDED;
    let mut addresses = Addresses::open(address_table_words(&mut table), NoReaders);
    let refused = crowd.iter().find_map(|(prefix, leaf)| addresses.set(*prefix, *leaf).err());
    assert_eq!(refused, Some(AddressError::NoPlace(crowd[8].0.into())));
    let mut table = build_addresses(&crowd, || seeds.next().expect("endless")).expect("fits");
    assert_ne!(table.seed, CROWDED);
    let words = address_table_words(&mut table);
    let model = Model { entries: crowd.iter().map(|(prefix, leaf)| ((*prefix).into(), *leaf)).collect() };
    for n in 0..=255 {
        let address = IpAddr::from([1, 1, 2, n]);
        assert_eq!(LookUp::built_in().leaf(words, address), model.leaf(Packet::of(address)));
    }
}
