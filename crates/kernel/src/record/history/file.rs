//! The file that holds the history of an interface.

use super::{Entry, Outcome};
use crate::record::amendments::{Amendment, Amendments, FileId};
use crate::system::{netns, private};
use serde::{Deserialize, Serialize};
use sluice_error::{Doing, Error, Result};
use sluice_policy::edit::{SubscriberChange, with_subscribers};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "/var/lib/sluice/history";
/// Number of entries that are kept.
const KEPT: usize = 50;
/// Bytes of policies that are kept, but for those of the last two entries: the policies of large networks are long.
const KEPT_BYTES: usize = 16 << 20;
/// Attempts to read a history and its amendments while other commands write them.
const READINGS: u32 = 16;
/// Version of the file's format.
const FORMAT: u32 = 1;

/// The file of an interface.
#[derive(Debug, Serialize, Deserialize)]
pub struct History {
    sluice_history: u32,
    /// The boot of a network namespace's history: a namespace does not outlive a boot, and its number is given to others.
    boot: Option<String>,
    /// The entries, the oldest first.
    pub entries: Vec<Entry>,
}

impl History {
    /// Reads the history of a key; it is empty if there is none.
    pub fn read(key: &str) -> Result<History> {
        let path = &file(key);
        let mut attempts = 1..=READINGS;
        loop {
            let (history, of) = History::read_once(key, path)?;
            // One that was written meanwhile has the amendments that were not found beside the former one.
            if of.is_none() || FileId::at(path).ok() == of || attempts.next().is_none() {
                return Ok(history);
            }
        }
    }

    /// The history, and the file that it was read from. None: there is none.
    fn read_once(key: &str, path: &Path) -> Result<(History, Option<FileId>)> {
        let empty = History { sluice_history: FORMAT, boot: boot_of(key), entries: Vec::new() };
        let (text, about) = match private::read_with_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((empty, None)),
            read => read.map_err(|error| foreign(path, &error.to_string()))?,
        };
        let history: History = serde_json::from_str(&text).map_err(|error| foreign(path, &error.to_string()))?;
        if history.sluice_history != FORMAT {
            return Err(foreign(
                path,
                &format!("its format is {}, this version knows {FORMAT}", history.sluice_history),
            ));
        }
        let of = FileId::of(&about);
        if history.boot != empty.boot {
            return Ok((empty, Some(of)));
        }
        Ok((history.amended(&Amendments::of(path, of).read()?), Some(of)))
    }

    /// The history with the amendments of the policy in force, as many as are kept.
    fn amended(mut self, all: &[Amendment]) -> History {
        let Some(mut last) = self.last_in_force().cloned() else { return self };
        // An amendment whose predecessor is not there was made upon a policy that is not known.
        let mut before = last.generation;
        let follows = |one: &&Amendment| one.after == std::mem::replace(&mut before, one.generation);
        let all = &all[..all.iter().take_while(follows).count()];
        let kept = KEPT.min(KEPT_BYTES / last.policy.len().max(1)).max(2);
        let (merged, kept) = all.split_at(all.len().saturating_sub(kept));
        let edited = |text: &str, some: &[Amendment]| {
            let changes: Vec<SubscriberChange> = some.iter().flat_map(|one| one.changes.clone()).collect();
            with_subscribers(text, &changes).ok()
        };
        let number = self.entries.last().map_or(0, |last| last.number) + merged.len() as u32;
        last.number = number;
        if let Some(policy) = edited(&last.policy, merged) {
            last.policy = policy;
        }
        for one in kept {
            let Some(policy) = edited(&last.policy, std::slice::from_ref(one)) else { break };
            last = last.amended(one, policy);
            self.entries.push(last.clone());
        }
        self.keep_last();
        self
    }

    /// Writes the history, whole or not at all, even if the machine fails.
    pub fn write(&self, key: &str) -> Result<()> {
        let path = &file(key);
        let partial = path.with_extension("partial");
        let written = || -> std::io::Result<()> {
            fs::create_dir_all(DIRECTORY)?;
            let mut file = File::create(&partial)?;
            file.write_all(serde_json::to_string_pretty(self)?.as_bytes())?;
            file.sync_all()?;
            fs::rename(&partial, path)?;
            // The amendments of the former file are among the entries.
            Amendments::remove(path);
            File::open(DIRECTORY)?.sync_all()
        };
        written().doing(|| format!("writing {}", path.display()))
    }

    /// Appends an entry under the next number.
    pub fn add(&mut self, entry: Entry) {
        let last = self.entries.last();
        // A killed command may have written the entry before the one that ended its work. A failed change did not take force.
        if entry.outcome != Outcome::Failed && last.is_some_and(|last| last.is(&entry)) {
            return;
        }
        let number = last.map_or(0, |last| last.number) + 1;
        self.entries.push(Entry { number, ..entry });
        self.keep_last();
    }

    /// Removes the oldest entries, of which more are there than are kept.
    fn keep_last(&mut self) {
        self.entries.drain(..self.entries.len().saturating_sub(KEPT));
        let mut bytes = 0;
        let fits = self.entries.iter().rev().take_while(|entry| {
            bytes += entry.policy.len();
            bytes <= KEPT_BYTES
        });
        let kept = fits.count().max(2);
        self.entries.drain(..self.entries.len().saturating_sub(kept));
    }

    /// Sets the outcome of the entries that wait to be confirmed.
    pub fn settle(&mut self, outcome: Outcome) {
        let waiting = self.entries.iter_mut().filter(|entry| entry.outcome == Outcome::Unconfirmed);
        waiting.for_each(|entry| entry.outcome = outcome);
    }

    /// Marks the entry of a change as failed.
    pub fn fail(&mut self, event: &Entry) {
        if let Some(entry) = self.entries.iter_mut().rev().find(|entry| entry.is(event)) {
            (entry.outcome, entry.error) = (event.outcome, event.error.clone());
        }
    }

    /// The last entry that took force.
    fn last_in_force(&self) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| entry.took_force())
    }

    /// The last entry that took force, confirmed or not, and has another digest than the present policy.
    pub fn previous(&self, present: &str) -> Option<&Entry> {
        self.entries.iter().rev().filter(|entry| entry.took_force()).find(|entry| entry.whole_digest() != present)
    }
}

