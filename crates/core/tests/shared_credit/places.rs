//! Instances whose states are in memory that others read, as on a wire.

use sluice_abi as abi;
use sluice_core::shared_credit::{Class, Conf, Instance, Link, Share};
use sluice_core::{Scheduler, Verdict};
use std::ptr::NonNull;

const FRAME: u32 = 1500;
const START_NS: u64 = 1_000_000_000;

fn sched() -> Box<abi::sl_sched_conf> {
    let mut sched: Box<abi::sl_sched_conf> = abi::boxed_zeroed();
    (sched.kind, sched.generation, sched.slots) = (abi::SL_WEIGHTED_FAIR_QUEUING, 1, 64);
    for class in &mut sched.classes {
        (class.limit_pkts, class.limit_bytes, class.weight) = (64, 1_000_000, 1);
    }
    sched
}

fn conf() -> Conf {
    let classes = [Class { weight: 3, ..Class::default() }, Class { ceiling: Some(20_000_000), ..Class::default() }];
    Conf::new(2, 100_000_000, 0, FRAME, &classes)
}

/// Both kinds of instances answer alike, and leave the same words and states.
#[test]
fn a_share_does_what_an_instance_does() {
    let (sched, conf, link) = (sched(), conf(), Link::default());
    let mut instances = [0, 1].map(|number| Instance::new(number, &sched, START_NS));
    let words = Link::default();
    let mut own = [0, 1].map(|number| {
        let mut own: Box<abi::sl_shared_instance> = abi::boxed_zeroed();
        own.number = number;
        own
    });
    let mut schedulers = [0, 1].map(|_| Scheduler::new(&sched, START_NS));
    let mut shares = own.each_mut().map(|own| {
        // SAFETY: both stay in place and are whole, and have numbers of their own; nothing else touches them while the shares are used.
        let mut share =
            unsafe { Share::at(NonNull::from(&mut **own), NonNull::new(words.as_ptr()).expect("it is there")) };
        assert!(!share.is_shared() && !share.has_to_rest(), "it has no rate yet");
        share.configure(self::conf().into_raw());
        share
    });
    assert!(shares[0].is_shared());
    let mut sent = 0;
    for step in 0..20_000u64 {
        let now_ns = START_NS + step * 10_000;
        let (n, class) = (step as usize % 2, (step / 3 % 2) as u32);
        // The queues run empty now and then.
        if step % 7 == 0 && step / 1000 % 2 == 0 {
            let slots = [
                instances[n].scheduler().enqueue(class, FRAME, 1, now_ns),
                schedulers[n].enqueue(class, FRAME, 1, now_ns),
            ];
            assert_eq!(slots[0], slots[1], "step {step}");
        }
        let verdict = instances[n].dequeue(&link, &conf, now_ns);
        assert_eq!(shares[n].dequeue(&mut schedulers[n], now_ns), verdict, "step {step}");
        sent += u64::from(matches!(verdict, Verdict::Send { .. }));
    }
    assert!(sent > 500, "{sent}");
    assert_eq!(abi::bytes_of(&link.words()), abi::bytes_of(&words.words()), "the words of the link");
    let end_ns = START_NS + 300_000_000;
    for (instance, share) in instances.iter_mut().zip(&mut shares) {
        instance.stop(&link, &conf, end_ns);
        share.stop(end_ns);
    }
    drop(shares);
    for (instance, own) in instances.iter().zip(&own) {
        assert_eq!(abi::bytes_of(instance.own()), abi::bytes_of(&**own));
    }
}

/// An instance that has joined a class and ran empty leaves it when it is asked once more.
#[test]
fn an_empty_queue_leaves_the_link() {
    let words = Link::default();
    let mut own: Box<abi::sl_shared_instance> = abi::boxed_zeroed();
    let mut scheduler = Scheduler::new(&sched(), START_NS);
    // SAFETY: as above.
    let mut share = unsafe { Share::at(NonNull::from(&mut *own), NonNull::new(words.as_ptr()).expect("it is there")) };
    share.configure(conf().into_raw());
    let mut now_ns = START_NS;
    // Until the bucket is short of credit, an instance does not join.
    while !share.has_to_rest() {
        scheduler.enqueue(0, FRAME, 1, now_ns).expect("there is room");
        scheduler.enqueue(0, FRAME, 1, now_ns).expect("there is room");
        while matches!(share.dequeue(&mut scheduler, now_ns), Verdict::Send { .. }) {}
        now_ns += 1000;
        assert!(now_ns < START_NS + 1_000_000, "the bucket is never short of credit");
    }
    while scheduler.state().backlog_pkts > 0 {
        now_ns += 10_000;
        share.dequeue(&mut scheduler, now_ns);
    }
    assert_ne!(words.words().classes.share[0].instances, 0, "it has joined its class");
    assert!(share.has_to_rest());
    assert_eq!(share.dequeue(&mut scheduler, now_ns), Verdict::Idle);
    assert_eq!(words.words().classes.share[0].instances, 0, "it has left");
}
