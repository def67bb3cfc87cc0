//! Threads look addresses up while the table is changed: every answer is the old or the new one.

use crate::cases::CROWDED;
use ipnet::IpNet;
use sluice_abi as abi;
use sluice_core::addresses::LookUp;
use sluice_tables::{Addresses, Readers, address_table_words};
use std::cell::Cell;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

const READERS: usize = 2;
const FOR: Duration = Duration::from_secs(1);
/// On a machine that is busy, until so many keys have moved.
const MOVES: u64 = 100;
const AT_MOST: Duration = Duration::from_secs(30);

/// Counts the waits. A reader's number is odd while it looks an address up.
struct Threads<'a> {
    under_way: &'a [AtomicU64; READERS],
    waits: &'a Cell<u64>,
}

impl Readers for Threads<'_> {
    fn wait(&mut self) {
        self.waits.set(self.waits.get() + 1);
        fence(Ordering::SeqCst);
        for reader in self.under_way {
            let seen = reader.load(Ordering::SeqCst);
            while seen % 2 == 1 && reader.load(Ordering::SeqCst) == seen {
                thread::yield_now();
            }
        }
    }
}

/// The addresses of a crowd, by number; even numbers are of IPv4.
fn address(n: u32) -> IpAddr {
    let (first, second, last) = (1 + n / 2 % 4, 1 + n / 8 % 4, n / 32 % 4);
    if n % 2 == 0 {
        IpAddr::from([first as u8, 1, second as u8, last as u8])
    } else {
        let bits = u128::from(first << 24 | second << 8 | last);
        IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | bits))
    }
}

/// Addresses of both families; the first ones stay with their leaves.
const ADDRESSES: u32 = 128;
const STAYING: u32 = 8;

/// The leaves that an address may have: one if it stays; else two by turns, and none.
fn may_have(n: u32, leaf: Option<u16>) -> bool {
    match leaf {
        Some(leaf) if n < STAYING => u32::from(leaf) == n,
        Some(leaf) => u32::from(leaf) % 1000 == n,
        None => n >= STAYING,
    }
}

#[test]
fn every_answer_is_old_or_new() {
    let mut table = abi::boxed_zeroed::<abi::sl_addresses>();
    table.seed = CROWDED;
    let words = address_table_words(&mut table);
    let under_way = [const { AtomicU64::new(0) }; READERS];
    let (waits, stop) = (Cell::new(0), AtomicBool::new(false));
    let mut addresses = Addresses::open(words, Threads { under_way: &under_way, waits: &waits });
    for n in 0..STAYING {
        addresses.set(IpNet::from(address(n)), n as u16).expect("fits");
    }
    let look = |reader: &AtomicU64| {
        let mut found = 0u64;
        while !stop.load(Ordering::Relaxed) {
            for n in 0..ADDRESSES {
                reader.fetch_add(1, Ordering::SeqCst);
                let leaf = LookUp::built_in().leaf(words, address(n));
                reader.fetch_add(1, Ordering::SeqCst);
                if !may_have(n, leaf) {
                    return Err(format!("{} has {leaf:?}", address(n)));
                }
                found += u64::from(leaf.is_some());
            }
        }
        Ok(found)
    };
    let found: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> = under_way.iter().map(|reader| scope.spawn(move || look(reader))).collect();
        let (begin, mut random) = (Instant::now(), 1u32);
        let (mut set, mut removed) = (0u64, 0u64);
        while (begin.elapsed() < FOR || waits.get() < MOVES && begin.elapsed() < AT_MOST)
            && threads.iter().all(|thread| !thread.is_finished())
        {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let n = STAYING + (random >> 8) % (ADDRESSES - STAYING);
            let prefix = IpNet::from(address(n));
            if random >> 30 > 1 {
                removed += u64::from(addresses.remove(prefix).is_some());
            } else {
                set += u64::from(addresses.set(prefix, (n + 1000 * (random >> 24 & 7)) as u16).is_ok());
            }
        }
        stop.store(true, Ordering::Relaxed);
        println!("{set} set, {removed} removed, {} keys moved", waits.get());
        let found = threads.into_iter().map(|thread| thread.join().expect("a reader"));
        let found = found.collect::<Result<_, _>>().unwrap_or_else(|wrong: String| panic!("{wrong}"));
        assert!(set > MOVES && removed > MOVES / 2 && waits.get() >= MOVES, "{set}, {removed}, {}", waits.get());
        found
    });
    assert!(found.iter().all(|&found| found > 1000), "{found:?}");
}
