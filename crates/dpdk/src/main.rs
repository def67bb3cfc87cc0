//! `sluice-dpdk`: a bump in the wire between two DPDK ports. What arrives at one leaves by the other, queued by the classes of a policy, with backpressure
//! by level (`sched/level_backpressure.h`) before the port.

mod arguments;
mod dpdk;
mod report;
mod way;

use arguments::Arguments;
use clap::Parser;
use dpdk::{Environment, Port, Unstarted};
use report::Reported;
use sluice_abi as abi;
use sluice_classifier::Classifier;
use sluice_error::{Error, Result};
use sluice_policy::{PolicyFile, Rate, Resolved};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use way::{Way, lists_of};

/// The longest sleep when nothing moves.
const SLEEP_NS: u64 = 50_000;
/// Turns in which nothing moves, before the first sleep.
const IDLE_TURNS: u32 = 200;
/// Time zero of the schedulers, ns: 0 would be before they began.
const START_NS: u64 = 1_000_000_000;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Policy(text)) => {
            eprintln!("{}", text.trim_end());
            ExitCode::from(2)
        }
        Err(Failure::Other(error)) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

enum Failure {
    /// Findings about the policy, as they are shown.
    Policy(String),
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Other(error)
    }
}

fn run(arguments: &Arguments) -> std::result::Result<(), Failure> {
    let rates = arguments.rates()?;
    let policies = [policy(arguments, rates[0])?, policy(arguments, rates[1])?];
    let [first, second] = [&arguments.ports[0], &arguments.ports[1]];
    if first == second {
        return Err(Error::input(format!("{first} is named twice")).help("name the ports on both sides").into());
    }
    let mut json = arguments.json.as_deref().map(open_json).transpose()?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let registered = signal_hook::flag::register(signal, Arc::clone(&stop));
        registered.map_err(|error| Error::system(format!("signals: {error}")))?;
    }
    let compiled = policies.each_ref().map(|policy| compile(policy, arguments.packets));
    let [a, b] = compiled;
    let compiled = [a?, b?];
    let lists =
        compiled.each_ref().map(|tables| lists_of(&tables.sched[abi::SL_EGRESS as usize], tables.tables.classes));
    // Packets that arrive at the first port leave by the second one.
    let needs = [lists[1], lists[0]];

    let environment = Environment::new(&arguments.environment(&needs)?)?;
    let first = environment.plug(first)?;
    let second = environment.plug(second)?;
    let queues = [arguments.tx_queues(&first, needs[0])?, arguments.tx_queues(&second, needs[1])?];
    let pool = environment.pool(arguments.pool_pkts(&needs))?;
    for (port, (queues, levels)) in [&first, &second].into_iter().zip(queues.into_iter().zip(needs)) {
        introduce(port, queues, levels);
    }
    let mut ports =
        [first.start(queues[0], arguments.descriptors, &pool)?, second.start(queues[1], arguments.descriptors, &pool)?];
    let [there, back] = compiled.map(Classifier::new);
    let mut ways = [Way::new(there, lists[0], START_NS), Way::new(back, lists[1], START_NS)];
    println!("packets pass; stop with Ctrl-C");
    let _ = std::io::stdout().flush();
    turns(arguments, &mut ways, &mut ports, &policies, &stop);

    let reported = reported(&ways, &ports, &policies);
    print!("{}", report::text(&reported));
    if let Some(file) = &mut json {
        let written = write_json(file, &report::json(&reported));
        written.map_err(|error| Error::system(format!("writing the counters: {error}")))?;
    }
    // Packets before ports, ports before the environment.
    drop(ways);
    drop(ports);
    drop(environment);
    Ok(())
}

/// Opens the file of the counters. What is in it stays until they are written.
fn open_json(path: &str) -> Result<File> {
    let file = match path {
        "-" => std::io::stdout().as_fd().try_clone_to_owned().map(File::from),
        _ => File::options().write(true).create(true).truncate(false).open(path),
    };
    file.map_err(|error| Error::input(format!("--json {path}: {error}")).help("name a file that can be written"))
}

fn write_json(file: &mut File, counters: &serde_json::Value) -> std::io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    writeln!(file, "{counters:#}")
}

