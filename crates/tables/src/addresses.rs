//! The address table (`abi/addresses.h`): from prefixes, marks and VLANs to leaves, built at once, and changed in place while programs look
//! addresses up.
//!
//! The order of a change keeps every look-up right. A leaf that changes is one word. A key that comes stands in its slot before its word does.
//! A key that makes room for another is copied to its other bucket, and stays in the old one until look-ups that began before the copy have ended
//! ([`Readers`]). Nothing but the table itself is needed to go on with it: a process that died in a change leaves one that
//! [`Addresses::open`] repairs.

mod key;

use key::{Key, Seed};
use sluice_abi as abi;
use sluice_policy::network::Address;
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};

const BUCKETS: usize = abi::SL_ADDRESS_BUCKETS as usize;
const WAYS: usize = abi::SL_ADDRESS_WAYS as usize;
const SPILLED: u64 = abi::SL_ADDRESS_SPILLED as u64;
/// The words of a table.
pub const ADDRESS_TABLE_WORDS: usize = size_of::<abi::sl_addresses>() / size_of::<u64>();
/// Buckets that are looked at to make room for a key. A table that holds no more than `SL_ADDRESSES` needs a few.
const SEARCHED: usize = 1000;
/// Seeds that [`build`] tries. Hardly a table needs a second one.
const TRIES: u32 = 8;

const SEED_AT: usize = offset_of!(abi::sl_addresses, seed) / 8;
const LENGTHS_AT: usize = offset_of!(abi::sl_addresses, lengths) / 8;
const WORDS_AT: usize = offset_of!(abi::sl_addresses, bucket) / 8;
const KEYS_AT: usize = offset_of!(abi::sl_addresses, keys) / 8;

/// The reason why an address has no place in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressError {
    /// The table has `SL_ADDRESSES` of them already.
    Full,
    /// The prefixes of this one's family have `SL_ADDRESS_LENGTHS` other lengths already.
    TooManyLengths(Address),
    /// No place is free where look-ups would find the address. A table that is built anew, with another seed, has one.
    NoPlace(Address),
    /// The tree has no leaf of this number.
    NoLeaf(u16),
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::Full => write!(f, "more than {} addresses and prefixes", abi::SL_ADDRESSES),
            AddressError::TooManyLengths(prefix) => write!(
                f,
                "{prefix}: {} prefixes of more than {} different lengths; write some as shorter or longer ones",
                if prefix.prefix().is_some_and(|prefix| prefix.addr().is_ipv4()) { "IPv4" } else { "IPv6" },
                abi::SL_ADDRESS_LENGTHS
            ),
            AddressError::NoPlace(address) => write!(f, "no place for {address} in the address table; build it anew"),
            AddressError::NoLeaf(leaf) => write!(f, "no leaf has the number {leaf}"),
        }
    }
}

impl std::error::Error for AddressError {}

/// The look-ups that may be under way.
pub trait Readers {
    /// Waits until each look-up that began before this call has ended.
    fn wait(&mut self);
}

/// A table that no one reads yet.
#[derive(Debug, Clone, Copy)]
pub struct NoReaders;

impl Readers for NoReaders {
    fn wait(&mut self) {}
}

/// The words of a table, as [`Addresses`] takes them. Of a table in a map, the caller makes them from the mapping.
pub fn address_table_words(table: &mut abi::sl_addresses) -> &[AtomicU64] {
    // SAFETY: the struct is made of u64, which have the size and the alignment of AtomicU64, and is borrowed as long as the slice lives.
    unsafe { std::slice::from_raw_parts(std::ptr::from_mut(table).cast(), ADDRESS_TABLE_WORDS) }
}

/// A table of these addresses, of which none comes twice. `draw` draws random numbers for the seed, which no sender of packets may know.
pub fn build<A: Into<Address> + Copy>(
    all: &[(A, u16)],
    mut draw: impl FnMut() -> u64,
) -> Result<Box<abi::sl_addresses>, AddressError> {
    let mut tries = 0..TRIES;
    loop {
        let mut table = abi::boxed_zeroed::<abi::sl_addresses>();
        table.seed = std::array::from_fn(|_| draw());
        let mut addresses = Addresses::open(address_table_words(&mut table), NoReaders);
        let placed = all.iter().try_for_each(|&(address, leaf)| addresses.set(address, leaf).map(|_| ()));
        tries.next();
        match placed {
            Err(AddressError::NoPlace(_)) if !tries.is_empty() => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(table),
        }
    }
}

/// A table that is changed in place. It has one changer at a time.
pub struct Addresses<'m, R> {
    words: &'m [AtomicU64],
    readers: R,
    seed: Seed,
    /// Addresses of each length, by [`Key::length_index`].
    of_length: Vec<u32>,
    /// Keys that stand in their second bucket, by their first one.
    spilled: Vec<u32>,
    count: u32,
}

