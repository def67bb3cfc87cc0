//! Policies with subscribers: a tree of classes in both directions, changed while packets flow.

mod classes;
mod early;
mod in_place;
mod marked;

use crate::cases::assert_near;
use crate::cases::upgrade::age;
use crate::command::{await_that, run};
use crate::lab::{Engine, Lab};
use crate::needs::Need;
use crate::net::Routed;
use crate::server::Server;
use crate::suite::Suite;
use crate::town::{
    ODD, SETTLE, address, assert_town_down, assert_up_behind_nat, box_between, download, end, htb_classes, listed,
    masquerade, policy, subscriber, town, town_with_a_mast,
};
use crate::traffic::now_ns;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("subscribers")
        .both("plans_hold_in_both_directions", &[Need::Icount, Need::Conntrack], plans_hold)
        .both("a_change_touches_one", &[Need::Icount], a_change_touches_one)
        .both("changes_are_all_or_nothing", &[], all_or_nothing)
        .both("changes_in_place", &[], in_place::in_place)
        .both("classes_share_what_their_subscriber_gets", &[Need::Icount], classes::classes_share)
        .both("classes_change_while_packets_flow", &[], classes::classes_change)
        .both("urgent_classes_go_first", &[Need::Icount], classes::urgent_classes)
        .both("classes_share_by_requests_and_ranks", &[Need::Icount], classes::requests_and_ranks)
        .both("marks_and_vlans_tell_subscribers", &[Need::Vlan, Need::Conntrack], marked::marks_and_vlans)
        .both("live_list_is_sorted_and_searched", &[], live_list)
        .tc("what_is_left_is_shared_by_subscriber", &[Need::Icount], shared_by_subscriber)
        .qdisc("floods_are_dropped_on_arrival", &[Need::Icount], early::floods_are_dropped_on_arrival)
        .qdisc("hosts_of_a_group_are_dropped_early", &[], early::hosts_of_a_group)
        .qdisc("the_hook_of_early_drop_follows_the_policy", &[], early::the_hook_follows_the_policy)
        .qdisc("ten_thousand", &[Need::Icount], ten_thousand)
}

const LONG: Duration = Duration::from_secs(20);