/// The policy, for packets of one way at this rate.
fn policy(arguments: &Arguments, rate: Option<Rate>) -> std::result::Result<Resolved, Failure> {
    let loaded = sluice_policy::load(&arguments.policy).map_err(|error| Failure::Policy(error.to_string()))?;
    let PolicyFile::One(policy) = loaded.1 else {
        let told = format!("{} has policies for several interfaces", arguments.policy);
        return Err(Error::input(told).help("give sluice-dpdk a file with one policy").into());
    };
    if let Some(lacks) = policy.not_without_kernel() {
        return Err(Failure::Policy(lacks.to_string()));
    }
    let context = sluice_policy::Context { link_rate: rate, ..sluice_policy::Context::default() };
    sluice_policy::resolve(&policy, &context).map_err(|errors| Failure::Policy(errors.to_string()))
}

fn compile(policy: &Resolved, packets: u32) -> Result<sluice_tables::Compiled> {
    let context = sluice_tables::Context { egress_rate: policy.link_rate, ..sluice_tables::Context::ethernet(&[]) };
    let mut compiled = sluice_tables::compile(policy, &context).map_err(|error| Error::input(error.to_string()))?;
    compiled.sched[abi::SL_EGRESS as usize].slots = packets;
    Ok(compiled)
}

/// Says what a port is, and what it lacks.
fn introduce(port: &Unstarted, queues: u16, levels: u32) {
    let share = match (queues, levels) {
        (_, 1) => "one level of classes, on one queue".to_owned(),
        (1, levels) => format!("{levels} levels of classes, on one queue"),
        (queues, _) => format!("{queues} levels of classes, each on a queue of its own"),
    };
    let management = match port.management {
        Some(m) => format!(
            "its driver has traffic management (rte_tm: {} levels, {} nodes, shapers up to {}), which is not used yet",
            m.levels,
            m.nodes,
            Rate(m.rate_most_bytes.saturating_mul(8))
        ),
        None => "its driver has no traffic management (rte_tm), so the policy's rate is kept here".to_owned(),
    };
    println!("{}: driver {}, {share}; {management}", port.name, port.driver);
}

fn reported<'a>(ways: &'a [Way; 2], ports: &'a [Port; 2], policies: &'a [Resolved; 2]) -> [Reported<'a>; 2] {
    let counts = ports.each_ref().map(Port::counts);
    let way = |n: usize| Reported {
        from: &ports[n].name,
        to: &ports[1 - n].name,
        policy: &policies[n],
        way: &ways[n],
        received: counts[n],
        sent: counts[1 - n],
    };
    [way(0), way(1)]
}

/// Both ways in turn, until the process is told to stop, or for as long as it is to run.
fn turns(
    arguments: &Arguments,
    ways: &mut [Way; 2],
    ports: &mut [Port; 2],
    policies: &[Resolved; 2],
    stop: &AtomicBool,
) {
    let began = Instant::now();
    let mut line_at = arguments.every.map(|every| began + every);
    let mut lines = Vec::new();
    let mut moved_at = began;
    let mut idle_turns = 0u32;
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        let now_ns = START_NS + (now - began).as_nanos() as u64;
        let [first, second] = ports;
        let there = ways[0].turn(first, second, now_ns);
        let back = ways[1].turn(second, first, now_ns);
        if there.moved || back.moved {
            idle_turns = 0;
            moved_at = now;
        } else {
            idle_turns = idle_turns.saturating_add(1);
            if arguments.end_when_idle.is_some_and(|time| now - moved_at >= time) {
                return;
            }
            if idle_turns > IDLE_TURNS && !arguments.busy {
                let wake_ns = [there.wake_ns, back.wake_ns].into_iter().flatten().min();
                let left_ns = wake_ns.map_or(SLEEP_NS, |wake_ns| wake_ns.saturating_sub(now_ns).min(SLEEP_NS));
                std::thread::sleep(Duration::from_nanos(left_ns));
            }
        }
        if line_at.is_some_and(|at| now >= at) {
            line_at = line_at.zip(arguments.every).map(|(at, every)| at + every);
            println!("{}", report::line(&reported(ways, ports, policies), &mut lines));
            let _ = std::io::stdout().flush();
        }
    }
}
