//! Several interfaces in one policy file: all of them change, or none.

use crate::cases::limits::assert_policed;
use crate::command::{await_that, run};
use crate::lab::Lab;
use crate::net::{Routed, SERVER};
use crate::policy::{by_port, port, with};
use crate::suite::Suite;
use crate::traffic::{self, Flow};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("sets")
        .alike_everywhere()
        .both("interfaces_share_a_class", &[], share_a_class)
        .both("a_failure_takes_all_of_them_back", &[], a_failure)
        .both("a_failed_up_gives_all_of_them_back", &[], a_failed_up)
        .both("killed_between_two_interfaces", &[], killed)
        .any("watched", &[], watched)
        .any("bad_input", &[], bad_input)
}

/// Both interfaces of a router; class 0 may use `rate` on both together.
fn set(name: &str, rate: &str) -> Value {
    let shared = json!({ "name": format!("set-{}", std::process::id()), "rate": rate, "burst": "8kb" });
    let common = by_port("deficit_round_robin", json!([{ "id": 0, "shared_ceil": shared }, { "id": 1 }]));
    let own = json!({
        "lan0": { "link": { "rate": "30mbit" } },
        "wan0": { "link": { "rate": "20mbit" }, "scheduler": "strict_priority",
            "classes": [{ "id": 0, "priority": 1, "shared_ceil": shared }, { "id": 1, "priority": 0 }] },
    });
    with(with(common, "name", json!(name)), "interfaces", own)
}

fn file(lab: &Lab, name: &str, rate: &str) -> String {
    lab.file(&format!("{name}.json"), set(name, rate).to_string()).display().to_string()
}

fn begin(lab: &Lab) -> (Routed, String) {
    let net = lab.routed();
    let old = file(lab, "old", "4mbit");
    lab.sluice(&net.router, &["up", "--policy", &old, "--engine", lab.engine.name()]).ok();
    (net, old)
}

/// Names of the policies in force, lan0's first.
fn names(lab: &Lab, net: &Routed) -> [String; 2] {
    ["lan0", "wan0"].map(|dev| lab.status(&net.router, dev).policy.name)
}

pub fn passes(net: &Routed) {
    net.client.exec(&format!("ping -c 1 -W 5 {SERVER}")).ok();
}

fn end(lab: &Lab, net: &Routed) {
    lab.sluice(&net.router, &["down", "lan0", "wan0"]).ok();
}

fn share_a_class(lab: &Lab) {
    let (net, _) = begin(lab);
    let [lan, wan] = ["lan0", "wan0"].map(|dev| lab.status(&net.router, dev));
    assert_eq!((lan.rate_bps, wan.rate_bps), (Some(30_000_000), Some(20_000_000)));
    assert_eq!(
        (lan.policy.scheduler.as_str(), wan.policy.scheduler.as_str()),
        ("deficit_round_robin", "strict_priority")
    );
    let new = file(lab, "new", "5mbit");
    let preview = lab.sluice(&net.router, &["apply", &new, "--dry-run"]).ok().stdout;
    assert!(preview.contains("lan0: policy old -> new") && preview.contains("wan0: policy old -> new"), "{preview}");
    let json = lab.sluice(&net.router, &["apply", &new, "--dry-run", "--json"]).ok().stdout;
    let json: Value = serde_json::from_str(&json).expect("a list");
    assert_eq!(json.as_array().map(Vec::len), Some(2), "{json}");
    let alone = lab.sluice(&net.router, &["apply", "wan0", &new]);
    assert_eq!(alone.code, Some(2), "the LAN still shares at 4 Mbit/s: {alone}");
    lab.sluice(&net.router, &["apply", &new]).ok();
    assert_eq!(names(lab, &net), ["new", "new"]);
    let flows = [Flow::new(port(0), &[514], 8_000_000)];
    let dropped = || ["lan0", "wan0"].map(|dev| lab.status(&net.router, dev)).iter().map(lost).sum();
    let outcomes = traffic::run(&net.client, &net.server, SERVER, &flows, Duration::from_millis(1500), dropped);
    assert_policed("the class through both", &[&outcomes[0]], 5);
    lab.sluice(&net.router, &["rollback", "lan0"]).exits(2);
    end(lab, &net);
}

fn lost(status: &crate::status::Status) -> u64 {
    status.directions.iter().map(|direction| direction.totals().1).sum()
}

fn a_failure(lab: &Lab) {
    let (net, _) = begin(lab);
    let new = file(lab, "new", "5mbit");
    for point in ["apply-recorded", "apply-staged", "apply-live", "apply-verified"] {
        let mut command = lab.command(&net.router, &["apply", &new]);
        let failed = run(command.env("SLUICE_FAULT", format!("{point}:error:2")));
        assert_eq!(failed.code, Some(1), "{point}: {failed}");
        assert!(failed.stderr.contains("lan0 has its former policy, old, again"), "{point}: {failed}");
        assert!(failed.stderr.contains("on wan0"), "{point}: {failed}");
        assert_eq!(names(lab, &net), ["old", "old"], "{point}");
        passes(&net);
    }
    let history = lab.sluice(&net.router, &["history", "lan0", "--json"]).ok().stdout;
    let history: Vec<Value> = serde_json::from_str(&history).expect("a list");
    let of = |entry: &&Value| entry["policy_name"] == "new";
    assert!(history.iter().filter(of).all(|entry| entry["outcome"] == "failed"), "{history:#?}");
    lab.sluice(&net.router, &["rollback", "lan0"]).exits(2).says("no other policy");
    end(lab, &net);
}