/// A history's file, and the last configuration that it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Known {
    pub file: FileId,
    pub generation: u32,
}

/// The history of a key, as far as it is known. None: it has no policy that took force, or cannot be read.
pub fn known(key: &str) -> Option<Known> {
    let history = History::read(key).ok()?;
    let generation = history.last_in_force()?.generation;
    Some(Known { file: FileId::at(&file(key)).ok()?, generation })
}

/// Adds an amendment of the policy in force to the history of a key, so that a failure of the machine keeps it. Returns what is known then.
///
/// # Errors
/// The history is another one, or does not know the policy that is amended.
pub fn amend(key: &str, known: Known, amendment: &Amendment) -> Result<Known> {
    let path = file(key);
    if FileId::at(&path).ok() != Some(known.file) || known.generation != amendment.after {
        return Err(Error::system(format!("{} lacks the policy that is amended", path.display())));
    }
    Amendments::of(&path, known.file).append(amendment, true)?;
    Ok(Known { generation: amendment.generation, ..known })
}

fn foreign(path: &Path, why: &str) -> Error {
    Error::system(format!("{} is not a history of this version of sluice: {why}", path.display()))
        .help("move it away; the next change begins a new one")
}

fn file(key: &str) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{key}.json"))
}

/// The number of the namespace in a record's key.
fn namespace_of(key: &str) -> Option<u64> {
    key.rsplit_once('@')?.1.parse().ok()
}

fn boot_of(key: &str) -> Option<String> {
    namespace_of(key)?;
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned())
}

/// Removes the history under the key of an interface that has gone with its network namespace.
pub(crate) fn forget(key: &str) {
    Amendments::remove(&file(key));
    // A file that stays is of an earlier namespace with the same number, of which the next change tells.
    let _ = fs::remove_file(file(key));
}

/// Removes the histories of network namespaces that have gone.
pub(crate) fn remove_orphans(own: u64) {
    remove_orphans_in(DIRECTORY, own);
}

