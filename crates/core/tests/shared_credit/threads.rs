//! Real threads at one bucket, and at one link.

use crate::cases::{FRAME, START_NS};
use sluice_abi as abi;
use sluice_core::{
    Verdict,
    shared_credit::{Bucket, Class, Conf, Instance, Link, rate},
};
use std::sync::{
    Barrier,
    atomic::{AtomicU64, Ordering},
};

/// Threads that share a bucket and a clock send the rate together, no more than the bound and hardly less.
#[test]
fn threads_share_a_rate() {
    const THREADS: u64 = 4;
    const BITS_PER_SECOND: u64 = 1_000_000_000;
    const END: u64 = (START_NS << 6) + (500_000_000 << 6);
    let rate = rate(BITS_PER_SECOND, 0, FRAME);
    let (bucket, clock, sent) = (Bucket::default(), AtomicU64::new(START_NS << 6), AtomicU64::new(0));
    let start = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (bucket, clock, sent, rate, start) = (&bucket, &clock, &sent, &rate, &start);
            scope.spawn(move || {
                start.wait();
                let (mut credit, mut from, mut n, mut own) = (0, 0, thread, 0);
                loop {
                    let now = clock.fetch_add(20_000, Ordering::Relaxed);
                    if now >= END {
                        break;
                    }
                    if credit <= 0 {
                        let Ok(at) = bucket.fill(rate, &mut credit, now, rate.batch) else { continue };
                        from = at;
                    }
                    if now < from {
                        continue;
                    }
                    n += 1;
                    if n % 50 == 0 {
                        bucket.give_back(rate, credit as u32);
                        credit = 0;
                        continue;
                    }
                    let bytes = 64 + (n * 7919 % 1437) as i32;
                    credit -= bytes;
                    own += bytes as u64;
                }
                if credit > 0 {
                    bucket.give_back(rate, credit as u32);
                }
                sent.fetch_add(own, Ordering::Relaxed);
            });
        }
    });
    let (sent, told) = (sent.load(Ordering::Relaxed), BITS_PER_SECOND / 8 / 2);
    let burst = (rate.burst >> 6) * BITS_PER_SECOND / 8_000_000_000;
    let bound = told + burst + THREADS * u64::from(rate.batch_bytes);
    assert!(sent <= bound, "{sent} bytes, the bound is {bound}");
    assert!(sent >= told - told / 50, "{sent} of {told} bytes");
}

/// Threads with an instance each share a link and a clock: the rate holds, both classes send, and no instance stays in the words of the link.
#[test]
fn threads_with_instances_share_a_link() {
    const THREADS: u32 = 4;
    const BITS_PER_SECOND: u64 = 10_000_000_000;
    const LENGTH_NS: u64 = 40_000_000;
    let conf = Conf::new(THREADS, BITS_PER_SECOND, 0, FRAME, &[Class::default(); 2]);
    let mut sched: Box<abi::sl_sched_conf> = abi::boxed_zeroed();
    (sched.kind, sched.generation, sched.slots) = (abi::SL_WEIGHTED_FAIR_QUEUING, 1, 64);
    for class in &mut sched.classes {
        (class.limit_pkts, class.limit_bytes, class.weight) = (64, 1_000_000, 1);
    }
    let (link, clock, start) = (Link::default(), AtomicU64::new(START_NS), Barrier::new(THREADS as usize));
    let sent = [AtomicU64::new(0), AtomicU64::new(0)];
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (conf, link, sched, clock, start, sent) = (&conf, &link, &sched, &clock, &start, &sent);
            scope.spawn(move || {
                // The first class is on the first thread, the other one on all others.
                let class = thread.min(1);
                let mut instance = Instance::new(thread, sched, START_NS);
                let enqueue = |instance: &mut Instance, now_ns| {
                    instance.scheduler().enqueue(class, FRAME, 1, now_ns).expect("there is room")
                };
                enqueue(&mut instance, START_NS);
                enqueue(&mut instance, START_NS);
                start.wait();
                loop {
                    let now_ns = clock.fetch_add(100, Ordering::Relaxed);
                    if now_ns >= START_NS + LENGTH_NS {
                        break;
                    }
                    match instance.dequeue(link, conf, now_ns) {
                        Verdict::Send { class, len_bytes, .. } => {
                            sent[class as usize].fetch_add(u64::from(len_bytes), Ordering::Relaxed);
                            enqueue(&mut instance, now_ns);
                        }
                        // The clock goes on with each call, so threads that wait leave it to those that send.
                        Verdict::Wait(_) => std::thread::yield_now(),
                        Verdict::Idle => panic!("it has packets"),
                    }
                }
                instance.stop(link, conf, START_NS + LENGTH_NS);
            });
        }
    });
    let of = sent.map(|sent| sent.into_inner());
    let (all, told) = (of[0] + of[1], BITS_PER_SECOND / 8 * LENGTH_NS / 1_000_000_000);
    let batches = u64::from(THREADS + abi::SL_SHARED_BURST_BATCHES) * u64::from(conf.raw().link.batch_bytes);
    assert!(all <= told + batches, "{all} bytes, told are {told}");
    assert!(link.words().classes.share.iter().all(|share| share.instances == 0), "an instance has stayed");
    // A thread that does not run asks for nothing, so shares are not exact here.
    assert!(all >= told / 4 && of.iter().all(|bytes| *bytes > 0), "{of:?} of {told} bytes");
}