impl<'m, R: Readers> Addresses<'m, R> {
    /// The table of these words, in which a change that was broken off is ended or taken back.
    ///
    /// # Panics
    /// If the words are not [`ADDRESS_TABLE_WORDS`].
    pub fn open(words: &'m [AtomicU64], readers: R) -> Addresses<'m, R> {
        assert_eq!(words.len(), ADDRESS_TABLE_WORDS, "another table");
        let seed = Seed(std::array::from_fn(|i| words[SEED_AT + i].load(Ordering::Relaxed)));
        let mut table =
            Addresses { words, readers, seed, of_length: vec![0; Key::LENGTHS], spilled: vec![0; BUCKETS], count: 0 };
        table.repair();
        table
    }

    /// The look-ups that may be under way.
    pub fn readers(&self) -> &R {
        &self.readers
    }

    /// The leaf of this very address.
    pub fn get(&self, address: impl Into<Address>) -> Option<u16> {
        self.find(&Key::of(address.into())).map(|slot| leaf_of(self.word(slot)))
    }

    /// The number of addresses: prefixes, marks and VLANs.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether the table has none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All addresses with their leaves, in the order in which they stand.
    pub fn entries(&self) -> impl Iterator<Item = (Address, u16)> {
        (0..BUCKETS * WAYS).filter_map(|slot| Some((self.key(slot)?.address(), leaf_of(self.word(slot)))))
    }

    /// Adds an address, or moves it to another leaf. Returns the leaf that it had. A leaf's number may go to another subscriber only after
    /// look-ups have ended that may have found the former one.
    pub fn set(&mut self, address: impl Into<Address>, leaf: u16) -> Result<Option<u16>, AddressError> {
        if u32::from(leaf) >= abi::SL_ADDRESS_LEAVES {
            return Err(AddressError::NoLeaf(leaf));
        }
        let address = address.into();
        let key = Key::of(address);
        if let Some(slot) = self.find(&key) {
            let former = leaf_of(self.word(slot));
            self.store(slot, key.tag(&self.seed) | u64::from(leaf));
            return Ok(Some(former));
        }
        if self.count == abi::SL_ADDRESSES {
            return Err(AddressError::Full);
        }
        let index = key.length_index();
        if self.of_length[index] == 0 && !self.may_have_another_length(&key) {
            return Err(AddressError::TooManyLengths(address));
        }
        let path = self.path_to_free(&key).ok_or(AddressError::NoPlace(address))?;
        self.make_room(&path);
        self.place(path[0], &key, leaf);
        self.count += 1;
        self.of_length[index] += 1;
        if self.of_length[index] == 1 {
            self.tell_lengths();
        }
        Ok(None)
    }

    /// Removes an address. Returns the leaf that it had.
    pub fn remove(&mut self, address: impl Into<Address>) -> Option<u16> {
        let key = Key::of(address.into());
        let slot = self.find(&key)?;
        let leaf = leaf_of(self.word(slot));
        self.take(slot, &key);
        self.count -= 1;
        let of_length = &mut self.of_length[key.length_index()];
        *of_length -= 1;
        if *of_length == 0 {
            self.tell_lengths();
        }
        Some(leaf)
    }

    fn word(&self, slot: usize) -> u64 {
        self.words[WORDS_AT + slot].load(Ordering::Relaxed)
    }

    /// Writes a slot's tag and leaf, and leaves what the word says of the bucket.
    fn store(&self, slot: usize, word: u64) {
        let spilled = self.word(slot) & SPILLED;
        self.words[WORDS_AT + slot].store(word | spilled, Ordering::Release);
    }

    fn is_free(&self, slot: usize) -> bool {
        self.word(slot) & !SPILLED == 0
    }

    /// The halves of a slot's key of IPv6: of the key that stands there, or that was the last to do so.
    fn halves(&self, slot: usize) -> (u64, u64) {
        let at = |half: usize| self.words[KEYS_AT + 2 * slot + half].load(Ordering::Relaxed);
        (at(0), at(1))
    }

    /// The key that stands in a slot.
    fn key(&self, slot: usize) -> Option<Key> {
        (!self.is_free(slot)).then(|| Key::read(self.word(slot), self.halves(slot)))
    }

    fn find(&self, key: &Key) -> Option<usize> {
        let mut slots = key.buckets(&self.seed).into_iter().flat_map(slots_of);
        slots.find(|&slot| self.key(slot).as_ref() == Some(key))
    }

    /// Whether a bucket may get this key. Not if another one with its tag stands there, or was the last in its slot: a look-up could take the
    /// halves of one and the word of the other.
    fn suits(&self, bucket: usize, key: &Key) -> bool {
        let tag = key.tag(&self.seed);
        slots_of(bucket).all(|slot| {
            let other = key.with_halves(self.halves(slot));
            other.is_none_or(|other| other == *key || other.tag(&self.seed) != tag)
        })
    }

    /// Slots from one of the key's buckets to a free one: the key in each may move to the next.
    fn path_to_free(&self, key: &Key) -> Option<Vec<usize>> {
        /// A bucket to look at, and the step that leads there: its number, and the slot whose key would come.
        struct Step {
            bucket: usize,
            from: Option<(usize, usize)>,
        }
        let first = key.buckets(&self.seed).into_iter().filter(|&bucket| self.suits(bucket, key));
        let mut steps: Vec<Step> = first.map(|bucket| Step { bucket, from: None }).collect();
        let mut seen: HashSet<usize> = steps.iter().map(|step| step.bucket).collect();
        let mut next: VecDeque<usize> = (0..steps.len()).collect();
        while let Some(step) = next.pop_front() {
            let bucket = steps[step].bucket;
            if let Some(free) = slots_of(bucket).find(|&slot| self.is_free(slot)) {
                let mut path = vec![free];
                let mut at = step;
                while let Some((before, slot)) = steps[at].from {
                    path.push(slot);
                    at = before;
                }
                path.reverse();
                return Some(path);
            }
            for slot in slots_of(bucket) {
                let Some(other) = self.key(slot) else { continue };
                for to in other.buckets(&self.seed) {
                    if steps.len() < SEARCHED && self.suits(to, &other) && seen.insert(to) {
                        steps.push(Step { bucket: to, from: Some((step, slot)) });
                        next.push_back(steps.len() - 1);
                    }
                }
            }
        }
        None
    }

    /// Moves the keys of these slots, each to the next one, so that the first is free.
    fn make_room(&mut self, path: &[usize]) {
        for slots in path.windows(2).rev() {
            let (from, to) = (slots[0], slots[1]);
            let Some(key) = self.key(from) else { continue };
            self.place(to, &key, leaf_of(self.word(from)));
            self.readers.wait();
            self.take(from, &key);
        }
    }

    /// Puts a key into a free slot of one of its buckets.
    fn place(&mut self, slot: usize, key: &Key, leaf: u16) {
        if let Some((upper, lower)) = key.halves() {
            self.words[KEYS_AT + 2 * slot].store(upper, Ordering::Relaxed);
            self.words[KEYS_AT + 2 * slot + 1].store(lower, Ordering::Relaxed);
        }
        self.store(slot, key.tag(&self.seed) | u64::from(leaf));
        if let Some(first) = self.spills(slot, key) {
            self.spilled[first] += 1;
            self.tell_spilled(first);
        }
    }

    /// Takes a key out of a slot.
    fn take(&mut self, slot: usize, key: &Key) {
        self.store(slot, 0);
        if let Some(first) = self.spills(slot, key) {
            self.spilled[first] -= 1;
            self.tell_spilled(first);
        }
    }

    /// The first bucket of a key, if the slot is not in it.
    fn spills(&self, slot: usize, key: &Key) -> Option<usize> {
        let [first, _] = key.buckets(&self.seed);
        (slot / WAYS != first).then_some(first)
    }

    /// Tells look-ups whether they must go on to the second buckets of this one's keys.
    fn tell_spilled(&self, bucket: usize) {
        let last = bucket * WAYS + WAYS - 1;
        let spilled = if self.spilled[bucket] > 0 { SPILLED } else { 0 };
        self.words[WORDS_AT + last].store(self.word(last) & !SPILLED | spilled, Ordering::Release);
    }

    /// Tells look-ups which lengths occur.
    fn tell_lengths(&self) {
        let mut words = [0; abi::SL_ADDRESS_LENGTH_WORDS as usize];
        for (index, _) in self.of_length.iter().enumerate().filter(|(_, prefixes)| **prefixes > 0) {
            if let Some((word, bit)) = key::length_bit(index) {
                words[word] |= bit;
            }
        }
        for (word, bits) in words.into_iter().enumerate() {
            self.words[LENGTHS_AT + word].store(bits, Ordering::Release);
        }
    }

    fn may_have_another_length(&self, key: &Key) -> bool {
        let others = key.lengths_of_family().filter(|&index| self.of_length[index] > 0);
        key::length_bit(key.length_index()).is_none() || others.count() < abi::SL_ADDRESS_LENGTHS as usize
    }

    /// Counts what stands in the table, and removes what a change left that was broken off: second copies, and keys that no look-up finds.
    fn repair(&mut self) {
        let mut doubled = Vec::new();
        for slot in 0..BUCKETS * WAYS {
            let Some(key) = self.key(slot) else { continue };
            match key.buckets(&self.seed) {
                [first, _] if slot / WAYS == first => {}
                [first, second] if slot / WAYS == second => {
                    self.spilled[first] += 1;
                    if slots_of(first).any(|other| self.key(other).as_ref() == Some(&key)) {
                        doubled.push((slot, key));
                        continue;
                    }
                }
                _ => {
                    self.store(slot, 0);
                    continue;
                }
            }
            self.count += 1;
            self.of_length[key.length_index()] += 1;
        }
        (0..BUCKETS).for_each(|bucket| self.tell_spilled(bucket));
        self.tell_lengths();
        if !doubled.is_empty() {
            self.readers.wait();
            doubled.iter().for_each(|(slot, key)| self.take(*slot, key));
        }
    }
}

impl<R> fmt::Debug for Addresses<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Addresses").field("count", &self.count).finish_non_exhaustive()
    }
}

fn slots_of(bucket: usize) -> std::ops::Range<usize> {
    bucket * WAYS..(bucket + 1) * WAYS
}

fn leaf_of(word: u64) -> u16 {
    (word & u64::from(abi::SL_ADDRESS_LEAVES - 1)) as u16
}
