//! The history of an interface: its policies, and why they were put into force. A file per interface under /var/lib, which a reboot keeps.
//!
//! Only `history` and `rollback` depend on it: where it cannot be read or written, other commands say so and go on.

mod file;

pub use super::origin::Origin;
pub(crate) use file::{Known, forget, known, remove_orphans, remove_orphans_in};

use crate::record::amendments::Amendment;
use crate::record::{Record, policy};
use file::History;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sluice_error::{Error, Result};

/// The outcome of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The policy took force.
    Applied,
    /// The policy took force, and waits to be confirmed.
    Unconfirmed,
    /// The change failed, and the policy before it was brought back.
    Failed,
    /// The policy was not confirmed in time, and was taken back.
    Reverted,
}

impl Outcome {
    /// The outcome in words.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Applied => "applied",
            Outcome::Unconfirmed => "unconfirmed",
            Outcome::Failed => "failed, rolled back",
            Outcome::Reverted => "not confirmed, reverted",
        }
    }
}

/// A policy that was put into force, or should have been.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Number of the entry; an interface's entries are counted from 1 on.
    pub number: u32,
    /// Time of the change.
    pub when: Timestamp,
    /// Command that made the change.
    pub what: Origin,
    /// Number of the entry that this one repeats.
    pub repeats: Option<u32>,
    /// Reason of the change, in the words of its author.
    pub message: Option<String>,
    /// Outcome of the change.
    pub outcome: Outcome,
    /// Error of a change that failed.
    pub error: Option<String>,
    /// Number of the configuration in the kernel.
    pub generation: u32,
    /// Name of the policy.
    pub policy_name: String,
    /// Source of the policy's text, such as a path.
    pub policy_source: String,
    /// `--rate`, bits per second.
    pub rate_bps: Option<u64>,
    /// `--ingress-rate`, bits per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_rate_bps: Option<u64>,
    /// SHA-256 of the policy in canonical form and the rate, in hexadecimal: equal ones mean the same. None: a change of subscribers in place, for which
    /// it was not computed.
    pub digest: Option<String>,
    /// The policy, as its author wrote it where that text alone means the same.
    pub policy: String,
}

impl Entry {
    fn new(record: &Record, outcome: Outcome, error: Option<&str>) -> Entry {
        Entry {
            number: 0,
            when: time(record.applied_s),
            what: record.what,
            repeats: record.repeats,
            message: record.message.clone(),
            outcome,
            error: error.map(str::to_owned),
            generation: record.generation,
            policy_name: record.policy_name.clone(),
            policy_source: record.policy_source.clone(),
            rate_bps: record.rate_bps,
            ingress_rate_bps: policy::rates(record).arrivals.map(|rate| rate.0),
            digest: Some(digest(record)),
            policy: record.policy.to_string(),
        }
    }

