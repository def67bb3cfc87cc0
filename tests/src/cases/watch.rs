//! A policy file that is applied whenever it changes.

use crate::command::{Output, Process, await_that};
use crate::lab::Lab;
use crate::net::Pair;
use crate::policy::{other, three};
use crate::suite::Suite;
use nix::sys::signal::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(20);

pub fn suite() -> Suite {
    Suite::new("watch")
        .alike_everywhere()
        .both("saved_file_is_applied", &[], saved_file_is_applied)
        .any("invalid_file_leaves_the_policy_in_force", &[], an_invalid_file)
        .any("unconfirmed_change_is_not_overwritten", &[], unconfirmed_change)
        .any("bad_input", &[], bad_input)
}

fn begin(lab: &Lab) -> (Pair, PathBuf, Process) {
    let pair = lab.pair();
    let file = lab.file("watched.json", three().to_string());
    let path = file.display().to_string();
    lab.up(&pair.a, "a0", &path, &["--rate", "20mbit"]);
    let process = lab.start(&pair.a, &["watch", "a0", &path]);
    // The watcher reads the file once before it waits.
    process.await_stdout_lines("nothing changes", 1);
    (pair, file, process)
}

fn generation(lab: &Lab, pair: &Pair) -> u32 {
    lab.status(&pair.a, "a0").policy.generation
}

#[track_caller]
fn becomes(lab: &Lab, pair: &Pair, wanted: u32) {
    await_that(&format!("generation {wanted}"), LONG, || generation(lab, pair) == wanted);
}

/// Replaces the file as most editors do.
fn replace(path: &Path, text: &str) {
    let other = path.with_extension("new");
    fs::write(&other, text).expect("writing");
    fs::rename(&other, path).expect("renaming");
}

#[track_caller]
fn end(process: Process, signal: Signal) -> Output {
    process.signal(signal);
    process.finish().ok()
}

fn saved_file_is_applied(lab: &Lab) {
    let (pair, file, process) = begin(lab);
    assert_eq!(generation(lab, &pair), 1, "what runs is what the file says");
    replace(&file, &other().to_string());
    becomes(lab, &pair, 2);
    assert_eq!(lab.status(&pair.a, "a0").policy.scheduler, "deficit_round_robin");
    fs::write(&file, three().to_string()).expect("writing in place");
    becomes(lab, &pair, 3);
    // Several writes in a row are one change.
    for n in 0..10 {
        replace(&file, &if n % 2 == 0 { three() } else { other() }.to_string());
        std::thread::sleep(Duration::from_millis(20));
    }
    becomes(lab, &pair, 4);
    // Another file next to it, or the same content again, changes nothing.
    lab.file("beside.json", "{}");
    let before = process.stdout().matches("nothing changes").count();
    replace(&file, &other().to_string());
    process.await_stdout_lines("nothing changes", before + 1);
    assert_eq!(generation(lab, &pair), 4);
    let output = end(process, Signal::SIGTERM);
    assert!(output.stdout.contains("~ scheduler strict_priority -> deficit_round_robin"), "{output}");
    assert!(output.stdout.contains("nothing changes"), "{output}");
    assert_eq!(lab.sluice(&pair.a, &["history", "a0"]).ok().stdout.matches(" apply ").count(), 3);
    lab.down(&pair.a, "a0");
}

fn an_invalid_file(lab: &Lab) {
    let (pair, file, process) = begin(lab);
    fs::write(&file, "{ \"scheduler\": \"none\" }").expect("writing");
    process.await_stderr("there is no scheduler \"none\"");
    fs::remove_file(&file).expect("removing");
    assert_eq!(generation(lab, &pair), 1);
    replace(&file, &other().to_string());
    becomes(lab, &pair, 2);
    let output = end(process, Signal::SIGINT);
    assert!(output.stderr.contains("there is no scheduler \"none\""), "{output}");
    assert!(output.stderr.contains("nothing was changed"), "{output}");
    lab.down(&pair.a, "a0");
}

fn unconfirmed_change(lab: &Lab) {
    let (pair, file, process) = begin(lab);
    let default = ["apply", "a0", "default", "--confirm", "3s"];
    lab.sluice(&pair.a, &default).ok();
    replace(&file, &other().to_string());
    process.await_stdout_lines("another change waits", 1);
    assert_eq!(lab.status(&pair.a, "a0").policy.name, "default", "it does not confirm for others");
    await_that("the file is applied after the revert", LONG, || {
        let status = lab.status(&pair.a, "a0");
        status.policy.name == "watched" && status.policy.scheduler == "deficit_round_robin"
    });
    let output = end(process, Signal::SIGTERM);
    assert!(output.stdout.contains("another change waits"), "{output}");
    super::confirm::await_no_waiter(&pair.a);
    lab.down(&pair.a, "a0");
}

fn bad_input(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    let watch = |dev: &str, file: &str| lab.sluice(&pair.a, &["watch", dev, file]).exits(2);
    watch("nope0", &policy).says("no interface `nope0`");
    watch("a0", &policy).says("not managed");
    lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit"]);
    watch("a0", "gaming").says("cannot watch gaming").says("path of a policy file");
    watch("a0", "/nowhere/at-all.json").says("cannot watch");
    watch("a0", "/tmp").says("not a file");
    lab.down(&pair.a, "a0");
}
