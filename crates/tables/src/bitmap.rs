//! Sets of rules, and the table in which each distinct set stands once.

use crate::error::MatchError;
use sluice_abi as abi;
use std::collections::HashMap;

/// A set of rules by their index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct RuleSet([u64; abi::SL_RULE_WORDS as usize]);

impl RuleSet {
    pub(crate) fn insert(&mut self, rule: usize) {
        self.0[rule / 64] |= 1 << (rule % 64);
    }
}

impl FromIterator<usize> for RuleSet {
    fn from_iter<I: IntoIterator<Item = usize>>(rules: I) -> RuleSet {
        let mut set = RuleSet::default();
        rules.into_iter().for_each(|rule| set.insert(rule));
        set
    }
}

/// The rows in use.
#[derive(Default)]
pub(crate) struct Rows {
    index: HashMap<RuleSet, u16>,
    rows: Vec<RuleSet>,
}

impl Rows {
    /// The row that holds this set.
    pub(crate) fn of(&mut self, set: RuleSet) -> Result<u16, MatchError> {
        if let Some(&row) = self.index.get(&set) {
            return Ok(row);
        }
        if self.rows.len() == abi::SL_ROWS as usize {
            return Err(MatchError::TooManyRows);
        }
        let row = self.rows.len() as u16;
        self.index.insert(set, row);
        self.rows.push(set);
        Ok(row)
    }

    pub(crate) fn write(&self, to: &mut [abi::sl_row]) {
        for (to, set) in to.iter_mut().zip(&self.rows) {
            to.word = set.0;
        }
    }
}
