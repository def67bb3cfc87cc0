//! Test that no packet sees two policies at once, while the program runs on several CPUs and policies take turns.

use crate::limits::{frame, pin};
use sluice_kernel::probe::{Probe, Runner};
use sluice_policy::{Context, Resolved, Source};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The results of a run.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Time from the first change to the last.
    pub time: Duration,
    /// Packets by thread, then by policy.
    pub packets: Vec<u64>,
}

const THREADS: u16 = 2;
/// Class of the rules that the packets here do not match, and class of packets that no rule matches.
const OTHERS: u8 = 30;
const NONE: u8 = 31;
/// Number of rules of each policy, and whether a rule asks for lengths: then each packet needs the rules, else the flow table answers.
/// Up to 64 rules are looked up another way than more.
const POLICIES: [(u16, bool); 4] = [(20, false), (24, true), (100, true), (120, false)];

/// Each policy gives the packets of each thread a class of its own, by rules that stand where no other policy has them. So a mixture gives
/// one of the last two classes.
fn class_of(policy: usize, thread: u16) -> u8 {
    (policy * usize::from(THREADS)) as u8 + thread as u8
}

fn policy(number: usize) -> Result<Resolved, String> {
    let (count, lengths) = POLICIES[number];
    let first = number as u16 * THREADS;
    let rules: Vec<String> = (0..count)
        .map(|n| match n.checked_sub(first).filter(|thread| *thread < THREADS) {
            Some(thread) => {
                let (sport, class) = (1000 + thread, class_of(number, thread));
                let length = if lengths { r#", "length_min": 100"# } else { "" };
                format!(
                    r#"{{ "priority": {n}, "src_ip": "192.0.2.1", "src_port": {sport}, "class_id": {class}{length} }}"#
                )
            }
            None => format!(r#"{{ "priority": {n}, "src_ip": "198.51.100.{n}", "class_id": {OTHERS} }}"#),
        })
        .collect();
    let classes: Vec<String> = (0..32).map(|id| format!(r#"{{ "id": {id} }}"#)).collect();
    let text = format!(
        r#"{{ "scheduler": "round_robin", "default_class": {NONE}, "classes": [{}], "rules": [{}] }}"#,
        classes.join(", "),
        rules.join(", ")
    );
    let policy = sluice_policy::parse(&Source::new("reload", text.as_str())).map_err(|errors| errors.to_string())?;
    sluice_policy::resolve(&policy, &Context::default()).map_err(|errors| errors.to_string())
}

/// Runs the XDP program on a CPU until the end. Returns the number of packets.
fn run(runner: &Runner, thread: u16, cpus: usize, end: &AtomicBool) -> Result<u64, String> {
    const AT_ONCE: u32 = 100_000;
    pin(usize::from(thread) % cpus)?;
    let mut packets = 0;
    while !end.load(Ordering::Relaxed) {
        runner.repeat(&frame(thread), AT_ONCE).map_err(|error| error.to_string())?;
        packets += u64::from(AT_ONCE);
    }
    Ok(packets)
}

/// Changes the policy so many times. The error counts the packets with a class that no policy gives them.
pub fn turns(changes: u32) -> Result<Figures, String> {
    let policies = (0..POLICIES.len()).map(policy).collect::<Result<Vec<_>, _>>()?;
    let probe = Probe::of_policy(&policies[0], &[]).map_err(|error| error.to_string())?;
    let runners = (0..THREADS).map(|_| probe.runner()).collect::<Result<Vec<_>, _>>();
    let runners = runners.map_err(|error| error.to_string())?;
    let (end, cpus) = (AtomicBool::new(false), std::thread::available_parallelism().map_or(1, usize::from));
    let begin = Instant::now();
    let tried = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .zip(&runners)
            .map(|(thread, runner)| {
                let end = &end;
                scope.spawn(move || run(runner, thread, cpus, end))
            })
            .collect();
        let changed = (1..=changes).try_for_each(|n| {
            let held = probe.hold(&policies[n as usize % policies.len()], &[], n + 1);
            held.map_err(|error| error.to_string())
        });
        end.store(true, Ordering::Relaxed);
        let tried: Result<Vec<u64>, String> =
            threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread has panicked".to_owned())?).collect();
        changed.and(tried)
    })?;
    let time = begin.elapsed();
    let passed = |class: u8| probe.passed(class).map_err(|error| error.to_string());
    let mut packets = Vec::new();
    for thread in 0..THREADS {
        let own = (0..policies.len()).map(|policy| passed(class_of(policy, thread)).map(|count| count.0));
        let own = own.collect::<Result<Vec<u64>, String>>()?;
        let (sum, tried) = (own.iter().sum::<u64>(), tried[usize::from(thread)]);
        if sum != tried {
            let [others, none] = [passed(OTHERS)?.0, passed(NONE)?.0];
            return Err(format!(
                "of {tried} packets of thread {thread}, {sum} got a class that a policy gives them; {others} met a rule of \
                 another policy, and {none} none"
            ));
        }
        packets.extend(own);
    }
    Ok(Figures { time, packets })
}
