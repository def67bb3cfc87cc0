//! What guarantees leave is shared by weight.

use crate::{
    laws, traces,
    traces::{Case, LONGEST},
    world::{Event, TICK_NS, World},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi::{SL_FIRST_INNER as LINK, SL_LEAF_DIVIDED};
use sluice_core::hierarchy::{Bucket, Discipline, Node, TreeCore};
use std::collections::{BTreeMap, BTreeSet};

laws! {
    siblings_share_by_weight: traces::of(200);
    siblings_share_to_a_packet: traces::of(200).serving(&[Discipline::Fair]);
    keeps_up_with_the_fluid: traces::of(0).ceilings();
    fair_queueing_keeps_up_with_the_fluid: traces::of(0).ceilings().serving(&[Discipline::Fair]);
    guarantees_are_on_top_of_fair_shares: traces::of(0).serving(&[Discipline::Fair]);
    short_bursts_nearly_reach_ceilings: traces::of(0);
    guarantees_are_on_top_of_shares: traces::of(0);
}

fn all_leaves(case: &Case) -> Vec<u32> {
    case.leaves.iter().map(|(number, _)| *number).collect()
}

/// Elastic round robin: turns are longer than a packet, by G = 1 + the greatest (l - 1) / w of all children, l the longest packet.
fn siblings_share_by_weight(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    siblings_share(core, case, false, |least_weight| 1.0 + (f64::from(LONGEST) - 1.0) / f64::from(least_weight))
}

/// Weighted fair queueing: turns are no longer than a packet, and that holds from the moment on at which a child comes.
fn siblings_share_to_a_packet(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    siblings_share(core, case, true, |_| 0.0)
}

/// Children of a node that are ready all the time: in any window | W_i / w_i - W_j / w_j | <= turn + l / w_i + l / w_j, with W what they have
/// sent, l the longest packet, and turn what the least weight of all children adds to it. Half of the leaves have packets all the time, others come
/// and go: with `comers`, it holds of those too while they are ready.
fn siblings_share(core: &'static TreeCore, case: &Case, comers: bool, turn: impl Fn(u32) -> f64) -> TestCaseResult {
    let mut world = World::new(core, case);
    let stay: Vec<u32> = all_leaves(case).into_iter().filter(|leaf| leaf % 3 != 2).collect();
    let compared = if comers { all_leaves(case) } else { stay.clone() };
    let mut ready: Vec<u32> = compared.iter().flat_map(|leaf| world.way(*leaf)).filter(|node| *node != LINK).collect();
    ready.sort_unstable();
    ready.dedup();
    let nodes = world.nodes.clone();
    let of = |node: u32| (nodes[&node].parent, f64::from(nodes[&node].weight));
    let pairs: Vec<(u32, u32)> = ready
        .iter()
        .flat_map(|i| ready.iter().map(move |j| (*i, *j)))
        .filter(|(i, j)| i < j && of(*i).0 == of(*j).0)
        .collect();
    let longest = f64::from(LONGEST);
    let bound = |i: u32, j: u32| {
        let least = nodes.values().filter(|node| node.parent == of(i).0).map(|node| node.weight).min().unwrap_or(1);
        turn(least) + longest / of(i).1 + longest / of(j).1
    };
    let mut sent = BTreeMap::<u32, f64>::new();
    // Of the pairs that are ready: the least and the greatest difference so far.
    let mut range = BTreeMap::<(u32, u32), (f64, f64)>::new();
    if !comers {
        range.extend(pairs.iter().map(|pair| (*pair, (0.0, 0.0))));
    }
    let mut observe = |world: &World, event: &Event| {
        let way = match *event {
            Event::Sent { leaf, bytes, .. } => {
                let way = world.way(leaf);
                way.iter().for_each(|node| *sent.entry(*node).or_default() += f64::from(bytes));
                way
            }
            _ => Vec::new(),
        };
        let ahead = |node: u32| sent.get(&node).copied().unwrap_or(0.0) / of(node).1;
        for (&(i, j), (least, most)) in range.iter_mut().filter(|((i, j), _)| way.contains(i) || way.contains(j)) {
            let difference = ahead(i) - ahead(j);
            (*least, *most) = (least.min(difference), most.max(difference));
            prop_assert!(
                *most - *least <= bound(i, j) + 0.01,
                "nodes {} and {} differ by {}, and {} is allowed",
                i,
                j,
                *most - *least,
                bound(i, j)
            );
        }
        if comers {
            let busy: BTreeSet<u32> = world.busy().flat_map(|leaf| world.way(leaf)).collect();
            let ready = |(i, j): &(u32, u32)| busy.contains(i) && busy.contains(j);
            range.retain(|pair, _| ready(pair));
            for &(i, j) in pairs.iter().filter(|pair| ready(pair)) {
                range.entry((i, j)).or_insert_with(|| (ahead(i) - ahead(j), ahead(i) - ahead(j)));
            }
        }
        Ok(())
    };
    world.keep_busy(&stay, &mut observe)?;
    for (gap_ns, step) in &case.steps {
        world.advance(world.now_ns + gap_ns.min(&3_000_000), &mut observe)?;
        if let traces::Step::Arrive { leaf, bytes, .. } = *step {
            world.arrive(case.leaves[leaf % case.leaves.len()].0, bytes, &mut observe)?;
        }
    }
    Ok(())
}

/// The most that the leaves below a node could send, bytes per ns.
fn most(nodes: &BTreeMap<u32, Node>, node: u32) -> f64 {
    let ceil = nodes[&node].ceil.map_or(f64::INFINITY, |ceil| ceil.bits_per_second as f64 / 8e9);
    if node < LINK && nodes[&node].queue != SL_LEAF_DIVIDED {
        return ceil;
    }
    let below: f64 = nodes
        .iter()
        .filter(|(number, child)| **number != LINK && child.parent == node)
        .map(|(number, _)| most(nodes, *number))
        .sum();
    ceil.min(below)
}

/// The fluid model: a node that gets this rate gives its children guarantees first, then what is left by weight, up to what they could send.
fn pour(nodes: &BTreeMap<u32, Node>, node: u32, rate: f64, into: &mut BTreeMap<u32, f64>) {
    into.insert(node, rate);
    let mut open: Vec<u32> = nodes
        .iter()
        .filter(|(number, child)| **number != LINK && child.parent == node)
        .map(|(number, _)| *number)
        .collect();
    let guarantee =
        |child: u32| nodes[&child].rate.map_or(0.0, |rate| rate.bits_per_second as f64 / 8e9).min(most(nodes, child));
    let mut given: BTreeMap<u32, f64> = open.iter().map(|child| (*child, guarantee(*child))).collect();
    loop {
        let left = rate - given.values().sum::<f64>();
        let weights: f64 = open.iter().map(|child| f64::from(nodes[child].weight)).sum();
        // The step by which the first child is full.
        let step = open
            .iter()
            .map(|child| (most(nodes, *child) - given[child]) / f64::from(nodes[child].weight))
            .fold(left / weights, f64::min);
        if open.is_empty() || step.is_nan() || left <= rate * 1e-9 {
            break;
        }
        open.iter().for_each(|child| *given.get_mut(child).expect("listed") += step * f64::from(nodes[child].weight));
        open.retain(|child| given[child] < most(nodes, *child) * (1.0 - 1e-9));
    }
    given.into_iter().for_each(|(child, rate)| pour(nodes, child, rate, into));
}

/// What the fluid gives each node that has leaves, all of which are backlogged, bytes per ns.
fn poured(core: &'static TreeCore, case: &Case) -> BTreeMap<u32, f64> {
    let world = World::new(core, case);
    let busy: Vec<u32> = all_leaves(case).iter().flat_map(|leaf| world.way(*leaf)).collect();
    let nodes: BTreeMap<u32, Node> =
        world.nodes.iter().filter(|(number, _)| busy.contains(number)).map(|(number, node)| (*number, *node)).collect();
    let mut rates = BTreeMap::new();
    pour(&nodes, LINK, most(&nodes, LINK), &mut rates);
    rates
}

/// How long the burst of a ceiling lasts at least, beyond two ticks, and the part of a rate that may be lost then.
#[derive(Clone, Copy, PartialEq)]
enum Bursts {
    /// A round of each parent on the way: 2 %.
    Rounds,
    /// A packet of each node: 20 %.
    Packets,
}

/// With all leaves backlogged, each sends what the fluid gives it, in two seconds that begin when what nodes have saved up is spent.
///
/// A round of a parent is no longer than the sum of its children's w * G, with G as above, and a child is not ahead or behind by more than two
/// turns of its own and a packet. What the parents above are ahead or behind by is shared, at worst taken by one child. Beyond that: a burst for
/// each limit on the way, and a part of the rate: tokens that come while a node stands behind its siblings are lost if its burst is shorter.
fn fluid(core: &'static TreeCore, case: &Case, bursts: Bursts) -> TestCaseResult {
    let mut case = case.clone();
    let rates = poured(core, &case);
    let packets_ns = case.nodes().count() as u64 * u64::from(LONGEST) * 8_000_000_000 / case.link.bits_per_second;
    let world = World::new(core, &case);
    let round_ns = |parent: u32| {
        let children = || {
            world
                .nodes
                .iter()
                .filter(|(number, node)| **number != LINK && node.parent == parent)
                .map(|(_, node)| f64::from(node.weight))
        };
        let most_each = 1.0 + (f64::from(LONGEST) - 1.0) / children().fold(f64::INFINITY, f64::min);
        children().sum::<f64>() * most_each / rates.get(&parent).copied().unwrap_or(1.0)
    };
    let rounds_ns: BTreeMap<u32, u64> = world
        .nodes
        .keys()
        .filter(|number| **number != LINK)
        .map(|number| (*number, world.way(*number).iter().skip(1).map(|parent| round_ns(*parent)).sum::<f64>() as u64))
        .collect();
    drop(world);
    for (number, node) in case.inners.iter_mut().chain(&mut case.leaves) {
        if let Some(ceil) = &mut node.ceil {
            let least_ns = if bursts == Bursts::Rounds { rounds_ns[number] } else { packets_ns };
            ceil.burst_ns = ceil.burst_ns.max((2 * TICK_NS + least_ns) as u32);
        }
    }
    let loose = if bursts == Bursts::Rounds { 0.02 } else { 0.2 };
    let case = &case;
    let mut world = World::new(core, case);
    let mut ignore = |_: &World, _: &Event| Ok(());
    let ns = 2_000_000_000;
    world.keep_busy(&all_leaves(case), &mut ignore)?;
    world.advance(world.now_ns + 500_000_000, &mut ignore)?;
    let begin: BTreeMap<u32, u64> =
        all_leaves(case).into_iter().map(|leaf| (leaf, world.tree.leaf(leaf).sent_bytes)).collect();
    world.advance(world.now_ns + ns, &mut ignore)?;
    let nodes = &world.nodes;
    for leaf in all_leaves(case) {
        let allowed: f64 = world
            .way(leaf)
            .iter()
            .map(|node| {
                let burst = |bucket: Option<Bucket>| {
                    bucket.map_or(0.0, |b| f64::from(b.burst_ns) * b.bits_per_second as f64 / 8e9)
                };
                burst(nodes[node].ceil)
                    + burst(nodes[node].rate)
                    + f64::from(nodes[node].weight) * 2.0 * f64::from(LONGEST)
                    + f64::from(LONGEST)
            })
            .sum();
        let (due, sent) = (rates[&leaf] * ns as f64, (world.tree.leaf(leaf).sent_bytes - begin[&leaf]) as f64);
        prop_assert!(
            (sent - due).abs() <= allowed + loose * due,
            "leaf {} sends {} instead of {}, and {} is allowed",
            leaf,
            sent,
            due,
            allowed + loose * due
        );
    }
    Ok(())
}

fn keeps_up_with_the_fluid(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    fluid(core, case, Bursts::Rounds)
}

fn fair_queueing_keeps_up_with_the_fluid(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    fluid(core, case, Bursts::Rounds)
}

fn guarantees_are_on_top_of_fair_shares(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    guarantees_are_on_top_of_shares(core, case)
}

/// A ceiling of half of a child's share is nearly reached, with a short burst, beside children of any weight: so its siblings get the rest.
fn short_bursts_nearly_reach_ceilings(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let mut case = case.clone();
    let rates = poured(core, &case);
    let first = &mut case.leaves[0];
    let half = ((rates[&first.0] * 4e9) as u64).max(62_000);
    first.1.ceil = Some(Bucket { bits_per_second: half, burst_ns: 2_000_000 });
    fluid(core, &case, Bursts::Packets)
}

/// A guarantee comes before what is shared, and does not count in it.
fn guarantees_are_on_top_of_shares(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let mut case = case.clone();
    let rates = poured(core, &case);
    let first = &mut case.leaves[0];
    let rate = ((rates[&first.1.parent] * 4e9) as u64).max(62_000);
    // Longer than the rounds of the parents above, which have no guarantee.
    first.1.rate = Some(Bucket { bits_per_second: rate, burst_ns: 100_000_000 });
    fluid(core, &case, Bursts::Rounds)
}
