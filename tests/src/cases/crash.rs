//! Whatever dies, and wherever: packets flow, `down` cleans up, `up` works again.

use crate::cases::lifecycle::passes;
use crate::lab::Lab;
use crate::net::Pair;
use crate::policy::three;
use crate::suite::Suite;
use std::thread;
use std::time::Duration;

/// The product's own list of the points at which it can be made to die.
const SOURCE: &str = include_str!("../../../crates/kernel/src/fault.rs");

pub fn suite() -> Suite {
    Suite::new("crash")
        .both("killed_during_up", &[], killed_during_up)
        .both("killed_during_apply", &[], killed_during_apply)
        .both("killed_during_down", &[], killed_during_down)
        .any("killed_at_any_moment", &[], killed_at_any_moment)
}

fn points(command: &str) -> Vec<&'static str> {
    let (_, list) = SOURCE.split_once("POINTS: &[&str] = &[").expect("the list of points");
    let (list, _) = list.split_once("];").expect("the end of the list");
    let points: Vec<&str> = list.split(',').map(|name| name.trim().trim_matches('"')).collect();
    let of_command: Vec<&str> = points.into_iter().filter(|name| name.starts_with(&format!("{command}-"))).collect();
    assert!(of_command.len() >= 2, "points of {command}: {of_command:?}");
    of_command
}

/// All that `up` can do at once, so that every point is passed with something there.
fn arguments<'a>(lab: &Lab, policy: &'a str) -> Vec<&'a str> {
    vec!["up", "a0", "--policy", policy, "--engine", lab.engine.name(), "--rate", "20mbit", "--ingress-rate", "30mbit"]
}

/// `down` gives the interface back, whatever there is of it.
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
    // Each round's `up` also shows that `up` works after the one before.
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

/// The moments are spread over the time that each command takes, at places that differ from machine to machine.
fn killed_at_any_moment(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    let policy = lab.policy(&three());
    let up = arguments(lab, &policy);
    let begin = std::time::Instant::now();
    lab.sluice(&pair.a, &up).ok();
    let whole = begin.elapsed();
    lab.down(&pair.a, "a0");
    for eighth in [2, 4, 6, 7] {
        let mut process = lab.start(&pair.a, &up);
        thread::sleep(whole * eighth / 8);
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