/// The second of two interfaces cannot be taken: the first is given back.
fn a_failed_up(lab: &Lab) {
    let net = lab.routed();
    let path = file(lab, "old", "4mbit");
    net.router.tc("qdisc replace dev lan0 root handle 7: pfifo limit 77");
    let mut command = lab.command(&net.router, &["up", "--policy", &path, "--force", "--engine", lab.engine.name()]);
    let failed = run(command.env("SLUICE_FAULT", "up-hooked:error:2"));
    assert_eq!(failed.code, Some(1), "{failed}");
    assert!(failed.stderr.contains("on wan0") && failed.stderr.contains("lan0 is given back; the dump"), "{failed}");
    let dump = failed.stderr.split_whitespace().last().expect("its path");
    assert!(std::fs::read_to_string(dump).is_ok_and(|dump| dump.contains("pfifo")), "{failed}");
    std::fs::remove_file(dump).expect("removing the dump");
    assert!(lab.sluice(&net.router, &["history", "lan0"]).ok().stdout.contains("failed, rolled back"));
    assert!(lab.leftovers().is_empty(), "{:?}", lab.leftovers());
    passes(&net);
}

/// Each interface has one of the policies, and a second `apply` completes the change.
fn killed(lab: &Lab) {
    let (net, old) = begin(lab);
    let new = file(lab, "new", "5mbit");
    for (point, expected) in [
        ("apply-settled", ["new", "old"]),
        ("apply-recorded:2", ["new", "old"]),
        ("apply-staged:2", ["new", "old"]),
        ("apply-live:2", ["new", "new"]),
    ] {
        lab.killed_at(point, &net.router, &["apply", &new]);
        assert_eq!(names(lab, &net), expected, "{point}");
        passes(&net);
        lab.sluice(&net.router, &["apply", &old]).ok();
        assert_eq!(names(lab, &net), ["old", "old"], "{point}");
    }
    end(lab, &net);
    lab.killed_at("up-queued:2", &net.router, &["up", "--policy", &old, "--engine", lab.engine.name()]);
    passes(&net);
    end(lab, &net);
}

fn watched(lab: &Lab) {
    let (net, old) = begin(lab);
    let process = lab.start(&net.router, &["watch", &old]);
    std::fs::write(&old, set("new", "5mbit").to_string()).expect("writing");
    await_that("both have it", Duration::from_secs(20), || names(lab, &net) == ["new", "new"]);
    process.signal(Signal::SIGTERM);
    process.finish().ok();
    end(lab, &net);
}

fn bad_input(lab: &Lab) {
    let net = lab.routed();
    let good = file(lab, "good", "4mbit");
    let refused = |arguments: &[&str], parts: &[&str]| {
        let output = lab.sluice(&net.router, arguments);
        assert_eq!(output.code, Some(2), "{output}");
        parts.iter().for_each(|part| assert!(output.stderr.contains(part), "{part:?} in {output}"));
    };
    let own = |what: Value| {
        let mut set = set("bad", "4mbit");
        set["interfaces"] = what;
        lab.policy(&set)
    };
    refused(&["up", "lan1", "--policy", &good], &["no policy for lan1", "lan0, wan0"]);
    refused(&["up", "--policy", "gaming"], &["any one interface", "eth0"]);
    refused(&["up", "--policy", &own(json!({ "lan0": {}, "gone0": {} }))], &["gone0"]);
    refused(&["up", "--policy", &own(json!({}))], &["\"interfaces\" names none"]);
    let too_much = json!({ "lan0": {}, "wan0": { "link": { "rate": "1mbit" }, "classes": [{ "id": 0 }, { "id": 1, "rate": "2mbit" }] } });
    refused(&["up", "--policy", &own(too_much)], &["wan0"]);
    net.router.tc("qdisc add dev wan0 root handle 7: pfifo");
    refused(&["up", "--policy", &good], &["wan0", "hand-made"]);
    net.router.tc("qdisc del dev wan0 root");
    refused(&["apply", &good], &["lan0 is not managed"]);
    assert!(lab.leftovers().is_empty(), "nothing was changed: {:?}", lab.leftovers());
    lab.sluice(&net.router, &["up", "lan0", "--policy", &good]).ok();
    refused(&["apply", &good], &["wan0 is not managed"]);
    refused(&["up", "--policy", &good], &["lan0 is managed already"]);
    refused(&["explain", &good, "udp", "192.0.2.1:1", "to", "192.0.2.2:2"], &["each of several interfaces"]);
    let arguments = ["explain", &good, "--interface", "wan0", "udp", "192.0.2.1:1", "to", "192.0.2.2:3000"];
    assert!(lab.sluice(&net.router, &arguments).ok().stdout.contains("to 0"), "by the policy for wan0");
    assert_eq!(lab.status(&net.router, "lan0").policy.generation, 1);
    lab.down(&net.router, "lan0");
}
