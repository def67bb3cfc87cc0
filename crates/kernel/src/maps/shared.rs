//! Buckets that interfaces share: each is a map of its own, pinned under its name as long as a policy names it.

use crate::bpf::inner;
use crate::record::{Record, policy};
use crate::system::bpffs;
use libbpf_rs::MapHandle;
use sluice_abi as abi;
use sluice_error::{Doing, Error, Result};
use sluice_policy::{Policy, SharedCeiling};
use std::fs;
use std::path::PathBuf;

/// Directory of the buckets' pins. No interface has this key.
pub(crate) const DIRECTORY: &str = "shared";

fn directory() -> Result<PathBuf> {
    Ok(bpffs::root()?.join(DIRECTORY))
}

/// The bucket of this name; a new, full one if there is none.
pub(crate) fn open(name: &str) -> Result<MapHandle> {
    let path = directory()?.join(name);
    if path.exists() {
        return MapHandle::from_pinned_path(&path).doing(|| format!("opening {}", path.display()));
    }
    bpffs::own_directory(&directory()?)?;
    let mut map = full()?;
    map.pin(&path).doing(|| format!("pinning {}", path.display()))?;
    Ok(map)
}

/// The bucket of this name, if there is one.
pub(crate) fn find(name: &str) -> Result<Option<MapHandle>> {
    let path = directory()?.join(name);
    if !path.exists() {
        return Ok(None);
    }
    MapHandle::from_pinned_path(&path).map(Some).doing(|| format!("opening {}", path.display()))
}

/// A new, full bucket without a pin.
pub(crate) fn full() -> Result<MapHandle> {
    inner::filled(
        "shared",
        &[abi::sl_shared_state { bucket: [abi::sl_police_bucket { tat: 0, cost: 0 }; abi::SL_DIRECTIONS as usize] }],
        0,
    )
}

/// Refuses a policy that gives a name another rate than a policy of another interface does. Interfaces of the same network
/// namespace that change together with it do not count.
pub(crate) fn refuse_other_rates(own: &Record, policy: &Policy, together: &[&str]) -> Result<()> {
    let changes = |other: &Record| {
        other.netns == own.netns && (other.ifindex == own.ifindex || together.contains(&other.interface.as_str()))
    };
    let others = Record::all()?.into_iter().filter(|other| !changes(other));
    for other in others {
        for theirs in policies(&other)?.iter().flat_map(ceilings) {
            let differs = |ours: &&SharedCeiling| {
                ours.name == theirs.name
                    && (ours.ceiling.rate, ours.ceiling.burst()) != (theirs.ceiling.rate, theirs.ceiling.burst())
            };
            if let Some(ours) = ceilings(policy).find(differs) {
                let said =
                    |shared: &SharedCeiling| format!("{}, burst {}", shared.ceiling.rate, shared.ceiling.burst());
                return Err(Error::input(format!(
                    "\"{}\" is shared at {} here, and at {} by {}",
                    ours.name,
                    said(ours),
                    said(theirs),
                    other.interface
                ))
                .help(format!("write the same rate and burst, use another name, or sluice down {}", other.interface)));
            }
        }
    }
    Ok(())
}

/// Removes the buckets that no policy names any more. The caller holds the lock.
pub(crate) fn sweep() -> Result<()> {
    let directory = directory()?;
    let Ok(entries) = fs::read_dir(&directory) else { return Ok(()) };
    let mut named: Vec<String> = Vec::new();
    for record in Record::all()? {
        let policies = policies(&record)?;
        named.extend(policies.iter().flat_map(ceilings).map(|shared| shared.name.clone()));
    }
    for entry in entries.flatten() {
        if !named.iter().any(|name| **name == entry.file_name()) {
            fs::remove_file(entry.path()).doing(|| format!("removing {}", entry.path().display()))?;
        }
    }
    if named.is_empty() {
        fs::remove_dir(&directory).doing(|| format!("removing {}", directory.display()))?;
    }
    Ok(())
}

fn ceilings(policy: &Policy) -> impl Iterator<Item = &SharedCeiling> {
    policy.classes.iter().filter_map(|class| class.shared_ceil.as_ref())
}

/// The policies that a record may yet put into force.
fn policies(record: &Record) -> Result<Vec<Policy>> {
    let states = std::iter::once(record).chain(record.before.as_deref());
    let texts = states.flat_map(|state| {
        let former = state.unconfirmed.as_ref().map(|unconfirmed| unconfirmed.former.policy.as_str());
        std::iter::once(&*state.policy).chain(former)
    });
    texts.map(policy::parse).collect()
}
