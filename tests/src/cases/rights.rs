//! What other users of the machine must not be able to do: nothing of the product's is theirs to read, hold or replace.

use crate::command::run;
use crate::lab::Lab;
use crate::policy::three;
use crate::suite::Suite;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The user `nobody`.
const NOBODY: u32 = 65_534;

pub fn suite() -> Suite {
    Suite::new("rights").of_commands().any("the_lock_is_out_of_reach", &[], the_lock_is_out_of_reach)
}

fn mode(path: &str) -> u32 {
    fs::symlink_metadata(path).unwrap_or_else(|error| panic!("{path}: {error}")).mode() & 0o7777
}

/// Who can open the lock can hold it, and then no command changes anything, and no change that nobody confirms is taken back.
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
    let held = run(Command::new("flock").args(["-n", lock, "true"]).uid(NOBODY).gid(NOBODY));
    assert_ne!(held.code, Some(0), "anybody can hold the lock: {held}");
    lab.down(&pair.a, "a0");
}
