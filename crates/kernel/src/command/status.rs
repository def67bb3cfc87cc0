//! `sluice status`.

use crate::command::recover::recover_unless_held;
use crate::engine::managed::managed;
use crate::status::{Pinned, Status};
use crate::system::privilege::require_root;
use sluice_error::Result;

/// The status of an interface in the process's namespace.
pub fn of(interface: &str) -> Result<Status> {
    require_root()?;
    recover_unless_held()?;
    let record = managed(interface)?;
    Pinned::open(record)?.status()
}
