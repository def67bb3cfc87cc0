//! Bad input and missing rights: the code, the words, and that nothing was changed.

use crate::command::{Output, run};
use crate::lab::{Engine, Lab, traces};
use crate::needs::Need;
use crate::net::Pair;
use crate::policy::{by_port, three, with};
use crate::suite::Suite;
use serde_json::json;
use std::os::unix::process::CommandExt;

pub fn suite() -> Suite {
    Suite::new("bad_input")
        .any("without_root", &[], without_root)
        .any("without_capabilities", &[Need::Capsh], without_capabilities)
        .any("interface", &[], interface)
        .any("policy", &[], policy)
        .any("rate", &[], rate)
        .any("namespace", &[], namespace)
        .any("engine_qdisc_on_an_old_kernel", &[Need::NoBpfQdisc], engine_qdisc_on_an_old_kernel)
}

/// Runs `up` with these arguments; nothing may be changed.
#[track_caller]
fn refused(lab: &Lab, pair: &Pair, arguments: &[&str], code: i32) -> Output {
    let before = pair.a.state("a0");
    let output = lab.sluice(&pair.a, &[&["up"], arguments].concat()).exits(code);
    assert_eq!(pair.a.state("a0"), before);
    assert!(traces(pair.a.inode).is_empty(), "{:?}", traces(pair.a.inode));
    assert!(!output.stderr.contains("panicked") && !output.stderr.contains("RUST_BACKTRACE"), "{output}");
    output
}

fn without_root(lab: &Lab) {
    let policy = lab.policy(&three());
    for arguments in [
        &["up", "lo", "--policy", &policy][..],
        &["apply", "lo", &policy],
        &["down", "lo"],
        &["status"],
        &["--netns", "any", "status"],
    ] {
        let mut command = std::process::Command::new(crate::lab::binary());
        command.args(arguments).uid(65_534).gid(65_534);
        let output = run(&mut command).exits(4).says("root");
        assert!(!output.stderr.contains("panicked"), "{output}");
    }
}

/// Root, and yet BPF is forbidden, as in many a container.
fn without_capabilities(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    let policy = lab.policy(&three());
    let program = crate::lab::binary();
    let line = format!("{} up a0 --policy {policy} --rate 20mbit", program.display());
    let mut command = std::process::Command::new("ip");
    command.args([
        "netns",
        "exec",
        &pair.a.name,
        "capsh",
        "--drop=cap_bpf,cap_sys_admin,cap_perfmon",
        "--",
        "-c",
        &line,
    ]);
    let output = run(&mut command);
    assert!(matches!(output.code, Some(1 | 3 | 4)), "{output}");
    assert!(output.stderr.starts_with("error: "), "{output}");
    assert!(
        output.stderr.contains("CAP_") || output.stderr.contains("capabilit"),
        "what is missing is named: {output}"
    );
    assert!(!output.stderr.contains("panicked"), "{output}");
    assert_eq!(pair.a.state("a0"), before);
    assert!(traces(pair.a.inode).is_empty(), "{:?}", traces(pair.a.inode));
}

fn interface(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    refused(lab, &pair, &["nope0", "--policy", &policy], 2).says("no interface `nope0`").says("a0");
    for name in ["", "-x", "a0;reboot", "a name", "averyveryverylongname", "../a0"] {
        refused(lab, &pair, &["--policy", &policy, "--", name], 2).says("interface");
    }
    lab.sluice(&pair.a, &["down", "nope0"]).exits(2);
    lab.sluice(&pair.a, &["apply", "nope0", &policy]).exits(2);
    lab.sluice(&pair.a, &["status", "nope0"]).exits(2);
}

fn policy(lab: &Lab) {
    let pair = lab.pair();
    refused(lab, &pair, &["a0", "--policy", "/no/such/file.json"], 2).says("/no/such/file.json");
    refused(lab, &pair, &["a0", "--policy", "gamming"], 2).says("gaming");
    let broken = lab.file("broken.json", "{ \"scheduler\": ").display().to_string();
    refused(lab, &pair, &["a0", "--policy", &broken], 2).says("broken.json").says("nothing was changed");
    let unknown = lab.policy(&with(three(), "schedular", json!("x")));
    refused(lab, &pair, &["a0", "--policy", &unknown], 2).says("schedular").says("scheduler");
    let unknown = lab.policy(&by_port("wfq", json!([{ "id": 0 }])));
    refused(lab, &pair, &["a0", "--policy", &unknown], 2).says("wfq").says("weighted_fair_queuing");
    let unranked = lab.policy(&with(by_port("pifo", json!([{ "id": 0, "priority": 0 }])), "rank", json!("earliest")));
    refused(lab, &pair, &["a0", "--policy", &unranked], 2).says("earliest_deadline");
    let weightless = lab.policy(&by_port("weighted_fair_queuing", json!([{ "id": 0, "weight": 0 }])));
    refused(lab, &pair, &["a0", "--policy", &weightless], 2).says("weight");
    let limitless = lab.policy(&by_port("round_robin", json!([{ "id": 0, "limit": 0 }])));
    refused(lab, &pair, &["a0", "--policy", &limitless], 2).says("limit");
    let greedy = lab.policy(&by_port("strict_priority", json!([{ "id": 0, "priority": 0, "rate": "15mbit" }])));
    refused(lab, &pair, &["a0", "--policy", &greedy, "--rate", "10mbit"], 2).says("15mbit");
    // An `apply` that is refused leaves the policy in force.
    let good = lab.policy(&three());
    lab.up(&pair.a, "a0", &good, &["--rate", "20mbit"]);
    lab.sluice(&pair.a, &["apply", "a0", &broken]).exits(2);
    lab.sluice(&pair.a, &["apply", "a0", &weightless]).exits(2);
    let status = lab.status(&pair.a, "a0");
    assert_eq!((status.policy.generation, status.policy.source.as_str()), (1, good.as_str()));
    crate::cases::lifecycle::passes(&pair);
    lab.down(&pair.a, "a0");
}

fn rate(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    for option in ["--rate", "--ingress-rate"] {
        for rate in ["0", "0mbit", "-5mbit", "20", "20mb", "fast", "99999999tbit", "NaNmbit"] {
            refused(lab, &pair, &["a0", "--policy", &policy, &format!("{option}={rate}")], 2).says(option);
        }
    }
}

fn namespace(lab: &Lab) {
    let policy = lab.policy(&three());
    let mut command = std::process::Command::new(crate::lab::binary());
    run(command.args(["--netns", "no-such-namespace", "up", "lo", "--policy", &policy]))
        .exits(2)
        .says("no-such-namespace");
}

fn engine_qdisc_on_an_old_kernel(lab: &Lab) {
    assert_eq!(lab.engine, Engine::Auto);
    let pair = lab.pair();
    let policy = lab.policy(&three());
    refused(lab, &pair, &["a0", "--policy", &policy, "--engine", "qdisc"], 3).says("no BPF qdisc").says("--engine tc");
}
