//! `sluice status`.

use crate::command::recover::recover_unless_held;
use crate::engine::forwarding;
use crate::engine::managed::managed;
use crate::record::policy;
use crate::status::{Pinned, Status};
use crate::system::privilege::require_root;
use sluice_error::Result;

/// The status of an interface in the process's namespace, with the ways of its forwards.
pub fn of(interface: &str) -> Result<Status> {
    require_root()?;
    recover_unless_held()?;
    let record = managed(interface)?;
    let mut status = Pinned::open(record.clone())?.status()?;
    if !status.forwards.is_empty() {
        let ways = forwarding::ways_of(&record, &policy::resolved(&record)?)?;
        status.forwards.iter_mut().zip(ways).for_each(|(forward, ways)| forward.ways = ways);
    }
    Ok(status)
}
