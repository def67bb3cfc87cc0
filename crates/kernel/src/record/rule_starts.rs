//! The counts of rules across changes of the policy. Programs count by a rule's place in the policy: a rule that comes to a place
//! begins at zero there, and brings along its count from elsewhere.

use crate::record::count::Count;
use serde::{Deserialize, Serialize};

/// The counters of each rule place, departing and arriving.
pub(crate) type Counted = Vec<[Count; 2]>;

/// The start counts of all rules of a policy in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleStarts {
    /// Most places that rules have had since the interface was set up: all of them may have counted.
    pub places: u32,
    /// Start counts by place. Rules at places beyond were there from the beginning.
    rules: Vec<RuleStart>,
}

/// The start counts of a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct RuleStart {
    /// Count of the rule before it came to its place, departing and arriving.
    elsewhere: [Count; 2],
    /// Count of its place before the rule came.
    before: [Count; 2],
    /// Whether the rule is only about to come: counts at its place may still be another rule's.
    comes: bool,
}

impl RuleStarts {
    /// The count of the rule at a place, from the count of that place.
    pub(crate) fn own(&self, place: usize, direction: usize, counted: Count) -> Count {
        let Some(start) = self.rules.get(place) else { return counted };
        let mut own = start.elsewhere[direction];
        if !start.comes {
            let mut since = counted;
            since.take(start.before[direction]);
            own.add(since);
        }
        own
    }

    /// The start counts of a policy that is about to come. `kept`: the former place of each rule that was there before.
    pub(crate) fn next(&self, kept: &[Option<usize>], counted: &Counted) -> RuleStarts {
        let at = |place: usize| counted.get(place).copied().unwrap_or_default();
        let rule = |(place, was): (usize, &Option<usize>)| match *was {
            Some(was) if was == place => self.rules.get(place).copied().unwrap_or_default(),
            Some(was) => {
                let elsewhere = [0, 1].map(|direction| self.own(was, direction, at(was)[direction]));
                RuleStart { elsewhere, before: at(place), comes: true }
            }
            None => RuleStart { elsewhere: Default::default(), before: at(place), comes: true },
        };
        RuleStarts { places: self.places.max(counted.len() as u32), rules: kept.iter().enumerate().map(rule).collect() }
    }

    /// Settles the rules that were about to come: no program counts for other rules at their places any more.
    pub(crate) fn settle(&mut self, counted: &Counted) {
        for (start, counted) in self.rules.iter_mut().zip(counted).filter(|(start, _)| start.comes) {
            (start.before, start.comes) = (*counted, false);
        }
    }

    /// Takes away the counts at places of `self` that rules of `other` have made since: those rules had come and have gone again.
    pub(crate) fn without(&mut self, other: &RuleStarts, counted: &Counted) {
        self.places = self.places.max(other.places);
        for (place, start) in other.rules.iter().enumerate().filter(|(_, start)| start.comes) {
            if self.rules.len() <= place {
                self.rules.resize(place + 1, RuleStart::default());
            }
            for direction in [0, 1] {
                let mut theirs = counted.get(place).copied().unwrap_or_default()[direction];
                theirs.take(start.before[direction]);
                self.rules[place].before[direction].add(theirs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(pkts: &[u64]) -> Counted {
        pkts.iter().map(|&pkts| [Count { pkts, bytes: pkts * 100 }, Count::default()]).collect()
    }

    fn own(starts: &RuleStarts, pkts: &[u64]) -> Vec<u64> {
        counted(pkts).iter().enumerate().map(|(place, both)| starts.own(place, 0, both[0]).pkts).collect()
    }

    #[test]
    fn counts_go_with_their_rules() {
        let first = RuleStarts::default();
        assert_eq!(own(&first, &[5, 7, 9]), [5, 7, 9]);
        // A new rule comes before the first, which moves to the place of the second; the second goes, and the third stays.
        let mut second = first.next(&[None, Some(0), Some(2)], &counted(&[5, 7, 9]));
        assert_eq!(own(&second, &[6, 7, 9]), [0, 5, 9], "one packet for the rule that was there before");
        second.settle(&counted(&[6, 8, 9]));
        assert_eq!(own(&second, &[6, 8, 9]), [0, 5, 9]);
        assert_eq!(own(&second, &[16, 9, 11]), [10, 6, 11]);
        // Back to the first two rules: the second, which had gone, begins anew.
        let mut third = second.next(&[Some(1), None], &counted(&[16, 9, 11]));
        third.settle(&counted(&[16, 9, 11]));
        assert_eq!((own(&third, &[16, 9]), own(&third, &[18, 10]), third.places), (vec![6, 0], vec![8, 1], 3));
    }

    #[test]
    fn what_is_taken_back_has_not_been() {
        let mut first = RuleStarts::default();
        let second = first.next(&[None, Some(1)], &counted(&[5, 7]));
        first.without(&second, &counted(&[8, 9]));
        assert_eq!(own(&first, &[8, 9]), [5, 9], "three were another rule's");
        assert_eq!(own(&first, &[9, 9]), [6, 9]);
    }
}