/// Plans and a site's ceiling hold towards the subscribers by destination and from them by source, also behind NAT; others have what is left.
fn plans_hold(lab: &Lab) {
    let net = box_between(lab);
    let policy = lab.policy(&town());
    lab.up(&net.router, "lan0", &policy, &[]);
    lab.up(&net.router, "wan0", &policy, &[]);
    let streams = download(&net, &[("a", 30), ("b", 60), ("c", 30), ("d", 15)]);
    std::thread::sleep(Duration::from_millis(800));
    let live = lab.sluice(&net.router, &["top", "lan0", "--once", "--json", "--interval", "500ms"]).ok();
    let outcomes = end(streams);
    let live: Value = serde_json::from_str(&live.stdout).expect("JSON");
    let tree = &live["interfaces"][0]["tree"];
    let rate = |list: &str, key: &str, name: &str| {
        let mut all = tree[list].as_array().expect("a list").iter();
        let one = all.find(|one| one[key] == name).unwrap_or_else(|| panic!("{name} is not in {tree}"));
        one["sent_bps"].as_f64().expect("a rate")
    };
    for (list, key, name, mbit) in
        [("busiest", "id", "b", 40.0), ("busiest", "id", "c", 20.0), ("sites", "name", "north", 60.0)]
    {
        assert_near(&format!("top: {name}"), rate(list, key, name), mbit * 1e6, 0.05);
    }
    assert_near("top: nobody", tree["nobody"]["sent_bps"].as_f64().expect("a rate"), 15e6, 0.05);
    assert_town_down(lab, &net, &outcomes);
    let shown = lab.sluice(&net.router, &["status", "lan0"]).ok().stdout;
    for text in ["subscribers (3; down, by destination)", "north", "60 Mbit/s", "of addresses that no subscriber has"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let asked = ["udp", "10.79.0.2:5000", "to", "10.78.0.11:6000"];
    for target in ["lan0", &policy] {
        let explained = lab.sluice(&net.router, &[&["explain", target], &asked[..]].concat()).ok().stdout;
        for text in [
            "a, plan home; down, by its destination",
            "a: guarantee 5 Mbit/s, ceiling 20 Mbit/s",
            "north: ",
            "link: ceiling 100 Mbit/s",
        ] {
            assert!(explained.contains(text), "{text}: {explained}");
        }
    }
    masquerade(&net);
    assert_up_behind_nat(lab, &net, "a", 5.0);
    assert_up_behind_nat(lab, &net, "b", 10.0);
    lab.down(&net.router, "lan0");
    lab.down(&net.router, "wan0");
}

/// One subscriber's ceiling changes, one comes, one moves, one goes: no packet of others is lost or overtaken, and those who stay keep their counters.
fn a_change_touches_one(lab: &Lab) {
    let net = box_between(lab);
    lab.up(&net.router, "lan0", &lab.policy(&town()), &[]);
    let streams = download(&net, &[("a", 10), ("b", 10), ("c", 10), ("d", 5)]);
    std::thread::sleep(Duration::from_millis(400));
    let change = |arguments: &[&str]| {
        let from = now_ns();
        let output = lab.sluice(&net.router, &[&["subscriber"], arguments].concat()).ok();
        std::thread::sleep(Duration::from_millis(400));
        (output, from, now_ns())
    };
    // The first one makes the index that changes in place need.
    change(&["move", "b", "south"]);
    let (told, from, to) = change(&["set", "a", "--ceil", "6mbit"]);
    assert!(told.stdout.contains("subscriber a: ceil.down 20mbit -> 6mbit"), "{told}");
    assert_eq!(in_place::amendments(), 2);
    change(&["add", "d", "--addresses", address("d"), "--plan", "home", "--site", "south"]);
    change(&["set", "a", "--ceil", ""]);
    change(&["remove", "c"]);
    let counted = listed(lab, &net.router, "lan0");
    let outcomes = end(streams);
    assert_near(
        "a while its ceiling was 6 Mbit/s",
        outcomes[0].between(from + 200_000_000, to).bps(Duration::ZERO, 0),
        6e6,
        0.05,
    );
    for (name, outcome) in ["a", "b", "c", "d"].iter().zip(&outcomes) {
        // More was sent to "a" than its new ceiling lets through. HTB loses what is queued of who moves or goes.
        let may_lose = match *name {
            "a" => u64::MAX,
            "b" | "c" if lab.engine == Engine::Tc => 2,
            _ => 0,
        };
        assert!(outcome.in_order() && outcome.lost() <= may_lose, "{name}: {} lost", outcome.lost());
    }
    assert_eq!(counted.keys().collect::<Vec<_>>(), ["a", "b", "d"]);
    assert!(counted["a"].1[0] > 1500 && counted["d"].1[0] > 100, "{counted:?}");
    let entries = || lab.sluice(&net.router, &["history", "lan0"]).ok().stdout.lines().count();
    let before = entries();
    let told = lab.sluice(&net.router, &["subscriber", "set", "b", "--plan", "work", "--site", "south"]).ok().stdout;
    assert_eq!((told.as_str(), entries()), ("lan0: nothing changes\n", before), "it is so already");
    lab.sluice(&net.router, &["subscriber", "set", "c", "--plan", "home"]).exits(2).says("no subscriber \"c\"");
    lab.sluice(&net.router, &["subscriber", "set", "a", "--plan", "hom"]).exits(2).says("is \"home\" meant?");
    lab.sluice(&net.router, &["subscriber", "add", "e", "--addresses", address("a")]).exits(2).says("10.78.0.11/32");
    changed_by_a_program(lab, &net);
    lab.down(&net.router, "lan0");
}

/// A batch of changes by HTTP is made as a whole, or not at all.
fn changed_by_a_program(lab: &Lab, net: &Routed) {
    let server = Server::start(lab, &net.router, &[]);
    let post = |changes: Value| server.post_plainly("/api/subscribers/change", &json!({ "changes": changes }));
    let names = || listed(lab, &net.router, "lan0").into_iter().map(|(name, (ceil, _))| (name, ceil / 1_000_000));
    let before: Vec<(String, u64)> = names().collect();
    let to_work = |name: &str| json!({ "set": { "name": name, "values": { "plan": "work" } } });
    post(json!([to_work("a"), { "remove": { "name": "c" } }])).refuses(409, "there is no subscriber");
    post(json!([])).refuses(422, "0 changes");
    assert_eq!(names().collect::<Vec<_>>(), before, "all or nothing");
    let added = json!({ "add": { "name": "c", "addresses": [address("c")], "plan": "home" } });
    let made = post(json!([to_work("a"), added, { "remove": { "name": "b" } }, to_work("c")])).json();
    assert!(made["lan0"]["lines"].is_array() && made["lan0"]["notes"].is_array(), "{made}");
    let again = post(json!([to_work("a")])).json();
    let in_force = lab.status(&net.router, "lan0").policy.generation;
    assert_eq!(again["lan0"]["generation"], json!(in_force), "nothing changes, and it says so");
    let after: Vec<(String, u64)> = names().collect();
    assert_eq!(after, [("a".to_owned(), 50), ("c".to_owned(), 50), ("d".to_owned(), 20)]);
    server.stop(Signal::SIGTERM);
}

/// The subscribers of an interface with their rates, by HTTP: found by text, address, site and view, in order, a part at a time.
fn live_list(lab: &Lab) {
    let net = box_between(lab);
    let mut policy = town_with_a_mast();
    let idle = (0..250).map(|n| json!({ "name": format!("s{n:03}"), "addresses": [format!("198.18.{n}.0/24")] }));
    policy["subscribers"].as_array_mut().expect("a list").extend(idle);
    lab.up(&net.router, "lan0", &lab.policy(&policy), &[]);
    lab.up(&net.router, "wan0", &lab.policy(&crate::policy::three()), &["--rate", "20mbit"]);
    let server = Server::start(lab, &net.router, &[]);
    let ask = |query: &str| server.get(&format!("/api/interfaces/lan0/subscribers?{query}"));
    let keys = |query: &str| -> Vec<String> {
        let answer = ask(query).json();
        let all = answer["subscribers"].as_array().expect("a list");
        all.iter().map(|one| one["id"].as_str().expect("a key").to_owned()).collect()
    };
    await_that("something was measured", LONG, || ask("").status == 200);
    let streams = download(&net, &[("a", 30), ("b", 8), ("c", 2)]);
    await_that("a is at its ceiling, as its rate says", LONG, || keys("view=at_ceiling") == ["a"]);
    await_that("the busiest come first", LONG, || keys("view=busiest") == ["a", "b", "c"]);
    await_that("a has the longest queue", LONG, || keys("view=queued").first().is_some_and(|key| key == "a"));
    assert_eq!(keys("view=busiest&order=ascending&offset=1&limit=1"), ["b"]);
    assert_eq!(keys("sort=used&limit=3"), ["a", "b", "c"]);
    assert_eq!(keys("sort=drops&limit=1"), ["a"]);
    assert_eq!(keys("sort=queue&limit=1"), ["a"]);
    let streaming = server.get("/api/interfaces/lan0/subscriber?name=a").json();
    // A busy machine reads the counters late.
    assert_near("part of the ceiling", streaming["used"].as_f64().expect("a part"), 1.0, 0.15);
    // HTB's queues tell no waits.
    let slowest = if lab.engine == Engine::Qdisc { vec!["a", "b", "c"] } else { Vec::new() };
    await_that("a waits longest", LONG, || {
        let mut found = keys("view=slowest");
        // The other two hardly wait.
        found.get_mut(1..).unwrap_or_default().sort();
        found == slowest
    });
    let outcomes = end(streams);

    assert_eq!(keys("site=north"), ["a", "b"], "that of the mast, too");
    assert_eq!(keys("site=north&search=mast"), ["a"]);
    assert_eq!(keys("search=10.78.0.12"), ["b"], "no part of it");
    assert_eq!(keys("search=192.0.2.66"), [ODD], "by an address of the prefix");
    assert_eq!(keys("search=S24&sort=name&order=descending&limit=2"), ["s249", "s248"]);
    let part = ask("sort=name&search=s1&offset=90").json();
    assert_eq!((&part["count"], &part["found"], &part["offset"]), (&json!(254), &json!(100), &json!(90)));
    assert_eq!(part["subscribers"].as_array().map(Vec::len), Some(10));
    assert_eq!((keys("").len(), keys("limit=200").len(), keys("offset=9999").len()), (50, 200, 0));
    assert_eq!(keys("")[..2], ["a", "b"], "as in the table");

    await_that("the counters are those of what was sent", LONG, || {
        let one = server.get("/api/interfaces/lan0/subscriber?name=a").json();
        let sent = one["sent"]["pkts"].as_u64().expect("packets");
        (sent, sent + one["dropped_pkts"].as_u64().expect("drops")) == (outcomes[0].received(), outcomes[0].sent)
    });
    let line = |text: &str, start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    let scraped = server.get("/metrics?subscribers=10.78.0.11").body;
    let sent = format!(
        "sluice_subscriber_sent_packets_total{{interface=\"lan0\",subscriber=\"a\",site=\"mast\",plan=\"home\"}} {}\n",
        outcomes[0].received()
    );
    assert!(scraped.contains(&sent), "{sent} is not in {scraped}");
    assert_eq!(line(&scraped, "sluice_subscriber_sent_packets_total{"), 1, "the one that was asked for");
    assert_eq!(line(&server.get("/metrics?subscribers=").body, "sluice_subscriber_dropped_packets_total{"), 254);
    assert_eq!(line(&server.get("/metrics").body, "sluice_subscriber_"), 0, "nobody has asked");
    let odd =
        server.curl("/api/interfaces/lan0/subscriber", &["-G", "--data-urlencode", &format!("name={ODD}")]).json();
    assert_eq!(odd["addresses"], json!(["192.0.2.64/29", "2001:db8:7::/56"]));
    assert_eq!((&odd["addresses_left_out"], &odd["site"], &odd["ceil_bps"]), (&json!(0), &Value::Null, &Value::Null));

    for (query, status, why) in [
        ("limit=0", 422, "not between 1 and 200"),
        ("limit=201", 422, "not between 1 and 200"),
        ("limit=many", 400, "invalid digit"),
        ("offset=-1", 400, "invalid digit"),
        ("view=best", 400, "unknown variant"),
        ("sort=delay", 400, "unknown variant"),
        ("order=up", 400, "unknown variant"),
        ("serach=a", 400, "unknown field"),
        ("site=east", 422, "no site"),
        (&format!("search={}", "x".repeat(256)), 422, "255 bytes"),
    ] {
        ask(query).refuses(status, why);
    }
    let of = |path: &str| server.get(&format!("/api/interfaces/{path}"));
    of("lan0/subscriber?name=e").refuses(404, "no subscriber");
    of("lan0/subscriber").refuses(400, "name");
    of("wan0/subscribers").refuses(409, "no subscribers");
    of("wan0/subscriber?name=a").refuses(409, "no subscribers");
    of("nowhere/subscribers").refuses(404, "nowhere");
    server.get("/api/subscribers?limit=many").refuses(400, "invalid digit");
    server.stop(Signal::SIGTERM);
    lab.down(&net.router, "lan0");
    lab.down(&net.router, "wan0");
}

/// A change that is not confirmed, that fails or that dies leaves the tree as it was or as it is to be; rollback brings it back.
fn all_or_nothing(lab: &Lab) {
    let net = box_between(lab);
    let (first, second) = (
        lab.policy(&town()),
        lab.policy(&policy(&[
            subscriber("a", "work", "south"),
            subscriber("c", "home", "south"),
            subscriber("d", "home", ""),
        ])),
    );
    net.router.tc("qdisc replace dev lan0 root handle 1: pfifo limit 100");
    lab.up(&net.router, "lan0", &first, &["--force"]);
    let classes = || net.router.tool("tc", "class show dev lan0").ok().stdout;
    let before = classes();
    age(&net.router);
    lab.sluice(&net.router, &["upgrade", "lan0"]).ok();
    assert_eq!(classes(), before, "HTB keeps its classes, and their queues");
    lab.up(&net.router, "wan0", &first, &[]);
    let ceilings = |interface: &str| -> Vec<(String, u64)> {
        listed(lab, &net.router, interface).into_iter().map(|(name, (ceil, _))| (name, ceil / 1_000_000)).collect()
    };
    let named = |all: &[(&str, u64)]| all.iter().map(|(name, mbit)| ((*name).to_owned(), *mbit)).collect::<Vec<_>>();
    let (before, after) = (named(&[("a", 20), ("b", 50), ("c", 20)]), named(&[("a", 50), ("c", 20), ("d", 20)]));
    assert_eq!(ceilings("lan0"), before);
    lab.sluice(&net.router, &["apply", "lan0", &second, "--confirm", "2s"]).ok();
    assert_eq!(ceilings("lan0"), after);
    await_that("it is taken back", Duration::from_secs(20), || ceilings("lan0") == before);
    for fault in ["apply-queued:error", "apply-live:error", "apply-pruned:error", "apply-verified:error"] {
        let failed = run(lab.command(&net.router, &["apply", "lan0", &second]).env("SLUICE_FAULT", fault));
        failed.exits(1).says("is in force again");
        assert_eq!(ceilings("lan0"), before, "{fault}");
    }
    for (point, then) in [
        ("apply-recorded", &before),
        ("apply-queued", &before),
        ("apply-staged", &before),
        ("apply-live", &after),
        ("apply-pruned", &after),
        ("apply-noted", &after),
    ] {
        lab.killed_at(point, &net.router, &["apply", "lan0", &second]);
        assert_eq!(&ceilings("lan0"), then, "{point}");
        let status = lab.sluice(&net.router, &["status", "lan0", "--json"]).ok();
        assert!(status.stdout.contains("\"in_place\": true"), "{status}");
        lab.sluice(&net.router, &["apply", "lan0", &first]).ok();
    }
    if lab.engine == Engine::Tc {
        broken_off(lab, &net, &first, &second);
    }
    let short = lab.policy(&policy(&[subscriber("a", "work", "south")]));
    let told = lab.sluice(&net.router, &["apply", "lan0", &short]).exits(2);
    told.says("1 of 3 subscribers are left").says("--force");
    assert_eq!(ceilings("lan0"), before);
    lab.sluice(&net.router, &["apply", "lan0", &short, "--force"]).ok();
    assert_eq!(ceilings("lan0"), named(&[("a", 50)]));
    lab.sluice(&net.router, &["rollback", "lan0"]).ok();
    // Both interfaces, or none.
    let failed = run(lab
        .command(&net.router, &["subscriber", "set", "a", "--plan", "work", "--addresses", address("a")])
        .env("SLUICE_FAULT", "apply-verified:error"));
    failed.exits(1);
    assert_eq!((ceilings("lan0"), ceilings("wan0")), (before.clone(), named(&[("a", 5), ("b", 10), ("c", 5)])));
    lab.sluice(&net.router, &["subscriber", "set", "a", "--plan", "work"]).ok();
    assert_eq!((ceilings("lan0")[0].1, ceilings("wan0")[0].1), (50, 10));
    lab.sluice(&net.router, &["subscriber", "set", "a", "--plan", "home", "--interface", "wan0"]).ok();
    assert_eq!((ceilings("lan0")[0].1, ceilings("wan0")[0].1), (50, 5));
    lab.sluice(&net.router, &["rollback", "lan0"]).ok();
    assert_eq!(ceilings("lan0"), before);
    let classes = lab.policy(&crate::policy::three());
    lab.sluice(&net.router, &["apply", "lan0", &classes])
        .exits(2)
        .says("the policy in force has subscribers, the new one flat classes");
    net.router.tc("qdisc del dev lan0 root");
    assert!(!lab.sluice(&net.router, &["status", "lan0", "--json"]).ok().stdout.contains("\"in_place\": true"));
    lab.sluice(&net.router, &["ensure"]).ok();
    assert_eq!(ceilings("lan0"), before);
    lab.down(&net.router, "lan0");
    lab.down(&net.router, "wan0");
}

/// HTB that was changed by a command which then died has the classes of the former policy again, whichever command comes next. The packets of a
/// subscriber whose class is gone are those of nobody meanwhile.
fn broken_off(lab: &Lab, net: &Routed, first: &str, second: &str) {
    let classes = || htb_classes(net);
    let before = classes();
    assert_eq!(before.len(), 1 + 2 + 3 + 1, "{before:?}");
    lab.killed_at("htb-told", &net.router, &["apply", "lan0", second]);
    assert_ne!(classes(), before, "tc has done it");
    lab.sluice(&net.router, &["apply", "lan0", first]).ok();
    assert_eq!(classes(), before);
    lab.killed_at("htb-told", &net.router, &["apply", "lan0", second]);
    net.router.tc("class del dev lan0 classid 5101:1");
    let status = || -> Value {
        let shown = lab.sluice(&net.router, &["status", "lan0", "--json"]).ok().stdout;
        serde_json::from_str(&shown).expect("JSON")
    };
    // A command of ours would mend HTB first.
    let of_nobody = || -> u64 {
        let shown = net.router.tool("tc", "-s class show dev lan0").ok().stdout;
        let (_, own) = shown.split_once("class htb 5101:8000 ").expect("the class of nobody");
        let (_, counts) = own.split_once(" bytes ").expect("what it has sent");
        let (pkts, _) = counts.split_once(" pkt ").expect("packets");
        pkts.parse().expect("a number")
    };
    let sent_before = of_nobody();
    let outcome = download(net, &[("a", 2)]).remove(0).stop_after(Duration::from_millis(300)).remove(0);
    let sent = of_nobody() - sent_before;
    assert!(outcome.sent > 10 && sent >= outcome.sent, "{sent} packets of nobody, {} sent", outcome.sent);
    net.router.tc("qdisc del dev lan0 root");
    // A new HTB that no command has made to its end is found out.
    lab.killed_at("htb-told", &net.router, &["ensure", "lan0"]);
    assert_eq!(status()["in_place"], json!(false));
    lab.sluice(&net.router, &["ensure", "lan0"]).ok();
    assert_eq!((classes(), &status()["in_place"]), (before, &json!(true)));
    assert!(net.router.tool("tc", "filter show dev lan0 parent 5101:").ok().stdout.contains("sl_htb_tree"));
}

/// One subscriber of a site and three of another one, all backlogged: HTB gives each the same.
fn shared_by_subscriber(lab: &Lab) {
    let net = box_between(lab);
    let mut policy = policy(&[
        subscriber("a", "all", "one"),
        subscriber("b", "all", "two"),
        subscriber("c", "all", "two"),
        subscriber("d", "all", "two"),
    ]);
    policy["link"]["rate"] = json!("20mbit");
    policy["sites"] = json!({ "one": {}, "two": {} });
    policy["plans"] = json!({ "all": { "queue": "fifo" } });
    lab.up(&net.router, "lan0", &lab.policy(&policy), &[]);
    let streams = download(&net, &[("a", 25), ("b", 25), ("c", 25), ("d", 25)]);
    std::thread::sleep(Duration::from_millis(1500));
    for (name, outcome) in ["a", "b", "c", "d"].iter().zip(end(streams)) {
        assert_near(name, outcome.bps(SETTLE, 0), 5e6, 0.05);
    }
    lab.down(&net.router, "lan0");
}

/// A table of ten thousand goes up, one of them changes, and all of them change, while packets flow.
fn ten_thousand(lab: &Lab) {
    let net = box_between(lab);
    let table = |plan: &str| {
        let rows = (0..10_000)
            .map(|n| format!("s{n},10.{}.{}.{},{plan},site{}\n", 100 + n / 65_536, n / 256 % 256, n % 256, n % 100));
        let own = format!("a,{},home,site1\n", address("a"));
        "name,addresses,plan,site\n".to_owned() + &own + &rows.collect::<String>()
    };
    let sites: serde_json::Map<String, Value> = (0..100).map(|n| (format!("site{n}"), json!({}))).collect();
    let text = |file: &str| {
        json!({
            "name": "many", "link": { "rate": "1gbit", "split_gso": "off" }, "subscriber_side": ["lan0"], "sites": sites,
            "plans": { "home": { "ceil": "20mbit" }, "work": { "ceil": "50mbit" } }, "subscribers": file,
        })
    };
    lab.file("many.csv", table("home"));
    lab.file("more.csv", table("work"));
    let first = lab.policy(&text("many.csv"));
    let second = lab.policy(&text("more.csv"));
    let seconds = |what: &str, arguments: &[&str]| {
        let from = now_ns();
        lab.sluice(&net.router, arguments).ok();
        eprintln!("    {what}: {:.3} s", (now_ns() - from) as f64 / 1e9);
    };
    seconds("up", &["up", "lan0", "--policy", &first, "--engine", "qdisc"]);
    let programs = net.router.programs("lan0");
    assert!(!programs.contains(&"sl_split".to_owned()), "nothing splits, and nothing has a class: {programs:?}");
    let ceil = |name: &str| listed(lab, &net.router, "lan0")[name].0;
    let streams = download(&net, &[("a", 10), ("d", 10)]);
    std::thread::sleep(Duration::from_millis(200));
    seconds("the first one", &["subscriber", "set", "s76", "--plan", "work", "--quiet"]);
    seconds("one", &["subscriber", "set", "s77", "--plan", "work", "--quiet"]);
    let server = Server::start(lab, &net.router, &[]);
    for name in ["s78", "s79", "s80"] {
        let from = now_ns();
        let change = json!({ "changes": [{ "set": { "name": name, "values": { "plan": "work" } } }] });
        server.post_plainly("/api/subscribers/change", &change).json();
        eprintln!("    one by the server: {:.4} s", (now_ns() - from) as f64 / 1e9);
    }
    server.stop(Signal::SIGTERM);
    assert_eq!((in_place::amendments(), ceil("s80")), (5, 50_000_000), "in place");
    seconds("all", &["apply", "lan0", &second, "--quiet"]);
    seconds("status", &["status", "lan0"]);
    let outcomes = end(streams);
    for outcome in &outcomes {
        assert_eq!((outcome.lost(), outcome.in_order()), (0, true));
    }
    let shown = listed(lab, &net.router, "lan0");
    assert_eq!((shown.len(), shown["s77"].0, shown["s9999"].0), (10_001, 50_000_000, 50_000_000));
    seconds("down", &["down", "lan0"]);
}
