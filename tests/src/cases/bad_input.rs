//! Bad input and missing rights: the exit code, the message, and that nothing was changed.

use crate::command::{Output, run};
use crate::lab::{Engine, Lab, traces};
use crate::needs::Need;
use crate::net::{B, Pair};
use crate::policy::{by_port, port, three, with};
use crate::suite::Suite;
use crate::traffic::{self, Flow};
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("bad_input")
        .alike_everywhere()
        .any("without_root", &[], without_root)
        .any("without_capabilities", &[Need::Capsh], without_capabilities)
        .any("interface", &[], interface)
        .any("policy", &[], policy)
        .any("subscribers", &[], subscribers)
        .any("rate", &[], rate)
        .any("namespace", &[], namespace)
        .any("engine_qdisc_on_an_old_kernel", &[Need::NoBpfQdisc], engine_qdisc_on_an_old_kernel)
}

/// Runs `up` with these arguments, which must fail and change nothing.
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
        &["confirm", "lo"],
        &["rollback", "lo"],
        &["history", "lo"],
        &["watch", "lo", &policy],
        &["status"],
        &["--netns", "any", "status"],
    ] {
        let mut command = std::process::Command::new(crate::lab::binary());
        command.args(arguments).uid(65_534).gid(65_534);
        let output = run(&mut command).exits(4).says("root");
        assert!(!output.stderr.contains("panicked"), "{output}");
    }
}

/// Root without BPF, as in many a container.
fn without_capabilities(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    // With all rights first: from then on there is a BPF file system, whatever ran on this machine before.
    lab.up(&pair.a, "a0", &policy, &[]);
    lab.down(&pair.a, "a0");
    let before = pair.a.state("a0");
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

/// Invalid policies, with the parts of their messages.
fn wrong() -> Vec<(Value, &'static [&'static str])> {
    let plain = |scheduler: &str| by_port(scheduler, json!([{ "id": 0, "priority": 0 }]));
    let class = |scheduler: &str, key: &str, value: Value| {
        by_port(scheduler, json!([with(json!({ "id": 0, "priority": 0 }), key, value)]))
    };
    let ranked = |policy: Value, rank: &str| with(policy, "rank", json!(rank));
    vec![
        (with(three(), "schedular", json!("x")), &["\"schedular\"", "\"scheduler\""]),
        (
            plain("eedvf"),
            &[
                "there is no scheduler \"eedvf\"",
                "did you mean \"eevdf\"",
                "one of: strict_priority, deficit_round_robin, round_robin, weighted_fair_queuing, eevdf, pifo",
            ],
        ),
        (plain("wfq"), &["there is no scheduler \"wfq\"", "did you mean \"weighted_fair_queuing\""]),
        (
            ranked(plain("pifo"), "earliest"),
            &[
                "there is no rank \"earliest\"",
                "did you mean \"earliest_deadline\"",
                "one of: priority, earliest_deadline, shortest_packet, least_attained_service, start_time_fair, slack",
            ],
        ),
        (ranked(plain("eevdf"), "slack"), &["\"rank\" is for scheduler pifo only"]),
        (ranked(plain("pifo"), "slack"), &["has no \"latency_budget\""]),
        (class("pifo", "rate", json!("1mbit")), &["which pifo cannot give", "\"priority\""]),
        (ranked(class("pifo", "rate", json!("1mbit")), "start_time_fair"), &["which pifo cannot give", "\"weight\""]),
        (class("weighted_fair_queuing", "weight", json!(0)), &["\"weight\" must be between 1 and 65535, not 0"]),
        (class("round_robin", "limit", json!(0)), &["\"limit\""]),
        (class("deficit_round_robin", "quantum", json!(0)), &["\"quantum\""]),
        (class("strict_priority", "rate", json!("25mbit")), &["25mbit"]),
    ]
}

