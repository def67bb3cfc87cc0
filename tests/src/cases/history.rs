//! The history of policies, and rollback.

use crate::command::run;
use crate::lab::{Lab, histories};
use crate::net::Pair;
use crate::policy::{other, three, with};
use crate::suite::Suite;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

pub fn suite() -> Suite {
    Suite::new("history")
        .alike_everywhere()
        .both("there_and_back", &[], there_and_back)
        .any("keeps_fifty", &[], keeps_fifty)
        .any("foreign_history_file_does_not_block_commands", &[], a_foreign_file)
        .any("bad_input", &[], bad_input)
}

fn entries(lab: &Lab, pair: &Pair) -> Vec<Value> {
    let text = lab.sluice(&pair.a, &["history", "a0", "--json"]).ok().stdout;
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn file(pair: &Pair) -> PathBuf {
    let files = histories(pair.a.inode);
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

fn there_and_back(lab: &Lab) {
    let pair = lab.pair();
    let write = |name: &str, policy: Value| lab.file(name, policy.to_string()).display().to_string();
    let (one, two) = (write("one.json", three()), write("two.json", other()));
    lab.up(&pair.a, "a0", &one, &["--rate", "20mbit", "--message", "first"]);
    lab.sluice(&pair.a, &["apply", "a0", &two, "--rate", "15mbit", "-m", "second, \"quoted\""]).ok();
    let printed = lab.sluice(&pair.a, &["rollback", "a0", "--dry-run"]).ok().stdout;
    assert!(
        printed.contains("policy two -> one would change") && printed.contains("link.rate 15mbit -> 20mbit"),
        "{printed}"
    );
    assert_eq!(entries(lab, &pair).len(), 2, "a dry run is not remembered");

    lab.sluice(&pair.a, &["rollback", "a0", "-m", "third"]).ok();
    let status = lab.status(&pair.a, "a0");
    assert_eq!((status.policy.name.as_str(), status.rate_bps), ("one", Some(20_000_000)), "with the rate of then");
    assert_eq!(status.policy.source, one);
    lab.sluice(&pair.a, &["rollback", "a0"]).ok();
    assert_eq!(lab.status(&pair.a, "a0").policy.name, "two", "and forth again");
    lab.sluice(&pair.a, &["rollback", "a0", "1"]).ok();
    assert_eq!(lab.status(&pair.a, "a0").policy.name, "one");

    let all = entries(lab, &pair);
    let field = |key: &str| all.iter().map(|entry| entry[key].clone()).collect::<Vec<Value>>();
    assert_eq!(field("number"), [1, 2, 3, 4, 5].map(Value::from));
    assert_eq!(field("what"), ["up", "apply", "rollback", "rollback", "rollback"].map(Value::from));
    assert_eq!(field("repeats"), [Value::Null, Value::Null, json!(1), json!(2), json!(1)]);
    assert_eq!(field("policy_name"), ["one", "two", "one", "two", "one"].map(Value::from));
    assert_eq!(field("message")[..3], [json!("first"), json!("second, \"quoted\""), json!("third")]);
    assert_eq!(field("outcome"), vec![json!("applied"); 5]);
    let digests = field("digest");
    assert!(digests[0] == digests[2] && digests[1] == digests[3] && digests[0] != digests[1], "{digests:?}");
    assert_eq!(digests[0].as_str().map(str::len), Some(64));
    let when = field("when")[0].as_str().expect("a time").to_owned();
    assert!(when.len() == 25 && when.as_bytes()[10] == b'T' && ["+", "-"].contains(&&when[19..20]), "{when}");
    let there = run(lab.command(&pair.a, &["history", "a0", "--json"]).env("TZ", "Asia/Kolkata")).ok().stdout;
    let india = std::path::Path::new("/usr/share/zoneinfo/Asia/Kolkata").exists();
    assert!(there.contains("+05:30") || !india, "times are local: {there}");

    let table = lab.sluice(&pair.a, &["history", "a0"]).ok().stdout;
    assert!(table.contains("rollback to 1") && table.contains("second, \"quoted\""), "{table}");
    // The printed text is a valid policy.
    let text = lab.sluice(&pair.a, &["history", "a0", "2"]).ok().stdout;
    let again = write("again.json", serde_json::from_str(&text).expect("a policy"));
    let changes = lab.sluice(&pair.a, &["rollback", "a0", "2", "--dry-run"]).ok().stdout;
    lab.sluice(&pair.a, &["apply", "a0", &again, "--rate", "15mbit"]).ok();
    assert!(changes.contains("scheduler"), "{changes}");
    assert!(lab.sluice(&pair.a, &["rollback", "a0", "2", "--dry-run"]).ok().stdout.contains("nothing changes"));
    lab.down(&pair.a, "a0");
    assert_eq!(entries(lab, &pair).len(), 6, "`down` does not end it");
    lab.up(&pair.a, "a0", &one, &["--rate", "20mbit"]);
    assert_eq!(entries(lab, &pair)[6]["number"], json!(7));
    lab.down(&pair.a, "a0");
}

fn keeps_fifty(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let path = file(&pair);
    let mut history: Value = serde_json::from_str(&fs::read_to_string(&path).expect("a history")).expect("JSON");
    let first = history["entries"][0].clone();
    history["entries"] =
        (1..=49).map(|n| with(with(first.clone(), "number", json!(n)), "generation", json!(1000 + n))).collect();
    fs::write(&path, history.to_string()).expect("writing a history");
    for _ in 0..3 {
        lab.sluice(&pair.a, &["apply", "a0", "default"]).ok();
    }
    let numbers: Vec<u64> = entries(lab, &pair).iter().filter_map(|entry| entry["number"].as_u64()).collect();
    assert_eq!(numbers, (3..=52).collect::<Vec<u64>>());
    lab.sluice(&pair.a, &["history", "a0", "2"]).exits(2).says("no entry 2").says("from 3 to 52");
    lab.down(&pair.a, "a0");
}

fn a_foreign_file(lab: &Lab) {
    let pair = lab.pair();
    let (one, two) = (lab.policy(&three()), lab.policy(&other()));
    lab.up(&pair.a, "a0", &one, &["--rate", "20mbit"]);
    let path = file(&pair);
    let name = path.display().to_string();
    let newer = r#"{ "sluice_history": 99, "boot": null, "entries": [] }"#;
    for text in ["", "{", "[1, 2]", "\u{0}\u{1}", newer] {
        fs::write(&path, text).expect("writing");
        for command in [&["history", "a0"][..], &["history", "a0", "1"], &["rollback", "a0"], &["rollback", "a0", "1"]]
        {
            lab.sluice(&pair.a, command).exits(1).says(&name).says("move it away");
        }
        let printed = lab.sluice(&pair.a, &["apply", "a0", &two]).ok().stdout;
        assert!(printed.contains("the history is not written") && printed.contains(&name), "{printed}");
        lab.sluice(&pair.a, &["apply", "a0", &one, "--confirm", "30s"]).ok();
        lab.sluice(&pair.a, &["confirm", "a0"]).ok();
        lab.down(&pair.a, "a0");
        lab.up(&pair.a, "a0", &one, &["--rate", "20mbit"]);
        assert_eq!(fs::read_to_string(&path).expect("still there"), text, "it is not overwritten");
    }
    fs::remove_file(&path).expect("moving it away");
    super::confirm::await_no_waiter(&pair.a);
    lab.sluice(&pair.a, &["apply", "a0", &two]).ok();
    assert_eq!(entries(lab, &pair).len(), 1, "a new one is begun");
    lab.down(&pair.a, "a0");
}

fn bad_input(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    lab.sluice(&pair.a, &["history", "nope0"]).exits(2).says("no interface `nope0`");
    lab.sluice(&pair.a, &["rollback", "nope0"]).exits(2).says("no interface `nope0`");
    lab.sluice(&pair.a, &["history", "a0"]).exits(2).says("no history").says("sluice up a0");
    lab.sluice(&pair.a, &["rollback", "a0"]).exits(2).says("not managed");
    lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit"]);
    lab.sluice(&pair.a, &["rollback", "a0"]).exits(2).says("no other policy").says("sluice history a0");
    for number in ["0", "2", "4294967295"] {
        for command in ["history", "rollback"] {
            let output = lab.sluice(&pair.a, &[command, "a0", number]).exits(2);
            output.says(&format!("no entry {number}: it goes from 1 to 1")).says("`sluice history a0` lists it");
        }
    }
    for number in ["-1", "x", "1.5", "99999999999"] {
        lab.sluice(&pair.a, &["rollback", "a0", number]).exits(2);
    }
    assert_eq!(lab.status(&pair.a, "a0").policy.generation, 1);
    lab.down(&pair.a, "a0");
}
