//! A scheduler for each queue of an interface that has several.

use crate::cases::lifecycle::passes;
use crate::lab::Lab;
use crate::needs::Need;
use crate::policy::three;
use crate::suite::Suite;

pub fn suite() -> Suite {
    Suite::new("mq")
        .qdisc("each_queue_has_a_scheduler", &[], each_queue_has_a_scheduler)
        .both("a_shaped_interface_has_one", &[], a_shaped_interface_has_one)
        .any("check_notes_a_single_queue", &[Need::Ifb], check_notes_a_single_queue)
}

const FOUR: &str = "numtxqueues 4 numrxqueues 4";

fn each_queue_has_a_scheduler(lab: &Lab) {
    let pair = lab.pair_with(FOUR);
    let before = pair.a.state("a0");
    lab.up(&pair.a, "a0", &lab.policy(&three()), &[]);
    let status = lab.status(&pair.a, "a0");
    assert_eq!(status.queues, 4);
    let qdiscs = pair.a.qdiscs("a0");
    assert_eq!(qdiscs.iter().filter(|one| one.root).map(|one| one.kind.as_str()).collect::<Vec<_>>(), ["mq"]);
    let children: Vec<&str> =
        qdiscs.iter().filter(|one| one.kind == status.qdisc).map(|one| one.parent.as_str()).collect();
    assert_eq!(children.len(), 4, "{qdiscs:?}");
    passes(&pair);
    let status = lab.status(&pair.a, "a0");
    for class in [0, 1, 2] {
        assert!(status.egress(class).sent.pkts > 0, "class {class}, summed over the queues: {status:?}");
    }
    let sent: u64 = pair.a.qdiscs("a0").iter().filter(|one| one.kind == status.qdisc).map(|one| one.packets).sum();
    assert_eq!(sent, status.direction("egress").totals().0, "the children have sent it");
    lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&three())]).ok();
    passes(&pair);
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}

/// A user with a fast card is told that one lock serves all its queues.
fn check_notes_a_single_queue(lab: &Lab) {
    let ns = lab.ns("a");
    ns.ip("link add m0 numtxqueues 4 type ifb");
    ns.ip("link set m0 up");
    let policy = lab.policy(&three());
    let note = "one queue with one lock takes the place of mq with 4 queues";
    let checked = lab.sluice(&ns, &["check", &policy, "--rate", "20mbit"]).ok().stdout;
    assert!(checked.contains(&format!("on m0, {note}")), "{checked}");
    let printed = lab.up(&ns, "m0", &policy, &["--rate", "20mbit"]).stdout;
    assert!(printed.contains(note), "{printed}");
    let doctor = lab.sluice(&ns, &["doctor"]).ok().stdout;
    assert!(doctor.contains("one queue with one lock serves its 4 queues"), "{doctor}");
    lab.down(&ns, "m0");
    let doctor = lab.sluice(&ns, &["doctor"]).ok().stdout;
    assert!(doctor.contains("4 queues: a link shaped to more than 1 Gbit/s shares its rate"), "{doctor}");
}

fn a_shaped_interface_has_one(lab: &Lab) {
    let pair = lab.pair_with(FOUR);
    let before = pair.a.state("a0");
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    assert_eq!(lab.status(&pair.a, "a0").queues, 0);
    assert_ne!(pair.a.root("a0").map(|root| root.kind), Some("mq".to_owned()));
    passes(&pair);
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}
