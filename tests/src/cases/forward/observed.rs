//! Commands that show packets and flows name the forward, and both sides of the connection.

use super::network::{ENDS, at, four, network, policy};
use super::peers::{Echo, datagram, exchange};
use crate::lab::Lab;
use crate::net::Routed;
use serde_json::{Value, json};

/// A connection as a command shows it, with the port of the client and the source.
#[track_caller]
fn check(shown: &Value, name: &str, sender: &str, listen: &str, source: &str, target: &str) {
    let connection = &shown["connection"];
    assert_eq!((&connection["forward"], &connection["sender"]), (&json!(name), &json!(sender)), "{shown}");
    assert_eq!((&connection["listen"], &connection["target"]), (&json!(listen), &json!(target)), "{shown}");
    assert!(connection["source"].as_str().is_some_and(|end| end.starts_with(source)), "{shown}");
}

fn json_of(lab: &Lab, net: &Routed, arguments: &[&str]) -> Value {
    let output = lab.sluice(&net.router, arguments).ok();
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output}"))
}

pub fn both_sides_are_shown(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    let once = ["flows", "lan0", "--once", "--json", "--interval", "100ms"];
    let mut forwards = four();
    forwards[0]["class_id"] = json!(1);
    lab.up(&net.router, "lan0", &lab.policy(&policy(forwards)), &["--rate", "100mbit"]);
    lab.up(&net.router, "wan0", &lab.policy(&policy(json!([]))), &["--rate", "100mbit"]);

    // Answers leave by lan0, requests by wan0.
    for (interface, sender, filter) in
        [("lan0", "target", ["tcp", "sport", "83"]), ("wan0", "client", ["tcp", "dport", "8000"])]
    {
        let listening =
            lab.start(&net.router, &[&["trace", interface], &filter[..], &["--count", "5", "--json"]].concat());
        listening.await_stderr("listening");
        let (address, port, source) = ENDS[3];
        exchange(&net.client, at(address, port), 20_000).expect("an answer");
        let output = listening.finish().ok();
        assert_eq!(output.stdout.lines().count(), 5);
        for line in output.stdout.lines() {
            let shown = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
            check(&shown, "masquerade6", sender, "[fd78::1]:83", &format!("[{source}]:"), "[fd79::2]:8000");
        }
    }
    let listening = lab.start(&net.router, &["trace", "lan0", "udp", "sport", "80", "--count", "1"]);
    listening.await_stderr("listening");
    datagram(&net.client, at(ENDS[0].0, 80), b"hello").expect("an answer");
    let text = listening.finish().ok().stdout;
    assert!(text.contains("forward keep: 10.79.0.2:8000 to 10.78.0.2:"), "{text}");
    assert!(text.contains(" leaves as 10.78.0.1:80 to 10.78.0.2:"), "{text}");
    assert!(text.contains("rule not asked: the forward has a class | egress class 1 "), "{text}");

    let seen = json_of(lab, &net, &once);
    let of = |arriving: bool, port: &str, number: u16| {
        let flows = seen["flows"].as_array().expect("flows").iter();
        let mut wanted =
            flows.filter(|flow| flow["arriving"] == arriving && flow[port] == number && flow["protocol"] == 6);
        wanted.next().unwrap_or_else(|| panic!("no flow with port {number}: {seen}"))
    };
    check(of(true, "dst_port", 83), "masquerade6", "client", "[fd78::1]:83", "[fd79::1]:", "[fd79::2]:8000");
    check(of(false, "src_port", 83), "masquerade6", "target", "[fd78::1]:83", "[fd79::1]:", "[fd79::2]:8000");
    let text = lab.sluice(&net.router, &["flows", "lan0", "--once", "--interval", "100ms"]).ok().stdout;
    assert!(text.contains(" > 10.78.0.1:80 by forward keep"), "{text}");
    let text = lab.sluice(&net.router, &["flows", "lan0", "--once", "--csv", "--interval", "100ms"]).ok().stdout;
    let row = text.lines().find(|line| line.contains(",masquerade6,")).unwrap_or_else(|| panic!("{text}"));
    assert!(row.contains(",[fd78::1]:83,[fd79::1]:") && row.ends_with(",[fd79::2]:8000"), "{row}");
    lab.down(&net.router, "lan0");
    lab.down(&net.router, "wan0");
}
