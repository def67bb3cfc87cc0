//! Random address tables, addresses to look up in them, and tables that change while the kernel looks addresses up.

use crate::Error;
use crate::kernel::{ADDRESSES, Kernel};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sluice_abi as abi;
use sluice_tables::{Address, Addresses, IpNet, NoReaders, Readers};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const LEAVES: u16 = abi::SL_ADDRESS_LEAVES as u16;
/// Addresses of a random table, about; it is nearly full.
const IN_TABLE: usize = 120_000;
/// Marks that packets may have.
const MARKS: u32 = 1 << 16;
/// Lengths of prefixes, the common ones several times.
const V4_LENGTHS: [u8; 14] = [32, 32, 32, 32, 32, 31, 29, 28, 27, 26, 25, 24, 20, 8];
const V6_LENGTHS: [u8; 14] = [128, 128, 128, 127, 96, 65, 64, 64, 60, 56, 56, 48, 32, 1];

/// Prefixes and addresses of a provider's networks, with some marks and VLANs.
pub struct Source {
    random: SmallRng,
    /// Addresses that are in the table, or were.
    table: Vec<Address>,
}

impl Source {
    pub fn new(random: SmallRng) -> Source {
        Source { random, table: Vec::new() }
    }

    pub fn seed(&mut self) -> [u64; 5] {
        std::array::from_fn(|_| self.random.random())
    }

    fn address(&mut self) -> IpAddr {
        if self.random.random() {
            IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 | self.random.random_range(0..1 << 20)))
        } else {
            let (site, host) = (self.random.random_range(0..1u128 << 16), self.random.random_range(0..4u128));
            IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | site << 72 | host << 62 | host))
        }
    }

    /// An address for the table.
    fn entry(&mut self) -> Address {
        match self.random.random_range(0..16) {
            0 => Address::Mark(self.random.random_range(1..=MARKS)),
            1 => Address::Vlan(self.random.random_range(1..=4094)),
            _ => self.prefix().into(),
        }
    }

    fn prefix(&mut self) -> IpNet {
        let (address, at) = (self.address(), self.random.random_range(0..V4_LENGTHS.len()));
        let length = if address.is_ipv4() { V4_LENGTHS[at] } else { V6_LENGTHS[at] };
        IpNet::new(address, length).expect("no longer than the address").trunc()
    }

    /// Random changes: a first table, or some more. Each is made by `change`, with no leaf if the address goes.
    pub fn changes(&mut self, mut change: impl FnMut(Address, Option<u16>) -> Result<(), Error>) -> Result<(), Error> {
        while self.table.len() < IN_TABLE {
            let entry = self.entry();
            self.table.push(entry);
            change(entry, Some(self.random.random_range(0..LEAVES)))?;
        }
        for _ in 0..200 {
            let at = self.random.random_range(0..self.table.len());
            if self.random.random() {
                change(self.table[at], None)?;
                self.table[at] = self.entry();
            }
            change(self.table[at], Some(self.random.random_range(0..LEAVES)))?;
        }
        Ok(())
    }

    /// Addresses in prefixes, beside them, and anywhere; marks and VLANs that the table has, and others.
    pub fn batch(&mut self) -> Box<abi::sl_address_trace> {
        let mut trace = abi::boxed_zeroed::<abi::sl_address_trace>();
        trace.count = abi::SL_ADDRESS_TRACE_OPS;
        for op in &mut trace.op {
            let address = match self.random.random_range(0..8) {
                0 => IpAddr::V6(Ipv6Addr::from_bits(self.random.random())),
                1 => IpAddr::V4(Ipv4Addr::from_bits(self.random.random())),
                2 => self.address(),
                _ => self.in_prefix(),
            };
            op.address = abi::address_words(address);
            op.mark = if self.random.random_ratio(1, 8) { self.random.random_range(0..=2 * MARKS) } else { 0 };
            op.vlan = if self.random.random_ratio(1, 8) { self.random.random_range(0..=4095) } else { 0 };
        }
        trace
    }

    fn in_prefix(&mut self) -> IpAddr {
        let entry = self.table[self.random.random_range(0..self.table.len())];
        match entry.prefix().unwrap_or_else(|| self.prefix()) {
            IpNet::V4(net) => IpAddr::V4(Ipv4Addr::from_bits(
                net.addr().to_bits() | self.random.random::<u32>() & net.hostmask().to_bits(),
            )),
            IpNet::V6(net) => IpAddr::V6(Ipv6Addr::from_bits(
                net.addr().to_bits() | self.random.random::<u128>() & net.hostmask().to_bits(),
            )),
        }
    }
}

