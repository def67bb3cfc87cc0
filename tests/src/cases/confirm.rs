//! Changes that are taken back unless they are confirmed.

use crate::cases::lifecycle::passes;
use crate::command::{await_that, run};
use crate::lab::Lab;
use crate::net::{Ns, Pair, queues};
use crate::policy::{other, three, with};
use crate::suite::Suite;
use serde_json::json;
use std::process::Command;
use std::time::Duration;

/// Longer than any deadline of these tests.
const LONG: Duration = Duration::from_secs(20);

pub fn suite() -> Suite {
    Suite::new("confirm")
        .alike_everywhere()
        .both("reverts_by_itself", &[], reverts_by_itself)
        .both("confirmed_change_is_kept", &[], is_kept)
        .both("the_next_command_reverts", &[], the_next_command_reverts)
        .both("a_second_change", &[], a_second_change)
        .both("down_ends_it", &[], down_ends_it)
        .both("a_failed_change_is_taken_back", &[], failed_change)
        .any("a_shell_that_ends", &[], a_shell_that_ends)
        .any("reload_and_restore", &[], reload_and_restore)
        .any("bad_input", &[], bad_input)
}

/// The processes in a namespace that wait for confirmations.
pub fn waiting(ns: &Ns) -> Vec<String> {
    let pids = run(Command::new("ip").args(["netns", "pids", &ns.name])).ok().stdout;
    pids.split_whitespace().map(str::to_owned).collect()
}

#[track_caller]
pub fn await_no_waiter(ns: &Ns) {
    await_that("the process that waits has ended", LONG, || waiting(ns).is_empty());
}

/// An interface with a policy, and two files to change it with.
fn begin(lab: &Lab) -> (Pair, String, String) {
    let pair = lab.pair();
    let [old, new] = [("old.json", three()), ("new.json", other())]
        .map(|(name, policy)| lab.file(name, policy.to_string()).display().to_string());
    lab.up(&pair.a, "a0", &old, &["--rate", "20mbit"]);
    (pair, old, new)
}

fn name(lab: &Lab, pair: &Pair) -> String {
    lab.status(&pair.a, "a0").policy.name
}

/// The record, read without a command that would repair anything.
fn recorded(pair: &Pair) -> String {
    std::fs::read_to_string(crate::lab::record(&pair.a)).expect("reading the record")
}

fn reverts_by_itself(lab: &Lab) {
    let (pair, _, new) = begin(lab);
    let printed = lab.sluice(&pair.a, &["apply", "a0", &new, "--confirm", "2s", "--message", "risky"]).ok().stdout;
    assert!(printed.contains("reverts to policy old in 2 s unless confirmed: sluice confirm a0"), "{printed}");
    let status = lab.status(&pair.a, "a0");
    let unconfirmed = status.unconfirmed.expect("it waits");
    assert_eq!((status.policy.name.as_str(), unconfirmed.former.as_str()), ("new", "old"));
    assert!((1..=2).contains(&unconfirmed.left_s), "{unconfirmed:?}");
    let text = lab.sluice(&pair.a, &["status", "a0"]).ok().stdout;
    assert!(text.contains("reverts to policy old in") && text.contains("s unless confirmed"), "{text}");
    assert_eq!(waiting(&pair.a).len(), 1, "one process waits");
    // No command runs meanwhile: only the record is read.
    await_that("it is taken back", LONG, || recorded(&pair).contains("\"policy_name\": \"old\""));
    await_no_waiter(&pair.a);
    let status = lab.status(&pair.a, "a0");
    assert_eq!((status.policy.name.as_str(), status.policy.generation), ("old", 3));
    assert_eq!(status.rate_bps, Some(20_000_000));
    assert!(status.unconfirmed.is_none());
    let history = lab.sluice(&pair.a, &["history", "a0"]).ok().stdout;
    assert!(history.contains("not confirmed, reverted") && history.contains("not confirmed within 2 s"), "{history}");
    passes(&pair);
    lab.down(&pair.a, "a0");
}

fn is_kept(lab: &Lab) {
    let (pair, _, new) = begin(lab);
    lab.sluice(&pair.a, &["apply", "a0", &new, "--confirm", "2s"]).ok();
    let printed = lab.sluice(&pair.a, &["confirm", "a0"]).ok().stdout;
    assert!(printed.contains("keeps the policy new"), "{printed}");
    await_no_waiter(&pair.a);
    std::thread::sleep(Duration::from_millis(2200));
    let status = lab.status(&pair.a, "a0");
    assert_eq!((status.policy.name.as_str(), status.policy.generation), ("new", 2));
    assert!(status.unconfirmed.is_none());
    assert!(!lab.sluice(&pair.a, &["history", "a0"]).ok().stdout.contains("unconfirmed"));
    lab.down(&pair.a, "a0");
}

