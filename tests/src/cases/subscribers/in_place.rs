//! Changes of subscribers in place: without reading the others, and with the same end as a change of the whole policy.

use crate::cases::crash::points;
use crate::command::run;
use crate::lab::Lab;
use crate::net::Routed;
use crate::town::{address, box_between, htb_classes, listed, policy, subscriber, town};
use serde_json::{Value, json};
use std::fs;

/// Lines beside the records of the box, each of a change that was made in place.
pub fn amendments() -> usize {
    let files = fs::read_dir("/run/sluice").expect("records").flatten();
    let is_own = |name: &str| ["lan0", "wan0"].iter().any(|own| name.starts_with(own)) && name.ends_with(".amendments");
    let own = files.filter(|file| file.file_name().to_str().is_some_and(is_own));
    let lines = own.map(|file| fs::read_to_string(file.path()).expect("a text").lines().count());
    // The first line names the record.
    lines.map(|lines| lines - 1).sum()
}

/// Changes of plan, site and rates are made without reading the network. What they make is what the whole policy makes, they are in the history,
/// and one that fails or dies leaves the subscribers as they were or as they are to be.
pub fn in_place(lab: &Lab) {
    let net = box_between(lab);
    let first = lab.policy(&town());
    lab.up(&net.router, "lan0", &first, &[]);
    lab.up(&net.router, "wan0", &first, &[]);
    let set = |arguments: &[&str]| lab.sluice(&net.router, &[&["subscriber", "set"], arguments].concat());
    let ceilings = |interface: &str| -> Vec<u64> {
        listed(lab, &net.router, interface).into_values().map(|(ceil, _)| ceil / 1_000_000).collect()
    };
    let history = || -> Vec<Value> {
        let shown = lab.sluice(&net.router, &["history", "lan0", "--json"]).ok().stdout;
        serde_json::from_str(&shown).expect("JSON")
    };
    let says_the_same = |policy: &Value| {
        let policy = lab.policy(policy);
        for interface in ["lan0", "wan0"] {
            let told = lab.sluice(&net.router, &["apply", interface, &policy, "--dry-run"]).ok();
            assert!(told.stdout.contains("nothing changes"), "{told}");
        }
    };
    set(&["c", "--plan", "work"]).ok();
    assert_eq!((amendments(), ceilings("lan0")), (2, vec![20, 50, 50]), "the first one makes the indices");
    let told = set(&["c", "--plan", "home", "--message", "as before"]).ok().stdout;
    assert!(told.contains("lan0 has other subscribers") && told.contains("plan work -> home"), "{told}");
    assert_eq!((amendments(), ceilings("lan0"), ceilings("wan0")), (4, vec![20, 50, 20], vec![5, 10, 5]));
    says_the_same(&town());
    set(&["b", "--rate", "3mbit/1mbit", "--ceil", "30mbit"]).ok();
    lab.sluice(&net.router, &["subscriber", "move", "a", "south"]).ok();
    set(&["a", "--plan", "work", "--interface", "wan0"]).ok();
    assert_eq!((amendments(), ceilings("lan0"), ceilings("wan0")), (9, vec![20, 30, 20], vec![10, 30, 5]));
    assert_eq!(set(&["b", "--ceil", "30mbit"]).ok().stdout.matches("nothing changes").count(), 2);
    set(&["a", "--plan", "home"]).ok();
    let changed = policy(&[
        subscriber("a", "home", "south"),
        json!({ "name": "b", "addresses": [address("b")], "plan": "work", "site": "north",
            "rate": { "down": "3mbit", "up": "1mbit" }, "ceil": "30mbit" }),
        subscriber("c", "home", "south"),
    ]);
    says_the_same(&changed);
    let shown = lab.sluice(&net.router, &["status", "lan0", "--json"]).ok().stdout;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(shown["in_place"], json!(true));
    let entries = history();
    let last = entries.last().expect("an entry");
    assert_eq!(
        (&last["generation"], last["message"].as_str()),
        (&shown["policy"]["generation"], Some("subscriber set a"))
    );
    assert_eq!(entries.len(), 6, "one was of wan0 alone");
    assert_eq!(entries.iter().filter(|entry| entry["message"] == "as before").count(), 1);
    // HTB's classes, guarantees of sites included, and what `explain` says are those of a policy that was applied whole.
    let (classes, explained) = (htb_classes(&net), explained(lab, &net));
    lab.down(&net.router, "lan0");
    lab.up(&net.router, "lan0", &lab.policy(&changed), &[]);
    assert_eq!((htb_classes(&net), self::explained(lab, &net)), (classes, explained));
    assert_eq!(amendments(), 6, "of wan0 alone");

    let refused = |arguments: &[&str], why: &str| {
        let before = (amendments(), ceilings("lan0"), ceilings("wan0"));
        set(arguments).exits(2).says(why);
        assert_eq!((amendments(), ceilings("lan0"), ceilings("wan0")), before, "{arguments:?}");
    };
    set(&["a", "--site", "north"]).ok();
    set(&["c", "--site", "north"]).ok();
    refused(
        &["c", "--rate", "55mbit", "--ceil", "60mbit"],
        "the subscribers of north are promised 63mbit down, more than its",
    );
    refused(&["c", "--ceil", "1mbit"], "at most 1mbit");
    refused(&["c", "--plan", "wrok"], "is \"work\" meant?");
    refused(&["e", "--plan", "work"], "no subscriber \"e\"");

    let faults: Vec<&str> = points("subscriber");
    let (before, after) = ((ceilings("lan0"), ceilings("wan0")), (vec![20, 30, 50], vec![5, 30, 10]));
    for fault in faults.iter().filter(|point| ["recorded", "queued"].iter().any(|step| point.ends_with(step))) {
        // It is so already, but the index is gone.
        set(&["c", "--site", "south"]).ok();
        let failed = run(lab
            .command(&net.router, &["subscriber", "set", "c", "--plan", "work"])
            .env("SLUICE_FAULT", format!("{fault}:error")));
        failed.exits(1).says("has its former subscribers again");
        assert_eq!((ceilings("lan0"), ceilings("wan0")), before, "{fault}");
        assert_eq!(history().last().expect("an entry")["outcome"], "failed", "{fault}");
    }
    for fault in faults {
        set(&["c", "--site", "south"]).ok();
        lab.killed_at(fault, &net.router, &["subscriber", "set", "c", "--plan", "work", "--message", fault]);
        // Those that it has not come to stay as they were.
        let wan = if ["live", "noted"].iter().any(|step| fault.ends_with(step)) { &after.1 } else { &before.1 };
        assert_eq!((&ceilings("lan0"), &ceilings("wan0")), (&after.0, wan), "{fault}");
        let shown = lab.status(&net.router, "lan0");
        assert_eq!(history().last().expect("an entry")["generation"], json!(shown.policy.generation), "{fault}");
        set(&["c", "--plan", "home"]).ok();
        assert_eq!((ceilings("lan0"), ceilings("wan0")), before, "{fault}");
    }
    set(&["c", "--plan", "work"]).ok();
    lab.sluice(&net.router, &["rollback", "lan0"]).ok();
    assert_eq!(ceilings("lan0"), before.0);
    // A history that has gone begins anew with the whole policy, and goes on.
    let files = fs::read_dir("/var/lib/sluice/history").expect("histories").flatten();
    let own = files.filter(|file| file.file_name().to_string_lossy().starts_with("lan0")).map(|file| file.path());
    own.for_each(|path| fs::remove_file(path).expect("it is ours"));
    set(&["c", "--plan", "work"]).ok();
    set(&["c", "--plan", "home"]).ok();
    set(&["c", "--plan", "work"]).ok();
    let entries = history();
    let plans = entries.iter().map(|entry| entry["policy"].as_str().expect("a text").matches("work").count());
    assert_eq!((entries.len(), plans.collect::<Vec<_>>()), (3, vec![3, 2, 3]), "plan work, and who has it");
    lab.down(&net.router, "lan0");
    lab.down(&net.router, "wan0");
    assert_eq!(amendments(), 0);
}

/// The paths of packets to the subscribers, with every bucket.
fn explained(lab: &Lab, net: &Routed) -> Vec<String> {
    let of = |name: &&str| {
        let to = format!("{}:6", address(name));
        lab.sluice(&net.router, &["explain", "lan0", "udp", "198.18.0.1:5", "to", &to]).ok().stdout
    };
    ["a", "b", "c"].iter().map(of).collect()
}