/// Removes the files of a directory whose name ends with the number of a network namespace that has gone.
pub(crate) fn remove_orphans_in(directory: &str, own: u64) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let namespace = path.file_stem().and_then(|stem| namespace_of(&stem.to_string_lossy()));
        if namespace.is_some_and(|inode| inode != own && !netns::is_kept(inode)) {
            // A file that stays is found again by the next command.
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::origin::Origin;
    use jiff::Timestamp;

    fn entry(generation: u32, outcome: Outcome, digest: &str) -> Entry {
        Entry {
            number: 0,
            when: Timestamp::UNIX_EPOCH,
            what: Origin::Apply,
            repeats: None,
            message: None,
            outcome,
            error: None,
            generation,
            policy_name: "p".to_owned(),
            policy_source: "p.json".to_owned(),
            ingress_rate_bps: None,
            rate_bps: None,
            digest: Some(digest.to_owned()),
            policy: "{}".to_owned(),
        }
    }

    fn history(entries: &[(Outcome, &str)]) -> History {
        let mut history = History { sluice_history: FORMAT, boot: None, entries: Vec::new() };
        for (n, (outcome, digest)) in (1..).zip(entries) {
            history.add(entry(n, *outcome, digest));
        }
        history
    }

    #[test]
    fn the_last_fifty_are_kept_and_counted_on() {
        let history = history(&[(Outcome::Applied, "a"); 120]);
        assert_eq!(history.entries.len(), KEPT);
        assert_eq!((history.entries[0].number, history.entries[49].number), (71, 120));
    }

    #[test]
    fn amendments_are_entries() {
        let subscriber = |name: &str| format!(r#"{{ "name": "{name}", "addresses": ["192.0.2.1"] }}"#);
        let text = format!(r#"{{ "subscribers": [{}] }}"#, subscriber("a"));
        let base = || {
            let mut history = history(&[(Outcome::Applied, "a"), (Outcome::Failed, "b")]);
            history.entries[0].policy.clone_from(&text);
            history
        };
        let amendment = |generation: u32| {
            let values = serde_json::Map::from_iter([("plan".to_owned(), generation.into())]);
            let changes = vec![SubscriberChange::Set { name: "a".to_owned(), values }];
            Amendment { after: generation - 1, generation, applied_s: 9, message: Some("m".to_owned()), changes }
        };
        let entries = base().amended(&[amendment(2), amendment(3)]).entries;
        assert_eq!(entries.iter().map(|one| one.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(
            (entries[3].generation, entries[3].digest.as_ref(), entries[3].outcome),
            (3, None, Outcome::Applied)
        );
        assert!(entries[2].policy.contains(r#""plan": 2"#) && entries[3].policy.contains(r#""plan": 3"#));
        assert_eq!(base().amended(&[amendment(7)]).entries.len(), 2, "of another policy");
        assert_eq!(base().amended(&[amendment(2), amendment(4)]).entries.len(), 3, "one is missing");
        let many: Vec<Amendment> = (2..202).map(amendment).collect();
        let entries = base().amended(&many).entries;
        assert_eq!((entries.len(), entries[0].number, entries[KEPT - 1].number), (KEPT, 153, 202));
        assert!(entries[KEPT - 1].policy.contains(r#""plan": 201"#), "{}", entries[KEPT - 1].policy);
    }

    #[test]
    fn an_event_is_written_once() {
        let mut history = history(&[(Outcome::Applied, "a")]);
        history.add(entry(1, Outcome::Applied, "a"));
        assert_eq!(history.entries.len(), 1);
        history.add(entry(2, Outcome::Applied, "a"));
        assert_eq!(history.entries.len(), 2);
        history.add(entry(3, Outcome::Failed, "a"));
        history.add(entry(3, Outcome::Failed, "a"));
        assert_eq!(history.entries.len(), 4, "each attempt that fails counts");
    }

    #[test]
    fn going_back_is_to_what_was_good_and_differs() {
        use Outcome::{Applied, Failed, Reverted};
        let previous =
            |entries: &[(Outcome, &str)], present: &str| history(entries).previous(present).map(|entry| entry.number);
        assert_eq!(previous(&[(Applied, "a"), (Applied, "b")], "b"), Some(1));
        assert_eq!(previous(&[(Applied, "a"), (Applied, "b"), (Applied, "a")], "a"), Some(2), "and forth again");
        assert_eq!(previous(&[(Applied, "a"), (Failed, "b")], "a"), None);
        assert_eq!(previous(&[(Applied, "a"), (Applied, "b"), (Reverted, "c"), (Applied, "b")], "b"), Some(1));
        assert_eq!(previous(&[(Applied, "a"), (Applied, "b"), (Applied, "b")], "b"), Some(1));
    }

    #[test]
    fn namespaces_are_in_the_key() {
        assert_eq!(namespace_of("eth0@4026532"), Some(4_026_532));
        assert_eq!(namespace_of("eth0"), None);
        assert_eq!(namespace_of("a%40b"), None);
    }
}
