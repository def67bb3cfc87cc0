//! Processes that are killed at any point: packets flow, `down` cleans up, `up` works again.

use crate::cases::confirm::{await_no_waiter, waiting};
use crate::cases::lifecycle::passes;
use crate::command::{await_that, run};
use crate::lab::Lab;
use crate::net::{Pair, queues};
use crate::policy::{other, three};
use crate::suite::Suite;
use std::thread;
use std::time::Duration;

/// The product's own list of its kill points.
const SOURCE: &str = include_str!("../../../crates/kernel/src/fault.rs");

pub fn suite() -> Suite {
    Suite::new("crash")
        .alike_everywhere()
        .both("killed_during_up", &[], killed_during_up)
        .both("killed_during_apply", &[], killed_during_apply)
        .both("killed_during_rollback", &[], killed_during_rollback)
        .both("killed_during_a_change_to_confirm", &[], killed_during_a_change_to_confirm)
        .both("killed_during_a_revert", &[], killed_during_a_revert)
        .both("killed_during_confirm", &[], killed_during_confirm)
        .both("killed_during_down", &[], killed_during_down)
        .any("killed_at_any_moment", &[], killed_at_any_moment)
}

/// The kill points of a command.
pub fn points(command: &str) -> Vec<&'static str> {
    let (_, list) = SOURCE.split_once("POINTS: &[&str] = &[").expect("the list of points");
    let (list, _) = list.split_once("];").expect("the end of the list");
    let points: Vec<&str> = list.split(',').map(|name| name.trim().trim_matches('"')).collect();
    let of_command: Vec<&str> = points.into_iter().filter(|name| name.starts_with(&format!("{command}-"))).collect();
    assert!(of_command.len() >= 2, "points of {command}: {of_command:?}");
    of_command
}

/// Arguments that make `up` do everything, so that every kill point is passed.
fn arguments<'a>(lab: &Lab, policy: &'a str) -> Vec<&'a str> {
    vec!["up", "a0", "--policy", policy, "--engine", lab.engine.name(), "--rate", "20mbit", "--ingress-rate", "30mbit"]
}

/// `down` gives the interface back, whatever is left of it.
#[track_caller]
fn recovers(lab: &Lab, pair: &Pair, before: &str, point: &str) {
    lab.sluice(&pair.a, &["status"]).ok();
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before, "after a death at {point}");
    assert!(lab.leftovers().is_empty(), "after a death at {point}: {:?}", lab.leftovers());
}

fn killed_during_up(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    let policy = lab.policy(&three());
    // The next round's `up` also shows that `up` works after a kill.
    for point in points("up") {
        lab.killed_at(point, &pair.a, &arguments(lab, &policy));
        passes(&pair);
        lab.sluice(&pair.a, &arguments(lab, &policy)).exits(2).says("interrupted").says("sluice down a0");
        recovers(lab, &pair, &before, point);
    }
    lab.sluice(&pair.a, &arguments(lab, &policy)).ok();
    passes(&pair);
    lab.down(&pair.a, "a0");
}

fn killed_during_apply(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    let policy = lab.policy(&three());
    for point in points("apply") {
        lab.sluice(&pair.a, &arguments(lab, &policy)).ok();
        lab.killed_at(point, &pair.a, &["apply", "a0", "default"]);
        passes(&pair);
        lab.sluice(&pair.a, &["apply", "a0", "default"]).ok();
        assert_eq!(lab.status(&pair.a, "a0").policy.name, "default", "after a death at {point}");
        passes(&pair);
        lab.killed_at(point, &pair.a, &["apply", "a0", &policy]);
        passes(&pair);
        recovers(lab, &pair, &before, point);
    }
}

/// The state of a policy in the kernel, as far as it is visible from outside.
#[derive(Debug, PartialEq)]
struct KernelState {
    name: String,
    scheduler: String,
    classes: Vec<(u8, String)>,
    rules: Vec<String>,
    queues: Vec<String>,
}

impl KernelState {
    /// Reads the state by `status`, which first finishes interrupted work.
    #[track_caller]
    fn of(lab: &Lab, pair: &Pair) -> KernelState {
        let status = lab.status(&pair.a, "a0");
        let classes = &status.direction("egress").classes;
        KernelState {
            classes: classes.iter().map(|class| (class.id, class.name.clone())).collect(),
            rules: status.rules.iter().map(|rule| rule.name.clone()).collect(),
            name: status.policy.name,
            scheduler: status.policy.scheduler,
            queues: queues(pair),
        }
    }
}

/// An interface with the first of two policies, after the second was in force, and the complete state of each.
fn two_policies(lab: &Lab) -> (Pair, [String; 2], [KernelState; 2]) {
    let pair = lab.pair();
    let files = [("old.json", three()), ("new.json", other())]
        .map(|(name, policy)| lab.file(name, policy.to_string()).display().to_string());
    lab.sluice(&pair.a, &arguments(lab, &files[1])).ok();
    let new = KernelState::of(lab, &pair);
    lab.sluice(&pair.a, &["apply", "a0", &files[0]]).ok();
    let old = KernelState::of(lab, &pair);
    assert_ne!(old, new);
    (pair, files, [old, new])
}

