//! `buckets [REPEATS]`: what token buckets cost in this kernel, on one CPU and on two at once. Prints CSV: the mean time of a run, ns, by the
//! processor time of the threads that ran it, so what else the machine does counts only by the caches it empties.

#[path = "../../processor.rs"]
mod processor;

use libbpf_rs::{ObjectBuilder, ProgramInput};
use processor::{pin, thread_ns};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/buckets.bpf.o"));

const PROGRAMS: [&str; 4] = ["bench_none", "bench_shared", "bench_own", "bench_batch"];
/// Cost of a byte and burst: of 1 Tbit/s everything passes, of 1 Mbit/s hardly anything does.
const RATES: [(&str, f64); 2] = [("all pass", 1e12), ("nearly none passes", 1e6)];
const BURST_BYTES: f64 = 64.0 * 1024.0;
/// Runs of one measurement.
const RUNS: u32 = 1_000_000;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let repeats: u32 = std::env::args().nth(1).map_or(Ok(7), |text| text.parse())?;
    println!("bucket,passes,cpus,repeat,ns");
    for (passes, bps) in RATES {
        let words = [(8e9 / bps * 16.0 * 65_536.0) as u64, (BURST_BYTES * 8e9 / bps * 16.0) as u64];
        let mut open = ObjectBuilder::default().open_memory(OBJECT)?;
        for mut map in open.maps_mut().filter(|map| map.name().to_string_lossy().ends_with(".rodata")) {
            let constants = map.initial_value_mut().ok_or("no constants")?;
            constants[..8].copy_from_slice(&words[0].to_ne_bytes());
            constants[8..16].copy_from_slice(&words[1].to_ne_bytes());
        }
        let object = open.load()?;
        for repeat in 1..=repeats {
            for name in PROGRAMS {
                let program = object.progs_mut().find(|own| own.name() == name).ok_or("no such program")?;
                let fd = program.as_fd().try_clone_to_owned()?;
                program.test_run(ProgramInput { data_in: Some(&[0; 64]), ..Default::default() })?;
                for cpus in [1, 2] {
                    println!("{},{passes},{cpus},{repeat},{:.2}", &name[6..], measure(&fd, cpus)?);
                }
            }
        }
    }
    Ok(())
}

/// The mean time of a run on each of the first CPUs at once. All run until the last has been measured.
fn measure(program: &OwnedFd, cpus: usize) -> Result<f64> {
    let (start, ended) = (Barrier::new(cpus), AtomicBool::new(false));
    let times: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cpus)
            .map(|cpu| {
                let (start, ended) = (&start, &ended);
                scope.spawn(move || {
                    pin(cpu);
                    start.wait();
                    let (before, mut runs) = (thread_ns(), 0);
                    while runs == 0 || (cpu > 0 && !ended.load(Ordering::Relaxed)) {
                        run(program);
                        runs += 1;
                    }
                    let time = (thread_ns() - before) / f64::from(runs) / f64::from(RUNS);
                    ended.store(true, Ordering::Relaxed);
                    time
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(f64::NAN)).collect()
    });
    Ok(times.iter().sum::<f64>() / times.len() as f64)
}

fn run(program: &OwnedFd) {
    let frame = [0u8; 64];
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
        data_in: frame.as_ptr().cast(),
        data_size_in: frame.len() as u32,
        repeat: RUNS as i32,
        ..Default::default()
    };
    // SAFETY: the frame outlives the call, which only reads it.
    let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    assert!(result == 0, "running a program: {}", std::io::Error::from_raw_os_error(-result));
}
