//! The tree of classes as a qdisc (`bpf/tree.bpf.c`), made by the tests themselves: limits that no policy sets.

use crate::cases::assert_near;
use crate::lab::Lab;
use crate::needs::Need;
use crate::net::{B, Pair};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome};
use sluice_abi::{self as abi, SL_FIRST_INNER as LINK};
use sluice_core::hierarchy::{Bucket, LeafQueue, Node, Tree};
use sluice_twin::queue::TreeQueue;
use std::time::Duration;

pub fn suite() -> Suite {
    let needs = &[Need::Icount, Need::BpfQdisc];
    Suite::new("trees")
        .any("shares_and_rates_are_exact", needs, shares_and_rates_are_exact)
        .any("a_light_flow_waits_for_a_frame_of_its_subscriber", needs, a_light_flow_waits_for_a_frame)
        .any("every_packet_is_accounted_for", needs, every_packet_is_accounted_for)
}

const SETTLE: Duration = Duration::from_millis(300);
/// The leaf of packets whose address no subscriber has.
const OTHERS: u32 = LINK - 1;

fn mbit(rate: u64) -> Option<Bucket> {
    Some(Bucket { bits_per_second: rate * 1_000_000, burst_ns: 2_000_000 })
}

/// A tree whose leaves queue by flow, with a leaf for addresses without a subscriber.
fn tree(link_mbit: u64) -> Tree {
    let mut tree = Tree::default();
    tree.set_queue(0, &LeafQueue::by_flow());
    tree.configure(LINK, &Node { ceil: mbit(link_mbit), ..Node::below(LINK) }, 0).expect("the link");
    tree.configure(OTHERS, &Node { limit_pkts: 100, ..Node::below(LINK) }, 0).expect("a leaf");
    tree
}

/// The address of a subscriber, by the number of its leaf.
fn address(leaf: u32) -> String {
    format!("10.77.1.{leaf}")
}

/// The tree is at the root of a0, and b has the addresses of these leaves.
fn install(pair: &Pair, tree: &Tree, leaves: &[u32]) -> TreeQueue {
    let prefixes: Vec<_> = leaves
        .iter()
        .map(|leaf| (format!("{}/32", address(*leaf)).parse::<sluice_tables::IpNet>().expect("a prefix"), *leaf as u16))
        .collect();
    let mut seed = u64::from(std::process::id());
    let draw = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed
    };
    let table = sluice_tables::build_addresses(&prefixes, draw).expect("a table of few prefixes");
    let queue = TreeQueue::register("sluicetree", tree.state(), &table).unwrap_or_else(|error| panic!("{error}"));
    for leaf in leaves {
        pair.b.ip(&format!("addr add {}/32 dev b0", address(*leaf)));
    }
    pair.a.ip(&format!("route add 10.77.1.0/24 via {B} dev a0"));
    pair.a.tc("qdisc replace dev a0 root sluicetree");
    queue
}

/// Offers each leaf so many Mbit/s of frames for a time. Returns the arrivals of each leaf.
fn offer(pair: &Pair, loads: &[(u32, u64)], time: Duration) -> Vec<Outcome> {
    let streams: Vec<_> = loads
        .iter()
        .map(|(leaf, mbit)| {
            let flow = Flow::new(7000 + *leaf as u16, &[1514], mbit * 1_000_000);
            traffic::start(&pair.a, &pair.b, &address(*leaf), &[flow])
        })
        .collect();
    std::thread::sleep(time);
    streams.iter().for_each(traffic::Streams::stop);
    streams.into_iter().map(|stream| stream.finish_lossy().remove(0)).collect()
}

/// Three levels: ceilings, weights and a guarantee give each subscriber what HTB's rules say, to 0.5 %.
fn shares_and_rates_are_exact(lab: &Lab) {
    let pair = lab.pair();
    let mut tree = tree(100);
    let (east, west) = (LINK + 1, LINK + 2);
    let wanted = [(1, 10.0), (2, 50.0 * 2.0 / 3.0), (3, 50.0 / 3.0), (4, 35.0), (5, 5.0)];
    let nodes = [
        // Its weight would give it 75.
        (east, Node { weight: 3, ceil: mbit(60), ..Node::below(LINK) }),
        (west, Node::below(LINK)),
        (1, Node { ceil: mbit(10), ..Node::below(east) }),
        (2, Node { weight: 2, ..Node::below(east) }),
        (3, Node::below(east)),
        // It is guaranteed 30, and shares the 10 that are left.
        (4, Node { rate: mbit(30), ..Node::below(west) }),
        (5, Node::below(west)),
    ];
    for (number, node) in nodes {
        tree.configure(number, &Node { limit_pkts: 100, ..node }, 0).expect("parents come first");
    }
    let queue = install(&pair, &tree, &wanted.map(|(leaf, _)| leaf));
    let loads = wanted.map(|(leaf, mbit)| (leaf, 2 + (mbit * 1.5) as u64));
    let outcomes = offer(&pair, &loads, Duration::from_millis(1500));
    for ((leaf, mbit), outcome) in wanted.iter().zip(&outcomes) {
        assert_near(&format!("subscriber {leaf}"), outcome.bps(SETTLE, 0), mbit * 1e6, 0.005);
        assert!(outcome.in_order(), "subscriber {leaf}");
    }
    pair.a.tc("qdisc del dev a0 root");
    drop(queue);
}

