//! Our parts on an interface without a record, or without one that this version can read: told by names, handles and groups.
//! `down` needs no more.

use crate::bpf::hooks::{self, Side};
use crate::engine::{devices, is_ours, members, qdisc};
use crate::record::{self, Engine, Hook, Phase, Record};
use crate::system::interface::{self, Interface};
use crate::system::{bpffs, netns, paths, qdiscs};
use serde_json::Value;
use sluice_abi as abi;
use sluice_error::Result;
use std::fs;
use std::path::Path;

/// A record of our parts that are there, by which all can be removed. None: there are none.
pub(crate) fn of(name: &str) -> Result<Option<Record>> {
    let interface = Interface::find(name)?;
    let own = netns::inode()?;
    let unread = unread(paths::run(), &interface.name, own);
    let word = |key: &str| unread.as_ref().and_then(|(_, value)| value.get(key).cloned());
    let qdiscs = qdiscs::list(name)?;
    let root = qdiscs.iter().find(|qdisc| qdisc.root);
    let ours = qdiscs.iter().find(|one| qdisc::is_name(&one.kind));
    let key = unread.as_ref().map(|(key, _)| key.clone());
    let mut record = Record {
        key: key.map_or_else(|| pinned_key(name, own), Ok)?,
        interface: interface.name.clone(),
        ifindex: interface.ifindex,
        netns: own,
        netns_cookie: Some(netns::cookie()?),
        qdisc: ours.map(|qdisc| qdisc.kind.clone()).unwrap_or_default(),
        // Only an empty clsact is removed.
        made_clsact: true,
        gro_was_on: word("gro_was_on") == Some(Value::Bool(true)),
        ..empty()
    };
    for engine in [Engine::Qdisc, Engine::Tc] {
        record.engine = engine;
        record.queues = u32::from(engine == Engine::Qdisc);
        if root.is_some_and(|root| is_ours(&record, root)) {
            break;
        }
        record.engine = Engine::None;
    }
    record.members = members::remaining(name, &record.pins(&bpffs::root()?))?;
    let devices = [record.ingress_device(), record.split_device()];
    let is_there = unread.is_some()
        || record.engine != Engine::None
        || record.pins(&bpffs::root()?).exists()
        || devices.iter().any(|device| devices::is_ours(device))
        || hooks::has_own_filter(name, Side::Ingress)?
        || hooks::has_own_filter(name, Side::Egress)?;
    Ok(is_there.then_some(record))
}

/// The interfaces of this network namespace that have a record which cannot be read, and none that can.
pub fn unreadable_here() -> Result<Vec<String>> {
    let own = netns::inode()?;
    let known: Vec<u32> =
        Record::all()?.iter().filter(|record| record.netns == own).map(|record| record.ifindex).collect();
    let here = interface::indices()?.into_iter().filter(|(_, ifindex)| !known.contains(ifindex));
    Ok(here.map(|(name, _)| name).filter(|name| unread(paths::run(), name, own).is_some()).collect())
}

/// The record of an interface as JSON, and its key, if it is not one of this version.
fn unread(directory: &Path, interface: &str, netns: u64) -> Option<(String, Value)> {
    possible_keys(interface, netns).into_iter().find_map(|key| {
        let path = directory.join(format!("{key}.json"));
        fs::symlink_metadata(&path).ok()?;
        // A file that cannot be read at all, such as a link to elsewhere, is no record either.
        let text = crate::system::private::read(&path).unwrap_or_default();
        if serde_json::from_str::<Record>(&text).is_ok() {
            return None;
        }
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let said = value.get("netns").and_then(Value::as_u64);
        said.is_none_or(|said| said == netns).then_some((key, value))
    })
}

/// The keys that an interface's record may have, the usual ones.
fn possible_keys(name: &str, netns: u64) -> Vec<String> {
    let plain = record::key_of_name(name);
    let own = format!("{plain}@{netns}");
    if netns::first_inode() == Some(netns) { vec![plain, own] } else { vec![own] }
}

/// The key under which there are pins, else a new one.
fn pinned_key(name: &str, netns: u64) -> Result<String> {
    let root = bpffs::root()?;
    let pinned = possible_keys(name, netns).into_iter().find(|key| root.join(key).exists());
    pinned.map_or_else(|| Record::new_key(name), Ok)
}

fn empty() -> Record {
    Record {
        abi_version: abi::SL_ABI_VERSION,
        program: None,
        key: String::new(),
        interface: String::new(),
        ifindex: 0,
        netns: 0,
        netns_cookie: None,
        phase: Phase::Stopping,
        ingress_rate_of_policy: false,
        engine: Engine::None,
        hook: Hook::Tc,
        qdisc: String::new(),
        way: None,
        class_tree: false,
        queues: 0,
        tag: 0,
        generation: 0,
        policy: String::new().into(),
        policy_name: String::new(),
        policy_source: String::new(),
        rate_bps: None,
        ingress_rate_bps: None,
        ingress_ifindex: None,
        partner: None,
        members: None,
        split: false,
        split_ifindex: None,
        marks: false,
        classifies: false,
        fq_codel: false,
        codel: false,
        made_clsact: false,
        gro_was_on: false,
        replaced: None,
        applied_s: 0,
        what: crate::record::origin::Origin::Up,
        message: None,
        repeats: None,
        rule_starts: crate::record::rule_starts::RuleStarts::default(),
        unconfirmed: None,
        before: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_cannot_be_read_are_found() {
        let directory = std::env::temp_dir().join(format!("sluice-remains-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let good = serde_json::to_string(&empty()).expect("JSON");
        let of_another_namespace = r#"{ "netns": 8 }"#;
        for (name, text) in
            [("a@7", "{ \"netns\": 7"), ("b@7", good.as_str()), ("c@7", of_another_namespace), ("d@7", "")]
        {
            fs::write(directory.join(format!("{name}.json")), text).expect("a file");
        }
        let found = ["a", "b", "c", "d", "e"].map(|name| unread(&directory, name, 7).map(|(key, _)| key));
        fs::remove_dir_all(&directory).expect("removing");
        assert_eq!(found, [Some("a@7".to_owned()), None, None, Some("d@7".to_owned()), None]);
    }
}
