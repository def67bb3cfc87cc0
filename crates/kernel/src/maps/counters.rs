//! Counters of programs, summed over CPUs and queues.

use crate::bpf::mapped::Mapped;
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

/// The counters of rules: per CPU, of the hooks and of parsed packets; and of the plain packets that queues of engine `qdisc` have counted.
pub(crate) struct RuleCounts {
    per_cpu: MapHandle,
    queues: Option<Mapped<abi::sl_instance>>,
}

impl RuleCounts {
    /// Opens the counters of an interface.
    pub fn open(pins: &Path) -> Result<RuleCounts> {
        let queues = if pins.join("state").exists() { Mapped::new(&tables::open(pins, "state")?)? } else { None };
        Ok(RuleCounts { per_cpu: tables::open(pins, "rule_counts")?, queues })
    }

    /// The counts by place: an index into `sl_tables.rule`, or an `enum sl_no_rule`.
    pub fn of(&self, direction: u32, places: std::ops::Range<u32>) -> Result<Vec<Count>> {
        let first = direction * abi::SL_RULE_COUNTS;
        let mut sums = counts(&self.per_cpu, first + places.start..first + places.end)?;
        for instance in self.queues.iter().flat_map(Mapped::values) {
            for (sum, place) in sums.iter_mut().zip(places.clone()) {
                // SAFETY: a counter of an instance that is mapped as long as `self` is borrowed; any bits are a valid counter.
                let counter = unsafe {
                    std::ptr::addr_of!((*instance).rule_counts[direction as usize][place as usize]).read_volatile()
                };
                sum.add(counter.into());
            }
        }
        Ok(sums)
    }
}

/// Counts of the first `places` places, departing and arriving.
pub(crate) fn of_rules(pins: &Path, places: u32) -> Result<Counted> {
    let counts = RuleCounts::open(pins)?;
    let [leaving, arriving] = [counts.of(abi::SL_EGRESS, 0..places)?, counts.of(abi::SL_INGRESS, 0..places)?];
    Ok(leaving.into_iter().zip(arriving).map(|(leaving, arriving)| [leaving, arriving]).collect())
}