/// Beside a flow that fills its subscriber's pipe of 20 Mbit/s, and beside another subscriber that fills the rest of the link, a light flow waits
/// for the frame that is on its way, and a bucket of the wheel.
fn a_light_flow_waits_for_a_frame(lab: &Lab) {
    let pair = lab.pair();
    let mut tree = tree(100);
    // A burst would be sent ahead of it.
    let bucket = Bucket { bits_per_second: 20_000_000, burst_ns: 0 };
    tree.configure(1, &Node { ceil: Some(bucket), limit_pkts: 1000, ..Node::below(LINK) }, 0).expect("a leaf");
    tree.configure(2, &Node { limit_pkts: 1000, ..Node::below(LINK) }, 0).expect("a leaf");
    let queue = install(&pair, &tree, &[1, 2]);
    let other = traffic::start(&pair.a, &pair.b, &address(2), &[Flow::new(7100, &[1514], 100_000_000)]);
    let flows = [Flow::new(7001, &[1514], 30_000_000), Flow::bursts(7002, 142, 1, Duration::from_millis(11))];
    let streams = traffic::start(&pair.a, &pair.b, &address(1), &flows);
    let outcomes = streams.stop_after(Duration::from_millis(3000));
    other.finish_lossy();
    let frame_ms = 1514.0 * 8.0 / 20e3;
    let tail_ms = outcomes[1].delay_ms(0.99);
    eprintln!(
        "    99 % within {tail_ms:.3} ms, a frame takes {frame_ms:.3} ms; bulk {:.3} ms",
        outcomes[0].delay_ms(0.5)
    );
    assert!(outcomes[0].delay_ms(0.5) > 10.0, "the pipe is full");
    assert!(tail_ms < frame_ms + 0.15, "{tail_ms} ms");
    pair.a.tc("qdisc del dev a0 root");
    drop(queue);
}

/// Packets arrive or are counted as dropped, also where a leaf and the whole tree are full, and nothing is left in the queue; addresses without a
/// subscriber have the leaf of others; a link that goes down loses what was queued, and nothing afterwards.
fn every_packet_is_accounted_for(lab: &Lab) {
    let pair = lab.pair();
    let mut tree = tree(20);
    tree.set_up(&abi::sl_tree_conf { slots: 200, mpu_bytes: 0, overhead_bytes: 0, cells: 0 });
    tree.configure(1, &Node { limit_pkts: 20, ..Node::below(LINK) }, 0).expect("a leaf");
    tree.configure(2, &Node::below(LINK), 0).expect("a leaf");
    let queue = install(&pair, &tree, &[1, 2]);
    let state = || queue.tree().unwrap_or_else(|error| panic!("{error}"));
    let dropped =
        |leaf: u32| state().leaf[leaf as usize].dropped_pkts.iter().map(|count| u64::from(*count)).sum::<u64>();
    let to_others =
        traffic::run(&pair.a, &pair.b, B, &[Flow::new(7200, &[514], 1_000_000)], SETTLE, || dropped(OTHERS));
    assert_eq!(
        state().leaf[OTHERS as usize].sent_pkts,
        to_others[0].sent,
        "packets to an address without a subscriber"
    );
    for leaf in [1, 2] {
        let flows: Vec<Flow> = (0..8).map(|n| Flow::new(7300 + n, &[1514], 6_000_000)).collect();
        let outcomes = traffic::run(&pair.a, &pair.b, &address(leaf), &flows, SETTLE, || dropped(leaf));
        let lost: u64 = outcomes.iter().map(Outcome::lost).sum();
        assert!(lost > 100 && lost == dropped(leaf), "{lost} lost, {} counted", dropped(leaf));
        assert!(state().leaf[leaf as usize].dropped_pkts[abi::SL_DROP_OVERFLOW as usize] > 100);
        assert!(outcomes.iter().all(Outcome::in_order));
    }
    let streams = traffic::start(&pair.a, &pair.b, &address(2), &[Flow::new(7400, &[1514], 60_000_000)]);
    std::thread::sleep(SETTLE);
    pair.a.ip("link set a0 down");
    streams.finish_lossy();
    assert_eq!(state().pkts, 0);
    assert!(state().leaf[2].dropped_pkts[abi::SL_DROP_RESET as usize] > 50);
    pair.a.ip("link set a0 up");
    pair.a.ip(&format!("route replace 10.77.1.0/24 via {B} dev a0"));
    let before = dropped(1);
    let after = traffic::run(&pair.a, &pair.b, &address(1), &[Flow::new(7500, &[514], 1_000_000)], SETTLE, || {
        dropped(1) - before
    });
    assert_eq!((after[0].lost(), state().pkts), (0, 0));
    pair.a.tc("qdisc del dev a0 root");
    drop(queue);
}
