//! The record of a managed interface between two commands: a file per interface. It is written before the actions that it names,
//! so that a command that dies leaves enough for `down` to clean up.

pub(crate) mod amendments;
pub(crate) mod count;
pub mod history;
pub(crate) mod managed_interfaces;
pub(crate) mod origin;
pub(crate) mod policy;
pub(crate) mod recorded_text;
pub(crate) mod rule_starts;
pub(crate) mod subscriber_index;
pub mod unconfirmed;

use crate::record::amendments::{Amendment, Amendments, FileId};
use crate::record::origin::Origin;
use crate::record::recorded_text::RecordedText;
use crate::record::rule_starts::RuleStarts;
use crate::record::subscriber_index::SubscriberIndex;
use crate::record::unconfirmed::{Former, FormerIngress, Unconfirmed};
use crate::system::interface::{self, Interface};
use crate::system::{clock, netns, paths, private};
use serde::{Deserialize, Serialize};
use sluice_error::{Doing, Error, Result};
pub use sluice_policy::Engine;
use sluice_policy::network::Way;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// The hook that classifies arriving packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    /// XDP in the driver, and tc behind it.
    Xdp,
    /// tcx, or clsact where the kernel has no tcx.
    Tc,
}

/// Progress of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// `up` has begun and not ended.
    Starting,
    /// The interface is wholly up.
    Active,
    /// `down` has begun and not ended.
    Stopping,
}

/// A managed interface.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// ABI version of the pinned maps.
    pub abi_version: u32,
    /// SHA-256 of the BPF objects of the loaded programs. None: an earlier version has loaded them.
    #[serde(default)]
    pub program: Option<String>,
    /// Name of the record's file and of the directory of pins.
    pub key: String,
    /// Name of the interface.
    pub interface: String,
    /// Number of the interface.
    pub ifindex: u32,
    /// Number of its network namespace; 0: that has gone, and the number is the present namespace's.
    pub netns: u64,
    /// The namespace's cookie, since its number is given to the next namespace. None: an earlier version has written the record.
    #[serde(default)]
    pub netns_cookie: Option<u64>,
    /// Progress of the last command.
    pub phase: Phase,
    /// Engine that queues.
    pub engine: Engine,
    /// Hook that classifies on arrival.
    pub hook: Hook,
    /// Name of our qdisc type, with engine `qdisc`.
    pub qdisc: String,
    /// Direction of what is queued, of a policy with subscribers or a class tree, which has one direction: up. None: flat classes.
    #[serde(default)]
    pub way: Option<Way>,
    /// Whether the policy has a class tree.
    #[serde(default)]
    pub class_tree: bool,
    /// Number of queues with a scheduler each: tx queues, or on a wire receive queues; 0: one scheduler serves all.
    pub queues: u32,
    /// Tag of the policy in the `tc_index` of packets.
    pub tag: u16,
    /// Number of the configuration in force.
    pub generation: u32,
    /// The policy, as its author wrote it where that text alone means the same.
    pub policy: RecordedText,
    /// Name of the policy.
    pub policy_name: String,
    /// Source of the policy's text, such as a path.
    pub policy_source: String,
    /// `--rate`, bits per second.
    pub rate_bps: Option<u64>,
    /// `--ingress-rate`, bits per second.
    pub ingress_rate_bps: Option<u64>,
    /// Number of the device behind which arriving packets are queued.
    #[serde(default)]
    pub ingress_ifindex: Option<u32>,
    /// Whether the rate of arrivals is the policy's, and not that of `--ingress-rate`.
    #[serde(default)]
    pub ingress_rate_of_policy: bool,
    /// The interface that arriving packets leave by, with engine `xsk`.
    #[serde(default)]
    pub partner: Option<Partner>,
    /// The interfaces whose arrivals are queued together on this device of ours, as far as they were there; none: the record is of an interface.
    #[serde(default)]
    pub members: Option<Vec<Member>>,
    /// Whether super-packets are split on their way out.
    pub split: bool,
    /// Number of the device that splits super-packets.
    #[serde(default)]
    pub split_ifindex: Option<u32>,
    /// Whether a separate hook marks departing packets, with engine `qdisc`; where there is a splitter, its hook marks them.
    #[serde(default)]
    pub marks: bool,
    /// Whether a separate hook finds the class of departing packets inside their subscribers; where there is a splitter, its hook does.
    #[serde(default)]
    pub classifies: bool,
    /// Whether the kernel has fq_codel for leaves, with engine `tc`.
    pub fq_codel: bool,
    /// Whether the kernel has codel for leaves, with engine `tc`.
    #[serde(default)]
    pub codel: bool,
    /// Whether we have added clsact.
    pub made_clsact: bool,
    /// Whether merging of arriving packets was on before we turned it off.
    pub gro_was_on: bool,
    /// Dump of a hand-made hierarchy that `--force` has replaced.
    pub replaced: Option<PathBuf>,
    /// Time at which the policy in force was applied, seconds since 1970.
    pub applied_s: u64,
    /// Command that has put the policy into force.
    #[serde(default)]
    pub what: Origin,
    /// Reason of the change, in the words of its author.
    pub message: Option<String>,
    /// Number of the history entry that the policy repeats.
    pub repeats: Option<u32>,
    /// Counts of each rule when it came to its place.
    #[serde(default)]
    pub rule_starts: RuleStarts,
    /// Deadline and former policy, if the policy in force must be confirmed.
    pub unconfirmed: Option<Unconfirmed>,
    /// Record in force until a change makes this one live; none: no change is on its way.
    pub before: Option<Box<Record>>,
}

