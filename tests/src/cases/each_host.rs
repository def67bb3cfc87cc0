//! Groups of hosts that no list names: each host has a leaf while it is there.

use super::subscribers::{SETTLE, address, box_between, download, end, listed};
use crate::cases::assert_near;
use crate::lab::Lab;
use crate::needs::Need;
use crate::suite::Suite;
use serde_json::{Value, json};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("each_host").both("shares_are_equal_and_ceilings_hold", &[Need::Icount], shares).both(
        "groups_come_and_go",
        &[],
        come_and_go,
    )
}

/// Hosts behind one ceiling, and a subscriber among their addresses.
fn policy(ceil: &str) -> Value {
    json!({
        "name": "office",
        "link": { "rate": "100mbit", "overhead": 14 },
        "subscriber_side": ["lan0"],
        "sites": { "wifi": { "ceil": "40mbit" } },
        "plans": { "guest": { "ceil": ceil, "queue": "fifo" } },
        "each_host": {
            "first": { "addresses": ["10.77.0.0/16"], "hosts": 8 },
            "guests": { "addresses": ["10.78.0.0/24"], "plan": "guest", "site": "wifi", "hosts": 64 },
        },
        "subscribers": [{ "name": "a", "addresses": [address("a")], "ceil": "20mbit" }],
    })
}

/// The key of a host.
fn host(name: &str) -> String {
    format!("guests {}", address(name))
}

/// Three hosts share the ceiling of their site, then have one of their own each, and keep what they have counted. The subscriber is none of them.
fn shares(lab: &Lab) {
    let net = box_between(lab);
    lab.up(&net.router, "lan0", &lab.policy(&policy("25mbit")), &[]);
    let streams = download(&net, &[("a", 30), ("b", 40), ("c", 30), ("d", 20)]);
    std::thread::sleep(Duration::from_millis(1000));
    let from = crate::traffic::now_ns();
    lab.sluice(&net.router, &["apply", "lan0", &lab.policy(&policy("8mbit"))]).ok();
    let to = crate::traffic::now_ns();
    std::thread::sleep(Duration::from_millis(1000));
    let outcomes = end(streams);
    for (name, outcome) in ["a", "b", "c", "d"].iter().zip(&outcomes) {
        let (before, after) = if *name == "a" { (20e6, 20e6) } else { (40e6 / 3.0, 8e6) };
        assert_near(
            &format!("{name} of three"),
            outcome.between(from - 700_000_000, from).bps(Duration::ZERO, 0),
            before,
            0.02,
        );
        let later = outcome.between(to + 300_000_000, to + 900_000_000);
        assert_near(&format!("{name} at its ceiling"), later.bps(Duration::ZERO, 0), after, 0.02);
        assert!(outcome.in_order() && outcome.bps(SETTLE, 0) > 0.0, "{name}");
    }
    let all = listed(lab, &net.router, "lan0");
    assert_eq!(all.keys().cloned().collect::<Vec<_>>(), ["a".to_owned(), host("b"), host("c"), host("d")]);
    for (name, outcome) in ["b", "c", "d"].iter().zip(&outcomes[1..]) {
        let (ceil, [sent, ..]) = all[&host(name)];
        assert_eq!((ceil, sent), (8_000_000, outcome.received()), "{name}");
    }
    lab.down(&net.router, "lan0");
}

