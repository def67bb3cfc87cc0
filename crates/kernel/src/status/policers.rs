//! The token buckets before the queues, read where programs write them.

use super::{ClassStatus, DirectionStatus};
use crate::bpf::mapped::Mapped;
use crate::maps::{shared, tables};
use crate::system::clock;
use libbpf_rs::MapHandle;
use sluice_abi as abi;
use sluice_error::Result;
use sluice_policy::Resolved;
use std::path::Path;

/// The token buckets of an interface, and those that its classes share with other interfaces.
pub(super) struct Policers {
    own: Mapped<abi::sl_police_state>,
    /// Shared buckets by class.
    shared: Vec<(u8, MapHandle)>,
}

impl Policers {
    /// Opens the buckets of the policy in force.
    pub fn open(pins: &Path, policy: &Resolved) -> Result<Policers> {
        let own = Mapped::of_this_version(&tables::open(pins, "police_state")?)?;
        let mut shared = Vec::new();
        for class in &policy.classes {
            let Some(ceiling) = &class.shared_ceil else { continue };
            shared.extend(shared::find(&ceiling.name)?.map(|map| (class.id.0, map)));
        }
        Ok(Policers { own, shared })
    }

    /// Adds the fill levels. `is_queued`: a scheduler limits departing packets, instead of the bucket of a class.
    pub fn add(
        &self,
        status: &mut DirectionStatus,
        live: &abi::sl_tables,
        direction: u32,
        is_queued: bool,
    ) -> Result<()> {
        let Some(own) = self.own.values().next() else { return Ok(()) };
        // SAFETY: the pointer is to a whole value, mapped as long as `self` is borrowed, and any bits are valid.
        let state = unsafe { own.read_volatile() };
        let now = clock::monotonic().as_nanos() as u64;
        let place = direction as usize;
        status.limit_fill = fill(&live.interface_police[place], &state.interface[place], now);
        for class in &mut status.classes {
            let id = usize::from(class.id);
            if !is_queued || direction != abi::SL_EGRESS {
                class.ceil_fill = fill(&live.police[place][id], &state.class[place][id], now).or(class.ceil_fill);
                class.peak_fill = fill(&live.peak_police[id], &state.peak[place][id], now).or(class.peak_fill);
            }
            class.shared_ceil_fill = self.shared_fill(class, live, place, now)?;
        }
        Ok(())
    }

    fn shared_fill(
        &self,
        class: &ClassStatus,
        live: &abi::sl_tables,
        place: usize,
        now_ns: u64,
    ) -> Result<Option<f64>> {
        let Some((_, map)) = self.shared.iter().find(|(id, _)| *id == class.id) else { return Ok(None) };
        let state = tables::read::<abi::sl_shared_state>(map, 0)?;
        Ok(fill(&live.shared_police[usize::from(class.id)], &state.bucket[place], now_ns))
    }
}

/// Fill level of a bucket: 1 is full, 0 is empty or in debt. A debt at another rate, since the bucket has not been charged at this
/// one yet, counts in bytes. None: the bucket limits nothing.
fn fill(limit: &abi::sl_police_conf, bucket: &abi::sl_police_bucket, now_ns: u64) -> Option<f64> {
    if limit.cost == 0 {
        return None;
    }
    let owed = bucket.tat.saturating_sub(now_ns << 4) as f64;
    let owed = if bucket.cost == 0 { owed } else { owed * (limit.cost as f64 / bucket.cost as f64) };
    Some((1.0 - owed / limit.burst.max(1) as f64).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_full_when_its_time_has_come() {
        let limit = abi::sl_police_conf { cost: 1, burst: 1600 };
        let bucket = |tat| abi::sl_police_bucket { tat, cost: 1 };
        let fills = [0, 80_000, 80_400, 81_600, 99_999].map(|tat| fill(&limit, &bucket(tat), 5000));
        assert_eq!(fills, [Some(1.0), Some(1.0), Some(0.75), Some(0.0), Some(0.0)]);
        assert_eq!(fill(&abi::sl_police_conf { cost: 0, burst: 1600 }, &bucket(99_999), 0), None);
        assert_eq!(
            fill(&limit, &abi::sl_police_bucket { tat: 83_200, cost: 4 }, 5000),
            Some(0.5),
            "owed at a quarter of the rate"
        );
    }
}