/// The counts of a run in which a table changed.
#[derive(Debug, Default, Clone, Copy)]
pub struct Changed {
    /// Prefixes that were added or moved to another leaf, and removed.
    pub changes: u64,
    /// Keys that gave way to others.
    pub waits: u64,
    /// Look-ups in the kernel.
    pub look_ups: u64,
}

/// The program that looks addresses up. Its number is odd while it runs.
struct Program<'a> {
    runs: &'a AtomicU64,
    waits: u64,
}

impl Readers for Program<'_> {
    fn wait(&mut self) {
        self.waits += 1;
        let seen = self.runs.load(Ordering::SeqCst);
        while seen % 2 == 1 && self.runs.load(Ordering::SeqCst) == seen {
            thread::yield_now();
        }
    }
}

/// By this seed, addresses of [`crowd`] have two buckets among eight, so that keys must give way.
const CROWDED: [u64; 5] = [0, 1 << 24, (1 << 32) - 0x2001_0db8, 0, 1 << 24];
const CROWD: u32 = 128;
/// Addresses of the crowd that stay with their leaves; those of the others change.
const STAYING: u32 = 8;

fn crowd(n: u32) -> IpAddr {
    let (first, second, last) = (1 + n / 2 % 4, 1 + n / 8 % 4, n / 32);
    match n % 2 {
        0 => IpAddr::from([first as u8, 1, second as u8, last as u8]),
        _ => IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(first << 24 | second << 8 | last))),
    }
}

/// Changes a table for this long while the kernel looks addresses up. An answer that is neither the old nor the new leaf is an error.
pub fn change_while_looked_up(duration: Duration, seed: u64) -> Result<Changed, Error> {
    let mut kernel = Kernel::load(ADDRESSES)?;
    let mapping = kernel.map_state::<abi::sl_addresses>()?;
    let mut first = abi::boxed_zeroed::<abi::sl_addresses>();
    first.seed = CROWDED;
    kernel.set_state(&*first)?;
    let (runs, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut addresses = Addresses::open(mapping.words(), Program { runs: &runs, waits: 0 });
    for n in 0..STAYING {
        addresses.set(crowd(n), n as u16)?;
    }
    let mut trace = abi::boxed_zeroed::<abi::sl_address_trace>();
    trace.count = CROWD * 8;
    for (n, op) in (0..trace.count).zip(&mut trace.op) {
        op.address = abi::address_words(crowd(n % CROWD));
    }
    let look_up = || {
        let mut look_ups = 0;
        while !stop.load(Ordering::Relaxed) {
            runs.fetch_add(1, Ordering::SeqCst);
            let answers = kernel.play(&*trace)?;
            runs.fetch_add(1, Ordering::SeqCst);
            for (n, op) in (0..CROWD).cycle().zip(&answers.op[..trace.count as usize]) {
                let is_right = match op.leaf {
                    abi::SL_ADDRESS_NO_LEAF => n >= STAYING,
                    leaf if n < STAYING => leaf == n,
                    leaf => leaf % 1000 == n,
                };
                if !is_right {
                    return Err(Error(format!("{} has leaf {}", crowd(n), op.leaf)));
                }
            }
            look_ups += u64::from(trace.count);
        }
        Ok(look_ups)
    };
    let mut random = SmallRng::seed_from_u64(seed);
    let mut changed = Changed::default();
    thread::scope(|scope| {
        let program = scope.spawn(look_up);
        let begin = Instant::now();
        while begin.elapsed() < duration && !program.is_finished() {
            let n = random.random_range(STAYING..CROWD);
            // A key that finds no place is as it was.
            let is_done = if random.random() {
                addresses.remove(crowd(n)).is_some()
            } else {
                addresses.set(crowd(n), (n + 1000 * random.random_range(0..8)) as u16).is_ok()
            };
            changed.changes += u64::from(is_done);
        }
        stop.store(true, Ordering::Relaxed);
        changed.look_ups = program.join().expect("the thread does not panic")?;
        changed.waits = addresses.readers().waits;
        Ok(changed)
    })
}

/// Makes this change of both tables.
pub fn change_both(
    native: &mut Addresses<NoReaders>,
    kernel: &mut Addresses<NoReaders>,
    address: Address,
    leaf: Option<u16>,
) -> Result<(), Error> {
    let [ours, theirs] = match leaf {
        Some(leaf) => [native.set(address, leaf)?, kernel.set(address, leaf)?],
        None => [native.remove(address), kernel.remove(address)],
    };
    if ours != theirs {
        return Err(Error(format!("{address} had leaf {ours:?} natively, {theirs:?} in the kernel")));
    }
    Ok(())
}
