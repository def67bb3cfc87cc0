//! The output of the command line: advice, all errors at once, completions, manual pages.

use crate::command::run;
use crate::lab::{Lab, binary, traces};
use crate::needs::{Need, release};
use crate::net::Ns;
use crate::policy::three;
use crate::suite::Suite;
use serde_json::json;
use std::fs::File;
use std::process::Command;

pub fn suite() -> Suite {
    Suite::new("commands")
        .alike_everywhere()
        .any("several_are_checked_before_one_is_touched", &[], several)
        .any("advice_is_applicable", &[], advice)
        .any("root_without_cap_net_admin", &[Need::Capsh], without_net_admin)
        .any("check_warns_of_refusals_on_this_machine", &[Need::NoBpfQdisc], refused_here)
        .any("comments_are_kept", &[], comments)
        .tc_everywhere("status_shows_the_queue_in_the_kernel", &[], queue_shown)
        .any("remains_are_replaced_by_force", &[], remains)
        .any("a_full_disk_stops_no_change", &[], output_lost)
}

/// The completions of the last of these words.
fn offered(ns: &Ns, words: &[&str]) -> String {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &ns.name]).arg(binary()).arg("--").args(words);
    command.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string()).env("_CLAP_IFS", "\n");
    run(&mut command).ok().stdout
}

fn several(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    assert!(offered(&pair.a, &["sluice", "up", ""]).contains("a0"), "what is not managed is offered");
    lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit", "--ingress-rate", "20mbit"]);
    let before = pair.a.state("a0");
    lab.sluice(&pair.a, &["down", "a0", "nope1", "nope2"]).exits(2).says("nope1").says("nope2");
    assert_eq!(pair.a.state("a0"), before, "nothing was touched");
    lab.sluice(&pair.a, &["apply", "a0", &policy, "--confirm", "60s"]).ok();
    lab.sluice(&pair.a, &["confirm", "a0", "nope1"]).exits(2).says("nope1");
    assert!(lab.status(&pair.a, "a0").unconfirmed.is_some(), "nothing was confirmed");
    lab.sluice(&pair.a, &["confirm", "a0", "a0"]).ok();
    // A name may contain an escape sequence.
    pair.a.ip("link add e\x1b[31m type veth peer name e1");
    let listed = lab.sluice(&pair.a, &["down", "nope1"]).exits(2);
    assert!(listed.stderr.contains("e\\u{1b}[31m") && !listed.stderr.contains('\x1b'), "{listed}");
    pair.a.ip("link del e1");
    // The product's own devices are not offered as interfaces.
    let unknown = lab.sluice(&pair.a, &["up", "nope1", "--policy", &policy]).exits(2);
    assert!(unknown.stderr.contains("a0") && !unknown.stderr.contains("sluice-"), "{unknown}");
    let own = pair.a.interfaces().into_iter().find(|name| name.starts_with("sluice-in")).expect("an ifb");
    lab.sluice(&pair.a, &["up", &own, "--policy", &policy]).exits(2).says("a device of sluice itself");
    let doctor = lab.sluice(&pair.a, &["doctor"]).ok();
    assert!(!doctor.stdout.contains(&own), "{doctor}");
    let copies = doctor.stdout.contains("the kernel copies each frame to the process of `sluice wire`");
    assert_eq!(copies, release() >= (6, 3), "older kernels do not tell: {doctor}");
    for words in [&["sluice", "down", ""][..], &["sluice", "apply", ""], &["sluice", "explain", ""]] {
        let offered = offered(&pair.a, words);
        assert!(offered.contains("a0") && !offered.contains("sluice-"), "{words:?}: {offered}");
    }
    assert!(!offered(&pair.a, &["sluice", "up", ""]).contains("a0"), "what is managed is not offered to up");
    assert!(offered(&pair.a, &["sluice", "apply", "a0", "ga"]).contains("gaming"));
    lab.sluice(&pair.a, &["down", "a0", "a0"]).ok();
}

fn advice(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    let two_faults = json!({
        "scheduler": "strict_priority",
        "link": { "rate": "10mbit" },
        "classes": [{ "id": 0, "priority": 0, "rate": "8mbit", "bogus": 1 }, { "id": 1, "priority": 1, "rate": "8mbit" }],
    });
    let two_faults = lab.policy(&two_faults);
    let contender = "title = \"t\"\nabout = \"a\"\n[sluice]\npolicy = \"gamming\"\n";
    let contender = lab.file("contender.toml", contender).display().to_string();
    for (arguments, says) in [
        (&["up", "a0", "--policy", &policy, "--rate", "-5mbit"][..], "a rate cannot be negative"),
        (&["up", "a0", "--policy", &policy, "--ingress-rate", "-5mbit"], "write \"5mbit\""),
        (&["up", "a0", "--policy", &policy, "--rate", "20"], "write \"20mbit\""),
        (&["apply", "a0", &policy, "--rate", "-5mbit"], "a rate cannot be negative"),
        (&["apply", "a0", &policy, "--confirm", "60"], "write --confirm 60s"),
        (&["apply", "a0"], "a0 is an interface, and no policy is named for it"),
        (&["watch", "a0"], "sluice watch a0 ./my.json"),
        (&["up", "a0", "--policy", &two_faults], "a class has no key \"bogus\""),
        (&["up", "a0", "--policy", &two_faults], "the guarantees come to 16mbit"),
        (&["check", &two_faults], "2 errors"),
        (&["lab", "check", &contender], "there is no profile \"gamming\""),
    ] {
        lab.sluice(&pair.a, arguments).exits(2).says(says);
    }
    // With the rate that the command line gives, the sum is right.
    let right = lab.sluice(&pair.a, &["check", &two_faults, "--rate", "20mbit"]).exits(2).says("1 error;");
    assert!(!right.stderr.contains("guarantees"), "{right}");
    assert!(traces(pair.a.inode).is_empty(), "{:?}", traces(pair.a.inode));
}