fn killed_during_rollback(lab: &Lab) {
    let (pair, files, [old, new]) = two_policies(lab);
    for (n, point) in points("rollback").into_iter().enumerate() {
        lab.killed_at(point, &pair.a, &["rollback", "a0"]);
        passes(&pair);
        let found = KernelState::of(lab, &pair);
        assert!(found == old || found == new, "after a death at {point}: {found:?}");
        // The next command works, and the history knows the policy in force.
        if n % 2 == 0 {
            lab.sluice(&pair.a, &["rollback", "a0"]).ok();
            assert_eq!(&KernelState::of(lab, &pair), if found == old { &new } else { &old }, "after {point}");
        }
        lab.sluice(&pair.a, &["apply", "a0", &files[1]]).ok();
        lab.sluice(&pair.a, &["apply", "a0", &files[0]]).ok();
        assert_eq!(KernelState::of(lab, &pair), old, "after a death at {point}");
    }
    lab.down(&pair.a, "a0");
}

/// A kill before the policy takes force changes nothing; after that, the waiting process takes the change back.
fn killed_during_a_change_to_confirm(lab: &Lab) {
    let (pair, files, [old, new]) = two_policies(lab);
    for point in points("apply") {
        lab.killed_at(point, &pair.a, &["apply", "a0", &files[1], "--confirm", "1s"]);
        passes(&pair);
        let found = KernelState::of(lab, &pair);
        assert!(found == old || found == new, "after a death at {point}: {found:?}");
        await_that("the process that waits ends", Duration::from_secs(20), || waiting(&pair.a).is_empty());
        assert_eq!(KernelState::of(lab, &pair), old, "after a death at {point}");
    }
    lab.down(&pair.a, "a0");
}

/// The waiting process is killed while it takes a change back: the next command does it.
fn killed_during_a_revert(lab: &Lab) {
    let (pair, files, [old, _]) = two_policies(lab);
    for point in points("revert") {
        let mut command = lab.command(&pair.a, &["apply", "a0", &files[1], "--confirm", "1s"]);
        run(command.env("SLUICE_FAULT", point)).ok();
        await_no_waiter(&pair.a);
        passes(&pair);
        assert_eq!(KernelState::of(lab, &pair), old, "after a death at {point}");
        let history = lab.sluice(&pair.a, &["history", "a0"]).ok().stdout;
        assert!(!history.contains("unconfirmed"), "after a death at {point}: {history}");
    }
    lab.down(&pair.a, "a0");
}

fn killed_during_confirm(lab: &Lab) {
    let (pair, files, [old, new]) = two_policies(lab);
    for point in points("confirm") {
        lab.sluice(&pair.a, &["apply", "a0", &files[1], "--confirm", "2s"]).ok();
        lab.killed_at(point, &pair.a, &["confirm", "a0"]);
        assert_eq!(KernelState::of(lab, &pair), new, "after a death at {point}");
        await_no_waiter(&pair.a);
        // The policy was either confirmed or not.
        let kept = point != "confirm-found";
        assert_eq!(&KernelState::of(lab, &pair), if kept { &new } else { &old }, "after a death at {point}");
        lab.sluice(&pair.a, &["apply", "a0", &files[0]]).ok();
    }
    lab.down(&pair.a, "a0");
}

fn killed_during_down(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    let policy = lab.policy(&three());
    for point in points("down") {
        lab.sluice(&pair.a, &arguments(lab, &policy)).ok();
        lab.killed_at(point, &pair.a, &["down", "a0"]);
        passes(&pair);
        recovers(lab, &pair, &before, point);
    }
}

/// The kill times are spread over the run time of each command, at points that differ from machine to machine.
fn killed_at_any_moment(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    let policy = lab.policy(&three());
    let up = arguments(lab, &policy);
    let begin = std::time::Instant::now();
    lab.sluice(&pair.a, &up).ok();
    let state = begin.elapsed();
    lab.down(&pair.a, "a0");
    for eighth in [2, 4, 6, 7] {
        let mut process = lab.start(&pair.a, &up);
        thread::sleep(state * eighth / 8);
        process.kill();
        let ended = process.finish();
        passes(&pair);
        let managed = !crate::lab::traces(pair.a.inode).is_empty();
        let code = lab.sluice(&pair.a, &["down", "a0"]).code;
        assert_eq!(code, Some(if managed { 0 } else { 2 }), "`down` after {eighth}/8 of `up`, which ended so: {ended}");
        assert_eq!(pair.a.state("a0"), before, "after {eighth}/8 of `up`");
        assert!(lab.leftovers().is_empty(), "after {eighth}/8 of `up`: {:?}", lab.leftovers());
    }
    lab.sluice(&pair.a, &up).ok();
    let mut process = lab.start(&pair.a, &["down", "a0"]);
    thread::sleep(Duration::from_millis(20));
    process.kill();
    process.finish();
    passes(&pair);
    if !crate::lab::traces(pair.a.inode).is_empty() {
        lab.down(&pair.a, "a0");
    }
    assert_eq!(pair.a.state("a0"), before);
}
