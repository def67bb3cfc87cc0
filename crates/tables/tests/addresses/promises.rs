//! The promises of the look-up (`sched/addresses.h`) and of the changes of tables.

use crate::cases::{Case, Packet, borders};
use crate::model::Model;
use crate::{Law, laws};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use sluice_abi as abi;
use sluice_core::addresses::LookUp;
use sluice_policy::network::Address;
use sluice_tables::{ADDRESS_TABLE_WORDS, AddressError, Addresses, NoReaders, Readers, address_table_words};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

laws! {
    finds_the_longest_prefix: Case::nested();
    finds_every_key_of_a_crowd: Case::crowded();
    moves_no_other_key: Case::crowded();
    goes_on_after_a_break: Case::crowded();
}

/// Looks addresses up whenever a change waits for readers.
struct Watcher<'a>(&'a dyn Fn());

impl Readers for Watcher<'_> {
    fn wait(&mut self) {
        (self.0)();
    }
}

/// A table, as it has been changed so far.
struct World<'a> {
    core: &'static LookUp,
    words: &'a [AtomicU64],
    model: Model,
}

impl World<'_> {
    fn check(&self, packet: Packet) -> TestCaseResult {
        let marked = self.core.leaf_marked(self.words, packet.mark, packet.vlan);
        let found = marked.or_else(|| self.core.leaf(self.words, packet.address));
        prop_assert_eq!(found, self.model.leaf(packet), "{:?}", packet);
        Ok(())
    }

    fn check_all(&self) -> TestCaseResult {
        self.model.entries.iter().flat_map(|(entry, _)| borders(*entry)).try_for_each(|packet| self.check(packet))
    }
}

/// Makes all changes. `at_wait` is called when a change waits for readers, `after` after each change.
fn change_all(
    core: &'static LookUp,
    case: &Case,
    at_wait: impl Fn(&World) -> TestCaseResult,
    after: impl Fn(&World, Address) -> TestCaseResult,
) -> TestCaseResult {
    let mut table = abi::boxed_zeroed::<abi::sl_addresses>();
    table.seed = case.seed;
    let words = address_table_words(&mut table);
    let world = RefCell::new(World { core, words, model: Model::default() });
    let found = RefCell::new(Ok(()));
    let watch = || {
        let seen = at_wait(&world.borrow());
        if seen.is_err() {
            *found.borrow_mut() = seen;
        }
    };
    let mut addresses = Addresses::open(words, Watcher(&watch));
    for n in 0..case.changes.len() {
        let Some((entry, leaf)) = case.change(n) else { continue };
        let answer = match leaf {
            Some(leaf) => addresses.set(entry, leaf),
            None => Ok(addresses.remove(entry)),
        };
        found.replace(Ok(()))?;
        let mut world = world.borrow_mut();
        match (answer, leaf) {
            (Ok(former), Some(leaf)) => prop_assert_eq!(former, world.model.set(entry, leaf)),
            (Ok(former), None) => prop_assert_eq!(former, world.model.remove(entry)),
            (Err(error), _) => prop_assert_eq!(error, AddressError::NoPlace(entry)),
        }
        prop_assert_eq!(
            addresses.get(entry),
            world.model.entries.iter().find(|(own, _)| *own == entry).map(|(_, leaf)| *leaf)
        );
        prop_assert_eq!(addresses.len(), world.model.entries.len());
        after(&world, entry)?;
    }
    let sorted = |mut entries: Vec<(Address, u16)>| {
        entries.sort();
        entries
    };
    prop_assert_eq!(sorted(addresses.entries().collect()), sorted(world.borrow().model.entries.clone()));
    Ok(())
}

fn finds_the_longest_prefix(core: &'static LookUp, case: &Case) -> TestCaseResult {
    change_all(
        core,
        case,
        |_| Ok(()),
        |world, entry| {
            borders(entry).into_iter().try_for_each(|packet| world.check(packet))?;
            case.strangers.iter().try_for_each(|&packet| world.check(packet))
        },
    )
}

fn finds_every_key_of_a_crowd(core: &'static LookUp, case: &Case) -> TestCaseResult {
    change_all(core, case, |_| Ok(()), |world, _| world.check_all())
}

/// A key that makes room for another is found meanwhile.
fn moves_no_other_key(core: &'static LookUp, case: &Case) -> TestCaseResult {
    change_all(core, case, |world| world.check_all(), |_, _| Ok(()))
}

/// A table whose change was broken off can be opened, and is as it was before.
fn goes_on_after_a_break(core: &'static LookUp, case: &Case) -> TestCaseResult {
    let left = RefCell::new(20u32);
    let reopen = |world: &World| {
        if left.replace_with(|left: &mut u32| left.saturating_sub(1)) == 0 {
            return Ok(());
        }
        let copy: Vec<AtomicU64> = world.words.iter().map(|word| word.load(Ordering::Relaxed).into()).collect();
        let reopened = Addresses::open(&copy, NoReaders);
        prop_assert_eq!(reopened.len(), world.model.entries.len());
        prop_assert_eq!(reopened.entries().count(), world.model.entries.len());
        World { core, words: &copy, model: world.model.clone() }.check_all()
    };
    change_all(core, case, reopen, |_, _| Ok(()))
}

#[test]
fn the_words_are_the_table() {
    assert_eq!(ADDRESS_TABLE_WORDS * 8, size_of::<abi::sl_addresses>());
    assert!(LookUp::built_in().fits());
}
