//! The managed interfaces, as their records name them.

use crate::record::amendments::FileId;
use crate::record::{Phase, Record, read, warn_once};
use crate::system::interface::Interface;
use crate::system::{netns, paths};
use sluice_error::Result;
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

/// The part of a record that tells which interface is managed. Amendments do not change it.
#[derive(Debug, Clone, Copy)]
struct Managed {
    netns: u64,
    netns_cookie: Option<u64>,
    ifindex: u32,
    phase: Phase,
}

/// The managed interfaces, asked for again and again: a record is read anew when its file is another one, since that of a large network takes long to read.
#[derive(Debug, Default)]
pub struct ManagedInterfaces(HashMap<PathBuf, (FileId, Managed)>);

impl ManagedInterfaces {
    /// Name and number of those of this network namespace that are wholly up.
    ///
    /// # Errors
    ///
    /// The kernel does not tell which namespace this is.
    pub fn here(&mut self) -> Result<Vec<(String, u32)>> {
        let (own, cookie) = (netns::inode()?, netns::cookie()?);
        self.follow();
        let is_up = |one: &&Managed| {
            let is_former = one.netns_cookie.is_some_and(|its| its != cookie);
            one.netns == own && !is_former && one.phase == Phase::Active
        };
        let all = self.0.values().map(|(_, one)| one).filter(is_up);
        let mut found: Vec<(String, u32)> =
            all.filter_map(|one| Some((Interface::name_of(one.ifindex)?, one.ifindex))).collect();
        found.sort();
        Ok(found)
    }

    /// Reads the records whose files are others than before, and forgets those that have gone.
    fn follow(&mut self) {
        let entries = fs::read_dir(paths::run()).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut found = HashMap::new();
        for path in entries.filter(|path| path.extension().is_some_and(|extension| extension == "json")) {
            // It is looked at before it is read: one that is written meanwhile is read again the next time.
            let Ok(now) = FileId::at(&path) else { continue };
            let known = self.0.get(&path).filter(|(then, _)| *then == now).copied();
            let read = || match read(&path) {
                Ok(Record { netns, netns_cookie, ifindex, phase, .. }) => {
                    Some((now, Managed { netns, netns_cookie, ifindex, phase }))
                }
                Err(error) => {
                    warn_once(&path, &error);
                    None
                }
            };
            if let Some(one) = known.or_else(read) {
                found.insert(path, one);
            }
        }
        self.0 = found;
    }
}
