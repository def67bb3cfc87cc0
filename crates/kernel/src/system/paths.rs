//! Directories of our own.

use std::path::Path;

/// The directory of records, dumps and logs; a reboot empties it.
pub fn run() -> &'static Path {
    Path::new("/run/sluice")
}
