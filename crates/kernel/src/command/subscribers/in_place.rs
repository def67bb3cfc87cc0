//! Changes of subscribers in place: of plan, site and rates, which touch a leaf, and the guarantees above it, of a network however large.
//!
//! Such a change reads the subscribers that it names from an index, resolves them beside the guarantees of all others, adjusts their nodes, and adds a
//! line to the amendments of the record and of the history. The record's line comes first, then the number of the configuration, and the index last, so
//! whoever finds a line that the index has not ends the change. Whatever does not fit, a mistake included, is left to the change of the whole policy, which tells more.

use crate::command::change::{Change, Done, Request};
use crate::command::subscribers::SubscriberEdits;
use crate::engine::managed::{absent, live_generation};
use crate::engine::{Placed, driver};
use crate::fault;
use crate::maps::tables;
use crate::record::Record;
use crate::record::amendments::Amendment;
use crate::record::history::{self, Outcome};
use crate::record::origin::Origin;
use crate::record::policy::{departing, rates, resolve};
use crate::record::subscriber_index::SubscriberIndex;
use crate::system::interface::Interface;
use crate::system::lock::Lock;
use crate::system::privilege::require_rights;
use crate::system::{bpffs, clock, netns, paths, qdiscs};
use sluice_error::{Error, Kind, Result};
use sluice_policy::edit::{SubscriberChange, taken_apart, with_subscribers};
use sluice_policy::network::{Guarantees, LeafClasses, NodeScheduler};
use sluice_policy::{ClassId, Policy, Resolved, Source, parse};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// A record that is longer has an index, or is not looked at.
const SHORT_RECORD_BYTES: u64 = 256 << 10;
/// Amendments beyond so many bytes are written into the record, by a change of the whole policy.
const MOST_AMENDMENTS_BYTES: u64 = 8 << 20;
/// The command, for fault points.
const COMMAND: &str = "subscriber";

/// Whether the changes could be made in this way.
pub(super) fn is_meant(edits: &SubscriberEdits) -> bool {
    edits.confirm.is_none() && !edits.changes.is_empty() && edits.changes.iter().all(is_in_place)
}

/// Makes the changes. None: not in this way.
pub(super) fn apply(edits: &SubscriberEdits) -> Result<Option<Vec<Done>>> {
    if !is_meant(edits) {
        return Ok(None);
    }
    require_rights()?;
    let _lock = Lock::take()?;
    apply_locked(edits)
}

/// The same, for who holds the lock.
pub(super) fn apply_locked(edits: &SubscriberEdits) -> Result<Option<Vec<Done>>> {
    let Some(mut all) = Prepared::of_all(edits) else { return Ok(None) };
    if all.iter().all(|one| one.is_same) {
        return Ok(Some(all.into_iter().map(|one| Done::nothing(one.index.record().clone())).collect()));
    }
    let many = all.len();
    for nth in 0..many {
        if let Err(error) = all[nth].perform() {
            let is_mistake = error.kind == Kind::Input;
            let error = error.of_several(&all[nth].record.interface, many);
            let error = all[..=nth].iter().rev().fold(error, |error, one| one.take_back(error, is_mistake));
            return if is_mistake { Ok(None) } else { Err(error) };
        }
    }
    fault::point("subscriber-live");
    let done = all.into_iter().map(Prepared::noted).collect();
    fault::point("subscriber-noted");
    Ok(Some(done))
}

/// Whether a change of a record has begun and not ended.
pub(crate) fn is_broken_off(record: &Record) -> bool {
    record.has_amendments() && SubscriberIndex::open(&record.key).is_none()
}

/// Ends a change that was broken off. The caller holds the lock.
pub(crate) fn finish(record: Record) -> Result<Record> {
    // An entry that is there already is not written once more.
    history::note_change(&record);
    if live_generation(&record)? == record.generation {
        record.save()?;
        return Ok(record);
    }
    let (request, generation) = (Request::to(&record, "")?, record.generation);
    Change::prepare(record.clone(), &request, &[])?.renew_as(generation)?;
    Ok(Record::of_key(&record.key)?.unwrap_or(record))
}

