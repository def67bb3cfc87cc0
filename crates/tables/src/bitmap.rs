//! Sets of rules, and the table in which each distinct set stands once.

use crate::error::MatchError;
use sluice_abi as abi;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

const WORDS: usize = abi::SL_RULE_WORDS as usize;

/// A set of rules by their index.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RuleSet(Box<[u64; WORDS]>);

impl Default for RuleSet {
    fn default() -> RuleSet {
        RuleSet(Box::new([0; WORDS]))
    }
}

impl RuleSet {
    pub(crate) fn insert(&mut self, rule: usize) {
        self.0[rule / 64] |= 1 << (rule % 64);
    }

    pub(crate) fn remove(&mut self, rule: usize) {
        self.0[rule / 64] &= !(1 << (rule % 64));
    }

    /// The rules that are in both.
    pub(crate) fn and(&self, other: &RuleSet) -> RuleSet {
        RuleSet(Box::new(std::array::from_fn(|word| self.0[word] & other.0[word])))
    }

    /// The lowest rule that is in both.
    pub(crate) fn first_in_both(&self, other: &RuleSet) -> Option<usize> {
        let words = self.0.iter().zip(other.0.iter()).map(|(own, others)| own & others);
        words.enumerate().find(|(_, word)| *word != 0).map(|(i, word)| i * 64 + word.trailing_zeros() as usize)
    }
}

impl FromIterator<usize> for RuleSet {
    fn from_iter<I: IntoIterator<Item = usize>>(rules: I) -> RuleSet {
        let mut set = RuleSet::default();
        rules.into_iter().for_each(|rule| set.insert(rule));
        set
    }
}

/// The rows in use. The same sets in the same order give the same numbers.
#[derive(Default)]
pub(crate) struct Rows {
    index: HashMap<RuleSet, u16, BuildHasherDefault<DefaultHasher>>,
    rows: Vec<RuleSet>,
}

impl Rows {
    /// The row that holds this set.
    pub(crate) fn of(&mut self, set: &RuleSet) -> Result<u16, MatchError> {
        if let Some(&row) = self.index.get(set) {
            return Ok(row);
        }
        if self.rows.len() == abi::SL_ROWS as usize {
            return Err(MatchError::TooManyRows);
        }
        let row = self.rows.len() as u16;
        self.index.insert(set.clone(), row);
        self.rows.push(set.clone());
        Ok(row)
    }

    /// The set of each row.
    pub(crate) fn sets(&self) -> &[RuleSet] {
        &self.rows
    }

    /// Whether all rows fit the table for 64 rules.
    pub(crate) fn are_small(&self, rules: usize) -> bool {
        rules <= 64 && self.rows.len() <= abi::SL_SMALL_ROWS as usize
    }

    /// Writes sets of 64 rules, a word each.
    pub(crate) fn write_small(&self, to: &mut [u64]) {
        for (to, set) in to.iter_mut().zip(&self.rows) {
            *to = set.0[0];
        }
    }

    /// The rows of sets of any size.
    pub(crate) fn into_rows(self) -> Vec<abi::sl_row> {
        let summary =
            |set: &RuleSet| (0..WORDS).filter(|&word| set.0[word] != 0).fold(0, |bits, word| bits | 1 << word);
        self.rows.iter().map(|set| abi::sl_row { summary: summary(set), word: *set.0 }).collect()
    }
}
