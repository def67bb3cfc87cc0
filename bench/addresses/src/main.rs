//! `addresses [REPEATS]`: what it costs to find the leaf of an address, by the address table, and by the kernel's hash and LPM trie. Prints CSV.
//!
//! Times are those of this thread on a processor. A program and its baseline, which does all but the look-up, run one after the other. In a
//! virtual machine whose clock counts instructions, they are instructions.

#[path = "../../processor.rs"]
mod processor;

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, ProgramInput};
use processor::thread_ns;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use sluice_abi as abi;
use sluice_tables::{Addresses, IpNet, NoReaders, address_table_words, build_addresses};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/addresses.bpf.o"));

/// As `BENCH_ADDRESSES`.
const ADDRESSES: u32 = 4096;
/// Subscribers with whole addresses, and prefixes of each other length.
const WHOLE: u32 = 32_768;
const OF_LENGTH: u32 = 2048;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Prefixes of one family.
struct Set {
    is_v4: bool,
    /// Those that occur beside whole addresses, the longest first.
    lengths: &'static [u8],
}

const SETS: [Set; 7] = [
    Set { is_v4: true, lengths: &[] },
    Set { is_v4: true, lengths: &[29] },
    Set { is_v4: true, lengths: &[29, 28, 24] },
    Set { is_v4: true, lengths: &[29, 28, 27, 26, 25, 24] },
    Set { is_v4: false, lengths: &[] },
    Set { is_v4: false, lengths: &[64] },
    Set { is_v4: false, lengths: &[64, 56, 48] },
];

impl Set {
    /// The prefix of this number and length.
    fn prefix(&self, length: u8, n: u32) -> IpNet {
        let address = if self.is_v4 {
            // Each length has a network of its own.
            let bits = match length {
                32 => 0x0a00_0000 + n,
                _ => (0x6000_0000 + (u32::from(length) << 20)).wrapping_add(n << (32 - length)),
            };
            IpAddr::V4(Ipv4Addr::from_bits(bits))
        } else {
            let bits = match length {
                128 => u128::from(n) << 64 | 1,
                _ => u128::from(n) << (128 - length),
            };
            IpAddr::V6(Ipv6Addr::from_bits((0x2001_0d00 + u128::from(length)) << 96 | bits))
        };
        IpNet::new(address, length).expect("no longer than the address").trunc()
    }

    fn whole(&self) -> u8 {
        if self.is_v4 { 32 } else { 128 }
    }

    fn prefixes(&self) -> BTreeMap<u8, Vec<IpNet>> {
        let whole = (0..WHOLE).map(|n| self.prefix(self.whole(), n)).collect();
        let of_length = |length: u8| (0..OF_LENGTH).map(|n| self.prefix(length, n)).collect();
        let shorter = self.lengths.iter().map(|&length| (length, of_length(length)));
        shorter.chain([(self.whole(), whole)]).collect()
    }

    /// An address in a prefix, but for whole ones none that is a prefix itself.
    fn address_in(&self, prefix: IpNet, random: &mut SmallRng) -> IpAddr {
        match prefix {
            IpNet::V4(net) => {
                let host = random.random::<u32>() & net.hostmask().to_bits();
                IpAddr::V4(Ipv4Addr::from_bits(net.addr().to_bits() | host))
            }
            IpNet::V6(net) => {
                let host = random.random::<u128>() & net.hostmask().to_bits();
                IpAddr::V6(Ipv6Addr::from_bits(net.addr().to_bits() | host))
            }
        }
    }

    fn stranger(&self, random: &mut SmallRng) -> IpAddr {
        if self.is_v4 {
            IpAddr::V4(Ipv4Addr::from_bits(0xc000_0000 | random.random::<u32>() >> 3))
        } else {
            IpAddr::V6(Ipv6Addr::from_bits(0x2a00 << 112 | random.random::<u128>() >> 16))
        }
    }
}

/// The programs, and the maps that they search.
struct Bench {
    object: Object,
}

impl Bench {
    /// Loads the programs, and fills their tables with these prefixes; a leaf is a prefix's place among them.
    fn new(set: &Set, prefixes: &BTreeMap<u8, Vec<IpNet>>, random: &mut SmallRng) -> Result<Bench> {
        let bench = Bench { object: ObjectBuilder::default().open_memory(OBJECT)?.load()? };
        let leaves = (0..).map(|n: u32| n % abi::SL_ADDRESS_LEAVES);
        let all: Vec<(IpNet, u16)> = prefixes.values().flatten().copied().zip(leaves.map(|leaf| leaf as u16)).collect();
        let table = build_addresses(&all, || random.random())?;
        bench.map("table")?.update(&[0; 4], abi::bytes_of(&*table), MapFlags::ANY)?;
        let (hash, trie) = if set.is_v4 { ("hash_v4", "trie_v4") } else { ("hash_v6", "trie_v6") };
        let (hash, trie) = (bench.map(hash)?, bench.map(trie)?);
        for (prefix, leaf) in all {
            let words = abi::address_words(prefix.addr());
            let words = if set.is_v4 { &words[3..] } else { &words[..] };
            let key: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let leaf = u32::from(leaf).to_ne_bytes();
            if prefix.prefix_len() == set.whole() {
                hash.update(&key, &leaf, MapFlags::ANY)?;
            }
            let key = [&u32::from(prefix.prefix_len()).to_ne_bytes()[..], &key].concat();
            trie.update(&key, &leaf, MapFlags::ANY)?;
        }
        Ok(bench)
    }

