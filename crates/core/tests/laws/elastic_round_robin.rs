//! Elastic round robin.

use crate::{
    cases::Case,
    fairness::{Pairs, Terms, Waiting},
    laws,
    traces::{self, Greed},
    world::{World, run},
};
use proptest::test_runner::TestCaseResult;
use sluice_abi as abi;
use sluice_core::Core;

const KIND: [u32; 1] = [abi::SL_ELASTIC_ROUND_ROBIN];

laws! {
    shares_by_weight: traces::of(KIND).by_flow().ceilings().peaks().policing().changes().greedy(Greed::Some);
    classes_do_not_starve: traces::of(KIND).by_flow().ceilings().peaks().policing().greedy(Greed::Some);
}

fn weight(world: &World, class: usize) -> u64 {
    world.policy.classes[class].weight.into()
}

/// The greatest grant of a round, for each unit of weight: 1 + the greatest surplus / weight. A surplus is a byte less than a packet at most.
fn grant_at_most(world: &World, longest: &[u32]) -> u64 {
    let of_class = |class: usize| u64::from(longest[class].saturating_sub(1)) / weight(world, class);
    1 + (0..world.policy.classes.len()).map(of_class).max().unwrap_or(0)
}

/// While classes i and j are both ready, |W_i / w_i - W_j / w_j| <= G + l_i / w_i + l_j / w_j: W what they send, w their weights, l
/// their longest packets, G the greatest grant (Kanhere, Sethu and Parekh, 2002: 3 m for weights of 1, m the longest packet of all).
fn shares_by_weight(core: &'static Core, case: &Case) -> TestCaseResult {
    let (mut pairs, longest) = (Pairs::new(), case.longest());
    run(core, case, |world, event| {
        let grant = grant_at_most(world, &longest);
        pairs.observe(world, event, |i, j| {
            let (w_i, w_j) = (weight(world, i), weight(world, j));
            let surplus = u64::from(longest[i]) * w_j + u64::from(longest[j]) * w_i;
            Some(Terms { worth: (w_j, w_i), bound: i128::from(grant * w_i * w_j + surplus) })
        })
    })
}

/// While class i is ready and waits, class j ends a turn at most and has another, each of w_j G bytes, and one of both goes beyond it.
fn classes_do_not_starve(core: &'static Core, case: &Case) -> TestCaseResult {
    let (mut waiting, longest) = (Waiting::new(), case.longest());
    run(core, case, |world, event| {
        let grant = grant_at_most(world, &longest);
        waiting.observe(world, event, |_, j, sent| (sent[j], 2 * grant * weight(world, j) + u64::from(longest[j])))
    })
}
