//! The core in the kernel and the native build of it: one trace, equal answers, equal state.

use crate::lab::Lab;
use crate::needs::{Need, is_icount};
use crate::suite::Suite;
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("twin")
        .any("the_core_in_the_kernel_equals_the_native_one", &[Need::OpenCodedLoops], equal)
        .any("the_tree_in_the_kernel_equals_the_native_one", &[Need::OpenCodedLoops], equal_trees)
        .any("the_address_table_in_the_kernel_equals_the_native_one", &[Need::OpenCodedLoops], equal_addresses)
        .any("addresses_are_found_while_their_table_changes", &[Need::OpenCodedLoops], changing_addresses)
}

fn seed() -> u64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_nanos() as u64)
}

fn equal(_: &Lab) {
    let seed = seed();
    let operations = if is_icount() { 50_000 } else { 1_000_000 };
    let (mut dropped, mut marked) = (0, 0);
    for (kind, name) in sluice_twin::kinds() {
        match sluice_twin::compare(kind, operations, seed) {
            Ok(s) => {
                eprintln!("    {name}: {} operations equal, {} sent, seed {seed}", s.operations, s.sent);
                assert!(s.sent > s.operations / 5 && s.refused > 0 && s.waits > 0, "an idle trace: {s:?}");
                dropped += s.dropped;
                marked += s.marked;
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
    // A single discipline may have no long flow.
    assert!(dropped > 0 && marked > 0, "{dropped} dropped, {marked} marked, seed {seed}");
}

fn equal_trees(_: &Lab) {
    let seed = seed();
    let operations = if is_icount() { 50_000 } else { 1_000_000 };
    match sluice_twin::compare_trees(operations, seed) {
        Ok(s) => {
            eprintln!("    {} operations equal, {} sent, seed {seed}", s.operations, s.sent);
            assert!(s.sent > s.operations / 20 && s.configurations > 300, "an idle trace: {s:?}");
            // A short trace may have a link without a limit, or mark nothing.
            let all_happen = s.refused > 0 && s.waits > 0 && s.dropped > 0 && s.marked > 0;
            assert!(all_happen || is_icount(), "{s:?}");
        }
        Err(error) => panic!("{error}"),
    }
}

fn equal_addresses(_: &Lab) {
    let seed = seed();
    match sluice_twin::compare_addresses(if is_icount() { 20_000 } else { 400_000 }, seed) {
        Ok(s) => {
            let cost = sluice_twin::cost_of_addresses().unwrap_or_else(|error| panic!("{error}"));
            eprintln!("    {s:?}, {} instructions verified, seed {seed}", cost.verified_instructions);
            assert!(s.found > s.addresses / 3 && s.found < s.addresses && s.prefixes > 50_000, "{s:?}");
        }
        Err(error) => panic!("seed {seed}: {error}"),
    }
}

fn changing_addresses(_: &Lab) {
    let seed = seed();
    match sluice_twin::change_while_looked_up(Duration::from_secs(1), seed) {
        Ok(s) => {
            eprintln!("    {s:?}, seed {seed}");
            assert!(s.changes > 100 && s.waits > 0 && s.look_ups > 10_000, "{s:?}");
        }
        Err(error) => panic!("seed {seed}: {error}"),
    }
}
