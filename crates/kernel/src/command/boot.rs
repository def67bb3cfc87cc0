//! The policy that holds when the machine starts again. The boot unit brings up the configured policy, or the one that
//! `apply --at-boot` has kept, or the last one that was applied: /etc/sluice/INTERFACE.conf says which.

use crate::engine::managed::absent;
use crate::record::{Record, history};
use crate::system::{netns, private};
use serde::{Deserialize, Serialize};
use sluice_error::{Doing, Result};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "/var/lib/sluice/boot";
const CONFIGURATION: &str = "/etc/sluice";

/// A policy that can be brought up again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// Name of the policy.
    pub name: String,
    /// Source of the policy's text, such as a path.
    pub source: String,
    /// Text of the policy: as its author wrote it, where that text alone means the same.
    pub policy: String,
    /// `--rate`, bits per second.
    pub rate_bps: Option<u64>,
}

/// The policy that is brought up at boot: `SLUICE_RESTORE` in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restore {
    /// The configured policy.
    Configured,
    /// The policy that `apply --at-boot` has kept, else the configured one.
    Saved,
    /// The last policy that was applied for good, else the kept one, else the configured one.
    Last,
}

impl Saved {
    fn of(record: &Record) -> Saved {
        Saved {
            name: record.policy_name.clone(),
            source: record.policy_source.clone(),
            policy: record.policy.to_string(),
            rate_bps: record.rate_bps,
        }
    }
}

fn file(key: &str) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{key}.json"))
}

/// Keeps the policy in force for the next boot, that of an interface that a command has changed.
pub fn save(changed: &Record) -> Result<()> {
    let record = &Record::of_key(&changed.key)?.ok_or_else(|| absent(&changed.interface))?;
    private::directory(Path::new(DIRECTORY))?;
    let text = serde_json::to_string_pretty(&Saved::of(record)).doing(|| "a policy to keep".to_owned())?;
    let (path, partial) = (file(&record.key), file(&format!("{}.partial", record.key)));
    private::write(&partial, &text)?;
    fs::rename(&partial, &path).doing(|| format!("writing {}", path.display()))
}

/// Removes the policies kept for network namespaces that have gone: another namespace may get the number.
pub(crate) fn remove_orphans(own: u64) {
    history::remove_orphans_in(DIRECTORY, own);
}

/// Removes the policy kept under the key of an interface that has gone with its network namespace.
pub(crate) fn forget(key: &str) {
    // A file that stays is overwritten by the next `--at-boot`.
    let _ = fs::remove_file(file(key));
}

/// The policy to bring up instead of the configured one, if there is any.
pub fn restored(interface: &str, which: Restore) -> Result<Option<Saved>> {
    // Errors of the interface are reported by `up`.
    if which == Restore::Configured {
        return Ok(None);
    }
    let key = match Record::find(interface)? {
        Some(record) => record.key,
        None => Record::new_key(interface)?,
    };
    let applied = |entry: history::Entry| Saved {
        name: entry.policy_name,
        source: entry.policy_source,
        policy: entry.policy,
        rate_bps: entry.rate_bps,
    };
    let last = if which == Restore::Last { history::last_applied(&key)?.map(applied) } else { None };
    if last.is_some() { Ok(last) } else { saved(&key) }
}

fn saved(key: &str) -> Result<Option<Saved>> {
    let path = file(key);
    match private::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        text => {
            let text = text.doing(|| format!("reading {}", path.display()))?;
            serde_json::from_str(&text).map(Some).doing(|| format!("{}: not a policy that was kept", path.display()))
        }
    }
}

/// A sentence on the next boot, for the person who has put a policy into force. None: the interface is of a network namespace,
/// which does not outlive this boot.
pub fn note(record: &Record) -> Option<String> {
    if netns::first_inode() != Some(record.netns) {
        return None;
    }
    let path = Path::new(CONFIGURATION).join(format!("{}.conf", record.interface));
    let configuration = fs::read_to_string(&path).ok();
    let kept = saved(&record.key).ok().flatten();
    let unit = if record.members.is_some() { "sluice-group" } else { "sluice" };
    let unconfirmed = record.unconfirmed.is_some();
    Some(at_boot(&Saved::of(record), unconfirmed, configuration.as_deref(), kept.as_ref(), (unit, &path)))
}

