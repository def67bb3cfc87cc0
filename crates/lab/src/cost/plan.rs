//! The cases that a run measures.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sluice_policy::{Rank, Scheduler};

use sluice_error::{Error, Kind, Result};

/// The queue that is measured, and its load.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// The contender's name in `bench/cost/run.sh`; `none` is no qdisc.
    pub contender: String,
    /// The state of the queues.
    pub state: State,
    /// The number of queues; 0 where a contender has no such number.
    pub classes: u32,
    /// The number of rules that choose among the queues.
    pub rules: u32,
    /// The number of flows.
    pub flows: u32,
}

/// The state of the queues that a packet meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Empty queues, and nothing limits.
    Idle,
    /// Queues that are filled while a shaper holds all packets, then emptied.
    Backlogged,
    /// The first version of the bench: all packets had left before dequeuing was counted, so it shows enqueuing alone. The
    /// kernel's packet caches kept the state of the repeat before, and repeats differed by up to 11 %.
    BackloggedEnqueue,
}

/// The name of the case without a qdisc.
pub const NONE: &str = "none";
/// The reference of idle queues, with 8 classes, 8 rules, 1 flow.
const IDLE_REFERENCE: &str = "prio+flower";
/// The reference of backlogged queues.
const BACKLOGGED_REFERENCE: &str = "drr+flower+shaper";
/// The number of flows of cases with many flows.
const MANY_FLOWS: u32 = 10_000;

/// The contenders of Sluice: every discipline, and the PIFO once for each rank.
fn ours() -> Vec<String> {
    let ranked = |scheduler| Rank::all().map(move |rank| format!("{scheduler}/{rank}")).collect();
    Scheduler::all()
        .flat_map(
            |scheduler| {
                if scheduler == Scheduler::PIFO { ranked(scheduler) } else { vec![scheduler.name().to_owned()] }
            },
        )
        .collect()
}

impl Case {
    /// Parses the words by which files and the guest name a case.
    pub fn of([contender, state, classes, rules, flows]: [&str; 5]) -> Option<Case> {
        Some(Case {
            contender: contender.to_owned(),
            state: state.parse().ok()?,
            classes: classes.parse().ok()?,
            rules: rules.parse().ok()?,
            flows: flows.parse().ok()?,
        })
    }

    fn idle(contender: impl Into<String>, classes: u32, rules: u32, flows: u32) -> Case {
        Case { contender: contender.into(), state: State::Idle, classes, rules, flows }
    }

    fn backlogged(contender: impl Into<String>, classes: u32, rules: u32, flows: u32) -> Case {
        Case { contender: contender.into(), state: State::Backlogged, classes, rules, flows }
    }

    /// Whether the contender is Sluice.
    pub fn is_ours(&self) -> bool {
        self.contender.starts_with("sluice-")
    }

    /// The same packets without a qdisc.
    pub fn without(&self) -> Case {
        let classes = if self.state == State::Idle { 0 } else { self.classes };
        Case { contender: NONE.to_owned(), classes, rules: 0, ..self.clone() }
    }

    /// The kernel qdisc that the case is compared with.
    pub fn reference(&self) -> Case {
        match self.state {
            State::Idle => Case::idle(IDLE_REFERENCE, 8, 8, 1),
            state => {
                let contender = BACKLOGGED_REFERENCE.to_owned();
                Case { contender, state, classes: self.classes, rules: self.classes, flows: self.classes }
            }
        }
    }

    /// The rough duration on an idle machine: set-up and repeats.
    pub fn nominal(&self, repeats: u32) -> Duration {
        let (up_ms, repeat_ms) = match (self.is_ours(), self.state) {
            (false, State::Idle) => (1_000, 450),
            (false, _) => (1_500, 800),
            (true, State::Idle) => (6_500, 500),
            (true, _) => (8_000, 3_200),
        };
        let flows_ms = if self.flows >= MANY_FLOWS { 2_500 } else { 0 };
        Duration::from_millis(u64::from(up_ms + flows_ms + repeat_ms * repeats))
    }
}

/// The case as the guest and the files have it.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { contender, state, classes, rules, flows } = self;
        write!(f, "{contender},{state},{classes},{rules},{flows}")
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Idle => "idle",
            State::Backlogged => "backlogged",
            State::BackloggedEnqueue => "backlogged-enqueue",
        })
    }
}

