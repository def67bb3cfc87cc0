//! The laws of the leaves of hosts (`sched/each_host.h`), as properties of random packets. Each must hold for the table that is built in, and each
//! must fail for one that was broken on purpose.
//!
//! `PROPTEST_CASES` is the number of cases of each law. A counterexample is printed with the `PROPTEST_RNG_SEED` that finds it again.

#[path = "../laws/edits.rs"]
mod edits;
#[path = "../laws/law.rs"]
mod law;

use edits::{Edit, Sources};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use sluice_abi as abi;
use sluice_core::each_host::HostsCore;
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const WAYS: usize = abi::SL_HOST_PLACE_WAYS as usize;
/// The leaf that hosts without a place share, and the leaves of places from here on.
const SHARED: u32 = 7;
const FIRST_LEAF: u32 = 100;
const FIRST_PLACE: u32 = 64;
const IDLE_NS: u64 = 1_000;

/// A packet of a host, and what it leaves behind.
#[derive(Debug, Clone, Copy)]
struct Step {
    wait_ns: u64,
    host: u8,
    v6: bool,
    /// Packets that stay in the leaf until its next packet.
    stays: bool,
    /// The time at which the leaf's ceiling is full again, from now on.
    owes_ns: u64,
    bytes: u16,
}

#[derive(Debug, Clone)]
struct Case {
    seed: [u64; 5],
    sets: u32,
    steps: Vec<Step>,
}

fn cases(sets: u32, hosts: u8) -> BoxedStrategy<Case> {
    let wait = prop_oneof![0..50_u64, IDLE_NS - 1..IDLE_NS + 2, 0..4 * IDLE_NS];
    let step =
        (wait, 0..hosts, any::<bool>(), prop::bool::weighted(0.2), prop_oneof![Just(0), 0..3 * IDLE_NS], 1..1500_u16)
            .prop_map(|(wait_ns, host, v6, stays, owes_ns, bytes)| Step { wait_ns, host, v6, stays, owes_ns, bytes });
    let steps = prop::collection::vec(step, 1..120);
    (any::<[u64; 5]>(), steps).prop_map(move |(seed, steps)| Case { seed, sets, steps }).boxed()
}

/// A group whose hosts are told apart by 64 bits of IPv6.
struct World {
    core: &'static HostsCore,
    hosts: Box<abi::sl_each_host>,
    tree: Box<abi::sl_tree>,
    now_ns: u64,
}

impl World {
    fn of(core: &'static HostsCore, case: &Case) -> World {
        let mut hosts = abi::boxed_zeroed::<abi::sl_each_host>();
        (hosts.seed, hosts.groups, hosts.idle_ns) = (case.seed, 1, IDLE_NS);
        hosts.group[0] =
            abi::sl_host_group { first_place: FIRST_PLACE, sets_mask: case.sets - 1, upper_mask: !0, lower_mask: 0 };
        hosts.group_of[SHARED as usize] = 1;
        for n in 0..case.sets * abi::SL_HOST_PLACE_WAYS {
            hosts.place[(FIRST_PLACE + n) as usize].leaf = (FIRST_LEAF + n) as u16;
        }
        let mut tree = abi::boxed_zeroed::<abi::sl_tree>();
        tree.node.iter_mut().for_each(|node| node.bucket[0].cost = 1);
        World { core, hosts, tree, now_ns: 1 }
    }

    /// The leaf of a packet, after which the leaf is as the step says.
    fn step(&mut self, step: &Step) -> u32 {
        self.now_ns += step.wait_ns;
        let leaf = self.core.leaf(&mut self.hosts, &self.tree, SHARED, address(step), self.now_ns);
        let own = &mut self.tree.leaf[leaf as usize];
        own.pkts = u32::from(step.stays);
        own.sent_pkts += 1;
        own.sent_bytes += u64::from(step.bytes);
        own.dropped_pkts[1] += 1;
        self.tree.node[leaf as usize].bucket[0].tat_64ths = (self.now_ns + step.owes_ns) << 6;
        leaf
    }

    fn owes_nothing(&self, leaf: u32) -> bool {
        let tat_64ths = self.tree.node[leaf as usize].bucket[0].tat_64ths;
        self.tree.leaf[leaf as usize].pkts == 0 && tat_64ths <= self.now_ns << 6
    }
}

/// An address of a host, which has many of IPv6.
fn address(step: &Step) -> IpAddr {
    if step.v6 {
        return Ipv6Addr::new(0x2001, 0xdb8, 0, step.host.into(), 0, 0, step.bytes, 1).into();
    }
    Ipv4Addr::new(198, 51, 100, step.host).into()
}

/// The host of a packet.
fn host(step: &Step) -> (bool, u8) {
    (step.v6, step.host)
}

