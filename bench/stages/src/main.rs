//! `sluice-stages [REPEATS]`: what each stage of observation costs a packet, natively, beside an XDP program that drops. Prints CSV: the stage, the
//! packets, the repeat, ns a packet with the stage, ns a packet without, and the share of records that found no room.
//!
//! Packets are live XDP frames (BPF_F_TEST_XDP_LIVE_FRAMES) of 64 bytes on one CPU, which drops them. Times are of the thread that sends them, so what
//! else the machine does counts only by the caches it empties. A reader on another CPU takes records out of the rings and does nothing with them.

#[path = "../../processor.rs"]
mod processor;

use libbpf_rs::{MapHandle, RingBufferBuilder};
use processor::{pin, thread_ns};
use sluice_frames::live;
use sluice_kernel::telemetry::{self, KeyPart, Records, Request, Sampling};
use sluice_policy::Resolved;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/stages.bpf.o"));

/// Packets of one measurement.
const PACKETS: u32 = 4_000_000;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A stage: what is asked of the observer, and from how many source ports packets come.
struct Stage {
    name: &'static str,
    request: Request,
    ports: u32,
}

fn stages() -> Vec<Stage> {
    let by = |parts: &[KeyPart]| Request { by: parts.to_vec(), ..Request::default() };
    let records = |records, sampling| Request { records, sampling, ring_bytes: 64 << 20, ..Request::default() };
    let stage = |name, ports, request| Stage { name, request, ports };
    let filter = telemetry::Filter { dst_port: Some(1), ..Default::default() };
    let every = Sampling::Packets(1);
    vec![
        stage("count by protocol", 1, by(&[KeyPart::Protocol])),
        stage("count by class", 1, by(&[KeyPart::Class])),
        stage("count by source port", 1, by(&[KeyPart::SrcPort])),
        stage("count by source port", 65_536, by(&[KeyPart::SrcPort])),
        stage("heavy hitters by address and port", 1, by(&[KeyPart::Src(32, 128), KeyPart::SrcPort])),
        stage("heavy hitters by address and port", 65_536, by(&[KeyPart::Src(32, 128), KeyPart::SrcPort])),
        stage("sizes of packets", 1, Request { sizes: true, ..Request::default() }),
        stage("filter that matches nothing", 1, Request { filter, ..records(Records::Headers, every) }),
        stage("a record of 1 in 100 packets", 1, records(Records::Headers, Sampling::Packets(100))),
        stage("records by adaptive sampling", 1, records(Records::Headers, Sampling::Adaptive)),
        stage("a record of every packet", 1, records(Records::Headers, every)),
        stage("capture of every packet", 1, records(Records::Bytes(65_536), every)),
    ]
}

/// A policy of eight classes, chosen by destination port.
fn policy() -> Result<Resolved> {
    let classes: Vec<String> =
        (0..8).map(|id| format!(r#"{{ "id": {id}, "name": "c{id}", "priority": {id} }}"#)).collect();
    let rules: Vec<String> = (0..8)
        .map(|id| {
            format!(r#"{{ "priority": {id}, "protocol": "udp", "dst_port_min": {}, "class_id": {id} }}"#, 5200 + id)
        })
        .collect();
    let text = format!(
        r#"{{ "scheduler": "strict_priority", "classes": [{}], "default_class": 7, "rules": [{}] }}"#,
        classes.join(","),
        rules.join(",")
    );
    let policy = sluice_policy::parse(&sluice_policy::Source::new("bench", text)).map_err(|e| format!("{e:?}"))?;
    sluice_policy::resolve(&policy, &sluice_policy::Context::default()).map_err(|e| format!("{e:?}").into())
}

fn main() -> Result<()> {
    let repeats: u32 = std::env::args().nth(1).map_or(Ok(7), |text| text.parse())?;
    let policy = policy()?;
    let frame = live::datagram(live::SHORTEST);
    pin(0);
    println!("stage,ports,repeat,ns,drop_ns,missed_percent");
    for stage in stages() {
        let programs = ["bench_drop", "bench_observe"];
        let constants = [("bench_ports", stage.ports - 1)];
        let (probe, rings) = telemetry::load_unattached(OBJECT, &programs, &constants, &stage.request)?;
        probe.hold(&policy, &[], 1)?;
        let program = |name: &str| -> Result<OwnedFd> {
            let found = probe.object().progs_mut().find(|own| own.name() == name).ok_or("no such program")?;
            Ok(found.as_fd().try_clone_to_owned()?)
        };
        let (drop, observe) = (program("bench_drop")?, program("bench_observe")?);
        for fd in [&drop, &observe] {
            live::run(fd.as_fd(), &frame, PACKETS / 10)?;
        }
        for repeat in 1..=repeats {
            let drop_ns = timed(&drop, &frame)?;
            let (ns, read) = with_reader(&rings, || timed(&observe, &frame))?;
            let expected = expected_records(&stage.request);
            let missed = expected.map_or(0.0, |expected| 100.0 * (1.0 - read as f64 / expected).max(0.0));
            println!("{},{},{repeat},{ns:.2},{drop_ns:.2},{missed:.2}", stage.name, stage.ports);
        }
    }
    Ok(())
}

/// Records that come if none is missed. None: their number is not known beforehand.
fn expected_records(request: &Request) -> Option<f64> {
    let every = request.records != Records::None && request.sampling == Sampling::Packets(1);
    (every && request.filter == telemetry::Filter::default()).then_some(f64::from(PACKETS))
}

/// Runs while a thread on another CPU takes what comes out of the rings. Returns how many records there were.
fn with_reader<T>(rings: &[MapHandle], run: impl FnOnce() -> Result<T>) -> Result<(T, u64)> {
    let (ended, read) = (AtomicBool::new(false), AtomicU64::new(0));
    let result = std::thread::scope(|scope| {
        if !rings.is_empty() {
            scope.spawn(|| read_rings(rings, &ended, &read));
        }
        let result = run();
        ended.store(true, Ordering::Release);
        result
    })?;
    Ok((result, read.into_inner()))
}

fn read_rings(rings: &[MapHandle], ended: &AtomicBool, read: &AtomicU64) {
    pin(1);
    let mut builder = RingBufferBuilder::new();
    for ring in rings {
        let take = |_: &[u8]| {
            read.fetch_add(1, Ordering::Relaxed);
            0
        };
        builder.add(ring, take).expect("a ring of this kernel");
    }
    let buffer = builder.build().expect("a ring of this kernel");
    loop {
        let last = ended.load(Ordering::Acquire);
        buffer.consume().expect("a ring can be read");
        if last {
            return;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// ns of this thread for a packet.
fn timed(program: &OwnedFd, frame: &[u8]) -> Result<f64> {
    let before = thread_ns();
    live::run(program.as_fd(), frame, PACKETS)?;
    Ok((thread_ns() - before) / f64::from(PACKETS))
}
