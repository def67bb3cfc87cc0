//! Tests of the loaded program's rate limits while several CPUs run it at once.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use sluice_kernel::probe::{Probe, Runner};
use sluice_policy::{Context, Source};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// The unit in which the flow table has the time of a flow's last packet.
pub const TICK: Duration = Duration::from_nanos(1 << sluice_abi::SL_TICK_SHIFT);

/// Default length of a packet, bytes.
pub const FRAME: u64 = 500;

/// The results of a run.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Time from the first packet to the last, as the program saw them, at most `TICK` too long. (The kernel waits for a grace period of
    /// RCU before and after the packets of a run, so a clock outside measures another time.)
    pub time: Duration,
    /// Packets that were tried.
    pub tried: u64,
    /// Bytes that passed.
    pub passed: u64,
    /// Mean cost of a packet to a CPU, ns.
    pub packet_ns: f64,
}

/// Has a thread on each of so many CPUs run the XDP program under a policy for so long, all with packets of one flow or each with
/// packets of its own, of so many bytes.
pub fn flood(policy: &str, threads: u16, one_flow: bool, bytes: u64, time: Duration) -> Result<Figures, String> {
    let policy = sluice_policy::parse(&Source::new("limits", policy)).map_err(|errors| errors.to_string())?;
    let resolved = sluice_policy::resolve(&policy, &Context::default()).map_err(|errors| errors.to_string())?;
    let probe = Probe::of_policy(&resolved, &[]).map_err(|error| error.to_string())?;
    let runners: Result<Vec<Runner>, _> = (0..threads).map(|_| probe.runner()).collect();
    let runners = runners.map_err(|error| error.to_string())?;
    let (start, cpus) = (Barrier::new(runners.len()), std::thread::available_parallelism().map_or(1, usize::from));
    let begin = Instant::now();
    let done: Result<Vec<(u64, u64)>, String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (runners.iter().enumerate())
            .map(|(n, runner)| {
                let (start, flow) = (&start, if one_flow { 0 } else { n as u16 });
                scope.spawn(move || {
                    pin(n % cpus)?;
                    start.wait();
                    let mut frame = frame(flow);
                    frame.resize(bytes as usize, 0);
                    run(runner, &frame, begin + time)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread has panicked".to_owned())?).collect()
    });
    let (tried, cost_ns) = done?.iter().fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
    let time = probe.time_of_flows().map_err(|error| error.to_string())?;
    let passed = probe.passed(resolved.default_class.0).map_err(|error| error.to_string())?.1;
    Ok(Figures { time, tried, passed, packet_ns: cost_ns as f64 / tried as f64 })
}

/// A packet that has passed.
pub struct Departure {
    /// Time from the first packet until before the program ran.
    pub earliest: Duration,
    /// Time from the first packet until after the program had run.
    pub latest: Duration,
    /// Its length.
    pub bytes: u64,
}

/// Offers frames of so many bytes to the XDP program under a policy, one after another, after a pause each, until so many have passed.
pub fn departures(policy: &str, bytes: usize, pause: Duration, count: usize) -> Result<Vec<Departure>, String> {
    let policy = sluice_policy::parse(&Source::new("limits", policy)).map_err(|errors| errors.to_string())?;
    let resolved = sluice_policy::resolve(&policy, &Context::default()).map_err(|errors| errors.to_string())?;
    let probe = Probe::of_policy(&resolved, &[]).map_err(|error| error.to_string())?;
    let runner = probe.runner().map_err(|error| error.to_string())?;
    let mut frame = frame(0);
    frame.resize(bytes, 0);
    let start = Instant::now();
    let mut departures = Vec::with_capacity(count);
    while departures.len() < count {
        let earliest = start.elapsed();
        if runner.passes(&frame).map_err(|error| error.to_string())? {
            departures.push(Departure { earliest, latest: start.elapsed(), bytes: bytes as u64 });
        }
        std::thread::sleep(pause);
    }
    Ok(departures)
}

/// Has this thread run on one CPU.
pub(crate) fn pin(cpu: usize) -> Result<(), String> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &cpus)).map_err(|error| error.to_string())
}

/// The number of packets tried until the end, and their cost, ns.
fn run(runner: &Runner, frame: &[u8], end: Instant) -> Result<(u64, u64), String> {
    const AT_ONCE: u32 = 10_000;
    let (mut tried, mut cost_ns) = (0, 0);
    while Instant::now() < end {
        let each = runner.repeat(frame, AT_ONCE).map_err(|error| error.to_string())?;
        tried += u64::from(AT_ONCE);
        cost_ns += u64::from(each) * u64::from(AT_ONCE);
    }
    Ok((tried, cost_ns))
}

/// A frame of Ethernet, IPv4 and UDP.
pub(crate) fn frame(flow: u16) -> Vec<u8> {
    let mut frame = vec![0; FRAME as usize];
    let length = (FRAME as u16 - 14).to_be_bytes();
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14..26].copy_from_slice(&[0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, 17, 0, 0]);
    frame[26..34].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
    frame[34..36].copy_from_slice(&(1000 + flow).to_be_bytes());
    frame[36..38].copy_from_slice(&2000u16.to_be_bytes());
    frame
}
