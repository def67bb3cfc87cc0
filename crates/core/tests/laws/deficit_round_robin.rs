//! Deficit round robin.

use crate::{
    cases::Case,
    fairness::{Pairs, Terms, Waiting},
    laws,
    traces::{self, Greed},
    world::{Event, World, run},
};
use proptest::test_runner::TestCaseResult;
use sluice_abi as abi;
use sluice_core::Core;

laws! {
    shares_by_quantum: traces::of([abi::SL_DEFICIT_ROUND_ROBIN]).by_flow().ceilings().peaks().changes().greedy(Greed::Some);
    classes_do_not_starve: traces::of([abi::SL_DEFICIT_ROUND_ROBIN]).by_flow().ceilings().peaks().greedy(Greed::Some);
}

/// The bound on fairness: while classes i and j are both ready,
///
///   |W_i / Q_i - W_j / Q_j| <= 1 + l_i / Q_i + l_j / Q_j,
///
/// W what they send, Q their quanta, l their longest packets. Shreedhar and Varghese (1996, theorem 3.3) have Q + 2 Max in
/// units of the smallest quantum Q. Both gain a quantum equally often, or one once more; and each deficit is between
/// 1 - l, after a turn, and Q.
pub struct RoundFairness {
    pairs: Pairs,
    longest: Vec<u32>,
}

impl RoundFairness {
    pub fn new(case: &Case) -> RoundFairness {
        RoundFairness { pairs: Pairs::new(), longest: case.longest() }
    }

    /// `peers`: whether these two take turns with each other.
    pub fn observe(&mut self, world: &World, event: &Event, peers: impl Fn(usize, usize) -> bool) -> TestCaseResult {
        let quantum = |class: usize| u64::from(world.policy.classes[class].quantum);
        self.pairs.observe(world, event, |a, b| {
            let debts = u64::from(self.longest[a]) * quantum(b) + u64::from(self.longest[b]) * quantum(a);
            let bound = i128::from(quantum(a) * quantum(b) + debts);
            peers(a, b).then(|| Terms { worth: (quantum(b), quantum(a)), bound })
        })
    }
}

/// Classes get shares by their quanta, whatever their packets.
fn shares_by_quantum(core: &'static Core, case: &Case) -> TestCaseResult {
    let mut fairness = RoundFairness::new(case);
    run(core, case, |world, event| fairness.observe(world, event, |_, _| true))
}

/// While class i is ready and waits, class j sends at most (r + 1) Q_j + l_j bytes, where r = ceil(l_i / Q_i) is the
/// number of turns that pay the debt of i, and the turn of j may have just begun.
pub fn waits_at_most(world: &World, longest: &[u32], i: usize, j: usize) -> u64 {
    let quantum = |class: usize| world.policy.classes[class].quantum;
    let turns = u64::from(longest[i].div_ceil(quantum(i)));
    (turns + 1) * u64::from(quantum(j)) + u64::from(longest[j])
}

fn classes_do_not_starve(core: &'static Core, case: &Case) -> TestCaseResult {
    let (mut waiting, longest) = (Waiting::new(), case.longest());
    run(core, case, |world, event| {
        waiting.observe(world, event, |i, j, sent| (sent[j], waits_at_most(world, &longest, i, j)))
    })
}
