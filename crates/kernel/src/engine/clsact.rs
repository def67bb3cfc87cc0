//! The hook qdisc clsact of an interface.

use crate::bpf::hooks;
use crate::record::Record;
use crate::system::qdiscs;
use sluice_error::Result;

/// Adds clsact if it is missing. The record says that it is ours before it is there.
pub(super) fn claim(record: &mut Record) -> Result<()> {
    if !qdiscs::has_clsact(&record.interface)? {
        record.made_clsact = true;
        record.save()?;
        hooks::add_clsact(&record.interface)?;
    }
    Ok(())
}