/// Whether a change leaves key and addresses as they are.
fn is_in_place(change: &SubscriberChange) -> bool {
    let stay = ["plan", "site", "rate", "ceil"];
    matches!(change, SubscriberChange::Set { values, .. } if values.keys().all(|key| stay.contains(&key.as_str())))
}

/// The changes of one interface, checked.
struct Prepared {
    index: SubscriberIndex,
    found: Interface,
    pins: PathBuf,
    /// The record from now on; its policy lists no subscribers.
    record: Record,
    before: Resolved,
    now: Resolved,
    /// The keys and texts of those that are changed.
    subscribers: Vec<(String, String)>,
    guarantees: Guarantees,
    amendment: Amendment,
    /// Length of the amendments before this one. None: it was not added.
    amendments_bytes: Option<u64>,
    is_same: bool,
}

impl Prepared {
    fn of_all(edits: &SubscriberEdits) -> Option<Vec<Prepared>> {
        let mut indices = indices()?;
        if !edits.interfaces.is_empty() {
            let is_there = |name: &String| indices.iter().any(|index| index.record().interface == *name);
            if !edits.interfaces.iter().all(is_there) {
                return None;
            }
            indices.retain(|index| edits.interfaces.contains(&index.record().interface));
        }
        let all: Option<Vec<Prepared>> = indices.into_iter().map(|index| Prepared::of(index, edits)).collect();
        all.filter(|all| !all.is_empty())
    }

    fn of(index: SubscriberIndex, edits: &SubscriberEdits) -> Option<Prepared> {
        let found = Interface::find(&index.record().interface).ok()?;
        let pins = index.record().pins(&bpffs::root().ok()?);
        let was = index.record();
        let root = qdiscs::root_kind(found.ifindex).ok()??;
        if !driver(was).can_adjust(was, &pins, &root) {
            return None;
        }
        if tables::live_generation(&pins).ok()? != was.generation {
            return None;
        }
        if index.amendments().length_bytes() > MOST_AMENDMENTS_BYTES {
            return None;
        }
        let keys: BTreeSet<&str> = edits.changes.iter().filter_map(name).collect();
        let texts: Vec<String> = keys.into_iter().map(|key| index.subscriber(key)).collect::<Option<_>>()?;
        let former = index.frame()?.around(texts.iter().map(String::as_str));
        let edited = with_subscribers(&former, &edits.changes).ok()?;
        let (_, subscribers) = taken_apart(&edited)?;
        let subscribers = subscribers.into_iter().map(|(key, text)| (key, text.to_owned())).collect();
        let (before, now) = (part(&former)?, part(&edited)?);
        let guaranteed = |policy: &Policy| policy.network.as_ref().map(|network| network.guarantees());
        let unlisted = index.guarantees.without(&guaranteed(&before)?);
        let guarantees = unlisted.with(&guaranteed(&now)?);
        let resolved = |mut policy: Policy| -> Option<Resolved> {
            policy.network = Some(Box::new(policy.network?.beside(unlisted.clone())?));
            Some(departing(resolve(&policy, rates(was), was.engine).ok()?, was))
        };
        let (before, now) = (resolved(before)?, resolved(now)?);
        // Other classes are other nodes.
        if classes(&before)? != classes(&now)? {
            return None;
        }
        let amendment = Amendment {
            after: was.generation,
            generation: was.generation.wrapping_add(1).max(1),
            applied_s: clock::now_s(),
            message: Some(edits.message.clone()),
            changes: edits.changes.clone(),
        };
        let record = Record {
            generation: amendment.generation,
            applied_s: amendment.applied_s,
            what: Origin::Apply,
            message: amendment.message.clone(),
            repeats: None,
            ..was.clone()
        };
        Some(Prepared {
            guarantees,
            is_same: former == edited,
            found,
            pins,
            record,
            before,
            now,
            subscribers,
            amendment,
            amendments_bytes: None,
            index,
        })
    }

