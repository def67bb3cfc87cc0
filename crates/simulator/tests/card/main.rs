//! Laws of the modelled card on random traces of packets: nothing is lost or made, a queue keeps its order, no window exceeds the rate of the port or of
//! a queue, the link is never idle while a queue may send, a queue refuses only when it is full, and the order among queues is the configured one.

use proptest::prelude::*;
use sluice_simulator::card::{Card, CardConf, CardQueue, Completion, Order};

/// Some packets come to a queue, after a time.
#[derive(Debug, Clone)]
struct Post {
    gap_ns: u64,
    queue: usize,
    bytes: Vec<u32>,
}

/// A packet that the card has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Taken {
    number: u32,
    at_ns: u64,
}

fn confs() -> impl Strategy<Value = CardConf> {
    let rate = prop_oneof![Just(10_000_000_000u64), Just(25_000_000_000), 1_000_000_000..100_000_000_000u64];
    let queue = (1..20u32, prop::option::weighted(0.3, 2..10u64));
    (rate, 0..30u32, prop::collection::vec(queue, 1..9), any::<bool>(), prop::collection::vec(1..5u32, 9)).prop_map(
        |(bits_per_second, overhead_bytes, queues, strict, weights)| {
            let queues: Vec<CardQueue> = queues
                .into_iter()
                .map(|(descriptors, part)| CardQueue {
                    descriptors,
                    bits_per_second: part.map(|part| bits_per_second / part),
                })
                .collect();
            let order = if strict { Order::Strict } else { Order::Weighted(weights[..queues.len()].to_vec()) };
            CardConf { bits_per_second, overhead_bytes, queues, order }
        },
    )
}

fn traces() -> impl Strategy<Value = (CardConf, Vec<Post>)> {
    let gap = prop_oneof![3 => 0..50u64, 3 => 0..1500u64, 1 => 0..40_000u64];
    let post = (gap, 0..9usize, prop::collection::vec(60..1500u32, 1..12));
    (confs(), prop::collection::vec(post, 1..80)).prop_map(|(conf, posts)| {
        let count = conf.queues.len();
        let post = |(gap_ns, queue, bytes)| Post { gap_ns, queue: queue % count, bytes };
        (conf, posts.into_iter().map(post).collect())
    })
}

/// The packets that the card took of each queue, and those that it sent.
struct Seen {
    taken: Vec<Vec<Taken>>,
    sent: Vec<Completion<Taken>>,
}

/// Plays a trace. Refusals are checked on the way: by counting the packets that a queue has had and has not sent.
fn play(conf: &CardConf, posts: &[Post]) -> Result<Seen, TestCaseError> {
    let mut card = Card::new(conf);
    let mut seen = Seen { taken: vec![Vec::new(); conf.queues.len()], sent: Vec::new() };
    let (mut now_ns, mut number) = (0, 0);
    for post in posts {
        now_ns += post.gap_ns;
        seen.sent.extend(std::iter::from_fn(|| card.completed(now_ns)));
        let held = seen.taken[post.queue].len() - seen.sent.iter().filter(|done| done.queue == post.queue).count();
        let free = conf.queues[post.queue].descriptors as usize - held;
        prop_assert_eq!(card.room(post.queue), free);
        let packets: Vec<(u32, Taken)> =
            post.bytes.iter().zip(number..).map(|(bytes, number)| (*bytes, Taken { number, at_ns: now_ns })).collect();
        number += packets.len() as u32;
        let taken = card.post(now_ns, post.queue, packets.iter().copied());
        prop_assert_eq!(taken, packets.len().min(free), "it refuses only what it has no descriptor for");
        seen.taken[post.queue].extend(packets[..taken].iter().map(|(_, packet)| *packet));
    }
    seen.sent.extend(std::iter::from_fn(|| card.completed(u64::MAX / 1000)));
    prop_assert!(card.is_idle());
    Ok(seen)
}

/// The time of a packet on a link of this rate, ns.
fn ns(bytes: u32, bits_per_second: u64) -> f64 {
    f64::from(bytes) * 8e9 / bits_per_second as f64
}

