//! Look-ups that are broken on purpose, each in one place, and the law that finds out.

use crate::edits::{self, Edit, Sources};
use crate::{Law, promises};
use sluice_core::addresses::LookUp;

const SOURCES: Sources = Sources { native: "crates/core/src/addresses.c", headers: "sched", others: &["abi"] };

fn build(edits: &[Edit]) -> &'static LookUp {
    // SAFETY: the object runs nothing when it is loaded, and its table is a `LookUp`: the compiler saw the same `addresses.c`. Edits are of
    // arithmetic, and leave the bounds of arrays.
    let core: &LookUp = unsafe { edits::table(&SOURCES, edits, LookUp::SYMBOL) };
    assert!(core.fits(), "the sources have changed since this program was compiled");
    core
}

/// A test for each mutant: the law that must find a counterexample; the text of `sched/addresses.h` that is there once, and what takes its place.
macro_rules! mutants {
    ($($name:ident breaks $law:literal: $line:literal => $instead:literal;)*) => {
        /// The laws that they break.
        const BROKEN: &[&str] = &[$($law),*];

        $(#[test]
        fn $name() {
            let why = law($law).refute(build(&[Edit { header: "addresses.h", line: $line, instead: $instead }]), 200);
            println!("{}: {}", $law, why.expect("the law holds for the mutant"));
        })*
    };
}

mutants! {
    the_shortest_prefix_wins breaks "finds_the_longest_prefix":
        "u64 end = *lengths & -*lengths;" => "u64 end = sl_highest(*lengths) == 63 ? 1ULL << 63 : 1ULL << sl_highest(*lengths);";
    a_length_is_left_out breaks "finds_the_longest_prefix":
        "*lengths ^= end;" => "*lengths &= ~(end | end << 1);";
    bits_behind_a_prefix_count breaks "finds_the_longest_prefix":
        "(address | end) & mask" => "address | end";
    marks_are_vlans breaks "finds_the_longest_prefix":
        "SL_ADDRESS_MARK | mark" => "SL_ADDRESS_VLAN | mark";
    vlans_go_before_marks breaks "finds_the_longest_prefix":
        "if (leaf == SL_ADDRESS_NO_LEAF && vlan &&" => "if (vlan &&";
    vlans_are_sought_if_there_are_marks breaks "finds_the_longest_prefix":
        "has & SL_ADDRESS_HAS_VLANS" => "has & SL_ADDRESS_HAS_MARKS";
    whole_addresses_of_ipv4_are_prefixes breaks "finds_the_longest_prefix":
        "SL_ADDRESS_V4_WHOLE | address" => "address";
    whole_addresses_of_ipv6_are_prefixes breaks "finds_the_longest_prefix":
        "SL_ADDRESS_V6_WHOLE, upper" => "SL_ADDRESS_V6_PREFIX, upper";
    short_prefixes_of_ipv6_are_forgotten breaks "finds_the_longest_prefix":
        "t->lengths[SL_LENGTHS_V6_UPPER]" => "t->lengths[SL_LENGTHS_V6_LOWER]";
    halves_of_ipv6_are_not_compared breaks "finds_every_key_of_a_crowd":
        "return *(const volatile u64 *)&key->upper == upper && *(const volatile u64 *)&key->lower == lower;" =>
        "return key->upper == upper || lower;";
    ipv4_does_not_look_into_the_second_bucket breaks "finds_every_key_of_a_crowd":
        "if (address_way(&t->bucket[address_second(hash)], tag, &rest) < SL_ADDRESS_WAYS)" => "if (0)";
    ipv6_does_not_look_into_the_second_bucket breaks "moves_no_other_key":
        "if (way < SL_ADDRESS_WAYS && address_equal" => "if (0 && address_equal";
    the_last_way_is_forgotten breaks "goes_on_after_a_break":
        "way < SL_ADDRESS_WAYS; way++" => "way < SL_ADDRESS_WAYS - 1; way++";
    another_bucket_is_the_second_one breaks "moves_no_other_key":
        "return (u32)(hash >> 32) & (SL_ADDRESS_BUCKETS - 1);" => "return (u32)(hash >> 33) & (SL_ADDRESS_BUCKETS - 1);";
}

fn law(name: &str) -> &'static Law {
    let mut found = promises::LAWS.iter().filter(|law| law.name.ends_with(&format!("::{name}")));
    found.next().unwrap_or_else(|| panic!("no law is called {name}"))
}

#[test]
fn the_look_up_as_it_is_breaks_no_law() {
    let broken = |law: &Law| law.refute(build(&[]), 15).map(|why| format!("{}: {why}\n", law.name));
    let broken: String = promises::LAWS.iter().filter_map(broken).collect();
    assert!(broken.is_empty(), "{broken}");
}

#[test]
fn each_law_is_broken_by_a_mutant() {
    for law in promises::LAWS {
        assert!(BROKEN.iter().any(|name| law.name.ends_with(&format!("::{name}"))), "{}", law.name);
    }
}