fn policy(lab: &Lab) {
    let pair = lab.pair();
    refused(lab, &pair, &["a0", "--policy", "/no/such/file.json"], 2).says("/no/such/file.json");
    refused(lab, &pair, &["a0", "--policy", "gamming"], 2).says("gaming");
    let broken = lab.file("broken.json", "{ \"scheduler\": ").display().to_string();
    refused(lab, &pair, &["a0", "--policy", &broken], 2).says("broken.json").says("nothing was changed");
    let wrong: Vec<_> = wrong().into_iter().map(|(policy, words)| (lab.policy(&policy), words)).collect();
    for (file, words) in &wrong {
        let output = refused(lab, &pair, &["a0", "--policy", file, "--rate", "20mbit"], 2);
        words.iter().fold(output, |output, word| output.says(word));
    }
    // An `apply` that is refused leaves the policy in force.
    let good = lab.policy(&three());
    lab.up(&pair.a, "a0", &good, &["--rate", "20mbit"]);
    let before = pair.a.state("a0");
    lab.sluice(&pair.a, &["apply", "a0", &broken]).exits(2);
    for (file, words) in &wrong {
        let output = lab.sluice(&pair.a, &["apply", "a0", file]).exits(2);
        words.iter().fold(output, |output, word| output.says(word));
    }
    assert_eq!(pair.a.state("a0"), before);
    let status = lab.status(&pair.a, "a0");
    assert_eq!((status.policy.generation, status.policy.source.as_str()), (1, good.as_str()));
    crate::cases::lifecycle::passes(&pair);
    // A doubtful policy works, with a warning.
    let classes = json!([{ "id": 0 }, { "id": 1, "name": "game", "quantum": 100 }, { "id": 2 }]);
    let tiny = lab.policy(&by_port("deficit_round_robin", classes));
    lab.sluice(&pair.a, &["apply", "a0", &tiny]).ok().says("the quantum of game is smaller than the largest frame");
    assert_eq!(lab.status(&pair.a, "a0").policy.generation, 2);
    let flows = [0, 1].map(|class| Flow::new(port(class), &[1514], 5_000_000));
    let outcomes = traffic::run(&pair.a, &pair.b, B, &flows, Duration::from_millis(60), || 0);
    assert!(outcomes.iter().all(|one| one.received() > 10), "full frames pass");
    lab.down(&pair.a, "a0");
}

/// Tables with mistakes change nothing, and neither do options and kernels that subscribers cannot have.
fn subscribers(lab: &Lab) {
    let pair = lab.pair();
    let plans = json!({ "home": { "rate": "1mbit", "ceil": "10mbit" } });
    let policy = |table: &str| json!({ "subscriber_side": ["a0"], "link": { "rate": "1gbit" }, "plans": plans, "subscribers": table });
    lab.file("customers.csv", "name,addresses,plan,site\nfirst,192.0.2.1,home,\nsecond,2001:db8::/56,home,\n");
    lab.file("wrong.csv", "name,addresses,plan,site\nfirst,192.0.2.1,hom,\nsecond,192.0.2.1,home,\n");
    let good = lab.file("subscribers.json", policy("customers.csv").to_string()).display().to_string();
    let wrong = lab.file("wrong.json", policy("wrong.csv").to_string()).display().to_string();
    let missing = lab.file("missing.json", policy("none.csv").to_string()).display().to_string();
    let checked = lab.sluice(&pair.a, &["check", &good]).ok();
    for text in ["2, with 2 prefixes", "down 2mbit of 1gbit"] {
        assert!(checked.stdout.contains(text), "{text}: {checked}");
    }
    for arguments in [&["a0", "--policy", &wrong][..], &["a0", "--policy", &wrong, "--engine", "tc"]] {
        let told = refused(lab, &pair, arguments, 2).says("wrong.csv:2:").says("is \"home\" meant?");
        told.says("192.0.2.1/32 of second is 192.0.2.1/32 of first too").says("wrong.csv:3:");
    }
    refused(lab, &pair, &["a0", "--policy", &missing], 2).says("none.csv").says("missing.json:1:");
    refused(lab, &pair, &["--policy", &good], 2).says("one has to be named");
    refused(lab, &pair, &["a0", "--policy", &good, "--ingress-rate", "10mbit"], 2).says("manage both interfaces");
    lab.sluice(&pair.a, &["subscriber", "list"]).exits(2).says("no managed interface has a policy with subscribers");
    let classes = lab.policy(&three());
    lab.up(&pair.a, "a0", &classes, &["--rate", "20mbit"]);
    let before = pair.a.state("a0");
    for arguments in [&["apply", "a0", &good][..], &["apply", "a0", &good, "--dry-run"]] {
        lab.sluice(&pair.a, arguments).exits(2);
    }
    lab.sluice(&pair.a, &["subscriber", "list", "--interface", "a0"]).exits(2).says("the policy has no subscribers");
    assert_eq!(pair.a.state("a0"), before);
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
    // Names that lead elsewhere, or to a namespace that is gone, name no namespace.
    for name in ["", ".", "..", "../../etc/hostname", "/proc/self/ns/net", "no\u{1b}[31m"] {
        let mut command = std::process::Command::new(crate::lab::binary());
        let printed = run(command.args(["--netns", name, "status"])).exits(2).says("there is no network namespace `");
        assert!(!printed.stderr.contains('\x1b') && !printed.stderr.contains("EINVAL"), "{printed}");
    }
}

fn engine_qdisc_on_an_old_kernel(lab: &Lab) {
    assert_eq!(lab.engine, Engine::Auto);
    let pair = lab.pair();
    let policy = lab.policy(&three());
    refused(lab, &pair, &["a0", "--policy", &policy, "--engine", "qdisc"], 3).says("no BPF qdisc").says("--engine tc");
}