fn the_next_command_reverts(lab: &Lab) {
    let (pair, old, new) = begin(lab);
    for command in [&["status", "a0"][..], &["history", "a0"], &["apply", "a0", &old], &["confirm", "a0"]] {
        lab.sluice(&pair.a, &["apply", "a0", &new, "--confirm", "4s"]).ok();
        for pid in waiting(&pair.a) {
            run(Command::new("kill").args(["-9", &pid])).ok();
        }
        await_no_waiter(&pair.a);
        std::thread::sleep(Duration::from_millis(4100));
        assert!(recorded(&pair).contains("\"policy_name\": \"new\""), "no command has reverted yet");
        let output =
            lab.sluice(&pair.a, command).says("no command has confirmed the change in time: its policy is old again");
        assert_eq!(output.code, Some(if command[0] == "confirm" { 2 } else { 0 }), "{output}");
        assert_eq!(name(lab, &pair), "old", "after {command:?}");
    }
    passes(&pair);
    lab.down(&pair.a, "a0");
}

/// A second change, as in Junos: with `--confirm` the time begins anew, and the former policy stays the same; without, the
/// first change is confirmed.
fn a_second_change(lab: &Lab) {
    let (pair, _, new) = begin(lab);
    let third = lab.file("third.json", with(three(), "default_class", json!(1)).to_string()).display().to_string();
    lab.sluice(&pair.a, &["apply", "a0", &new, "--confirm", "30s"]).ok();
    let printed = lab.sluice(&pair.a, &["apply", "a0", &third, "--confirm", "2s"]).ok().stdout;
    assert!(printed.contains("reverts to policy old in 2 s"), "{printed}");
    await_that("only one waits", LONG, || waiting(&pair.a).len() <= 1);
    await_that("both are taken back", LONG, || recorded(&pair).contains("\"policy_name\": \"old\""));
    await_no_waiter(&pair.a);
    let history = lab.sluice(&pair.a, &["history", "a0"]).ok().stdout;
    assert_eq!(history.matches("not confirmed, reverted").count(), 2, "{history}");

    lab.sluice(&pair.a, &["apply", "a0", &new, "--confirm", "30s"]).ok();
    lab.sluice(&pair.a, &["apply", "a0", &third]).ok();
    await_no_waiter(&pair.a);
    let status = lab.status(&pair.a, "a0");
    assert!(status.unconfirmed.is_none() && status.policy.name == "third", "{status:?}");
    lab.sluice(&pair.a, &["rollback", "a0", "--confirm", "30s"]).ok();
    assert_eq!(lab.status(&pair.a, "a0").unconfirmed.expect("a rollback waits as well").former, "third");
    assert_eq!(name(lab, &pair), "new", "what was confirmed can be gone back to");
    lab.down(&pair.a, "a0");
    await_no_waiter(&pair.a);
}

fn down_ends_it(lab: &Lab) {
    let (pair, old, new) = begin(lab);
    lab.sluice(&pair.a, &["apply", "a0", &new, "--confirm", "1s"]).ok();
    lab.down(&pair.a, "a0");
    await_no_waiter(&pair.a);
    lab.up(&pair.a, "a0", &new, &["--rate", "20mbit"]);
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(name(lab, &pair), "new", "an old deadline means nothing to a new `up`");
    lab.sluice(&pair.a, &["apply", "a0", &old]).ok();
    lab.down(&pair.a, "a0");
}

/// A change that fails at any of its steps leaves the former policy complete.
fn failed_change(lab: &Lab) {
    let (pair, _, new) = begin(lab);
    let classes = || lab.status(&pair.a, "a0").direction("egress").classes.iter().map(|one| one.id).collect::<Vec<_>>();
    let fresh = (classes(), queues(&pair));
    for step in ["recorded", "waited-for", "queued", "staged", "live", "pruned", "verified"] {
        let mut command = lab.command(&pair.a, &["apply", "a0", &new, "--confirm", "30s"]);
        run(command.env("SLUICE_FAULT", format!("apply-{step}:error")))
            .exits(1)
            .says(&format!("apply-{step} fails"))
            .says("the former policy, old, is in force again");
        let status = lab.status(&pair.a, "a0");
        assert!(status.policy.name == "old" && status.unconfirmed.is_none(), "after {step}: {status:?}");
        assert_eq!((classes(), queues(&pair)), fresh, "after {step}");
        await_no_waiter(&pair.a);
        passes(&pair);
    }
    let history = lab.sluice(&pair.a, &["history", "a0"]).ok().stdout;
    assert_eq!(history.matches("failed, rolled back").count(), 7, "{history}");
    assert!(history.contains("apply-live fails"), "{history}");
    lab.sluice(&pair.a, &["apply", "a0", &new]).ok();
    assert_eq!(name(lab, &pair), "new");
    lab.down(&pair.a, "a0");
}