impl FromStr for State {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<State, ()> {
        let all = [State::Idle, State::Backlogged, State::BackloggedEnqueue];
        all.into_iter().find(|state| state.to_string() == text).ok_or(())
    }
}

/// All cases.
pub fn full() -> Vec<Case> {
    let mut cases = vec![Case::idle(NONE, 0, 0, 1), Case::idle(NONE, 0, 0, MANY_FLOWS)];
    for (classes, flows) in [(8, 8), (8, MANY_FLOWS), (64, 64)] {
        cases.push(Case::backlogged(NONE, classes, 0, flows));
    }
    let kinds = [idle_disciplines(), many_rules(), many_flows(), backlogged_disciplines(), backlogged_many_flows()];
    cases.extend(kinds.into_iter().flatten());
    distinct(cases)
}

/// Idle cases: rivals alone, then rivals and Sluice with classes chosen by 8 rules.
fn idle_disciplines() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in ["pfifo_fast", "fq_codel", "fq", "cake", "prio", "drr", "ets", "htb", "hfsc"] {
        cases.push(Case::idle(kind, 8, 0, 1));
    }
    for kind in ["prio", "drr", "ets", "htb", "hfsc"] {
        cases.push(Case::idle(format!("{kind}+flower"), 8, 8, 1));
    }
    for discipline in ours() {
        cases.push(Case::idle(format!("sluice-{discipline}"), 8, 8, 1));
    }
    for with in ["by_flow", "flow_table+by_flow", "ceilings", "flow_table+shaped+split"] {
        cases.push(Case::idle(format!("sluice-strict_priority+{with}"), 8, 8, 1));
    }
    for with in ["", "+shaped+split"] {
        cases.push(Case::idle(format!("sluice-profile-default{with}"), 1, 0, 1));
    }
    // Engine tc, and the HTB tree that it would build, made by hand.
    cases.push(Case::idle("sluice-tc-strict_priority+flow_table+by_flow", 8, 8, 1));
    cases.push(Case::idle("htb+flower+fq_codel", 8, 8, 1));
    cases
}

fn many_rules() -> Vec<Case> {
    let mut cases = Vec::new();
    for contender in ["sluice-strict_priority+flow_table", "sluice-strict_priority", "prio+flower"] {
        for rules in [8, 64, 200, 1024] {
            cases.push(Case::idle(contender, 8, rules, 1));
        }
    }
    for rules in [8, 200] {
        cases.push(Case::idle("sluice-tc-strict_priority+flow_table", 8, rules, 1));
    }
    cases
}

/// Idle cases with many flows.
fn many_flows() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in ["fq_codel", "fq", "cake"] {
        cases.push(Case::idle(kind, 8, 0, MANY_FLOWS));
    }
    for kind in ["prio+flower", "htb+flower", "sluice-tc-strict_priority+flow_table"] {
        cases.push(Case::idle(kind, 8, 8, MANY_FLOWS));
    }
    for contender in ["sluice-strict_priority+flow_table", "sluice-strict_priority"] {
        for rules in [8, 1024] {
            cases.push(Case::idle(contender, 8, rules, MANY_FLOWS));
        }
    }
    cases.push(Case::idle("sluice-strict_priority+by_flow", 8, 8, MANY_FLOWS));
    cases
}

/// Backlogged cases. htb and hfsc are left out: a class that their old limit has delayed stays delayed.
fn backlogged_disciplines() -> Vec<Case> {
    let mut cases = Vec::new();
    for classes in [8, 64] {
        for kind in ["fq_codel", "fq", "cake"] {
            cases.push(Case::backlogged(format!("{kind}+shaper"), classes, 0, classes));
        }
        for kind in ["prio", "drr", "ets"] {
            let bands = if kind == "drr" { u32::MAX } else { 16 };
            if classes <= bands {
                cases.push(Case::backlogged(format!("{kind}+flower+shaper"), classes, classes, classes));
            }
        }
        for discipline in ours() {
            cases.push(Case::backlogged(format!("sluice-{discipline}+shaper"), classes, classes, classes));
        }
        for with in ["flow_table", "by_flow"] {
            cases.push(Case::backlogged(format!("sluice-strict_priority+{with}+shaper"), classes, classes, classes));
        }
    }
    cases
}

