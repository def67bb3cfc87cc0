//! `lookup [REPEATS]`: what the classifier costs in this kernel, stage by stage, beside a walk through the same rules. Prints CSV.
//!
//! Times are those of this thread on a processor, so what else the machine does counts only by the caches it empties. A program and its
//! baseline, which does all but what is measured, run one after the other.

#[path = "../../processor.rs"]
mod processor;
mod rules;

use libbpf_rs::{MapCore, MapFlags, MapHandle, ProgramInput};
use processor::thread_ns;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rules::Five;
use sluice_abi as abi;
use sluice_kernel::probe::Probe;
use sluice_policy::Resolved;
use std::collections::HashSet;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Instant;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lookup.bpf.o"));

const PROGRAMS: [&str; 12] = [
    "bench_nothing",
    "bench_parse",
    "bench_fetch",
    "bench_lookup",
    "bench_walk_helper",
    "bench_walk_loop",
    "bench_vary_only",
    "bench_whole_varied",
    "bench_meta_only",
    "bench_whole",
    "bench_nothing_tc",
    "sl_ingress",
];
const HEADERS: u32 = 4096;
const FLOWS: u32 = 65_536;
/// Twice the flows: an LRU table evicts before it is full.
const FLOW_TABLE: u32 = 2 * FLOWS;
const COUNTS: [usize; 5] = [1, 16, 256, 1024, 4096];
/// How long one measurement takes, about.
const NS: f64 = 40e6;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A classifier with the bench's programs around it.
struct Bench {
    probe: Probe,
    generation: u32,
}

/// One program, and the one that does all but what is measured.
struct Case<'a> {
    what: &'a str,
    program: &'a str,
    baseline: &'a str,
    packets: &'a str,
}

impl Bench {
    fn new(flows: u32) -> Result<Bench> {
        Ok(Bench { probe: Probe::of_object(OBJECT, &PROGRAMS, flows)?, generation: 0 })
    }

    fn hold(&mut self, policy: &Resolved) -> Result<()> {
        self.generation += 1;
        Ok(self.probe.hold(policy, &[], self.generation)?)
    }

    fn map(&self, name: &str) -> Result<MapHandle> {
        let map = self.probe.object().maps().find(|map| map.name() == name).ok_or_else(|| format!("no map {name}"))?;
        Ok(MapHandle::try_from(&map)?)
    }

    /// Starts again at the first packet; of so many flows, a power of two.
    fn start(&self, flows: u32, flood: bool) -> Result<()> {
        let words = [0, flows - 1, u32::from(flood), 0, 0, 0];
        let bytes: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_ne_bytes()).collect();
        Ok(self.map("bench_control")?.update(&[0; 4], &bytes, MapFlags::ANY)?)
    }

    fn sum(&self) -> Result<u64> {
        let bytes = self.map("bench_control")?.lookup(&[0; 4], MapFlags::ANY)?.ok_or("no control")?;
        Ok(u64::from_ne_bytes(bytes[16..24].try_into()?))
    }

    /// Runs a program so often; ns of this thread for each.
    fn run(&self, program: &str, frame: &[u8], times: u32) -> Result<f64> {
        let own = self.probe.object().progs_mut().find(|own| own.name() == program);
        let own = own.ok_or_else(|| format!("no program {program}"))?;
        let before = thread_ns();
        own.test_run(ProgramInput { data_in: Some(frame), repeat: times, ..Default::default() })?;
        Ok((thread_ns() - before) / f64::from(times))
    }

    /// As often as takes about NS.
    fn measure(&self, program: &str, frame: &[u8]) -> Result<f64> {
        let once = self.run(program, frame, 2000)?;
        self.run(program, frame, (NS / once.max(1.0)).clamp(2000.0, 5e6) as u32)
    }

    fn headers(&self, of: impl Iterator<Item = Box<abi::sl_headers>>) -> Result<()> {
        let map = self.map("bench_headers")?;
        for (key, headers) in (0..HEADERS).zip(of) {
            // SAFETY: integers and arrays of them, made from zeroes, so that padding is set as well.
            let bytes = unsafe {
                std::slice::from_raw_parts(std::ptr::from_ref(&*headers).cast::<u8>(), size_of::<abi::sl_headers>())
            };
            map.update(&key.to_ne_bytes(), bytes, MapFlags::ANY)?;
        }
        Ok(())
    }

    fn walk(&self, rules: &[Five]) -> Result<()> {
        let mut bytes = vec![rules.len() as u8, (rules.len() >> 8) as u8, 0, 0, 0, 0, 0, 0];
        for (n, rule) in (0..).zip(rules) {
            bytes.extend(rule.for_walk(n));
        }
        while bytes.len() < self.map("bench_rules")?.value_size() as usize {
            bytes.extend(rules::nothing_for_walk());
        }
        Ok(self.map("bench_rules")?.update(&[0; 4], &bytes, MapFlags::ANY)?)
    }

    /// New flows may come at once again.
    fn grant(&self) -> Result<()> {
        let cpus = libbpf_rs::num_possible_cpus()?;
        let map = self.map("flow_ration")?;
        Ok(map.update_percpu(&[0; 4], &vec![vec![0; map.value_size() as usize]; cpus], MapFlags::ANY)?)
    }

    /// Prints the repeats of some cases, taken in turn.
    fn compare(&self, cases: &[Case<'_>], rules: usize, frame: &[u8], repeats: u32) -> Result<()> {
        for repeat in 1..=repeats {
            for case in cases {
                let baseline = self.measure(case.baseline, frame)?;
                let value = self.measure(case.program, frame)?;
                println!("{},{},{rules},{repeat},ns,{value:.2},{baseline:.2}", case.what, case.packets);
            }
        }
        Ok(())
    }
}