/// `ip netns exec` gives mounts that hide the pins, and its caller may have ended when the change is to be taken back.
fn a_shell_that_ends(lab: &Lab) {
    let (pair, _, new) = begin(lab);
    let program = std::fs::canonicalize(crate::lab::binary()).expect("SLUICE_BIN names the program");
    pair.a.exec(&format!("{} apply a0 {new} --confirm 1s", program.display())).ok();
    await_that("it is taken back", LONG, || recorded(&pair).contains("\"policy_name\": \"old\""));
    await_no_waiter(&pair.a);
    assert_eq!(name(lab, &pair), "old");
    passes(&pair);
    lab.down(&pair.a, "a0");
}

/// The steps of the boot unit: reload does not confirm, and start restores the policy that was kept, or the last that was applied.
fn reload_and_restore(lab: &Lab) {
    let (pair, old, new) = begin(lab);
    lab.sluice(&pair.a, &["apply", "a0", &new, "--confirm", "60s"]).ok();
    lab.sluice(&pair.a, &["apply", "a0", &old, "--unless-unconfirmed"])
        .exits(2)
        .says("waits")
        .says("sluice confirm a0");
    assert!(lab.status(&pair.a, "a0").unconfirmed.is_some_and(|waits| waits.former == "old"));
    let up = |restore: &str| {
        lab.down(&pair.a, "a0");
        await_no_waiter(&pair.a);
        lab.up(&pair.a, "a0", &old, &["--rate", "20mbit", "--restore", restore]);
        let status = lab.status(&pair.a, "a0");
        (status.policy.name, status.rate_bps)
    };
    let rate = |mbit: u64| Some(mbit * 1_000_000);
    assert_eq!(up("last"), ("old".to_owned(), rate(20)), "what waited was not confirmed");
    assert_eq!(up("saved"), ("old".to_owned(), rate(20)), "nothing was kept");
    lab.sluice(&pair.a, &["apply", "a0", &new, "--rate", "10mbit", "--unless-unconfirmed"]).ok();
    assert_eq!(up("last"), ("new".to_owned(), rate(10)));
    assert_eq!(up("configured"), ("old".to_owned(), rate(20)));
    lab.sluice(&pair.a, &["apply", "a0", &new, "--rate", "5mbit", "--at-boot"]).ok();
    assert_eq!(up("configured"), ("old".to_owned(), rate(20)));
    let kept = format!("/var/lib/sluice/boot/a0@{}.json", pair.a.inode);
    assert_eq!(up("saved"), ("new".to_owned(), rate(5)));
    std::fs::write(&kept, "no policy").expect("writing");
    assert_eq!(up("saved"), ("old".to_owned(), rate(20)), "what cannot be read does not leave the machine without any");
    std::fs::remove_file(&kept).expect("removing");
    lab.sluice(&pair.a, &["apply", "a0", &new, "--at-boot", "--confirm", "5s"]).exits(2);
    lab.down(&pair.a, "a0");
}

fn bad_input(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    lab.sluice(&pair.a, &["confirm", "nope0"]).exits(2).says("no interface `nope0`").says("a0");
    lab.sluice(&pair.a, &["confirm", "a0"]).exits(2).says("not managed").says("sluice up a0");
    lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit"]);
    lab.sluice(&pair.a, &["confirm", "a0"]).exits(2).says("nothing waits to be confirmed").says("--confirm 60s");
    for (time, why) in [
        ("60", "the unit is missing"),
        ("-1s", "cannot be negative"),
        ("1y", "not a time"),
        ("0s", "not between 1s and 24h"),
        ("25h", "not between 1s and 24h"),
        ("", "not a time"),
    ] {
        let output =
            lab.sluice(&pair.a, &["apply", "a0", &policy, "--confirm", time]).exits(2).says(why).says("help: ");
        assert!(output.stderr.contains(&format!("--confirm {time}")), "{output}");
    }
    assert_eq!(lab.status(&pair.a, "a0").policy.generation, 1);
    lab.down(&pair.a, "a0");
}
