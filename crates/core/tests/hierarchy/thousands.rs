//! A provider's tree of 10,000 subscribers on three levels, and a light flow in the full pipe of one of them.

use sluice_abi as abi;
use sluice_abi::SL_FIRST_INNER as LINK;
use sluice_core::Packet;
use sluice_core::hierarchy::{Bucket, LeafQueue, Node, Tree, Verdict};

const SUBSCRIBERS: u32 = 10_000;
const SITES: u32 = 100;
const BEGIN_NS: u64 = 1_000_000_000;
const BY_FLOW: u32 = 1;

/// Subscribers of 100 sites, of which each ten stand below a larger one.
fn provider(link_bps: u64, subscriber: Node) -> Tree {
    let mut tree = Tree::default();
    tree.set_queue(BY_FLOW, &LeafQueue::by_flow());
    let set = |tree: &mut Tree, number: u32, node: Node| {
        tree.configure(number, &node, BEGIN_NS).expect("parents come first");
    };
    let ceil = Some(Bucket { bits_per_second: link_bps, burst_ns: 250_000 });
    set(&mut tree, LINK, Node { ceil, ..Node::below(LINK) });
    (0..10).for_each(|region| set(&mut tree, LINK + 1 + region, Node::below(LINK)));
    (0..SITES).for_each(|site| set(&mut tree, LINK + 11 + site, Node::below(LINK + 1 + site % 10)));
    (0..SUBSCRIBERS)
        .for_each(|leaf| set(&mut tree, leaf, Node { parent: LINK + 11 + leaf % SITES, queue: BY_FLOW, ..subscriber }));
    tree
}

/// Jain's index of fairness: 1 if all are the same.
fn jain(all: impl Iterator<Item = f64> + Clone) -> f64 {
    let (count, sum) = (all.clone().count() as f64, all.clone().sum::<f64>());
    sum * sum / (count * all.map(|one| one * one).sum::<f64>())
}

fn packet(leaf: u32, flow_hash: u32, len_bytes: u32) -> Packet {
    Packet { class: leaf, flow_hash, len_bytes, segments: 1, ..Packet::default() }
}

/// All have packets all the time, of every length: those of half of them are short.
#[test]
fn ten_thousand_who_send_share_evenly() {
    let mut tree = provider(10_000_000_000, Node::below(LINK));
    let mut random = 1_u32;
    let mut length = |leaf: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        64 + (random >> 8) % if leaf % 2 == 0 { 1451 } else { 200 }
    };
    let mut now_ns = BEGIN_NS;
    for leaf in (0..SUBSCRIBERS).cycle().take(6 * SUBSCRIBERS as usize) {
        tree.enqueue_packet(&packet(leaf, leaf, length(leaf)), now_ns).expect("there is room");
    }
    let mut sent = vec![0_u64; SUBSCRIBERS as usize];
    // A frame for each in the first rounds, then so many that the longest of the last round is little.
    let whole = u64::from(SUBSCRIBERS) * 150_000;
    while sent.iter().sum::<u64>() < whole {
        for _ in 0..10_000 {
            match tree.dequeue(now_ns) {
                Verdict::Send { leaf, bytes, .. } => {
                    sent[leaf as usize] += u64::from(bytes);
                    tree.enqueue_packet(&packet(leaf, leaf, length(leaf)), now_ns).expect("one has left");
                }
                Verdict::Wait(wake_ns) => now_ns = wake_ns,
                Verdict::Idle => panic!("idle with packets"),
            }
        }
    }
    let index = jain(sent.iter().map(|bytes| *bytes as f64));
    println!("Jain's index of {SUBSCRIBERS} subscribers: {index:.6}");
    assert!(index >= 0.999, "{index}");
    let rate = whole as f64 * 8.0 / (now_ns - BEGIN_NS) as f64;
    assert!((rate / 10.0 - 1.0).abs() < 0.001, "{rate} Gbit/s");
}

/// Longer waits than the word has room for count as the longest that it has.
#[test]
fn long_waits_are_bounded() {
    let mut tree = provider(1_000_000_000, Node::below(LINK));
    tree.enqueue_packet(&packet(7, 1, 1514), BEGIN_NS).expect("there is room");
    let later_ns = BEGIN_NS + 5_000_000_000;
    assert!(matches!(tree.dequeue(later_ns), Verdict::Send { leaf: 7, .. }));
    assert_eq!(tree.leaf(7).wait_ns, u32::MAX / 16);
}

/// A subscriber's ceiling is full of 16 downloads, as those of 20 others are: the packet of a call waits for the frame that is on its way, and no longer.
#[test]
fn a_light_flow_waits_for_a_frame_of_its_pipe() {
    const CEIL_BPS: u64 = 20_000_000;
    let ceil = Some(Bucket { bits_per_second: CEIL_BPS, burst_ns: 10_000_000 });
    let mut tree = provider(1_000_000_000, Node { ceil, ..Node::below(LINK) });
    let mut now_ns = BEGIN_NS;
    let busy = || (0..21_u32).map(|nth| 100 * nth + nth);
    for (leaf, nth) in busy().flat_map(|leaf| (0..64).map(move |nth| (leaf, nth))) {
        tree.enqueue_packet(&packet(leaf, 1 + nth % 16, 1514), now_ns).expect("there is room");
    }
    const CALL: u32 = 1 << 20;
    // A time that shifts against the frames.
    const BETWEEN_NS: u64 = 20_011_003;
    let (mut next_ns, mut called_ns, mut waits) = (BEGIN_NS + 1_000_000_000, None, Vec::new());
    while waits.len() < 1_000 {
        let until = |wake_ns: u64| wake_ns.min(next_ns);
        match tree.dequeue(now_ns) {
            Verdict::Send { slot, leaf, bytes, .. } => {
                if bytes == 200 {
                    waits.push(now_ns - called_ns.take().expect("it was sent"));
                } else {
                    // The same download goes on.
                    let flow = tree.state().slot[slot as usize].flow_hash;
                    tree.enqueue_packet(&packet(leaf, flow, 1514), now_ns).expect("one has left");
                }
            }
            Verdict::Wait(wake_ns) => now_ns = until(wake_ns),
            Verdict::Idle => panic!("idle with packets"),
        }
        if now_ns >= next_ns {
            tree.enqueue_packet(&packet(0, CALL, 200), now_ns).expect("room");
            called_ns = Some(now_ns);
            next_ns += BETWEEN_NS;
        }
    }
    waits.sort_unstable();
    let (p50, p99, most) = (waits[500], waits[990], waits[999]);
    let frame_ns = 1514 * 8 * 1_000_000_000 / CEIL_BPS;
    println!(
        "a call in a full pipe of 20 Mbit/s waits {p50} ns in the middle, p99 {p99} ns, {most} ns at most; a frame takes {frame_ns} ns"
    );
    assert!(p99 <= frame_ns + (1 << abi::SL_WHEEL_TICK_BITS), "{p99} ns, and a frame takes {frame_ns} ns");
    assert!(p50 > frame_ns / 4, "the pipe was not full: {p50} ns");
}
