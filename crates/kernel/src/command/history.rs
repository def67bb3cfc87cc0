//! `sluice history`.

use crate::command::recover::recover_unless_held;
use crate::record::Record;
use crate::record::history::{self, Entry};
use crate::system::interface::Interface;
use crate::system::privilege::require_root;
use sluice_error::{Error, Result};

/// The entries of an interface, managed or not, the oldest first.
pub fn of(interface: &str) -> Result<Vec<Entry>> {
    require_root()?;
    recover_unless_held()?;
    let record = Record::find(interface)?;
    let key = match &record {
        Some(record) => record.key.clone(),
        None => Record::new_key(interface)?,
    };
    let entries = history::entries(&key)?;
    if entries.is_empty() && record.is_none() {
        Interface::find(interface)?;
        return Err(Error::input(format!("{interface} has no history: it was never managed here"))
            .help(format!("`sluice up {interface} --policy P` begins one")));
    }
    Ok(entries)
}

/// The history entry of this number.
pub fn entry(interface: &str, number: u32) -> Result<Entry> {
    let entries = of(interface)?;
    let range = match (entries.first(), entries.last()) {
        (Some(first), Some(last)) => format!("it goes from {} to {}", first.number, last.number),
        _ => "it is empty".to_owned(),
    };
    entries.into_iter().find(|entry| entry.number == number).ok_or_else(|| {
        Error::input(format!("the history of {interface} has no entry {number}: {range}"))
            .help(format!("`sluice history {interface}` lists it"))
    })
}