proptest! {
    #[test]
    fn nothing_is_lost_and_queues_keep_their_order((conf, posts) in traces()) {
        let seen = play(&conf, &posts)?;
        for (queue, taken) in seen.taken.iter().enumerate() {
            let sent: Vec<Taken> =
                seen.sent.iter().filter(|done| done.queue == queue).map(|done| done.packet).collect();
            prop_assert_eq!(&sent, taken);
        }
        prop_assert!(seen.sent.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns), "completions come by time");
        prop_assert!(seen.sent.iter().all(|done| done.at_ns > done.packet.at_ns), "a packet takes time");
    }

    /// Between two packets that were sent, those behind the first take the time that the rate gives them; a ns for rounding.
    #[test]
    fn no_window_exceeds_a_rate((conf, posts) in traces()) {
        let seen = play(&conf, &posts)?;
        let within = |sent: &[&Completion<Taken>], rate: u64, first: bool| {
            sent.iter().enumerate().all(|(from, begin)| {
                let mut least_ns = 0.0;
                sent[from..].windows(2).all(|pair| {
                    // Of a queue, the earlier packet opens the gap that its own rate asks for; of the port, the later one fills it.
                    least_ns += ns(pair[usize::from(first)].bytes + conf.overhead_bytes, rate);
                    let (begun, ended) = if first { (begin.at_ns, pair[1].at_ns) } else {
                        (begun_ns(&conf, begin), begun_ns(&conf, pair[1]))
                    };
                    (ended - begun) as f64 >= least_ns - 2.0
                })
            })
        };
        let all: Vec<&Completion<Taken>> = seen.sent.iter().collect();
        prop_assert!(within(&all, conf.bits_per_second, true), "the port");
        for (queue, own) in conf.queues.iter().enumerate() {
            let Some(rate) = own.bits_per_second else { continue };
            let sent: Vec<&Completion<Taken>> = seen.sent.iter().filter(|done| done.queue == queue).collect();
            prop_assert!(within(&sent, rate, false), "queue {}", queue);
        }
    }

    /// A packet that is sent later than the link is free, and than it was posted, waited for the rate of its queue.
    #[test]
    fn the_link_is_never_idle_without_need((conf, posts) in traces()) {
        let mut conf = conf;
        conf.queues.iter_mut().for_each(|queue| queue.bits_per_second = None);
        let seen = play(&conf, &posts)?;
        let mut free_ns = 0;
        for done in &seen.sent {
            let begun = begun_ns(&conf, done);
            prop_assert!(begun <= free_ns.max(done.packet.at_ns) + 1, "{done:?} begins at {begun}, free at {free_ns}");
            free_ns = done.at_ns;
        }
    }

    /// By strict priority, no packet begins while one of an earlier queue waits.
    #[test]
    fn strict_priority_goes_before((conf, posts) in traces()) {
        let mut conf = CardConf { order: Order::Strict, ..conf };
        conf.queues.iter_mut().for_each(|queue| queue.bits_per_second = None);
        let seen = play(&conf, &posts)?;
        for (at, done) in seen.sent.iter().enumerate() {
            let begun = begun_ns(&conf, done);
            let waits = |other: &&Completion<Taken>| other.queue < done.queue && other.packet.at_ns + 1 < begun;
            prop_assert!(seen.sent[at..].iter().find(waits).is_none(), "{done:?}");
        }
    }

    /// By weights, queues that have packets all the time get packets in proportion.
    #[test]
    fn weights_are_shares(weights in prop::collection::vec(1..9u32, 2..8), bytes in 60..1500u32) {
        let rounds = 20;
        let mut conf = CardConf::strict(10_000_000_000, 20, weights.len() as u32, 10_000);
        conf.order = Order::Weighted(weights.clone());
        let post = |queue| Post { gap_ns: 0, queue, bytes: vec![bytes; 9 * rounds + 9] };
        let posts: Vec<Post> = (0..weights.len()).map(post).collect();
        let seen = play(&conf, &posts)?;
        let all = weights.iter().sum::<u32>() as usize * rounds;
        for (queue, weight) in weights.iter().enumerate() {
            let sent = seen.sent[..all].iter().filter(|done| done.queue == queue).count();
            let due = *weight as usize * rounds;
            prop_assert!(sent.abs_diff(due) <= *weight as usize, "queue {}: {} instead of {}", queue, sent, due);
        }
    }
}

/// When the link has begun to send a packet; up to a ns later than it did.
fn begun_ns(conf: &CardConf, done: &Completion<Taken>) -> u64 {
    done.at_ns - ns(done.bytes + conf.overhead_bytes, conf.bits_per_second) as u64
}