/// Root in a container that may load programs and change nothing of the network.
fn without_net_admin(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    for line in
        [format!("up a0 --policy {policy}"), "down a0".to_owned(), format!("apply a0 {policy}"), "doctor".to_owned()]
    {
        let line = format!("{} {line}", binary().display());
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &pair.a.name, "capsh", "--drop=cap_net_admin", "--", "-c", &line]);
        run(&mut command).exits(4).says("root without CAP_NET_ADMIN").says("--cap-add NET_ADMIN");
    }
}

fn refused_here(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&json!({ "scheduler": "eevdf", "classes": [{ "id": 0 }] }));
    let checked = lab.sluice(&pair.a, &["check", &policy]).ok();
    assert!(checked.stderr.contains("on this machine `sluice up` refuses this policy"), "{checked}");
    lab.sluice(&pair.a, &["check", &policy, "--engine", "qdisc"]).ok().says("no BPF qdisc");
    let good = lab.sluice(&pair.a, &["check", &lab.policy(&three())]).ok();
    assert!(!good.stderr.contains("refuses"), "{good}");
}

/// History and page show the policy as its author wrote it.
fn comments(lab: &Lab) {
    let pair = lab.pair();
    let text = format!("// for the house\n{:#}\n", three());
    let file = lab.file("commented.json", &text).display().to_string();
    lab.up(&pair.a, "a0", &file, &["--rate", "20mbit"]);
    let shown = lab.sluice(&pair.a, &["history", "a0", "1"]).ok();
    assert!(shown.stdout.contains("// for the house"), "{shown}");
    // A policy with other comments is the same policy: rollback has nothing to go back to.
    let other = lab.file("commented.json", text.replace("house", "office")).display().to_string();
    lab.sluice(&pair.a, &["apply", "a0", &other]).ok();
    lab.sluice(&pair.a, &["rollback", "a0"]).exits(2).says("no other policy");
    lab.sluice(&pair.a, &["rollback", "a0", "1"]).ok();
    let shown = lab.sluice(&pair.a, &["history", "a0", "3"]).ok();
    assert!(shown.stdout.contains("// for the house"), "{shown}");
    lab.down(&pair.a, "a0");
}

/// The qdisc, limit and target that the kernel has for a class that queues by flow.
fn queue_shown(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", "default", &["--rate", "19mbit"]);
    let shown = run(Command::new("tc").args(["-n", &pair.a.name, "-j", "qdisc", "show", "dev", "a0"])).ok().stdout;
    let qdiscs: Vec<serde_json::Value> = serde_json::from_str(&shown).expect("JSON of tc");
    let leaf = qdiscs.iter().find(|qdisc| qdisc["parent"] == "5101:10").expect("a leaf");
    for command in [&["status", "a0", "--json"][..], &["top", "a0", "--once", "--json"]] {
        let printed: serde_json::Value = serde_json::from_str(&lab.sluice(&pair.a, command).ok().stdout).expect("JSON");
        let printed = if command[0] == "top" { printed["interfaces"][0].clone() } else { printed };
        let class = &printed["directions"][0]["classes"][0];
        assert_eq!((&class["queue"], &class["limit_pkts"]), (&leaf["kind"], &leaf["options"]["limit"]), "{class:#}");
        assert_eq!(class["target_us"].as_f64(), leaf["options"]["target"].as_f64(), "{class:#}");
        let arrivals = &printed["directions"][1]["classes"][0];
        assert!(arrivals["limit_pkts"].is_null(), "nothing queues arrivals: {arrivals:#}");
    }
    lab.down(&pair.a, "a0");
}

fn remains(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    let policy = lab.policy(&three());
    let up = ["up", "a0", "--policy", &policy, "--rate", "20mbit", "--ingress-rate", "20mbit"];
    let forced = [&up[..], &["--force"]].concat();
    // An `up` that died halfway.
    lab.killed_at("up-hooked", &pair.a, &up);
    lab.sluice(&pair.a, &up).exits(2).says("was interrupted").says("--force");
    lab.sluice(&pair.a, &forced).ok();
    crate::cases::lifecycle::passes(&pair);
    // A lost record, with everything else in place.
    for record in traces(pair.a.inode).into_iter().filter(|path| path.extension().is_some_and(|e| e == "json")) {
        std::fs::remove_file(record).expect("removing a record");
    }
    lab.sluice(&pair.a, &up).exits(2).says("no record of them").says("--force");
    lab.sluice(&pair.a, &forced).ok();
    crate::cases::lifecycle::passes(&pair);
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}

/// Lost output is reported after the work is done, with its cause.
fn output_lost(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    let full = |arguments: &[&str]| {
        let full = File::options().write(true).open("/dev/full").expect("/dev/full");
        let output = lab.command(&pair.a, arguments).stdout(full).output().expect("the command");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(printed.contains("the output cannot be written: No space left on device"), "{arguments:?}: {printed}");
        assert!(!printed.contains("panicked"), "{arguments:?}: {printed}");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {printed}");
    };
    full(&["up", "a0", "--policy", &policy, "--rate", "20mbit"]);
    lab.status(&pair.a, "a0");
    for command in [&["status", "a0"][..], &["check", &policy], &["apply", "a0", &policy], &["history", "a0"]] {
        full(command);
    }
    full(&["down", "a0"]);
    lab.sluice(&pair.a, &["status", "a0"]).exits(2);
}