/// `unit`: name of the unit that reads the configuration at `path`.
fn at_boot(
    now: &Saved,
    unconfirmed: bool,
    configuration: Option<&str>,
    kept: Option<&Saved>,
    (unit, path): (&str, &Path),
) -> String {
    let path = path.display();
    let Some(configuration) = configuration else {
        return format!("at boot nothing brings this up: there is no {path} for the unit {unit}@");
    };
    let value = |key: &str| {
        let mut lines = configuration.lines().rev().filter_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='));
        lines.next().map(|value| value.trim().trim_matches(['"', '\'']).to_owned())
    };
    let configured = value("SLUICE_POLICY").unwrap_or_default();
    let restore = value("SLUICE_RESTORE").unwrap_or_else(|| "saved".to_owned());
    let is_configured = configured == now.name || configured == now.source;
    match (restore.as_str(), kept) {
        ("last", _) if unconfirmed => "at boot this policy holds if it is confirmed, as the last one".to_owned(),
        ("last", _) => "at boot this policy holds, as the last one that was applied".to_owned(),
        ("saved", Some(kept)) if kept == now => "at boot this policy holds, as --at-boot has kept it".to_owned(),
        ("saved", Some(kept)) => {
            format!(
                "at boot the policy {} holds, which --at-boot has kept, not this one; apply it with --at-boot to keep it",
                kept.name
            )
        }
        _ if is_configured => {
            format!("at boot the policy {configured} of {path} holds, with the content that it has then")
        }
        ("configured", _) => {
            format!("at boot the policy {configured} of {path} holds, not this one: SLUICE_RESTORE=configured")
        }
        _ => {
            format!("at boot the policy {configured} of {path} holds, not this one; apply it with --at-boot to keep it")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(name: &str) -> Saved {
        Saved { name: name.to_owned(), source: format!("/x/{name}.json"), policy: "{}".to_owned(), rate_bps: None }
    }

    #[test]
    fn note_says_which_policy_holds_at_boot() {
        let note = |configuration: Option<&str>, kept: Option<&str>, unconfirmed: bool| {
            let kept = kept.map(saved);
            let path = Path::new("/etc/sluice/eth0.conf");
            at_boot(&saved("mine"), unconfirmed, configuration, kept.as_ref(), ("sluice", path))
        };
        let conf = |restore: &str| format!("# it\nSLUICE_POLICY=gaming\n{restore}\nSLUICE_OPTS=--rate 19mbit\n");
        for (configuration, kept, unconfirmed, what) in [
            (None, None, false, "nothing brings this up"),
            (Some(conf("")), None, false, "the policy gaming of /etc/sluice/eth0.conf holds, not this one; apply"),
            (Some(conf("")), Some("mine"), false, "this policy holds, as --at-boot has kept it"),
            (Some(conf("")), Some("other"), false, "the policy other holds, which --at-boot has kept, not this one"),
            (Some(conf("SLUICE_RESTORE=configured")), Some("mine"), false, "SLUICE_RESTORE=configured"),
            (Some(conf("SLUICE_RESTORE=last")), Some("other"), false, "as the last one that was applied"),
            (Some(conf("SLUICE_RESTORE=\"last\"")), None, true, "if it is confirmed"),
            (
                Some("SLUICE_POLICY=/x/mine.json".to_owned()),
                None,
                false,
                "the policy /x/mine.json of /etc/sluice/eth0.conf holds, with the content",
            ),
        ] {
            let said = note(configuration.as_deref(), kept, unconfirmed);
            assert!(said.starts_with("at boot ") && said.contains(what), "{said}");
        }
    }
}
