//! The buckets of a link that the schedulers of several tx queues share.

use super::ClassStatus;
use super::schedulers::Totals;
use crate::maps::tables;
use crate::system::clock;
use sluice_abi as abi;
use sluice_error::Result;
use std::path::Path;

/// Adds the fill levels of the link and of classes, if schedulers share a link.
pub(super) fn add(totals: &mut Totals, classes: &mut [ClassStatus], pins: &Path) -> Result<()> {
    if !pins.join("shared_conf").exists() {
        return Ok(());
    }
    let conf: Box<abi::sl_shared_conf> = tables::read(&tables::open(pins, "shared_conf")?, tables::live_buffer(pins)?)?;
    let link: Box<abi::sl_shared_link> = tables::read(&tables::open(pins, "shared_link")?, 0)?;
    let now = (clock::monotonic().as_nanos() as u64) << 6;
    if let Some(fill) = fill(&conf.link, link.bucket.value, now) {
        totals.link_fill = Some(fill);
    }
    for class in classes {
        let id = usize::from(class.id);
        let own = &conf.classes[id];
        class.ceil_fill = class.ceil_fill.or(fill(&own.ceiling, link.ceiling[id].value, now));
        class.rate_fill = class.rate_fill.or(fill(&own.guarantee, link.classes.share[id].guarantee, now));
    }
    Ok(())
}

/// Fill level of a bucket that is full at a time: 1 is full, 0 is empty, also where credit is drawn in advance. Times are in 1/64 ns. None: it limits nothing.
fn fill(rate: &abi::sl_shared_rate, full: u64, now: u64) -> Option<f64> {
    (rate.cost > 0).then(|| (1.0 - full.saturating_sub(now) as f64 / rate.burst as f64).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_bucket_is_full_when_its_time_has_come() {
        let rate = |cost| abi::sl_shared_rate { cost, burst: 1000, batch: 100, batch_bytes: 1, frame_bytes: 1 };
        let fills: Vec<Option<f64>> = [0, 5000, 5250, 6000, 9000].map(|full| fill(&rate(1), full, 5000)).to_vec();
        assert_eq!(fills, [Some(1.0), Some(1.0), Some(0.75), Some(0.0), Some(0.0)]);
        assert_eq!(fill(&rate(0), 9000, 5000), None);
    }
}