fn backlogged_many_flows() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in ["fq_codel", "fq", "cake"] {
        cases.push(Case::backlogged(format!("{kind}+shaper"), 8, 0, MANY_FLOWS));
    }
    // A new rate is a new policy, which the flow table does not know yet: there the first packet of each flow evaluates the
    // rules again.
    for contender in ["drr+flower", "sluice-strict_priority", "sluice-strict_priority+flow_table"] {
        cases.push(Case::backlogged(format!("{contender}+shaper"), 8, 8, MANY_FLOWS));
    }
    cases
}

/// The cases of the gate, references and no qdisc included.
pub fn gate() -> Vec<Case> {
    let ours = [
        Case::idle("sluice-strict_priority", 8, 8, 1),
        Case::idle("sluice-strict_priority+flow_table", 8, 8, 1),
        Case::idle("sluice-deficit_round_robin", 8, 8, 1),
        Case::idle("sluice-weighted_fair_queuing", 8, 8, 1),
        Case::idle("sluice-eevdf", 8, 8, 1),
        Case::idle("sluice-pifo/start_time_fair", 8, 8, 1),
        Case::idle("sluice-strict_priority", 8, 1024, 1),
        Case::idle("sluice-strict_priority+by_flow", 8, 8, 1),
        Case::idle("sluice-strict_priority+ceilings", 8, 8, 1),
        Case::idle("sluice-strict_priority+flow_table+shaped+split", 8, 8, 1),
        Case::backlogged("sluice-strict_priority+shaper", 8, 8, 8),
        Case::backlogged("sluice-deficit_round_robin+shaper", 8, 8, 8),
        Case::backlogged("sluice-eevdf+shaper", 8, 8, 8),
    ];
    let mut cases: Vec<Case> = ours.iter().map(Case::without).collect();
    cases.extend(ours.iter().map(Case::reference));
    cases.extend(ours);
    distinct(cases)
}

/// The cases whose contenders' names contain one of the words, and the cases to subtract from them.
pub fn matching(cases: Vec<Case>, words: &[String]) -> Result<Vec<Case>> {
    if words.is_empty() {
        return Ok(cases);
    }
    let names = |case: &Case, word: &String| case.contender.contains(word.as_str());
    for word in words {
        if !cases.iter().any(|case| names(case, word)) {
            let mut contenders: Vec<&str> = cases.iter().map(|case| case.contender.as_str()).collect();
            contenders.sort_unstable();
            contenders.dedup();
            return Err(Error::new(Kind::Input, format!("no contender's name contains \"{word}\""))
                .help(format!("they are {}", contenders.join(", "))));
        }
    }
    let wanted: Vec<Case> = cases.iter().filter(|case| words.iter().any(|word| names(case, word))).cloned().collect();
    let base: Vec<Case> = wanted.iter().map(Case::without).collect();
    Ok(cases.into_iter().filter(|case| wanted.contains(case) || base.contains(case)).collect())
}

fn distinct(cases: Vec<Case>) -> Vec<Case> {
    let mut once: Vec<Case> = Vec::with_capacity(cases.len());
    for case in cases {
        if !once.contains(&case) {
            once.push(case);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_include_bases_and_references() {
        for cases in [full(), gate()] {
            for case in cases.iter().filter(|case| case.is_ours()) {
                assert!(cases.contains(&case.without()), "{case}");
                assert!(cases.contains(&case.reference()), "{case}");
            }
            assert_eq!(distinct(cases.clone()), cases);
        }
    }

    #[test]
    fn plans_fit_their_time() {
        let nominal = |cases: Vec<Case>| cases.iter().map(|case| case.nominal(3)).sum::<Duration>();
        assert!(nominal(full()) < Duration::from_secs(20 * 60));
        assert!(nominal(gate()) < Duration::from_secs(180));
    }

    #[test]
    fn words_select_contenders_and_their_bases() {
        let some = matching(full(), &["cake".to_owned()]).unwrap();
        assert!(some.iter().all(|case| case.contender == NONE || case.contender.contains("cake")));
        assert!(some.contains(&Case::idle(NONE, 0, 0, 1)) && some.contains(&Case::backlogged(NONE, 64, 0, 64)));
        let error = matching(full(), &["cake".to_owned(), "cheese".to_owned()]).unwrap_err();
        assert_eq!(error.kind, Kind::Input);
        assert!(error.what.contains("cheese") && error.cure.is_some_and(|cure| cure.contains("prio+flower")));
    }
}
