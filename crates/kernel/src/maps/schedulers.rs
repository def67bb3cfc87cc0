//! The states of the schedulers of engine `qdisc`, read while they run.

use crate::maps::tables;
use sluice_abi as abi;
use sluice_error::Result;
use std::path::Path;

/// The schedulers that run: their numbers and whole states, copied.
pub(crate) fn all(pins: &Path) -> Result<Vec<(u32, Box<abi::sl_sched>)>> {
    let state = tables::open(pins, "state")?;
    let instances = libbpf_rs::MapInfo::new(std::os::fd::AsFd::as_fd(&state)).map_or(0, |info| info.info.max_entries);
    let all: Result<Vec<_>> = (0..instances).map(|n| Ok((n, tables::read::<abi::sl_sched>(&state, n)?))).collect();
    Ok(all?.into_iter().filter(|(_, sched)| sched.ifindex != 0).collect())
}

/// The schedulers that run on a device: their numbers and whole states, copied.
pub(crate) fn of_device(pins: &Path, device: &str) -> Result<Vec<(u32, Box<abi::sl_sched>)>> {
    let ifindex = nix::net::if_::if_nametoindex(device).unwrap_or(0);
    Ok(all(pins)?.into_iter().filter(|(_, sched)| sched.ifindex == ifindex).collect())
}
