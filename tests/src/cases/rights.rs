//! Other users of the machine can neither read, hold nor replace any object of the product.

use crate::command::run;
use crate::lab::{Lab, binary};
use crate::policy::three;
use crate::suite::Suite;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The user `nobody`.
const NOBODY: u32 = 65_534;

pub fn suite() -> Suite {
    Suite::new("rights")
        .alike_everywhere()
        .any("the_lock_is_out_of_reach", &[], the_lock_is_out_of_reach)
        .any("pins_are_roots", &[], pins_are_roots)
        .any("hashes_have_keys_of_their_own", &[], hashes_have_keys)
}

fn mode(path: &str) -> u32 {
    fs::symlink_metadata(path).unwrap_or_else(|error| panic!("{path}: {error}")).mode() & 0o7777
}

/// A user who opens the lock could hold it, which would block every change and every revert.
fn the_lock_is_out_of_reach(lab: &Lab) {
    let (directory, lock) = ("/run/sluice", "/run/sluice/lock");
    fs::create_dir_all(directory).expect("creating a directory");
    fs::OpenOptions::new().append(true).create(true).open(lock).expect("creating a file");
    for (path, open) in [(directory, 0o755), (lock, 0o644)] {
        fs::set_permissions(Path::new(path), Permissions::from_mode(open)).expect("chmod");
    }
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    assert_eq!((mode(directory), mode(lock)), (0o700, 0o600));
    // A user who cannot open the lock cannot hold it.
    let opened = run(Command::new("cat").arg(lock).uid(NOBODY).gid(NOBODY));
    assert_ne!(opened.code, Some(0), "anybody can hold the lock: {opened}");
    lab.down(&pair.a, "a0");
}

/// Pins without a mounted BPF file system, and at a path that another user has made before.
fn pins_are_roots(lab: &Lab) {
    let pair = lab.pair();
    let program = fs::canonicalize(binary()).expect("SLUICE_BIN names the program").display().to_string();
    let policy = lab.policy(&three());
    let pins = pair.a.pins("a0").display().to_string();
    // Mounts and processes of its own, so that the first process in it has its mounts.
    let inside = |script: &str| {
        let whole = format!("set -e; umount -l /sys/fs/bpf; {script}");
        run(Command::new("unshare").args(["-m", "-p", "-f", "--mount-proc", "sh", "-c", &whole])).ok().stdout
    };
    let sluice = format!("{program} --netns {}", pair.a.name);
    let up = format!("{sluice} up a0 --policy {policy} --rate 20mbit >/dev/null");
    let modes = format!("stat -c '%u %a' /sys/fs/bpf /sys/fs/bpf/sluice {pins}");
    let down = format!("{sluice} down a0 >/dev/null");
    assert_eq!(inside(&format!("{up}; {modes}; {down}")), "0 1700\n0 700\n0 700\n", "mounted by us");
    let taken = format!(
        "mount -t bpf -o mode=1777 bpf /sys/fs/bpf; mkdir -m 777 /sys/fs/bpf/sluice {pins}; chown {NOBODY} /sys/fs/bpf/sluice {pins}"
    );
    assert_eq!(inside(&format!("{taken}; {up}; {modes}; {down}")), "0 1777\n0 700\n0 700\n", "mounted by another user");
}

/// The keys of hashes in all programs that are loaded.
fn hash_keys() -> BTreeSet<String> {
    let bpftool = |arguments: &[&str]| -> Value {
        let output = run(Command::new("bpftool").arg("-j").args(arguments));
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output}"))
    };
    let maps = bpftool(&["map", "show"]);
    let constants = maps
        .as_array()
        .expect("a list")
        .iter()
        .filter(|map| map["name"].as_str().is_some_and(|name| name.ends_with(".data.hash")));
    let mut found = BTreeSet::new();
    for map in constants {
        // A map that is gone since gives an error.
        let dump = bpftool(&["map", "dump", "id", &map["id"].to_string()]);
        let sections = dump.pointer("/0/formatted/value/.data.hash").and_then(Value::as_array).into_iter().flatten();
        found.extend(sections.filter_map(|variable| variable.pointer("/sl_hash/key")).map(Value::to_string));
    }
    found
}

/// The keys of one interface reveal nothing about another's, or about the same interface's when it is managed again.
fn hashes_have_keys(lab: &Lab) {
    let policy = lab.policy(&three());
    let mut known = hash_keys();
    // Maps of released interfaces may go a little later, so only new ones count.
    let mut new = || {
        let all = hash_keys();
        let new: Vec<String> = all.difference(&known).cloned().collect();
        known.extend(all);
        new
    };
    let (one, two) = (lab.pair(), lab.pair());
    for (pair, again) in [(&one, false), (&two, false), (&two, true)] {
        if again {
            lab.down(&pair.a, "a0");
        }
        lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit"]);
        let keys = new();
        assert_eq!(
            keys.len(),
            1,
            "both objects of an interface have the same keys, and no other object has them: {keys:?}"
        );
        assert!(!keys[0].contains("[0,0"), "no keys were drawn");
    }
    lab.down(&one.a, "a0");
    lab.down(&two.a, "a0");
}
