//! A small table of 32-bit keys in which each is found after a bounded number of steps.

use crate::error::MatchError;
use sluice_abi as abi;
use std::collections::BTreeSet;

const SLOTS: usize = abi::SL_KEY_SLOTS as usize;
const PROBES: usize = abi::SL_KEY_PROBES as usize;

/// Factors that are tried.
const TRIES: u32 = 1000;

/// Keys with their rows; the others get `none`.
pub(crate) fn table(keys: &[(u32, u16)], none: u16) -> Result<abi::sl_keys, MatchError> {
    if keys.len() > abi::SL_KEYS as usize {
        return Err(MatchError::TooManyKeys);
    }
    let mut factor = 0x9e37_79b1_u32; // 2^32 / golden ratio (Knuth, TAOCP 3, 6.4)
    for _ in 0..TRIES {
        if let Some(table) = with_factor(keys, none, factor) {
            return Ok(table);
        }
        factor = factor.wrapping_mul(0x2c1b_3c6d) | 1;
    }
    Err(MatchError::TooManyKeys)
}

fn with_factor(keys: &[(u32, u16)], none: u16, factor: u32) -> Option<abi::sl_keys> {
    let mut table = abi::sl_keys { factor, none_row: none, pad: 0, key: [0; SLOTS], row: [none; SLOTS] };
    let mut used = [false; SLOTS];
    for &(key, row) in keys {
        let first = (key.wrapping_mul(factor) >> 22) as usize;
        let slot = (first..first + PROBES).map(|slot| slot % SLOTS).find(|&slot| !used[slot])?;
        used[slot] = true;
        (table.key[slot], table.row[slot]) = (key, row);
    }
    // The key in an unused slot must not be taken for one whose own slot comes later.
    let known: BTreeSet<u32> = keys.iter().map(|&(key, _)| key).collect();
    let stranger = (0..=u32::MAX).find(|key| !known.contains(key))?;
    for slot in (0..SLOTS).filter(|&slot| !used[slot]) {
        table.key[slot] = stranger;
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The look-up of bpf/lib/choose.h.
    fn row(table: &abi::sl_keys, key: u32) -> u16 {
        let first = (key.wrapping_mul(table.factor) >> 22) as usize;
        let found = (first..first + PROBES).map(|slot| slot % SLOTS).find(|&slot| table.key[slot] == key);
        found.map_or(table.none_row, |slot| table.row[slot])
    }

    #[test]
    fn every_key_is_found_and_no_other() {
        for step in [1u32, 2, 1024, 0x0101_0101, 0x9e37_79b1, 0xffff_fff1] {
            for count in [0, 1, 3, 64, abi::SL_KEYS] {
                let keys: Vec<(u32, u16)> = (0..count).map(|n| (n.wrapping_mul(step), n as u16 + 1)).collect();
                let table = table(&keys, 0).expect("fits");
                assert!(keys.iter().all(|&(key, own)| row(&table, key) == own), "step {step}, {count} keys");
                let others = (count..count + 5000).map(|n| n.wrapping_mul(step));
                assert!(others.filter(|n| keys.iter().all(|(key, _)| key != n)).all(|key| row(&table, key) == 0));
            }
        }
        let many: Vec<(u32, u16)> = (0..=abi::SL_KEYS).map(|n| (n, 1)).collect();
        assert_eq!(table(&many, 0).err(), Some(MatchError::TooManyKeys));
    }
}