    /// Time of the change, in the machine's time zone, as ISO 8601 has it.
    pub fn local_time(&self) -> String {
        self.when.to_zoned(TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
    }

    /// Whether the policy took force, confirmed or not.
    fn took_force(&self) -> bool {
        matches!(self.outcome, Outcome::Applied | Outcome::Unconfirmed)
    }

    /// Whether two entries are of the same change.
    fn is(&self, other: &Entry) -> bool {
        let digests = self.digest.as_ref().zip(other.digest.as_ref());
        (self.generation, self.when, self.what) == (other.generation, other.when, other.what)
            && digests.is_none_or(|(own, other)| own == other)
    }

    /// The entry of an amendment of the policy that this entry has put into force.
    fn amended(&self, amendment: &Amendment, policy: String) -> Entry {
        Entry {
            number: self.number + 1,
            when: time(amendment.applied_s),
            what: Origin::Apply,
            repeats: None,
            message: amendment.message.clone(),
            outcome: Outcome::Applied,
            error: None,
            generation: amendment.generation,
            digest: None,
            policy,
            ..self.clone()
        }
    }

    /// The digest, computed if it was not.
    fn whole_digest(&self) -> String {
        self.digest.clone().unwrap_or_else(|| digest_of(&self.policy, self.rate_bps, self.ingress_rate_bps))
    }
}

/// A time in seconds since 1970.
fn time(s: u64) -> Timestamp {
    i64::try_from(s).ok().and_then(|s| Timestamp::from_second(s).ok()).unwrap_or_default()
}

fn digest(record: &Record) -> String {
    digest_of(&record.policy, record.rate_bps, policy::rates(record).arrivals.map(|rate| rate.0))
}

fn digest_of(text: &str, rate_bps: Option<u64>, ingress_rate_bps: Option<u64>) -> String {
    let mut rate = rate_bps.map_or(String::new(), |bps| bps.to_string());
    if let Some(arrivals) = ingress_rate_bps {
        rate += &format!("\0{arrivals}");
    }
    let hash = Sha256::new().chain_update(policy::canonical(text)).chain_update("\0").chain_update(rate).finalize();
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The entries under a key, the oldest first.
pub(crate) fn entries(key: &str) -> Result<Vec<Entry>> {
    Ok(History::read(key)?.entries)
}

/// The last policy before the one in force that differs from it.
pub(crate) fn previous(record: &Record) -> Result<Entry> {
    let history = History::read(&record.key)?;
    history.previous(&digest(record)).cloned().ok_or_else(|| {
        Error::input(format!("{}: its history has no other policy to go back to", record.interface))
            .help(format!("`sluice history {0}` lists it; `sluice apply {0} POLICY` takes any", record.interface))
    })
}

/// The last entry of a key that took force for good.
pub(crate) fn last_applied(key: &str) -> Result<Option<Entry>> {
    Ok(History::read(key)?.entries.into_iter().rev().find(|entry| entry.outcome == Outcome::Applied))
}

/// Adds to the history that a record's policy has taken force. Returns a note if that fails.
pub(crate) fn note_change(record: &Record) -> Option<String> {
    let outcome = if record.unconfirmed.is_some() { Outcome::Unconfirmed } else { Outcome::Applied };
    note(record, outcome, None)
}

/// Adds the outcome of a record's policy to the history. Returns a note if that fails.
pub(crate) fn note(record: &Record, outcome: Outcome, error: Option<&str>) -> Option<String> {
    change(&record.key, |history| {
        // A change that need not be confirmed settles one that waits: it confirms it, or takes it back.
        if outcome == Outcome::Applied {
            history.settle(if record.what == Origin::Revert { Outcome::Reverted } else { Outcome::Applied });
        }
        history.add(Entry::new(record, outcome, error));
    })
}

/// Adds to the history that an amendment of a key's policy has taken force. Returns what is known of the history then, and a note if that fails.
pub(crate) fn note_amendment(key: &str, known: Known, amendment: &Amendment) -> (Known, Option<String>) {
    if let Ok(known) = file::amend(key, known, amendment) {
        return (known, None);
    }
    let note = match Record::of_key(key) {
        Ok(Some(record)) => note_change(&record),
        _ => Some(format!("the history is not written: {key} has no record")),
    };
    (file::known(key).unwrap_or_default(), note)
}

/// Marks the change of a record as failed: it took force, and was taken back because another change has failed.
pub(crate) fn note_undone(record: &Record, error: &str) -> Option<String> {
    let event = Entry::new(record, Outcome::Failed, Some(error));
    change(&record.key, |history| history.fail(&event))
}

/// Writes the outcome of the change that waited to be confirmed.
pub(crate) fn settle(key: &str, outcome: Outcome) -> Option<String> {
    change(key, |history| history.settle(outcome))
}

fn change(key: &str, with: impl FnOnce(&mut History)) -> Option<String> {
    let changed = History::read(key).and_then(|mut history| {
        with(&mut history);
        history.write(key)
    });
    changed.err().map(|error| not_written(&error))
}

fn not_written(error: &Error) -> String {
    format!("the history is not written: {}", error.what)
}