/// With one set of places, every packet has the leaf that a plain model says, and its place has counted from when the host came.
fn one_set_is_the_model(core: &'static HostsCore, case: &Case) -> TestCaseResult {
    struct Place {
        host: (bool, u8),
        seen_ns: u64,
        sent_bytes: u64,
    }
    let mut world = World::of(core, case);
    let mut places: [Option<Place>; WAYS] = [const { None }; WAYS];
    for step in &case.steps {
        let now_ns = world.now_ns + step.wait_ns;
        world.now_ns = now_ns;
        let known = places.iter().position(|place| place.as_ref().is_some_and(|place| place.host == host(step)));
        let can_go = |way: &usize| match &places[*way] {
            Some(place) => place.seen_ns + IDLE_NS <= now_ns && world.owes_nothing(FIRST_LEAF + *way as u32),
            None => true,
        };
        let free = (0..WAYS).filter(can_go).min_by_key(|way| places[*way].as_ref().map_or(0, |place| place.seen_ns));
        let wanted = known.or(free);
        let counted = wanted.map(|way| world.tree.leaf[FIRST_LEAF as usize + way].sent_bytes);
        let leaf = world.step(&Step { wait_ns: 0, ..*step });
        prop_assert_eq!(leaf, wanted.map_or(SHARED, |way| FIRST_LEAF + way as u32), "{:?} at {}", step, now_ns);
        let Some((way, sent_bytes)) = wanted.zip(counted) else { continue };
        let sent_bytes = match (&places[way], known) {
            (Some(place), Some(_)) => place.sent_bytes,
            _ => sent_bytes,
        };
        places[way] = Some(Place { host: host(step), seen_ns: now_ns, sent_bytes });
        let place = &world.hosts.place[FIRST_PLACE as usize + way];
        prop_assert_eq!((place.sent_bytes, place.seen_ns), (sent_bytes, now_ns));
        prop_assert_eq!(u64::from(place.dropped_pkts), place.sent_pkts);
    }
    Ok(())
}

/// With many sets, hosts that are there together have leaves of their own, and each keeps its leaf until another host has it.
fn each_has_its_own(core: &'static HostsCore, case: &Case) -> TestCaseResult {
    let mut world = World::of(core, case);
    let (mut leaf_of, mut host_of) = (HashMap::new(), HashMap::new());
    for step in &case.steps {
        let leaf = world.step(step);
        prop_assert!(leaf != SHARED, "there is room for all");
        let kept = leaf_of.get(&host(step)).filter(|kept| host_of.get(*kept) == Some(&host(step)));
        prop_assert!(kept.is_none_or(|kept| *kept == leaf), "{:?} has lost its leaf", step);
        leaf_of.insert(host(step), leaf);
        host_of.insert(leaf, host(step));
    }
    Ok(())
}

/// A hook that only looks finds the leaf that a host has, and finds none for a host that would get another one; it leaves the table as it is.
fn looking_finds_who_is_there(core: &'static HostsCore, case: &Case) -> TestCaseResult {
    let mut world = World::of(core, case);
    for step in &case.steps {
        let before = abi::bytes_of(&*world.hosts).to_vec();
        let found = core.leaf_if_known(&world.hosts, SHARED, address(step));
        prop_assert!(before == abi::bytes_of(&*world.hosts), "the table has changed");
        let places = world.hosts.place.iter().filter(|place| place.seen_ns > 0 && host_of(place) == host(step));
        let own: Vec<u32> = places.map(|place| place.leaf.into()).collect();
        prop_assert_eq!(found.into_iter().collect::<Vec<_>>(), own, "{:?}", step);
        let leaf = world.step(step);
        prop_assert!(found.is_none_or(|found| found == leaf), "{:?} has another leaf", step);
    }
    prop_assert_eq!(core.leaf_if_known(&world.hosts, 3, Ipv4Addr::LOCALHOST.into()), Some(3), "no group's");
    Ok(())
}

/// The host of a place that is taken.
fn host_of(place: &abi::sl_host_place) -> (bool, u8) {
    match Ipv6Addr::from_bits(u128::from(place.upper) << 64 | u128::from(place.lower)).to_canonical() {
        IpAddr::V4(address) => (false, address.octets()[3]),
        IpAddr::V6(address) => (true, address.segments()[3] as u8),
    }
}

type HostLaw = law::Law<HostsCore, Case>;

const MODEL: HostLaw = HostLaw { name: "one_set_is_the_model", cases: || cases(1, 14), holds: one_set_is_the_model };
const LOOK: HostLaw =
    HostLaw { name: "looking_finds_who_is_there", cases: || cases(4, 40), holds: looking_finds_who_is_there };
const OWN: HostLaw = HostLaw { name: "each_has_its_own", cases: || cases(256, 40), holds: each_has_its_own };

/// Addresses that follow each other all find a place, as long as they are five for eight places.
fn neighbours_find_places(core: &'static HostsCore, case: &Case) -> TestCaseResult {
    let mut world = World::of(core, case);
    let mut taken = HashSet::new();
    for host in 0..case.sets * abi::SL_HOST_PLACE_WAYS * 5 / 8 {
        let address = Ipv4Addr::from_bits(Ipv4Addr::new(10, 1, 0, 0).to_bits() + host);
        let leaf = world.core.leaf(&mut world.hosts, &world.tree, SHARED, address.into(), world.now_ns);
        prop_assert!(leaf != SHARED && taken.insert(leaf), "{} has leaf {}", address, leaf);
    }
    Ok(())
}