/// Counts everything by processor on one.
fn stay_on_one_cpu() {
    // SAFETY: the call takes nothing and returns a number.
    let cpu = unsafe { libc::sched_getcpu() };
    processor::pin(cpu.max(0) as usize);
}

/// The stages that need no flows.
fn stages(bench: &mut Bench, all: &[Five], repeats: u32) -> Result<()> {
    let mut rng = SmallRng::seed_from_u64(2);
    let frame = all[0].packet(&mut rng).frame();
    let parse = |packets| Case { what: "parse", program: "bench_parse", baseline: "bench_nothing", packets };
    bench.hold(&rules::policy(&all[..1]))?;
    bench.compare(&[parse("one IPv4")], 0, &frame, repeats)?;
    let nets = rules::prefixes6(&mut rng, 4096);
    let frame6 = rules::frame6(rules::packet6(&mut rng, &nets, 0));
    bench.compare(&[parse("one IPv6")], 0, &frame6, repeats)?;

    for count in COUNTS {
        let rules = &all[..count];
        bench.hold(&rules::policy(rules))?;
        bench.walk(rules)?;
        for packets in ["matching", "foreign"] {
            let draw = if packets == "matching" { rules::matching } else { rules::foreign };
            let sample: Vec<_> = (0..HEADERS).map(|_| draw(&mut rng, rules)).collect();
            bench.headers(sample.iter().map(rules::Packet::headers))?;
            let truth: u64 = sample.iter().map(|packet| u64::from(rules::first(rules, packet))).sum();
            let searches = ["bench_lookup", "bench_walk_helper", "bench_walk_loop"];
            for program in searches {
                bench.start(1, false)?;
                bench.run(program, &frame, HEADERS)?;
                if bench.sum()? != truth {
                    return Err(format!("{program} found other rules among {count}").into());
                }
            }
            let case = |(what, program)| Case { what, program, baseline: "bench_fetch", packets };
            let whats = ["lookup", "walk by bpf_loop", "walk by bounded loop"];
            let cases: Vec<_> = whats.into_iter().zip(searches).map(case).collect();
            bench.compare(&cases, count, &frame, repeats)?;
        }
    }

    for count in [1, 4096] {
        let nets = &nets[..count];
        bench.hold(&rules::policy6(nets))?;
        let sample: Vec<_> = (0..HEADERS as usize).map(|n| rules::packet6(&mut rng, nets, n % count)).collect();
        bench.headers(sample.iter().map(|&packet| rules::headers6(packet)))?;
        let lookup =
            Case { what: "lookup", program: "bench_lookup", baseline: "bench_fetch", packets: "matching IPv6" };
        bench.compare(&[lookup], count, &frame, repeats)?;
        bench.compare(&[whole("one IPv6 flow")], count, &frame6, repeats)?;
    }
    Ok(())
}

fn whole(packets: &str) -> Case<'_> {
    Case { what: "whole", program: "bench_whole", baseline: "bench_meta_only", packets }
}

