//! Pairs of a rule of the old policy and the same rule of the new one.

use super::change::Values;
use super::fields;
use crate::resolved::ResolvedRule;
use std::collections::{HashMap, VecDeque};

/// The rules of both sides, each once, as indices of `old` and `new`: paired where a rule of one became a rule of the other.
///
/// The tests that make two rules the same, in this order: equality; the name; all fields but name and place; the place.
pub(super) fn of(old: &[ResolvedRule], new: &[ResolvedRule]) -> Vec<(Option<usize>, Option<usize>)> {
    let (old, new): (Vec<Values>, Vec<Values>) =
        (old.iter().map(fields::rule).collect(), new.iter().map(fields::rule).collect());
    let mut partner: Vec<Option<usize>> = vec![None; old.len()];
    let mut taken = vec![false; new.len()];
    let aspects: [fn(&Values) -> Values; 4] = [
        Values::clone,
        |rule| only(rule, |key| key == fields::RULE_NAME),
        without_name,
        |rule| only(rule, |key| key == fields::RULE_PLACE),
    ];
    for aspect in aspects {
        let mut free: HashMap<Values, VecDeque<usize>> = HashMap::new();
        for (n, rule) in new.iter().enumerate().filter(|(n, _)| !taken[*n]) {
            free.entry(aspect(rule)).or_default().push_back(n);
        }
        // Rules without a name do not have the same name.
        free.remove(&Values::new());
        for (was, partner) in old.iter().zip(&mut partner).filter(|(_, partner)| partner.is_none()) {
            if let Some(n) = free.get_mut(&aspect(was)).and_then(VecDeque::pop_front) {
                (*partner, taken[n]) = (Some(n), true);
            }
        }
    }
    let kept = partner.into_iter().enumerate().map(|(n, partner)| (Some(n), partner));
    let added = (0..new.len()).filter(|&n| !taken[n]).map(|n| (None, Some(n)));
    kept.chain(added).collect()
}

/// Whether two rules differ at most in their names and places.
pub(super) fn same_conditions(one: &ResolvedRule, other: &ResolvedRule) -> bool {
    without_name(&fields::rule(one)) == without_name(&fields::rule(other))
}

/// All values but name and place.
fn without_name(rule: &Values) -> Values {
    only(rule, |key| key != fields::RULE_NAME && key != fields::RULE_PLACE)
}

fn only(rule: &Values, keep: impl Fn(&str) -> bool) -> Values {
    rule.iter().filter(|(key, _)| keep(key)).cloned().collect()
}
