//! EEVDF among the children of a node: by its definition, and by what Stoica and Abdel-Wahab have proven of it.

use crate::{
    follow::{Child, Model, follow},
    laws, traces,
    traces::{Case, LONGEST},
    world::{Event, World, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi::{SL_FIRST_INNER as LINK, SL_NO_NODE, SL_NODE_LISTED};
use sluice_core::hierarchy::{Bucket, Discipline, Node, Tree, TreeCore, Verdict};
use std::collections::BTreeMap;

laws! {
    the_earliest_eligible_deadline_is_served: traces::of(300).serving(&[Discipline::Eevdf]);
    lags_stay_within_the_bound: traces::of(0).serving(&[Discipline::Eevdf]);
    leaving_gains_nothing: traces::of(0);
    a_small_request_waits_less: traces::of(0);
    a_new_weight_changes_no_debt: traces::of(0);
    the_books_balance: traces::of(200).ceilings().guarantees().limits().flows().edits().serving(&[Discipline::Eevdf, Discipline::Fair]);
}

/// A child that may send: virtual times, in bytes << 32 / weight.
struct Active {
    start: i128,
    deadline: i128,
}

#[derive(Default)]
struct Parent {
    active: BTreeMap<u32, Active>,
    lags: BTreeMap<u32, i128>,
    /// Virtual time while no child may send.
    time: i128,
}

/// The definition, with numbers that neither wrap round nor are updated in steps.
#[derive(Default)]
struct Definition(BTreeMap<u32, Parent>);

fn weight(world: &World, child: u32) -> i128 {
    world.nodes[&child].weight.into()
}

fn virtual_bytes(bytes: u32, weight: i128) -> i128 {
    (i128::from(bytes) << 32) / weight
}

impl Parent {
    /// The mean of where children stand, by weight.
    fn time(&self, world: &World) -> i128 {
        if self.active.is_empty() {
            return self.time;
        }
        let sum: i128 = self.active.iter().map(|(child, own)| weight(world, *child) * own.start).sum();
        sum.div_euclid(self.weights(world))
    }

    fn weights(&self, world: &World) -> i128 {
        self.active.keys().map(|child| weight(world, *child)).sum()
    }

    fn request(&mut self, child: &Child<'_>) {
        let node = &child.world.nodes[&child.number];
        let next = child.first.map_or(node.request.max(1), |packet| packet.bytes);
        let own = self.active.get_mut(&child.number).expect("it may send");
        if own.deadline < own.start + virtual_bytes(next, node.weight.into()) {
            own.deadline = own.start + virtual_bytes(next.max(node.request), node.weight.into());
        }
    }
}

impl Model for Definition {
    fn joins(&mut self, child: &Child<'_>) -> TestCaseResult {
        let parent = self.0.entry(child.parent).or_default();
        let own = weight(child.world, child.number);
        let start = if parent.active.is_empty() {
            parent.time
        } else {
            let lag = parent.lags.get(&child.number).copied().unwrap_or(0);
            let sum: i128 = parent.active.iter().map(|(child_of, a)| weight(child.world, *child_of) * a.start).sum();
            (sum - own * lag).div_euclid(parent.weights(child.world)) - lag
        };
        parent.active.insert(child.number, Active { start, deadline: start });
        parent.request(child);
        Ok(())
    }

    fn is_chosen(&mut self, child: &Child<'_>) -> TestCaseResult {
        let parent = &self.0[&child.parent];
        let time = parent.time(child.world);
        let eligible = parent.active.iter().filter(|(_, own)| own.start <= time);
        let earliest = eligible.map(|(_, own)| own.deadline).min().expect("a mean is not below the least");
        let own = &parent.active[&child.number];
        prop_assert!(own.start <= time, "node {} is served before it is eligible", child.number);
        prop_assert_eq!(own.deadline, earliest, "node {} has not the earliest deadline", child.number);
        Ok(())
    }

    fn sends(&mut self, child: &Child<'_>, bytes: u32) -> TestCaseResult {
        let parent = self.0.get_mut(&child.parent).expect("it has children");
        let own = parent.active.get_mut(&child.number).expect("it may send");
        own.start += virtual_bytes(bytes, weight(child.world, child.number));
        parent.request(child);
        Ok(())
    }

    fn leaves(&mut self, child: &Child<'_>) -> TestCaseResult {
        let parent = self.0.get_mut(&child.parent).expect("it has children");
        let time = parent.time(child.world);
        let own = parent.active.remove(&child.number).expect("it may send");
        let is_last = parent.active.is_empty();
        parent.lags.insert(child.number, if is_last { 0 } else { time - own.start });
        parent.time = time;
        Ok(())
    }

    fn loses(&mut self, _: &Child<'_>) -> TestCaseResult {
        Ok(())
    }
}

/// The child with the earliest deadline is served, of those that stand at or before the mean of all that may send, by weight.
fn the_earliest_eligible_deadline_is_served(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    follow(core, case, &mut Definition::default())
}

/// Theorem 1: while all leaves have packets, a child is never ahead of its share by more than its longest packet, and never behind by more than
/// the longest of all requests and packets. Requests of inner nodes are as long as packets at least, since their next packet is not known.
fn lags_stay_within_the_bound(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let mut case = case.clone();
    case.inners.iter_mut().for_each(|(_, node)| node.request = node.request.max(LONGEST));
    let mut world = World::new(core, &case);
    let leaves: Vec<u32> = case.leaves.iter().map(|(number, _)| *number).collect();
    let busy: Vec<u32> = leaves.iter().flat_map(|leaf| world.way(*leaf)).collect();
    let nodes: BTreeMap<u32, Node> =
        world.nodes.iter().filter(|(number, _)| busy.contains(number)).map(|(number, node)| (*number, *node)).collect();
    let mut sent = BTreeMap::<u32, f64>::new();
    let longest = f64::from(LONGEST);
    let mut observe = |world: &World, event: &Event| {
        let Event::Sent { leaf, bytes, .. } = *event else { return Ok(()) };
        for node in world.way(leaf) {
            *sent.entry(node).or_default() += f64::from(bytes);
        }
        for parent in world.way(leaf).into_iter().skip(1) {
            let children: Vec<_> =
                nodes.iter().filter(|(number, node)| **number != LINK && node.parent == parent).collect();
            let weights: u32 = children.iter().map(|(_, node)| node.weight).sum();
            let request = children.iter().map(|(_, node)| node.request).max().map_or(0.0, f64::from);
            for (number, node) in children {
                let share = sent[&parent] * f64::from(node.weight) / f64::from(weights);
                let lag = share - sent.get(number).copied().unwrap_or(0.0);
                prop_assert!(lag > -longest - 1.0, "node {} is ahead by {}", number, -lag);
                prop_assert!(lag < request.max(longest) + 1.0, "node {} is behind by {}", number, lag);
            }
        }
        Ok(())
    };
    world.keep_busy(&leaves, &mut observe)?;
    world.advance(world.now_ns + 100_000_000, &mut observe)
}

/// A link of 100 Mbit/s that serves leaves by EEVDF: their weights and requests.
fn star(core: &'static TreeCore, leaves: &[(u32, u32)]) -> Tree {
    let mut tree = Tree::of(core);
    let ceil = Some(Bucket { bits_per_second: 100_000_000, burst_ns: 100_000 });
    let link = Node { ceil, discipline: Discipline::Eevdf, ..Node::below(LINK) };
    tree.configure(LINK, &link, 0).expect("the link");
    for (number, (weight, request)) in (0..).zip(leaves) {
        let leaf = Node { weight: *weight, request: *request, ..Node::below(LINK) };
        tree.configure(number, &leaf, 0).expect("a leaf");
    }
    tree
}

/// A leaf that has one packet at a time leaves after each, and comes back at once: it gets no more than its share, but for what it may be ahead by.
fn leaving_gains_nothing(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let others = 1 + case.seed % 7;
    let mut leaves = vec![(1 + case.seed / 7 % 5, 1514)];
    leaves.extend((0..others).map(|place| (1 + (case.seed >> (8 + place)) % 5, 1514)));
    let mut tree = star(core, &leaves);
    let weights: u32 = leaves.iter().map(|(weight, _)| weight).sum();
    let mut now_ns = 0;
    let arrive = |tree: &mut Tree, leaf: u32, now_ns| tree.enqueue(leaf, 1000, now_ns).map(drop).expect("room");
    for leaf in 0..=others {
        for _ in 0..if leaf == 0 { 1 } else { 4 } {
            arrive(&mut tree, leaf, now_ns);
        }
    }
    let mut sent = vec![0_u64; leaves.len()];
    for _ in 0..2000 {
        match tree.dequeue(now_ns) {
            Verdict::Send { leaf, bytes, .. } => {
                sent[leaf as usize] += u64::from(bytes);
                arrive(&mut tree, leaf, now_ns);
            }
            Verdict::Wait(wake_ns) => now_ns = wake_ns,
            Verdict::Idle => return Err(TestCaseError::fail("idle")),
        }
        let share = sent.iter().sum::<u64>() as f64 * f64::from(leaves[0].0) / f64::from(weights);
        prop_assert!((sent[0] as f64) < share + 1514.0 + 1000.0, "{} bytes, and its share is {}", sent[0], share);
    }
    Ok(())
}

/// A leaf with short packets, whose request is one of them, and which sends at half of its share, waits no longer than two packets of its own at that share
/// and one of another leaf that is under way. With a request as long as those of the others, it would wait as long as they do.
fn a_small_request_waits_less(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    const SHORT: u32 = 150;
    const LONG: u32 = 1500;
    let others = 2 + case.seed % 14;
    let mut leaves = vec![(1, SHORT)];
    leaves.extend((0..others).map(|_| (1, LONG)));
    let mut tree = star(core, &leaves);
    let (share_ns, other_ns) = (u64::from(SHORT) * 80 * u64::from(others + 1), u64::from(LONG) * 80);
    for leaf in 1..=others {
        for _ in 0..4 {
            tree.enqueue(leaf, LONG, 0).expect("room");
        }
    }
    let (mut now_ns, mut next_ns, mut came_ns) = (0, 100 * share_ns, None);
    let mut left = 60;
    while left > 0 {
        if came_ns.is_none() && now_ns >= next_ns {
            tree.enqueue(0, SHORT, now_ns).expect("room");
            came_ns = Some(now_ns);
        }
        match tree.dequeue(now_ns) {
            Verdict::Send { leaf: 0, .. } => {
                let waited_ns = now_ns - came_ns.take().expect("it came");
                prop_assert!(waited_ns <= 2 * share_ns + other_ns, "waits for {} of {} ns", waited_ns, share_ns);
                next_ns = now_ns + 2 * share_ns + u64::from(case.seed) * left % (20 * share_ns);
                left -= 1;
            }
            Verdict::Send { leaf, .. } => drop(tree.enqueue(leaf, LONG, now_ns).expect("room")),
            Verdict::Wait(wake_ns) => now_ns = wake_ns,
            Verdict::Idle => return Err(TestCaseError::fail("idle")),
        }
    }
    Ok(())
}

/// A leaf that has left is owed, or owes, as many bytes after its weight has changed.
fn a_new_weight_changes_no_debt(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let was = 1 + case.seed % 50;
    let mut tree = star(core, &[(was, 1514), (3, 1514), (2, 1514)]);
    for leaf in [1, 2, 0, 1, 2] {
        tree.enqueue(leaf, 64 + (case.seed >> 8) % 1400, 0).expect("room");
    }
    let mut now_ns = 0;
    while tree.leaf(0).pkts > 0 {
        match tree.dequeue(now_ns) {
            Verdict::Wait(wake_ns) => now_ns = wake_ns,
            Verdict::Send { .. } => {}
            Verdict::Idle => return Err(TestCaseError::fail("idle")),
        }
    }
    let owed = |tree: &Tree, weight: u32| (tree.state().fair_node[0].lag as f64) * f64::from(weight) / 4_294_967_296.0;
    let before = owed(&tree, was);
    for weight in [10_000, 1, 1 + (case.seed >> 16) % 100] {
        tree.configure(0, &Node { weight, request: 1514, ..Node::below(LINK) }, now_ns).expect("a leaf");
        let after = owed(&tree, weight);
        prop_assert!((after - before).abs() < 0.01, "{} bytes, and {} before", after, before);
    }
    Ok(())
}

/// The children in a heap, by its root; every one is behind the one above it.
fn heap(world: &World, root: u16, found: &mut Vec<u32>) -> TestCaseResult {
    if root == 0 {
        return Ok(());
    }
    let state = world.tree.state();
    let number = SL_NO_NODE - u32::from(root);
    let own = &state.fair_node[number as usize];
    found.push(number);
    for below in [own.left, own.right].into_iter().filter(|below| *below != 0) {
        let other = &state.fair_node[(SL_NO_NODE - u32::from(below)) as usize];
        prop_assert!((other.key.wrapping_sub(own.key) as i64) >= 0, "node {} is above a smaller key", number);
        prop_assert_eq!(other.above, root);
        heap(world, below, found)?;
    }
    Ok(())
}

/// Whatever is changed and whatever waits: a parent knows the sum of the weights of its children that may send, their lags sum to what its last
/// division has left, and each of them stands in one of its two heaps.
fn the_books_balance(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    run(core, case, &mut |world, _| {
        let state = world.tree.state();
        let parents = world.nodes.iter().filter(|(_, node)| node.discipline == Discipline::Eevdf);
        for (parent, _) in parents.filter(|(number, _)| **number >= LINK || world.is_divided(**number)) {
            let own = &state.fair_node[*parent as usize];
            let is_child = |number: u32| number != LINK && world.nodes[&number].parent == *parent;
            let is_listed = |number: u32| u32::from(state.node[number as usize].state) & SL_NODE_LISTED != 0;
            let listed: Vec<u32> =
                world.nodes.keys().copied().filter(|&number| is_child(number) && is_listed(number)).collect();
            let weight = |number: &u32| i128::from(state.node[*number as usize].weight);
            let weights: i128 = listed.iter().map(weight).sum();
            prop_assert_eq!(i128::from(own.weights), weights, "weights below node {}", parent);
            let lag = |number: &u32| own.time.wrapping_sub(state.fair_node[*number as usize].start) as i64;
            let lags: i128 = listed.iter().map(|number| weight(number) * i128::from(lag(number))).sum();
            prop_assert_eq!(lags + i128::from(own.rest), 0, "lags below node {}", parent);
            let mut found = Vec::new();
            heap(world, own.starts, &mut found)?;
            prop_assert!(found.iter().all(|number| state.fair_node[*number as usize].early == 1));
            heap(world, state.inner[*parent as usize].first[0], &mut found)?;
            found.sort_unstable();
            prop_assert_eq!(found, listed, "heaps of node {}", parent);
        }
        Ok(())
    })?;
    Ok(())
}
