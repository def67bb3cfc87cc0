//! Counters of programs, summed over the processors.

use crate::maps::tables;
use crate::record::count::Count;
use crate::record::rule_starts::Counted;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use sluice_abi as abi;
use sluice_error::Result;
use std::path::Path;

/// The values of every processor, by key.
pub(crate) fn per_cpu<T: abi::Pod>(map: &MapHandle, keys: std::ops::Range<u32>) -> Result<Vec<Vec<Box<T>>>> {
    keys.map(|key| {
        let values = map.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY).ok().flatten().unwrap_or_default();
        Ok(values.iter().filter_map(|bytes| abi::read_pod::<T>(bytes)).collect())
    })
    .collect()
}

/// The sums over all processors, by key.
pub(crate) fn counts(map: &MapHandle, keys: std::ops::Range<u32>) -> Result<Vec<Count>> {
    let counts = per_cpu::<abi::sl_count>(map, keys)?;
    let sum = |cpus: Vec<Box<abi::sl_count>>| {
        let mut sum = Count::default();
        cpus.into_iter().for_each(|cpu| sum.add((*cpu).into()));
        sum
    };
    Ok(counts.into_iter().map(sum).collect())
}

/// Counters of the first so many rule places, departing and arriving.
pub(crate) fn of_rules(pins: &Path, places: u32) -> Result<Counted> {
    let map = tables::open(pins, "rule_counts")?;
    let of = |direction: u32| counts(&map, direction * abi::SL_RULE_COUNTS..direction * abi::SL_RULE_COUNTS + places);
    Ok(of(abi::SL_EGRESS)?
        .into_iter()
        .zip(of(abi::SL_INGRESS)?)
        .map(|(leaving, arriving)| [leaving, arriving])
        .collect())
}
