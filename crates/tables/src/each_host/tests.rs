//! Tests of groups, their places and the hosts that take them, on the core itself.

use super::*;
use crate::tree::TreeTable;
use sluice_core::each_host::HostsCore;
use sluice_policy::network::Way;
use sluice_policy::{Context, Source};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};

fn network(groups: &str) -> Network {
    let text = format!(
        r#"{{ "subscriber_side": ["eth1"], "link": {{ "rate": "1gbit" }}, "sites": {{ "north": {{}} }}, "each_host": {{ {groups} }},
            "subscribers": [ {{ "name": "known", "addresses": ["10.1.0.9"] }} ] }}"#
    );
    let policy =
        sluice_policy::parse(&Source::new("test.json", text.as_str())).unwrap_or_else(|found| panic!("{found}"));
    let resolved = sluice_policy::resolve(&policy, &Context::default()).unwrap_or_else(|found| panic!("{found}"));
    resolved.network.expect("a network")
}

fn group(name: &str, prefix: &str, hosts: u32) -> String {
    format!(
        r#""{name}": {{ "addresses": ["{prefix}"], "ceil": "10mbit", "site": "north", "hosts": {hosts}, "ipv6_length": 56 }}"#
    )
}

/// A table as programs have it.
fn written(table: &HostTable) -> Box<abi::sl_each_host> {
    let mut map = abi::boxed_zeroed::<abi::sl_each_host>();
    for (index, own) in table.present() {
        map.group[index] = own.group();
        map.group_of[own.shared as usize] = index as u8 + 1;
        for (place, leaf) in (own.first..).zip(&own.leaves) {
            map.place[place as usize].leaf = *leaf as u16;
        }
    }
    map.groups = table.present().count() as u64;
    map
}

#[test]
fn each_host_has_the_ceiling_of_its_group() {
    let town = network(&group("guests", "10.1.0.0/16", 20));
    let numbers = Numbers::of(&town, &[]).expect("they fit");
    let table = HostTable::of(&town, &numbers, &HostTable::empty()).expect("there is room");
    let (_, own) = table.present().next().expect("a group");
    assert_eq!((own.leaves.len(), own.mask.leading_ones()), (32, 56), "rounded up");
    let map = written(&table);
    assert_eq!(HostTable::read(&map), table);
    let tree =
        TreeTable::of(&town, Way::Down, &numbers, &TreeTable::empty(), 14).expect("it fits").build().expect("a tree");
    let parents: HashSet<u32> = own
        .leaves
        .iter()
        .map(|leaf| abi::SL_FIRST_INNER + u32::from(tree.state().node[*leaf as usize].parent))
        .collect();
    assert_eq!(parents, HashSet::from([numbers.inner[town.groups[0].inner]]), "all stand below the group");
    assert!(
        own.leaves.iter().all(|leaf| tree.state().node[*leaf as usize].bucket[0].cost == 800 << abi::SL_NODE_COST_BITS)
    );
    let mut map = map;
    map.seed = std::array::from_fn(|n| 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(2 * n as u64 + 3));
    let mut seen = HashSet::new();
    for host in 1..=12 {
        let address: IpAddr = Ipv4Addr::new(10, 1, 0, host).into();
        let leaf = HostsCore::built_in().leaf(&mut map, tree.state(), own.shared, address, 1);
        assert!(own.leaves.contains(&leaf) && seen.insert(leaf), "{address} has {leaf}");
    }
}

#[test]
fn groups_that_stay_keep_their_places() {
    let first = network(&[group("a", "10.1.0.0/16", 64), group("b", "10.2.0.0/16", 64)].join(","));
    let numbers = Numbers::of(&first, &[]).expect("they fit");
    let before = HostTable::of(&first, &numbers, &HostTable::empty()).expect("there is room");
    let firsts = |table: &HostTable| table.present().map(|(index, own)| (index, own.first)).collect::<Vec<_>>();
    assert_eq!(firsts(&before), [(0, 0), (1, 64)]);
    let other = network(&[group("c", "10.3.0.0/16", 8), group("b", "10.4.0.0/15", 64)].join(","));
    let numbers = Numbers::of(&other, &numbers.owners).expect("they fit");
    let after = HostTable::of(&other, &numbers, &before).expect("there is room");
    assert_eq!(firsts(&after), [(0, 0), (1, 64)], "c has places of a, which goes");
    let again = HostTable::of(&other, &numbers, &after).expect("there is room");
    assert_eq!(again, after, "nothing moves without need");
    let others = [("b", "10.2.0.0/16"), ("d", "10.4.0.0/16")].map(|(name, prefix)| group(name, prefix, 8_192));
    let full = network(&others.join(","));
    let numbers = Numbers::of(&full, &numbers.owners).expect("they fit");
    assert_eq!(firsts(&HostTable::of(&full, &numbers, &after).expect("there is room")), [(0, 0), (1, 8_192)]);
    let between = network(
        &[group("b", "10.4.0.0/15", 64), group("d", "10.1.0.0/16", 16_384 - 128)].join(",").replace("16256", "8192"),
    );
    let numbers = Numbers::of(&between, &numbers.owners).expect("they fit");
    let table = HostTable::of(&between, &numbers, &after).expect("there is room");
    assert_eq!(firsts(&table), [(0, 128), (1, 64)], "behind b, whose places stay");
}

#[test]
fn masks_are_of_the_length() {
    for (length, mask) in [(0, 0), (56, !0 << 72), (64, !0 << 64), (128, u128::MAX)] {
        let text = group("a", if length < 32 { "::/0" } else { "2001:db8::/32" }, 8).replace("56", &length.to_string());
        let town = network(&text);
        let numbers = Numbers::of(&town, &[]).expect("they fit");
        let table = HostTable::of(&town, &numbers, &HostTable::empty()).expect("there is room");
        assert_eq!(table.present().next().expect("a group").1.mask, mask, "/{length}");
    }
}