    fn perform(&mut self) -> Result<()> {
        self.amendments_bytes = Some(self.index.amendments().append(&self.amendment, false)?);
        fault::step(COMMAND, "recorded")?;
        let at = Placed { record: &self.record, policy: &self.now, interface: &self.found, pins: &self.pins };
        driver(&self.record).adjust(&at)?;
        fault::step(COMMAND, "queued")?;
        tables::renumber(&self.pins, self.record.generation)
    }

    /// Brings back the former policy after a failure, if anything was done. The error says whether that has succeeded. `silently`: the history is not told.
    fn take_back(&self, mut error: Error, silently: bool) -> Error {
        let Some(amendments_bytes) = self.amendments_bytes else { return error };
        let name = &self.record.interface;
        error.kind = Kind::System;
        let attempted = Record::of_key(&self.record.key).ok().flatten().filter(|_| !silently);
        if let Some(attempted) = &attempted {
            history::note(attempted, Outcome::Failed, Some(&error.what));
        }
        let restored = self.index.amendments().cut(amendments_bytes).and_then(|()| {
            let was = Record::of_key(&self.record.key)?.ok_or_else(|| absent(name))?;
            let request = Request::to(&was, "")?;
            Change::prepare(was, &request, &[])?.renew()
        });
        match restored {
            Ok(()) => error.what += &format!("\n  {name} has its former subscribers again"),
            Err(rest) => {
                error.what += &format!("\n  and bringing back the former subscribers of {name} failed: {}", rest.what);
                error.cure = Some(format!("sluice down {name}, then sluice up {name}"));
            }
        }
        error
    }

    /// Writes the history and the index of a change that has taken force.
    fn noted(mut self) -> Done {
        let (known, note) = history::note_amendment(&self.record.key, self.index.history(), &self.amendment);
        self.index.amend(self.record.generation, &self.subscribers, self.guarantees, known);
        Done::change(self.record, &self.before, self.now, note.into_iter().collect())
    }
}

/// The scheduler and the ids of the classes inside each subscriber.
fn classes(policy: &Resolved) -> Option<Vec<(NodeScheduler, Vec<ClassId>)>> {
    let leaves = policy.network.as_ref()?.leaves.iter();
    let of = |classes: &LeafClasses| (classes.scheduler, classes.classes.iter().map(|class| class.id).collect());
    Some(leaves.map(|leaf| of(&leaf.classes)).collect())
}

/// The policy of a part of the subscribers.
fn part(text: &str) -> Option<Policy> {
    parse(&Source::new("the policy in force, edited", text)).ok()
}

fn name(change: &SubscriberChange) -> Option<&str> {
    match change {
        SubscriberChange::Set { name, .. } => Some(name),
        _ => None,
    }
}

/// The indices of all interfaces of the process's network namespace that have subscribers. None: not all of them have one.
fn indices() -> Option<Vec<SubscriberIndex>> {
    let (own, cookie) = (netns::inode().ok()?, netns::cookie().ok()?);
    let is_here = |record: &Record| record.netns == own && record.netns_cookie == Some(cookie);
    let mut all = Vec::new();
    for entry in fs::read_dir(paths::run()).ok()? {
        let entry = entry.ok()?;
        let path = entry.path();
        let Some(key) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".json")) else { continue };
        if let Some(index) = SubscriberIndex::open(key) {
            // A renamed or removed interface is found by its number, which takes more.
            if is_here(index.record()) {
                let record = index.record();
                Interface::is_there(&record.interface, record.ifindex).then_some(())?;
                all.push(index);
            }
            continue;
        }
        if entry.metadata().ok()?.len() > SHORT_RECORD_BYTES {
            return None;
        }
        let record = Record::of_key(key).ok()??;
        if record.netns == own && record.way.is_some() {
            return None;
        }
    }
    // As the whole policy is changed.
    all.sort_by(|one, other| one.record().interface.cmp(&other.record().interface));
    Some(all)
}