/// A group that goes leaves its hosts to nobody, and one that comes back counts them anew; explain, status and top tell the same.
fn come_and_go(lab: &Lab) {
    let net = box_between(lab);
    let with = lab.policy(&policy("25mbit"));
    lab.up(&net.router, "lan0", &with, &[]);
    let load = |mbit: u64| {
        let streams = download(&net, &[("b", mbit), ("c", mbit)]);
        std::thread::sleep(Duration::from_millis(300));
        end(streams).iter().map(|outcome| outcome.sent).sum::<u64>()
    };
    let status = || -> Value {
        serde_json::from_str(&lab.sluice(&net.router, &["status", "lan0", "--json"]).ok().stdout).expect("JSON")
    };
    let of_site = |status: &Value, name: &str| -> (u64, u64) {
        let mut sites = status["tree"]["sites"].as_array().expect("sites").iter();
        let own = sites.find(|site| site["name"] == name).unwrap_or_else(|| panic!("{name} is not in {status}"));
        (own["subscribers"].as_u64().expect("a number"), own["sent"]["pkts"].as_u64().expect("a count"))
    };
    let nobody = |status: &Value| status["tree"]["nobody"]["sent"]["pkts"].as_u64().expect("a count");
    let sent = load(1);
    let shown = status();
    assert_eq!((of_site(&shown, "guests"), of_site(&shown, "wifi")), ((2, sent), (2, sent)), "{shown}");
    let own = lab.sluice(&net.router, &["status", &host("b")]).ok().stdout;
    assert!(own.contains(address("b")) && own.contains("guests"), "{own}");
    let explained =
        lab.sluice(&net.router, &["explain", "lan0", "udp", "10.79.0.2:5000", "to", "10.78.0.12:6000"]).ok().stdout;
    for text in ["guests, plan guest", "a host of guests: ceiling 25 Mbit/s", "wifi: ceiling 40 Mbit/s"] {
        assert!(explained.contains(text), "{text}: {explained}");
    }
    let names = |status: &Value| -> Vec<(String, u64)> {
        let sites = status["tree"]["sites"].as_array().expect("sites").iter();
        sites
            .map(|site| (site["name"].as_str().expect("a name").to_owned(), site["depth"].as_u64().expect("a depth")))
            .collect()
    };
    let below = [("wifi", 0), ("guests", 1), ("first", 0)].map(|(name, depth)| (name.to_owned(), depth));
    assert_eq!(names(&shown), below, "a group stands below its site");
    let mut without = policy("25mbit");
    without["each_host"] = json!({ "others": { "addresses": ["10.99.0.0/16"], "hosts": 8 } });
    let before = nobody(&shown);
    let told = lab.sluice(&net.router, &["apply", "lan0", &lab.policy(&without)]).ok().stdout;
    assert!(told.contains("guests") && told.contains("others"), "{told}");
    let sent = load(1);
    assert_eq!(nobody(&status()) - before, sent, "they are in no group");
    lab.sluice(&net.router, &["rollback", "lan0"]).ok();
    // A qdisc without packets makes its leaves with its next packets, which are nobody's until then.
    let before = nobody(&status());
    let sent = load(1);
    let shown = status();
    let (hosts, of_hosts) = of_site(&shown, "guests");
    let missed = nobody(&shown) - before;
    assert_eq!((hosts, of_hosts + missed), (2, sent), "they have come anew");
    assert!(missed <= 4, "{missed} packets were nobody's");
    let mut wrong = policy("25mbit");
    wrong["each_host"]["guests"]["hosts"] = json!(20_000);
    lab.sluice(&net.router, &["apply", "lan0", &lab.policy(&wrong)]).exits(2).says("20000");
    assert_eq!(of_site(&status(), "guests"), (2, of_hosts));
    lab.sluice(&net.router, &["subscriber", "set", &host("b"), "--ceil", "1mbit"]).exits(2).says("hosts of a group");
    // Groups take each other's place.
    let whole = |name: &str| {
        let mut policy = policy("25mbit");
        policy["each_host"] = json!({ name: { "addresses": ["10.78.0.0/24"], "hosts": 64, "ceil": "30mbit" } });
        lab.policy(&policy)
    };
    lab.sluice(&net.router, &["apply", "lan0", &whole("one")]).ok();
    lab.sluice(&net.router, &["apply", "lan0", &whole("two")]).ok();
    lab.sluice(&net.router, &["apply", "lan0", &with]).ok();
    lab.sluice(&net.router, &["upgrade", "lan0"]).ok();
    let sent = load(1);
    assert_eq!(of_site(&status(), "guests").0, 2, "{sent} packets more");
    lab.down(&net.router, "lan0");
}
