//! What is known of a managed interface between two commands: a file per interface, written before anything it speaks
//! of is done, so that whoever dies leaves enough for `down` to clean up.

pub(crate) mod count;
pub mod history;
pub(crate) mod origin;
pub(crate) mod policy;
pub(crate) mod rule_starts;
pub mod unconfirmed;

use crate::record::origin::Origin;
use crate::record::rule_starts::RuleStarts;
use crate::record::unconfirmed::{Former, FormerIngress, Unconfirmed};
use crate::system::interface::{self, Interface};
use crate::system::{clock, netns, paths, private};
use serde::{Deserialize, Serialize};
use sluice_error::{Doing, Error, Result};
pub use sluice_policy::Engine;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// How arriving packets are classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    /// XDP in the driver, and tc behind it.
    Xdp,
    /// tcx, or clsact where the kernel has no tcx.
    Tc,
}

/// How far a command has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// `up` has begun and not ended.
    Starting,
    /// In force.
    Active,
    /// `down` has begun and not ended.
    Stopping,
}

/// A managed interface.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Version of the ABI that its pins have.
    pub abi_version: u32,
    /// What the programs that were loaded are told by (SHA-256). None: an earlier version has loaded them.
    #[serde(default)]
    pub program: Option<String>,
    /// Name of its file here and of its directory of pins.
    pub key: String,
    /// Name of the interface.
    pub interface: String,
    /// Number of the interface.
    pub ifindex: u32,
    /// Number of its network namespace.
    pub netns: u64,
    /// How far the last command came.
    pub phase: Phase,
    /// What queues.
    pub engine: Engine,
    /// What classifies on arrival.
    pub hook: Hook,
    /// Name of our qdisc type, with engine `qdisc`.
    pub qdisc: String,
    /// How many queues have a scheduler each; 0: one at the root serves all.
    pub queues: u32,
    /// The mark of the policy on packets.
    pub tag: u16,
    /// Number of the configuration in force.
    pub generation: u32,
    /// The policy, as its author wrote it where that text alone means the same.
    pub policy: String,
    /// Name of the policy.
    pub policy_name: String,
    /// Where it was read from.
    pub policy_source: String,
    /// `--rate`, bits per second.
    pub rate_bps: Option<u64>,
    /// `--ingress-rate`, bits per second.
    pub ingress_rate_bps: Option<u64>,
    /// Number of the device behind which arriving packets are queued.
    #[serde(default)]
    pub ingress_ifindex: Option<u32>,
    /// Whether that is the policy's, and not what `--ingress-rate` has said.
    #[serde(default)]
    pub ingress_rate_of_policy: bool,
    /// Whether super-packets are split on their way out.
    pub split: bool,
    /// Number of the device that splits them.
    #[serde(default)]
    pub split_ifindex: Option<u32>,
    /// Whether a hook of its own marks departing packets, with engine `qdisc`; the splitter does so by the way.
    #[serde(default)]
    pub marks: bool,
    /// Whether the kernel has fq_codel for leaves, with engine `tc`.
    pub fq_codel: bool,
    /// Whether it has codel for them.
    #[serde(default)]
    pub codel: bool,
    /// Whether we have added clsact.
    pub made_clsact: bool,
    /// Whether merging of arriving packets was on before we turned it off.
    pub gro_was_on: bool,
    /// Dump of a hand-made hierarchy that `--force` has replaced.
    pub replaced: Option<PathBuf>,
    /// When the policy in force was applied, seconds since 1970.
    pub applied_s: u64,
    /// What has put it into force.
    #[serde(default)]
    pub what: Origin,
    /// Why, in the words of who did it.
    pub message: Option<String>,
    /// The number of the history's entry that it repeats.
    pub repeats: Option<u32>,
    /// Since when each rule counts.
    #[serde(default)]
    pub rule_starts: RuleStarts,
    /// What happens unless it is confirmed.
    pub unconfirmed: Option<Unconfirmed>,
    /// While a change makes this one live: what is in force until then.
    pub before: Option<Box<Record>>,
}

