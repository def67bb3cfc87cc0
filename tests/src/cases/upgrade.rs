//! Another version of the command: `upgrade` replaces running programs, and `down` works without a readable record.

use crate::cases::lifecycle::passes;
use crate::lab::{Lab, record};
use crate::net::{Ns, Pair};
use crate::policy::three;
use crate::suite::Suite;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// The kill points at which old and new programs are mixed most.
pub const POINTS: [&str; 2] = ["upgrade-queued", "upgrade-hooked"];

pub fn suite() -> Suite {
    Suite::new("upgrade").both("programs_are_swapped", &[], programs_are_swapped)
}

/// Tests that are the same on any kernel.
pub fn commands() -> Suite {
    Suite::new("upgrade").alike_everywhere().both("killed_during_upgrade", &[], killed_during_upgrade).both(
        "down_needs_no_record",
        &[],
        down_needs_no_record,
    )
}

fn up(lab: &Lab, pair: &Pair) {
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit", "--ingress-rate", "30mbit"]);
}

/// Changes the record as if another version had loaded the programs.
pub fn age(ns: &Ns) {
    let text = fs::read_to_string(record(ns)).expect("a record");
    let mut value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["program"].as_str().map(str::len), Some(64));
    value["program"] = "another".into();
    fs::write(record(ns), value.to_string()).expect("writing");
}

fn assert_no_new_pins(pair: &Pair) {
    let all = fs::read_dir("/sys/fs/bpf/sluice").into_iter().flatten().flatten();
    let names: Vec<String> = all.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(!names.contains(&format!("a0@{}+", pair.a.inode)), "{names:?}");
}

fn programs_are_swapped(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    up(lab, &pair);
    passes(&pair);
    let same = lab.sluice(&pair.a, &["upgrade", "a0"]).ok().stdout;
    assert!(same.contains("are those of this version"), "{same}");
    age(&pair.a);
    let printed = lab.sluice(&pair.a, &["status", "a0"]).ok().stdout;
    assert!(printed.contains("of another version") && printed.contains("sluice upgrade a0"), "{printed}");
    let was = lab.status(&pair.a, "a0");
    let printed = lab.sluice(&pair.a, &["upgrade", "a0"]).ok().stdout;
    assert!(printed.contains("runs the programs of this version") && printed.contains("begin anew"), "{printed}");
    let printed = lab.sluice(&pair.a, &["status", "a0"]).ok().stdout;
    assert!(!printed.contains("another version") && !printed.contains("NOT"), "{printed}");
    let now = lab.status(&pair.a, "a0");
    assert_eq!((&now.policy.name, now.rate_bps), (&was.policy.name, was.rate_bps));
    passes(&pair);
    for class in [0, 1, 2] {
        assert!(lab.status(&pair.a, "a0").egress(class).sent.pkts > 0, "class {class}");
    }
    lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&three())]).ok();
    assert_no_new_pins(&pair);
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}

fn killed_during_upgrade(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    for point in POINTS {
        up(lab, &pair);
        age(&pair.a);
        lab.killed_at(point, &pair.a, &["upgrade", "a0"]);
        passes(&pair);
        lab.down(&pair.a, "a0");
        assert_eq!(pair.a.state("a0"), before, "after a death at {point}");
        assert!(lab.leftovers().is_empty(), "after a death at {point}: {:?}", lab.leftovers());
        assert_no_new_pins(&pair);
    }
    lab.sluice(&pair.a, &["upgrade", "a0"]).exits(2).says("not managed");
}

/// Records of a future version, empty ones, links to elsewhere, none: other commands name the way out, and that works.
fn down_needs_no_record(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    let elsewhere = lab.file("elsewhere.json", "{}");
    let write = |record: &Path, text: &str| fs::write(record, text).expect("writing");
    let remove = |record: &Path| fs::remove_file(record).expect("removing");
    type Damage<'a> = &'a dyn Fn(&Path);
    let damage: [(&str, Damage<'_>); 4] = [
        ("the future", &|record| write(record, r#"{ "abi_version": 99, "key": "a0", "from": "the future" }"#)),
        ("nothing", &|record| write(record, "")),
        ("a link", &|record| {
            remove(record);
            symlink(&elsewhere, record).expect("a link");
        }),
        ("none", &remove),
    ];
    for (content, damage) in damage {
        up(lab, &pair);
        damage(&record(&pair.a));
        let printed = lab.sluice(&pair.a, &["status", "a0"]).exits(2).says("sluice down a0");
        assert_eq!(printed.stderr.matches("warning").count(), usize::from(content != "none"), "{content}: {printed}");
        if content != "none" {
            lab.sluice(&pair.a, &["status"]).ok().says("a0: its record cannot be read");
            lab.sluice(&pair.a, &["ensure"]).exits(2).says("no record that can be read").says("sluice up a0 --force");
        }
        lab.sluice(&pair.a, &["down", "a0"]).ok();
        assert_eq!(pair.a.state("a0"), before, "with a record of {content}");
        assert!(lab.leftovers().is_empty(), "with a record of {content}: {:?}", lab.leftovers());
        passes(&pair);
    }
    assert_eq!(fs::read_to_string(&elsewhere).expect("the file"), "{}", "nothing is written through a link");
    lab.sluice(&pair.a, &["down", "a0"]).exits(2).says("not managed");
}
