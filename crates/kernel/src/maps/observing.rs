//! The place where the arrival hook of a managed interface finds the programs of a command that observes, and the lease under which it calls them.

use crate::bpf::mapped;
use crate::maps::tables;
use crate::system::clock;
use libbpf_rs::{MapCore, MapFlags};
use sluice_abi as abi;
use sluice_error::{Doing, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time that a lease holds.
const LEASE: Duration = Duration::from_secs(2);
/// The tables of programs that hooks call.
const TABLES: [&str; 2] = ["observer_tc", "observer_xdp"];

/// The programs that an arrival hook calls for a command.
#[derive(Debug, Clone)]
pub struct Calls {
    pins: PathBuf,
    /// Tables, and the number of the program that this command has put into each.
    programs: Vec<(&'static str, u32)>,
}

impl Calls {
    /// Whether another command has the hook call programs.
    pub fn are_taken(pins: &Path) -> Result<bool> {
        Ok(leased_until(pins)? > now_ns())
    }

    /// Has a hook call programs, by table and descriptor, under a lease that begins now.
    pub fn begin(pins: &Path, programs: &[(&'static str, i32)]) -> Result<Calls> {
        let mut calls = Calls { pins: pins.to_owned(), programs: Vec::new() };
        for (name, fd) in programs {
            let table = tables::open(pins, name)?;
            table.update(&[0; 4], &fd.to_ne_bytes(), MapFlags::ANY).doing(|| format!("writing {name}"))?;
            calls.programs.extend(program_in(pins, name).map(|number| (*name, number)));
        }
        calls.renew()?;
        Ok(calls)
    }

    /// Whether the hook calls these very programs: `down`, `upgrade` and another command after the lease's end take them away.
    pub fn are_in_place(&self) -> bool {
        self.programs.iter().all(|(name, number)| program_in(&self.pins, name) == Some(*number))
    }

    /// Whether the interface is still managed.
    pub fn have_a_hook(&self) -> bool {
        self.pins.exists()
    }

    /// Renews the lease. Returns the time for which there was none, in which packets were not observed.
    pub fn renew(&self) -> Result<Duration> {
        let (until_ns, now_ns) = (leased_until(&self.pins)?, now_ns());
        lease(&self.pins, now_ns + LEASE.as_nanos() as u64)?;
        let gap_ns = if until_ns == 0 { 0 } else { now_ns.saturating_sub(until_ns) };
        Ok(Duration::from_nanos(gap_ns))
    }

    /// Takes the programs away, unless others have taken their place.
    pub fn end(&self) {
        // If this fails, the end of the lease has the same effect.
        if self.are_in_place() {
            let _ = clear(&self.pins);
        }
    }
}

/// Takes away the programs of a command that was killed: its lease has ended. Their rings are freed.
pub fn sweep(pins: &Path) -> Result<()> {
    let until_ns = leased_until(pins)?;
    if until_ns != 0 && until_ns < now_ns() { clear(pins) } else { Ok(()) }
}

fn clear(pins: &Path) -> Result<()> {
    lease(pins, 0)?;
    for name in TABLES {
        if program_in(pins, name).is_some() {
            tables::open(pins, name)?.delete(&[0; 4]).doing(|| format!("emptying {name}"))?;
        }
    }
    Ok(())
}

/// The number of the program in a table of programs.
fn program_in(pins: &Path, name: &str) -> Option<u32> {
    let bytes = tables::open(pins, name).ok()?.lookup(&[0; 4], MapFlags::ANY).ok()??;
    Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?))
}

fn leased_until(pins: &Path) -> Result<u64> {
    Ok(tables::read::<abi::sl_observing>(&tables::open(pins, "observing")?, 0)?.until_ns)
}

fn lease(pins: &Path, until_ns: u64) -> Result<()> {
    mapped::store_word(&tables::open(pins, "observing")?, until_ns)
}

fn now_ns() -> u64 {
    clock::monotonic().as_nanos() as u64
}