impl Record {
    /// Name of the device behind which arriving packets are queued.
    pub fn ingress_device(&self) -> String {
        format!("sluice-in{}", self.ifindex)
    }

    /// Name of the device that splits super-packets.
    pub fn split_device(&self) -> String {
        format!("sluice-sp{}", self.ifindex)
    }

    /// Directory of its pins below `root`.
    pub fn pins(&self, root: &Path) -> PathBuf {
        root.join(&self.key)
    }

    /// Directory of the pins that an upgrade makes before they take the place of the others.
    pub(crate) fn new_pins(&self, root: &Path) -> PathBuf {
        root.join(format!("{}+", self.key))
    }

    /// For a change that must be confirmed within this time. A change upon an unconfirmed one is taken back together with that.
    pub(crate) fn begin_waiting(&self, time: Duration) -> Unconfirmed {
        let former = || Former {
            name: self.policy_name.clone(),
            source: self.policy_source.clone(),
            policy: self.policy.clone(),
            rate_bps: self.rate_bps,
            ingress: Some(FormerIngress { rate_bps: self.ingress_rate_bps, of_policy: self.ingress_rate_of_policy }),
        };
        Unconfirmed {
            deadline_ms: (clock::since_boot() + time).as_millis() as u64,
            time_s: time.as_secs(),
            former: self.unconfirmed.as_ref().map_or_else(former, |earlier| earlier.former.clone()),
        }
    }

    /// Whether a change should have been confirmed by now.
    pub(crate) fn is_overdue(&self) -> bool {
        self.unconfirmed.as_ref().is_some_and(|unconfirmed| unconfirmed.left().is_zero())
    }

    /// The record of an interface in the process's namespace. One that was renamed since is found by its number, by its
    /// old name too while nobody else has that.
    pub fn find(interface: &str) -> Result<Option<Record>> {
        let own = netns::inode()?;
        let mut records: Vec<Record> = stored()?.into_iter().filter(|record| record.netns == own).collect();
        let ifindex = nix::net::if_::if_nametoindex(interface).ok();
        let named = |record: &Record| record.interface == interface;
        let found = records
            .iter()
            .position(|record| Some(record.ifindex) == ifindex)
            .or_else(|| records.iter().position(|record| named(record) && Interface::name_of(record.ifindex).is_none()))
            .or_else(|| records.iter().position(|record| named(record) && ifindex.is_none()));
        Ok(found.map(|place| records.swap_remove(place).renewed()))
    }

    /// Under the name that the interface has now. Whoever changes the interface writes it.
    fn renewed(mut self) -> Record {
        if let Some(name) = Interface::name_of(self.ifindex) {
            self.before.iter_mut().for_each(|before| before.interface.clone_from(&name));
            self.interface = name;
        }
        self
    }

    /// The key for an interface of the process's namespace: its name, and the namespace's number unless it is the
    /// machine's own. One that was renamed keeps its key, and who has its name now gets another.
    pub fn new_key(interface: &str) -> Result<String> {
        if !interface::can_be_named(interface) {
            return Err(interface::no_such(interface));
        }
        let own = netns::inode()?;
        let name = key_of_name(interface);
        let free = |key: &String| !file(key).exists();
        let plain = (netns::first_inode() == Some(own)).then(|| name.clone());
        let first = plain.into_iter().chain([format!("{name}@{own}")]).find(free);
        let further = || (2..).map(|n: u32| format!("{name}@{n}@{own}")).find(free);
        first.or_else(further).ok_or_else(|| Error::system(format!("{interface}: no name for its record is free")))
    }

    /// The record of this key.
    pub(crate) fn of_key(key: &str) -> Result<Option<Record>> {
        let path = file(key);
        if path.exists() { read(&path).map(Some) } else { Ok(None) }
    }

    /// All records of the machine, whatever their namespace.
    pub fn all() -> Result<Vec<Record>> {
        let own = netns::inode()?;
        let renew = |record: Record| if record.netns == own { record.renewed() } else { record };
        let mut records: Vec<Record> = stored()?.into_iter().map(renew).collect();
        records.sort_by(|a, b| (a.netns, &a.interface).cmp(&(b.netns, &b.interface)));
        Ok(records)
    }