/// The interface on the other side of a wire (engine `xsk`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partner {
    /// Name of the interface when the wire was made.
    pub interface: String,
    /// Number of the interface.
    pub ifindex: u32,
    /// Whether we have made this record's interface take packets for every address.
    pub made_promiscuous: bool,
}

/// An interface of a group, at which the group's arrival hook is attached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Name of the interface in the policy; it stays a member under another name until an interface with this one is there.
    pub interface: String,
    /// Number of the interface.
    pub ifindex: u32,
    /// Whether the group has added clsact.
    pub made_clsact: bool,
}

impl Member {
    /// Name that the interface has now. None: it has gone.
    pub(crate) fn name(&self) -> Option<String> {
        Interface::name_of(self.ifindex)
    }
}

impl Record {
    /// Name of the device behind which arriving packets are queued: of a group, its own.
    pub fn ingress_device(&self) -> String {
        if self.members.is_some() { self.interface.clone() } else { format!("sluice-in{}", self.ifindex) }
    }

    /// Name of the device whose scheduler queues what arrives: with engine `xsk`, the interface itself.
    pub fn arrivals_are_queued_on(&self) -> String {
        if self.partner.is_some() { self.interface.clone() } else { self.ingress_device() }
    }

    /// Workers of a wire, each with a receive queue and a scheduler.
    pub(crate) fn workers(&self) -> u32 {
        self.queues.max(1)
    }

    /// Name of the interface that queued packets leave by: what arrives at a side of a wire leaves by the other one.
    pub(crate) fn departs_by(&self) -> &str {
        self.partner.as_ref().map_or(&self.interface, |partner| &partner.interface)
    }

    /// Whether this is a group that queues the arrivals of the interface that has this name now, or had it when it went.
    pub(crate) fn has_member(&self, interface: &str) -> bool {
        let ifindex = nix::net::if_::if_nametoindex(interface).ok();
        let is = |member: &Member| match member.name() {
            Some(_) => Some(member.ifindex) == ifindex,
            None => member.interface == interface,
        };
        self.members.iter().flatten().any(is)
    }

    /// The interfaces that are here, and whose arrivals a group queues. None: this is no group.
    pub fn member_names(&self) -> Option<Vec<String>> {
        let names = |members: &Vec<Member>| members.iter().filter_map(Member::name).collect();
        self.members.as_ref().map(names)
    }

    /// Whether the arrivals of the record's interface are queued in a group, whose hook stays when the record goes.
    pub(crate) fn is_in_group(&self) -> Result<bool> {
        let is_member =
            |group: Record| group.members.into_iter().flatten().any(|member| member.ifindex == self.ifindex);
        Ok(Record::all()?.into_iter().any(|other| other.netns == self.netns && is_member(other)))
    }

    /// Whether departures are queued: those of a group's device are arrivals.
    pub(crate) fn queues_departures(&self) -> bool {
        self.engine.has_qdiscs() && self.members.is_none()
    }

    /// Name of the device that splits super-packets.
    pub fn split_device(&self) -> String {
        format!("sluice-sp{}", self.ifindex)
    }

    /// Directory of the interface's pins below `root`.
    pub fn pins(&self, root: &Path) -> PathBuf {
        root.join(&self.key)
    }

    /// Directory of the pins that an upgrade makes before they take the place of the others.
    pub(crate) fn new_pins(&self, root: &Path) -> PathBuf {
        root.join(format!("{}+", self.key))
    }

    /// The state of a change that must be confirmed within this time. A change upon an unconfirmed one is taken back together with it.
    pub(crate) fn begin_waiting(&self, time: Duration) -> Unconfirmed {
        let former = || Former {
            name: self.policy_name.clone(),
            source: self.policy_source.clone(),
            policy: self.policy.to_string(),
            rate_bps: self.rate_bps,
            ingress: Some(FormerIngress { rate_bps: self.ingress_rate_bps, of_policy: self.ingress_rate_of_policy }),
        };
        Unconfirmed {
            deadline_ms: (clock::since_boot() + time).as_millis() as u64,
            time_s: time.as_secs(),
            former: self.unconfirmed.as_ref().map_or_else(former, |earlier| earlier.former.clone()),
        }
    }

    /// Whether the change should have been confirmed by now.
    pub(crate) fn is_overdue(&self) -> bool {
        self.unconfirmed.as_ref().is_some_and(|unconfirmed| unconfirmed.left().is_zero())
    }

    /// The record of an interface in the process's namespace. A renamed interface is found by its number, and by its old name while
    /// no other interface has that name.
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