const CROWD: HostLaw =
    HostLaw { name: "neighbours_find_places", cases: || cases(128, 1), holds: neighbours_find_places };

#[test]
fn addresses_that_follow_each_other_find_places() {
    CROWD.prove(HostsCore::built_in(), 200);
}

#[test]
fn one_set_of_places_is_as_its_model() {
    MODEL.prove(HostsCore::built_in(), 300);
}

#[test]
fn a_hook_that_looks_finds_the_leaf_of_a_host() {
    LOOK.prove(HostsCore::built_in(), 200);
}

#[test]
fn each_host_has_a_leaf_of_its_own() {
    OWN.prove(HostsCore::built_in(), 200);
}

#[test]
fn another_leaf_stays_as_it_is() {
    let mut world = World::of(HostsCore::built_in(), &Case { seed: [1; 5], sets: 1, steps: Vec::new() });
    let address = Ipv4Addr::LOCALHOST.into();
    assert_eq!(world.core.leaf(&mut world.hosts, &world.tree, 3, address, 1), 3);
}

fn build(line: &'static str, instead: &'static str) -> &'static HostsCore {
    let sources = Sources { native: "crates/core/src/each_host.c", headers: "sched", others: &["abi"] };
    // SAFETY: the object runs nothing when it is loaded, and its table is a `HostsCore`: the compiler saw the same `each_host.c`. Edits are of
    // arithmetic, and leave the bounds of arrays.
    let core: &HostsCore =
        unsafe { edits::table(&sources, &[Edit { header: "each_host.h", line, instead }], HostsCore::SYMBOL) };
    assert!(core.fits(), "the sources have changed since this program was compiled");
    core
}

/// A test for each mutant: the law that must find a counterexample; the text that is there once, and what takes its place.
macro_rules! mutants {
    ($($name:ident breaks $law:ident: $line:literal => $instead:literal;)*) => {
        $(#[test]
        fn $name() {
            let why = $law.refute(build($line, $instead), 300);
            println!("{}: {}", $law.name, why.expect("the law holds for the mutant"));
        })*
    };
}

mutants! {
    packets_of_the_former_host_are_inherited breaks MODEL:
        "return !sl_at(t->leaf, n)->pkts && (" => "return 1 && (";
    a_ceiling_is_escaped breaks MODEL: "ceil->tat_64ths <= now_ns << 6" => "1";
    a_host_is_forgotten_early breaks MODEL: "seen_ns + h->idle_ns > now_ns ||" => "";
    the_latest_is_forgotten breaks MODEL:
        "seen_ns ? sl_max(seen_ns, SL_HOST_PLACE_WAYS) : 0" => "seen_ns ? (1ULL << 40) - seen_ns : 0";
    a_free_place_is_not_taken breaks MODEL: "if (seen_ns && (" => "if (!seen_ns || (";
    a_place_of_time_zero_is_free breaks MODEL: "taken += seen_ns != 0;" => "taken += 1; if (!seen_ns) continue;";
    counts_of_the_former_host_are_inherited breaks MODEL:
        "place->sent_bytes = leaf->sent_bytes;" => "place->sent_bytes = 0;";
    a_packet_does_not_keep_its_host_there breaks MODEL: "{\n\tplace->seen_ns = now_ns;" => "{\n\t(void)now_ns;";
    each_address_of_ipv6_is_a_host breaks OWN: "at->lower &= group->lower_mask;" => "";
    all_hosts_are_in_one_set breaks OWN: "& group->sets_mask" => "& 0";
    the_second_set_is_not_looked_at breaks OWN:
        "? at->second + way : SL_HOST_PLACES" => "? SL_HOST_PLACES : SL_HOST_PLACES";
    a_hook_finds_the_leaf_that_hosts_share breaks LOOK: "? sl_at(h->place, n)->leaf" => "? leaf";
    a_hook_looks_at_one_set breaks LOOK:
        "? sl_at(h->place, n)->leaf" => "? n >= at.first && n < at.first + SL_HOST_PLACE_WAYS ? sl_at(h->place, n)->leaf : SL_ADDRESS_NO_LEAF";
    the_fuller_set_is_chosen breaks CROWD:
        "other_room / SL_HOST_PLACE_WAYS < room / SL_HOST_PLACE_WAYS" =>
        "other_room != SL_NO_ROOM && other_room / SL_HOST_PLACE_WAYS > room / SL_HOST_PLACE_WAYS";
    neighbours_crowd_a_set breaks CROWD: "hash = host_mix(" => "hash = (";
    families_are_confused breaks MODEL: "place->upper == upper && place->lower == lower" => "place->lower == lower";
}