    /// Writes it, whole or not at all.
    pub fn save(&self) -> Result<()> {
        let path = file(&self.key);
        let partial = path.with_extension("partial");
        let text = serde_json::to_string_pretty(self).doing(|| "a record".to_owned())?;
        private::directory(paths::run())?;
        let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, &path));
        if written.is_err() {
            // Half a record is of no use to anybody.
            let _ = fs::remove_file(&partial);
        }
        written.doing(|| format!("writing {}", path.display()))
    }

    /// Forgets it.
    pub fn remove(&self) -> Result<()> {
        let path = file(&self.key);
        fs::remove_file(&path).doing(|| format!("removing {}", path.display()))
    }
}

/// Beside the pins of interfaces: the directory of those of shared buckets. No interface has this key.
pub(crate) const SHARED_BUCKETS: &str = "shared";

/// The part of a key that an interface's name makes.
pub(crate) fn key_of_name(interface: &str) -> String {
    // bpffs takes no names with a dot, and every usual VLAN device has one. A plus ends the name of what an upgrade loads beside.
    let name = interface.replace('%', "%25").replace('.', "%2e").replace('@', "%40").replace('+', "%2b");
    // Beside the interfaces' pins stand those of shared buckets.
    if name == SHARED_BUCKETS { "%73hared".to_owned() } else { name }
}

pub(crate) fn file(key: &str) -> PathBuf {
    paths::run().join(format!("{key}.json"))
}

/// The records as they were written.
fn stored() -> Result<Vec<Record>> {
    let Ok(entries) = fs::read_dir(paths::run()) else { return Ok(Vec::new()) };
    let mut records = Vec::new();
    for entry in entries.flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "json") {
            match read(&entry.path()) {
                Ok(record) => records.push(record),
                // One that nobody can read must not stand in the way of the others.
                Err(error) => warn_once(&entry.path(), &error),
            }
        }
    }
    Ok(records)
}

/// A command looks at records several times, and says once that it cannot read one.
fn warn_once(path: &Path, error: &Error) {
    static TOLD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if TOLD.lock().is_ok_and(|mut told| told.insert(path.to_owned())) {
        eprintln!("warning: {error}");
    }
}

fn read(path: &Path) -> Result<Record> {
    let text = private::read(path).doing(|| format!("reading {}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| {
        Error::system(format!("{}: not a record of this version: {error}", path.display()))
            .help("it is damaged, or of another version of sluice: `sluice down` with the interface's name cleans up without it")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What earlier versions have written is read.
    #[test]
    fn records_of_earlier_versions_are_read() {
        let read = |text: &str| serde_json::from_str::<Record>(text).expect("a record");
        let first = read(include_str!("../tests/records/tc-first.json"));
        assert_eq!((first.engine, first.what, first.program), (Engine::Tc, Origin::Up, None));
        assert_eq!((first.ingress_ifindex, first.rule_starts.places), (None, 0));
        let unconfirmed = read(include_str!("../tests/records/tc-unconfirmed.json"));
        assert_eq!(unconfirmed.unconfirmed.map(|unconfirmed| unconfirmed.former.name).as_deref(), Some("gaming"));
        let qdisc = read(include_str!("../tests/records/qdisc.json"));
        assert_eq!((qdisc.engine, qdisc.qdisc.as_str(), qdisc.split), (Engine::Qdisc, "sluice0", true));
        for record in [read(include_str!("../tests/records/tc-first.json")), qdisc] {
            crate::record::policy::resolved(&record).expect("its policy is one of this version");
        }
    }

    #[test]
    fn keys_are_names_of_files() {
        for (name, key) in
            [("eth0", "eth0"), ("eth0.35", "eth0%2e35"), ("a@b+%", "a%40b%2b%25"), ("shared", "%73hared")]
        {
            assert_eq!(key_of_name(name), key);
        }
    }
}
