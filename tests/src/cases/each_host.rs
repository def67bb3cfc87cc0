//! Groups of hosts that no list names: each host has a leaf while it is there.

use crate::cases::assert_near;
use crate::command::run;
use crate::lab::{Engine, Lab};
use crate::needs::Need;
use crate::net::Routed;
use crate::suite::Suite;
use crate::town::{address, box_between, download, end, listed};
use serde_json::{Value, json};
use std::process::Command;
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
            "first": { "addresses": ["10.77.0.0/16", "::/0"], "hosts": 8 },
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
        assert!(outcome.in_order(), "{name}");
    }
    let all = listed(lab, &net.router, "lan0");
    assert_eq!(all.keys().cloned().collect::<Vec<_>>(), ["a".to_owned(), host("b"), host("c"), host("d")]);
    for (name, outcome) in ["b", "c", "d"].iter().zip(&outcomes[1..]) {
        let (ceil, [sent, ..]) = all[&host(name)];
        assert_eq!((ceil, sent), (8_000_000, outcome.received()), "{name}");
    }
    lab.down(&net.router, "lan0");
}

/// A group that goes leaves its hosts to nobody, and one that comes back counts them anew; explain and status tell the same.
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
    // ARP is no host's, although a group has all of IPv6.
    let before = nobody(&shown);
    net.router.tool("ping", "-c 1 -W 1 10.78.0.99").exits(1);
    net.router.ip("neigh del 10.78.0.99 dev lan0");
    assert!(nobody(&status()) > before, "ARP is nobody's");
    assert_eq!(of_site(&status(), "first"), (0, 0));
    let shown = status();
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
    lab.sluice(&net.router, &["subscriber", "add", "own", "--addresses", address("b")]).ok();
    let keys: Vec<String> = listed(lab, &net.router, "lan0").into_keys().collect();
    assert_eq!(keys, ["a".to_owned(), host("c"), "own".to_owned()], "a subscriber's address is no host's any more");
    lab.sluice(&net.router, &["rollback", "lan0"]).ok();
    crowd(lab, &net);
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

/// Twelve hosts of a group with eight places: four share a queue, and all packets are told.
fn crowd(lab: &Lab, net: &Routed) {
    let mut policy = policy("31kbit");
    policy["each_host"]["guests"]["hosts"] = json!(8);
    lab.sluice(&net.router, &["apply", "lan0", &lab.policy(&policy)]).ok();
    for host in 21..33 {
        net.router.ip(&format!("neigh replace 10.78.0.{host} dev lan0 lladdr 02:00:00:00:78:02 nud permanent"));
    }
    // At 31 kbit/s a ceiling owes the two packets of its burst for 0.7 s, and a third one waits.
    let send = "for n in 1 2 3 4; do for host in {21..32}; do printf %1400s x > /dev/udp/10.78.0.$host/9; done; done";
    run(Command::new("ip").args(["netns", "exec", &net.server.name, "bash", "-c", send])).ok();
    let rows = listed(lab, &net.router, "lan0");
    let crowd: Vec<&String> =
        rows.keys().filter(|key| key.starts_with("guests 10.78.0.2") || key.starts_with("guests 10.78.0.3")).collect();
    let told = |counts: &[u64; 3]| counts.iter().sum::<u64>();
    let (_, others) = rows["guests others"];
    assert_eq!(crowd.len(), 8, "{rows:?}");
    assert_eq!(told(&others), 16, "four packets of each of the four");
    // Below HTB a host inherits what its leaf had counted for the hosts of the group before it was made smaller.
    let is_whole = |told: u64| if lab.engine == Engine::Tc { told >= 4 } else { told == 4 };
    assert!(crowd.iter().all(|key| is_whole(told(&rows[*key].1))), "{rows:?}");
}
