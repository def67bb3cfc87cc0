//! `apply --dry-run`: it prints what `apply` would change, and changes nothing.

use crate::lab::{Lab, histories};
use crate::policy::{other, three, with};
use crate::suite::Suite;
use serde_json::{Value, json};
use std::fs;

pub fn suite() -> Suite {
    Suite::new("dry_run")
        .alike_everywhere()
        .both("prints_changes_and_does_nothing", &[], prints_changes_and_does_nothing)
        .any("refuses_what_apply_refuses", &[], refuses)
}

fn prints_changes_and_does_nothing(lab: &Lab) {
    let pair = lab.pair();
    let (old, new) = (lab.file("old.json", three().to_string()), lab.file("new.json", other().to_string()));
    let (old, new) = (old.display().to_string(), new.display().to_string());
    lab.up(&pair.a, "a0", &old, &["--rate", "20mbit"]);
    let files = |inode| crate::lab::traces(inode).into_iter().chain(histories(inode)).filter(|path| path.is_file());
    let texts = || files(pair.a.inode).map(|path| fs::read(path).expect("a file")).collect::<Vec<_>>();
    let (before, records) = (pair.a.state("a0"), texts());
    let dry = |policy: &str, more: &[&str]| {
        lab.sluice(&pair.a, &[&["apply", "a0", policy, "--dry-run"], more].concat()).ok().stdout
    };
    let printed = dry(&new, &[]);
    for line in [
        "a0: policy old -> new would change",
        "  ~ scheduler strict_priority -> deficit_round_robin",
        "  ~ default_class 2 -> 5",
        "  - class 1 game: priority 1,",
        "  ~ class 2 bulk: priority 2 -> 0, limit 100 -> 200, ceil none -> 5mbit, burst none -> 6250b",
        "  + class 5 late: priority 0,",
        "  - rule 101 to 1: dst_port_min 3001, protocol udp, class_id 1",
        "  ~ rule 300 to 0: moved, priority 100 -> 300",
    ] {
        assert!(printed.lines().any(|one| one.starts_with(line)), "`{line}` is not in {printed}");
    }
    assert!(dry(&old, &["--rate", "30mbit"]).contains("  ~ link.rate 20mbit -> 30mbit"));
    assert_eq!(dry(&old, &[]), "a0: nothing changes\n");
    let colored = dry(&new, &["--color", "always"]);
    assert!(colored.contains("\x1b[32m+ class 5") && colored.contains("\x1b[31m- class 1"), "{colored}");
    let json: Value = serde_json::from_str(&dry(&new, &["--json"])).expect("JSON");
    assert_eq!((&json["old"], &json["new"], &json["changes"]), (&json!("old"), &json!("new"), &json!(true)));
    assert_eq!(json["difference"]["classes"][1]["change"], json!("removed"));
    let none: Value = serde_json::from_str(&dry(&old, &["--json"])).expect("JSON");
    assert_eq!((&none["changes"], &none["difference"]["rules"]), (&json!(false), &json!([])));
    assert_eq!((pair.a.state("a0"), texts()), (before, records), "something was touched");
    assert_eq!(lab.status(&pair.a, "a0").policy.generation, 1);

    let applied = lab.sluice(&pair.a, &["apply", "a0", &new]).ok().stdout;
    assert!(applied.contains("  ~ scheduler strict_priority -> deficit_round_robin"), "{applied}");
    let quiet = lab.sluice(&pair.a, &["apply", "a0", &old, "--quiet"]).ok().stdout;
    assert!(!quiet.contains("scheduler"), "{quiet}");
    lab.down(&pair.a, "a0");
}

fn refuses(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    let dry = |dev: &str, policy: &str| lab.sluice(&pair.a, &["apply", dev, policy, "--dry-run"]);
    dry("a0", &policy).exits(2).says("not managed");
    dry("nope0", &policy).exits(2).says("no interface `nope0`");
    lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit"]);
    dry("a0", &lab.policy(&with(three(), "flow_table", json!(128)))).exits(2).says("flow table");
    dry("a0", &lab.policy(&with(three(), "schedular", json!(1)))).exits(2).says("schedular");
    lab.sluice(&pair.a, &["apply", "a0", &policy, "--json"]).exits(2).says("--dry-run");
    lab.down(&pair.a, "a0");
}