    /// The record of the interface of this number in the process's namespace.
    pub(crate) fn of_number(ifindex: u32) -> Result<Option<Record>> {
        let own = netns::inode()?;
        let found = stored()?.into_iter().find(|record| record.netns == own && record.ifindex == ifindex);
        Ok(found.map(Record::renewed))
    }

    /// The record under the name that the interface has now. A command that changes the interface writes it.
    fn renewed(mut self) -> Record {
        if let Some(name) = Interface::name_of(self.ifindex) {
            self.before.iter_mut().for_each(|before| before.interface.clone_from(&name));
            self.interface = name;
        }
        if let Some(partner) = &mut self.partner
            && let Some(name) = Interface::name_of(partner.ifindex)
        {
            partner.interface = name;
        }
        self
    }

    /// The key for an interface of the process's namespace: its name, and the namespace's number unless it is the machine's own.
    /// A renamed interface keeps its key, and the interface that has its name now gets another.
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

    /// The record with its amendments.
    fn amended(self, amendments: Vec<Amendment>) -> Record {
        let Some(last) = amendments.last() else { return self };
        Record {
            generation: last.generation,
            applied_s: last.applied_s,
            what: Origin::Apply,
            message: last.message.clone(),
            repeats: None,
            policy: self.policy.amended(amendments),
            ..self
        }
    }

    /// Whether it has amendments that are not in the file that it was read from.
    pub(crate) fn has_amendments(&self) -> bool {
        self.policy.has_amendments()
    }

    /// Writes the record, whole or not at all.
    pub fn save(&self) -> Result<()> {
        let path = file(&self.key);
        let partial = path.with_extension("partial");
        let text = serde_json::to_string_pretty(self).doing(|| "a record".to_owned())?;
        private::directory(paths::run())?;
        let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, &path));
        if written.is_err() {
            // A partial file is of no use.
            let _ = fs::remove_file(&partial);
        } else {
            Amendments::remove(&path);
        }
        written.doing(|| format!("writing {}", path.display()))
    }

    /// Removes the record's file, and those beside it.
    pub fn remove(&self) -> Result<()> {
        let path = file(&self.key);
        SubscriberIndex::remove(&self.key);
        Amendments::remove(&path);
        fs::remove_file(&path).doing(|| format!("removing {}", path.display()))
    }
}

/// Directory of the pins of shared buckets, beside those of interfaces. No interface has this key.
pub(crate) const SHARED_BUCKETS: &str = "shared";

/// The part of a key that an interface's name makes.
pub(crate) fn key_of_name(interface: &str) -> String {
    // bpffs takes no names with a dot, and every usual VLAN device has one. A plus ends the name of the pins that an upgrade makes.
    let name = interface.replace('%', "%25").replace('.', "%2e").replace('@', "%40").replace('+', "%2b");
    // The directory of shared buckets has this name.
    if name == SHARED_BUCKETS { "%73hared".to_owned() } else { name }
}

pub(crate) fn file(key: &str) -> PathBuf {
    paths::run().join(format!("{key}.json"))
}

/// The records as they were written, but for the number of a namespace that has gone, where the process's namespace was given it.
fn stored() -> Result<Vec<Record>> {
    let Ok(entries) = fs::read_dir(paths::run()) else { return Ok(Vec::new()) };
    let (own, cookie) = (netns::inode()?, netns::cookie()?);
    let mut records = Vec::new();
    for entry in entries.flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "json") {
            match read(&entry.path()) {
                Ok(record) => {
                    let former = record.netns == own && record.netns_cookie.is_some_and(|its| its != cookie);
                    records.push(if former { Record { netns: 0, ..record } } else { record });
                }
                // A record that cannot be read must not stand in the way of the others.
                Err(error) => warn_once(&entry.path(), &error),
            }
        }
    }
    Ok(records)
}

/// Warns once of a record that cannot be read: a command looks at records several times.
fn warn_once(path: &Path, error: &Error) {
    static WARNED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if WARNED.lock().is_ok_and(|mut warned| warned.insert(path.to_owned())) {
        eprintln!("warning: {error}");
    }
}

/// Attempts to read a record and its amendments while other commands write them.
const READINGS: u32 = 16;

fn read(path: &Path) -> Result<Record> {
    let mut attempts = 1..=READINGS;
    loop {
        let (text, about) = private::read_with_metadata(path).doing(|| format!("reading {}", path.display()))?;
        let record: Record = serde_json::from_str(&text).map_err(|error| {
            Error::system(format!("{}: not a record of this version: {error}", path.display()))
                .help("it is damaged, or of another version of sluice: `sluice down` with the interface's name cleans up without it")
        })?;
        let own = FileId::of(&about);
        let amendments = Amendments::of(path, own).read()?;
        // A record that was written meanwhile has them, and they are not to be read beside the former one.
        if FileId::at(path).is_ok_and(|now| now == own) || attempts.next().is_none() {
            return Ok(record.amended(amendments));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records that earlier versions have written are read.
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
