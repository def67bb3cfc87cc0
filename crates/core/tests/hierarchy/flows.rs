//! Flow queues of leaves: each leaf queues as a class of the flat scheduler does, all take queues from one pool, and who holds most gives way.

use crate::{
    laws, traces,
    traces::{Case, Flow, LONGEST, Step},
    world::{Event, World, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_abi::SL_FIRST_INNER as LINK;
use sluice_core::hierarchy::{LeafQueue, Node, Tree, TreeCore, Verdict};
use sluice_core::{Packet, Scheduler, Verdict as Flat};
use std::collections::BTreeMap;

laws! {
    a_leaf_queues_as_a_class: traces::of(500).ceilings().limits().flows().uneven();
    the_largest_gives_way: traces::of(400).flows().few_slots().uneven();
    the_pool_is_sound: traces::of(0).ceilings().limits().flows();
    queues_are_given_back: traces::of(0).flows();
}

/// A scheduler with one class that queues as a leaf does, and no other limit.
fn class_like(node: &Node, queue: &LeafQueue, now_ns: u64) -> Scheduler {
    let mut conf = abi::boxed_zeroed::<abi::sl_sched_conf>();
    (conf.generation, conf.slots) = (1, abi::SL_SLOTS);
    let class = &mut conf.classes[0];
    (class.limit_pkts, class.limit_bytes, class.weight) = (node.limit_pkts, u32::MAX, 1);
    class.flows = if queue.one_flow { 1 } else { abi::SL_CLASS_FLOWS };
    (class.hosts, class.flow_quantum_bytes) = (u32::from(queue.hosts), queue.quantum_bytes);
    (class.allowance_bytes, class.target_ns, class.interval_ns) =
        (queue.allowance_bytes, queue.target_ns, queue.interval_ns);
    Scheduler::new(&conf, now_ns)
}

/// A leaf and the class that it is compared with. Packets have numbers, in slots of both.
struct Pair {
    class: Scheduler,
    in_class: BTreeMap<u32, u64>,
    in_leaf: BTreeMap<u32, u64>,
}

/// A leaf refuses, drops, marks and sends the packets that a class of the flat scheduler would, if that is asked for a packet whenever the
/// leaf's turn comes.
fn a_leaf_queues_as_a_class(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let World { mut tree, mut now_ns, .. } = World::new(core, case);
    let mut pairs = BTreeMap::new();
    for (leaf, node) in &case.leaves {
        let class = class_like(node, &case.queues[node.queue as usize], now_ns);
        pairs.insert(*leaf, Pair { class, in_class: BTreeMap::new(), in_leaf: BTreeMap::new() });
    }
    fn reap(tree: &mut Tree, pairs: &mut BTreeMap<u32, Pair>) -> TestCaseResult {
        let mut dropped: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        while let Some(slot) = tree.reap() {
            let leaf = u32::from(tree.state().slot[slot as usize].leaf);
            let number = pairs.get_mut(&leaf).and_then(|pair| pair.in_leaf.remove(&slot));
            dropped.entry(leaf).or_default().push(number.expect("a leaf drops what it has"));
        }
        for (leaf, pair) in pairs {
            let mut theirs = Vec::new();
            while let Some(slot) = pair.class.reap() {
                theirs.push(pair.in_class.remove(&slot).expect("a class drops what it has"));
            }
            prop_assert_eq!(dropped.remove(leaf).unwrap_or_default(), theirs, "leaf {} drops", leaf);
        }
        prop_assert!(dropped.is_empty());
        Ok(())
    }
    let advance = |tree: &mut Tree, pairs: &mut BTreeMap<u32, Pair>, now_ns: &mut u64, until_ns: u64| {
        loop {
            match tree.dequeue(*now_ns) {
                Verdict::Wait(wake_ns) if wake_ns <= until_ns => *now_ns = wake_ns,
                Verdict::Idle | Verdict::Wait(_) => break,
                Verdict::Send { slot, leaf, mark, .. } => {
                    let pair = pairs.get_mut(&leaf).expect("a leaf that there is");
                    let number = pair.in_leaf.remove(&slot);
                    let Flat::Send { slot, mark: marked, .. } = pair.class.dequeue(*now_ns) else {
                        return Err(TestCaseError::fail(format!("leaf {leaf} has packets, the class has none")));
                    };
                    prop_assert_eq!((number, mark), (pair.in_class.remove(&slot), marked), "leaf {} sends", leaf);
                    reap(tree, pairs)?;
                }
            }
        }
        *now_ns = until_ns.max(*now_ns);
        Ok(())
    };
    for (number, (gap_ns, step)) in (0..).zip(&case.steps) {
        let until_ns = now_ns + gap_ns;
        advance(&mut tree, &mut pairs, &mut now_ns, until_ns)?;
        let Step::Arrive { leaf, flow, bytes } = *step else { continue };
        let leaf = case.leaves[leaf % case.leaves.len()].0;
        let pair = pairs.get_mut(&leaf).expect("it is among them");
        let packet = flow.packet(leaf, bytes);
        let ours = tree.enqueue_packet(&packet, now_ns);
        // In sets of the class's table, flows that share a set may forget each other.
        let flow_hash = (flow.hash & 0xffff) + 8 * (flow.hash >> 16);
        let theirs = pair.class.enqueue_packet(&Packet { class: 0, flow_hash, ..packet }, now_ns);
        prop_assert_eq!(ours.err(), theirs.err(), "leaf {} refuses", leaf);
        ours.map(|slot| pair.in_leaf.insert(slot, number)).ok();
        theirs.map(|slot| pair.in_class.insert(slot, number)).ok();
        reap(&mut tree, &mut pairs)?;
    }
    let end_ns = now_ns + 200_000_000_000;
    advance(&mut tree, &mut pairs, &mut now_ns, end_ns)?;
    prop_assert!(pairs.values().all(|pair| pair.in_leaf.is_empty() && pair.in_class.is_empty()));
    Ok(())
}

/// When slots run out, a leaf drops that has at least a quarter of the packets that any leaf has, whatever their flows. A packet is refused for want
/// of a slot only if no leaf has four.
fn the_largest_gives_way(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let mut before = BTreeMap::<u32, usize>::new();
    run(core, case, &mut |world, event| {
        let most = before.values().copied().max().unwrap_or(0);
        match *event {
            Event::Dropped { leaf, reason } if reason == abi::SL_DROP_OVERFLOW => {
                let pkts = before.get(&leaf).copied().unwrap_or(0);
                prop_assert!(4 * pkts >= most, "leaf {} with {} packets drops, and another has {}", leaf, pkts, most);
                // Packets that are dropped with this one were there before too.
                return Ok(());
            }
            Event::Arrived { refused: Some(reason), .. } => {
                prop_assert_eq!(reason, abi::SL_DROP_NO_SLOT);
                prop_assert!(most < 4, "refused, and a leaf has {} packets", most);
            }
            _ => {}
        }
        let held: usize = world.flows.values().map(|queue| queue.len()).sum();
        prop_assert!(held <= case.slots as usize, "{} packets in {} slots", held, case.slots);
        before = world.nodes.keys().map(|leaf| (*leaf, world.queued(*leaf).count())).collect();
        Ok(())
    })?;
    Ok(())
}

/// A queue that was ever taken stands in the chain of its flow, once, with queues of the same chain only. Those without packets are the ones that
/// rest, in a list that is the same from both ends.
fn is_sound(state: &abi::sl_tree) -> TestCaseResult {
    let chain = |flow: &abi::sl_tree_flow| (flow.queue.hash ^ (u32::from(flow.leaf) * 40503)) as u16;
    let used = &state.flow[..state.fresh_flows as usize];
    for (number, flow) in (1..).zip(used) {
        let (mut at, mut found) = (state.flow_of_hash[usize::from(chain(flow))], 0);
        for _ in 0..=used.len() {
            if at == 0 {
                break;
            }
            let other = &state.flow[usize::from(at) - 1];
            prop_assert_eq!(chain(other), chain(flow), "queue {} is in the chain of queue {}", at - 1, number - 1);
            found += u32::from(at == number);
            at = other.chain;
        }
        prop_assert_eq!((at, found), (0, 1), "the chain of queue {}", number - 1);
    }
    let (mut resting, mut before, mut at) = (0, 0, state.rests_first);
    while at != 0 && resting <= used.len() {
        let flow = &state.flow[usize::from(at) - 1];
        prop_assert_eq!(flow.queue.backlog_pkts, 0, "queue {} rests with packets", at - 1);
        prop_assert_eq!(flow.rests_before, before);
        (resting, before, at) = (resting + 1, at, flow.rests_next);
    }
    prop_assert_eq!((state.rests_last, state.resting as usize), (before, resting));
    prop_assert_eq!(resting, used.iter().filter(|flow| flow.queue.backlog_pkts == 0).count());
    Ok(())
}

/// The pool is sound while flows come by the thousand, of which some come back, and queues change hands.
fn the_pool_is_sound(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let mut world = World::new(core, case);
    let mut ignore = |_: &World, _: &Event| Ok(());
    for number in 0..2_500_u32 {
        let bytes = world.length();
        let flow = if bytes % 5 == 0 { number.saturating_sub(bytes % 1_300) } else { number };
        // Chains of many flows.
        let hash = (flow % 97) | ((flow / 97) << 16);
        let (leaf, _) = case.leaves[flow as usize % case.leaves.len()];
        for _ in 0..1 + bytes % 3 {
            world.arrive_in(leaf, Flow { hash, host: hash as u16 % 5, ecn: false }, bytes, &mut ignore)?;
        }
        world.advance(world.now_ns + u64::from(bytes) * 1_000, &mut ignore)?;
        if number % 500 == 0 {
            is_sound(world.tree.state())?;
        }
    }
    is_sound(world.tree.state())
}

/// `SL_FLOWS_REMEMBERED`
const REMEMBERED: u32 = 1024;

/// However many flows there have been: queues are taken as long as their flows have packets, or have used more than rounds have given back, and
/// `SL_FLOWS_REMEMBERED` more. When every queue is remembered, the one that has rested for longest is taken, and no packet is lost.
fn queues_are_given_back(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let mut tree = Tree::of(core);
    tree.set_queue(0, &LeafQueue::by_flow());
    // Flows of idle leaves are forgotten first.
    let leaves = if case.seed % 16 == 0 { 1 } else { 1 + case.seed % 3 };
    for leaf in 0..leaves {
        tree.configure(leaf, &Node::below(LINK), 0).expect("the link is there");
    }
    // Without time and without bulk flows, no round gives anything back.
    let (flows, longest, gap_ns) = if case.seed % 16 == 0 { (70_000, 100, 0) } else { (6_000, LONGEST, 1_000_000) };
    let (mut now_ns, mut expected) = (1_000_000_000, BTreeMap::new());
    for pair in 0..flows / 2 {
        let leaf = pair % leaves;
        for (flow, bytes) in [(2 * pair, longest), (2 * pair + 1, 100), (2 * pair, 100)] {
            // Some chains have several flows.
            let hash = (flow % 500) | ((flow / 500) << 16);
            let slot = tree.enqueue_packet(&Flow { hash, ..Flow::default() }.packet(leaf, bytes), now_ns);
            expected.insert(slot.expect("there is room"), (leaf, bytes));
        }
        now_ns += gap_ns;
        for _ in 0..3 {
            let Verdict::Send { slot, leaf, bytes, .. } = tree.dequeue(now_ns) else {
                return Err(TestCaseError::fail("packets wait, and nothing limits"));
            };
            prop_assert_eq!(expected.remove(&slot), Some((leaf, bytes)));
        }
        prop_assert!(tree.reap().is_none());
    }
    let used = tree.state().fresh_flows;
    let most = if gap_ns == 0 { abi::SL_TREE_PKTS } else { REMEMBERED + 4 * leaves };
    prop_assert!(used <= most, "{} flows one after the other took {} queues", flows, used);
    prop_assert!(gap_ns > 0 || used == most, "{} flows took {} queues, and none had paid", flows, used);
    Ok(())
}