/// The whole path, with the flow table and without.
fn paths(all: &[Five], flow_table: u32, repeats: u32) -> Result<()> {
    let (what, what_tc) = match flow_table {
        0 => ("whole without flow table", "whole by tc without flow table"),
        _ => ("whole", "whole by tc"),
    };
    let mut rng = SmallRng::seed_from_u64(3);
    for count in [1, 256, 4096] {
        let rules = &all[..count];
        let mut bench = Bench::new(flow_table)?; // with no flows of others
        bench.hold(&rules::policy(rules))?;
        let mut flows = HashSet::new();
        let frames = bench.map("bench_frames")?;
        while flows.len() < FLOWS as usize {
            let packet = rules::matching(&mut rng, rules);
            if flows.insert(packet) {
                frames.update(&(flows.len() as u32 - 1).to_ne_bytes(), &packet.words(), MapFlags::ANY)?;
            }
        }
        let frame = rules::matching(&mut rng, rules).frame();
        bench.grant()?;
        let by_tc = Case { what: what_tc, program: "sl_ingress", baseline: "bench_nothing_tc", packets: "one flow" };
        bench.compare(&[Case { what, ..whole("one flow") }, by_tc], count, &frame, repeats)?;
        let varied = |packets| Case { what, program: "bench_whole_varied", baseline: "bench_vary_only", packets };
        bench.start(FLOWS, false)?;
        for _ in 0..FLOWS / 4096 {
            bench.grant()?;
            bench.run("bench_whole_varied", &frame, 4096)?;
        }
        bench.compare(&[varied("65536 flows")], count, &frame, repeats)?;
        bench.start(FLOWS, true)?;
        bench.run("bench_whole_varied", &frame, 200_000)?; // what may come at once has come then
        bench.compare(&[varied("new flows")], count, &frame, repeats)?;
    }
    Ok(())
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// Time to build and stage, and what it takes in memory.
fn building(bench: &mut Bench, all: &[Five]) -> Result<()> {
    for count in [1, 256, 4096] {
        let policy = rules::policy(&all[..count]);
        for repeat in 1..=20 {
            bench.generation += 1;
            let context = sluice_tables::Context {
                generation: bench.generation,
                buffer: bench.generation % abi::SL_BUFFERS,
                ..sluice_tables::Context::ethernet(&[])
            };
            let start = Instant::now();
            std::hint::black_box(sluice_tables::compile(&policy, &context)?);
            println!("compile,-,{count},{repeat},ms,{:.3},0", milliseconds(start));
            let start = Instant::now();
            bench.probe.hold(&policy, &[], bench.generation)?;
            println!("compile and stage,-,{count},{repeat},ms,{:.3},0", milliseconds(start));
        }
        let rows = inner_bytes(&bench.map("rows")?, bench.generation % abi::SL_BUFFERS)?;
        let range = bench.generation % abi::SL_BUFFERS * abi::SL_RANGE_FIELDS;
        let ranges = inner_bytes(&bench.map("ranges")?, range + abi::SL_RANGE_SRC)?
            + inner_bytes(&bench.map("ranges")?, range + abi::SL_RANGE_DST)?;
        println!("memory of rows,-,{count},1,bytes,{rows},0");
        println!("memory of ranges,-,{count},1,bytes,{ranges},0");
    }
    println!("memory of both buffers of tables,-,-,1,bytes,{},0", map_bytes(&bench.map("tables")?)?);
    println!("memory of the flow table,{FLOW_TABLE} flows,-,1,bytes,{},0", map_bytes(&bench.map("flows")?)?);
    Ok(())
}

/// As the kernel tells it beside the file descriptor.
fn map_bytes(map: &MapHandle) -> Result<u64> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", map.as_fd().as_raw_fd()))?;
    let line = info.lines().find_map(|line| line.strip_prefix("memlock:"));
    Ok(line.ok_or("the kernel tells no memory")?.trim().parse()?)
}

/// Of the map that another holds at an index.
fn inner_bytes(outer: &MapHandle, index: u32) -> Result<u64> {
    let Some(id) = outer.lookup(&index.to_ne_bytes(), MapFlags::ANY)? else { return Ok(0) };
    map_bytes(&MapHandle::from_map_id(u32::from_ne_bytes(id[..4].try_into()?))?)
}

fn main() -> Result<()> {
    let repeats: u32 = std::env::args().nth(1).map_or(Ok(7), |text| text.parse())?;
    stay_on_one_cpu();
    let all = rules::mix(&mut SmallRng::seed_from_u64(1), 4096);
    println!("what,packets,rules,repeat,unit,value,baseline");
    let mut bench = Bench::new(FLOW_TABLE)?;
    stages(&mut bench, &all, repeats)?;
    paths(&all, FLOW_TABLE, repeats)?;
    paths(&all, 0, repeats)?;
    building(&mut bench, &all)
}