    fn map(&self, name: &str) -> Result<MapHandle> {
        let map = self.object.maps().find(|map| map.name() == name).ok_or_else(|| format!("no map {name}"))?;
        Ok(MapHandle::try_from(&map)?)
    }

    fn set_addresses(&self, of: &[IpAddr]) -> Result<()> {
        for (key, address) in (0..ADDRESSES).zip(of) {
            let bytes: Vec<u8> = abi::address_words(*address).iter().flat_map(|word| word.to_ne_bytes()).collect();
            self.map("bench_addresses")?.update(&key.to_ne_bytes(), &bytes, MapFlags::ANY)?;
        }
        Ok(())
    }

    /// Looks addresses up so often; ns of this thread for each, and the sum of their leaves.
    fn run(&self, program: &str, times: u32) -> Result<(f64, u64)> {
        self.map("bench_control")?.update(&[0; 4], &[0; 16], MapFlags::ANY)?;
        let program = self.object.progs_mut().find(|own| own.name() == program).ok_or("no such program")?;
        let before = thread_ns();
        program.test_run(ProgramInput { data_in: Some(&[0; 64]), repeat: times, ..Default::default() })?;
        let ns = (thread_ns() - before) / f64::from(times);
        let control = self.map("bench_control")?.lookup(&[0; 4], MapFlags::ANY)?.ok_or("no control")?;
        Ok((ns, u64::from_ne_bytes(control[8..].try_into()?)))
    }

    /// Prints the repeats of all programs, taken in turn.
    fn measure(&self, set: &Set, packets: &str, with_hash: bool, repeats: u32) -> Result<()> {
        let family = if set.is_v4 { "v4" } else { "v6" };
        let trie = format!("bench_trie_{family}");
        let programs = [("table", "bench_table".to_owned()), ("LPM trie", trie.clone())];
        let hash = with_hash.then(|| ("hash", format!("bench_hash_{family}")));
        let truth = self.run(&trie, ADDRESSES)?.1;
        for repeat in 1..=repeats {
            for (what, program) in programs.iter().chain(&hash) {
                if self.run(program, ADDRESSES)?.1 != truth {
                    return Err(format!("{what} found other leaves: {packets}").into());
                }
                let baseline = self.run("bench_fetch", 32 * ADDRESSES)?.0;
                let value = self.run(program, 32 * ADDRESSES)?.0;
                println!("{what},{family},{},{packets},{repeat},ns,{value:.1},{baseline:.1}", set.lengths.len());
            }
        }
        Ok(())
    }
}

/// The time of single changes in a table that stands in memory, and of building one.
fn changes(repeats: u32, random: &mut SmallRng) -> Result<()> {
    let set = &SETS[3];
    let prefixes = set.prefixes();
    let all: Vec<(IpNet, u16)> = prefixes.values().flatten().map(|prefix| (*prefix, 1)).collect();
    for repeat in 1..=repeats {
        let print = |what: &str, since: Instant, of: usize| {
            let us = since.elapsed().as_secs_f64() * 1e6 / of as f64;
            println!("{what},v4,{},{} prefixes,{repeat},us,{us:.2},0", set.lengths.len(), all.len());
        };
        let start = Instant::now();
        let mut table = build_addresses(&all, || random.random())?;
        print("build", start, 1);
        let start = Instant::now();
        let mut addresses = Addresses::open(address_table_words(&mut table), NoReaders);
        print("open", start, 1);
        let some: Vec<IpNet> = all.choose_multiple(random, 1000).map(|(prefix, _)| *prefix).collect();
        let start = Instant::now();
        some.iter().try_for_each(|prefix| addresses.set(*prefix, 2).map(|_| ()))?;
        print("move", start, some.len());
        let start = Instant::now();
        let removed = some.iter().filter_map(|prefix| addresses.remove(*prefix)).count();
        print("remove", start, removed);
        let start = Instant::now();
        some.iter().try_for_each(|prefix| addresses.set(*prefix, 2).map(|_| ()))?;
        print("add", start, some.len());
    }
    Ok(())
}

fn main() -> Result<()> {
    let repeats: u32 = std::env::args().nth(1).map_or(Ok(7), |text| text.parse())?;
    // SAFETY: the call takes nothing and returns a number.
    processor::pin(unsafe { libc::sched_getcpu() }.max(0) as usize);
    let mut random = SmallRng::seed_from_u64(1);
    println!("what,family,lengths,packets,repeat,unit,value,baseline");
    for set in &SETS {
        let prefixes = set.prefixes();
        let bench = Bench::new(set, &prefixes, &mut random)?;
        for length in [set.whole()].iter().chain(set.lengths) {
            let of = &prefixes[length];
            let draw = |_| set.address_in(*of.choose(&mut random).expect("not empty"), &mut random);
            let addresses: Vec<IpAddr> = (0..ADDRESSES).map(draw).collect();
            bench.set_addresses(&addresses)?;
            bench.measure(set, &format!("/{length}"), *length == set.whole(), repeats)?;
        }
        let strangers: Vec<IpAddr> = (0..ADDRESSES).map(|_| set.stranger(&mut random)).collect();
        bench.set_addresses(&strangers)?;
        bench.measure(set, "none", false, repeats)?;
    }
    changes(repeats, &mut random)
}
