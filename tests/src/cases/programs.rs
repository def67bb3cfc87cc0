//! Foreign BPF programs on an interface that comes under management: they run before, meanwhile and after.

use crate::foreign::{Hook, Program, Verdict};
use crate::lab::Lab;
use crate::needs::Need;
use crate::net::{A, B, Ns, Pair};
use crate::policy::{port, three};
use crate::suite::Suite;
use crate::traffic::{self, Flow};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("programs")
        .any("an_xdp_program_before_ours_stays", &[], xdp_before)
        .any("an_xdp_program_after_ours_is_refused_by_the_kernel", &[], xdp_after)
        .any("tcx_programs_run_before_and_after_ours", &[Need::Tcx], tcx)
        .any("a_tcx_program_redirects_as_before", &[Need::Tcx], tcx_redirects)
        .any("a_clsact_program_runs_beside_ours", &[], clsact)
}

const BY_XDP: [&str; 4] = ["--rate", "50mbit", "--classifier", "xdp"];

/// Sends packets of each class between hosts: `dropped` of them are dropped, the rest arrive. Returns the number of packets
/// sent.
#[track_caller]
fn send(from: &Ns, to: &Ns, address: &str, dropped: impl FnMut() -> u64) -> u64 {
    let flows = [0, 1, 2].map(|class| Flow::new(port(class), &[200], 400_000));
    let outcomes = traffic::run(from, to, address, &flows, Duration::from_millis(100), dropped);
    outcomes.iter().map(|one| one.sent).sum()
}

fn arrive(pair: &Pair) -> u64 {
    send(&pair.b, &pair.a, A, || 0)
}

fn depart(pair: &Pair) -> u64 {
    send(&pair.a, &pair.b, B, || 0)
}

/// Packets that were classified on arrival, in equal parts.
fn classified(lab: &Lab, pair: &Pair) -> u64 {
    let status = lab.status(&pair.a, "a0");
    let counts = [0u8, 1, 2].map(|class| status.ingress(class).sent.pkts);
    assert!(counts.iter().all(|count| count.abs_diff(counts[0]) <= 1), "{counts:?}");
    counts.iter().sum()
}

/// A foreign XDP program stays, however it was attached; tc classifies the packets that it lets pass, and `up` says so.
fn xdp_before(lab: &Lab) {
    for (verdict, by_link) in [(Verdict::Pass, true), (Verdict::Drop, false)] {
        let pair = lab.pair();
        let other = Program::new(Hook::Xdp, verdict);
        let link = by_link.then(|| other.attach(&pair.a, "a0"));
        if !by_link {
            other.try_set(&pair.a, "a0", 0).expect("attaching an XDP program");
        }
        let before = pair.a.state("a0");
        assert!(before.contains("prog/xdp"), "{before}");
        let printed = lab.up(&pair.a, "a0", &lab.policy(&three()), &BY_XDP).stdout;
        assert!(printed.contains("another XDP program") && printed.contains("ip link set dev a0 xdp off"), "{printed}");
        assert_eq!(lab.status(&pair.a, "a0").classifier, "tc");
        lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&three())]).ok();
        let drops = matches!(verdict, Verdict::Drop);
        let sent = send(&pair.b, &pair.a, A, || if drops { other.seen() } else { 0 });
        assert_eq!(other.seen(), sent, "it runs meanwhile");
        assert_eq!(classified(lab, &pair), if drops { 0 } else { sent });
        lab.down(&pair.a, "a0");
        assert_eq!(pair.a.state("a0"), before);
        let more = send(&pair.b, &pair.a, A, || if drops { other.seen() - sent } else { 0 });
        assert_eq!(other.seen(), sent + more, "and after");
        drop(link);
    }
}

/// The kernel has one XDP program at a time; ours stays until `down`.
fn xdp_after(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &BY_XDP);
    let other = Program::new(Hook::Xdp, Verdict::Drop);
    let link = other.try_attach(&pair.a, "a0").map(drop);
    assert_eq!(link.map_err(|error| error.raw_os_error()), Err(Some(libc::EBUSY)), "by a link");
    let set = other.try_set(&pair.a, "a0", 0);
    assert_eq!(set.map_err(|error| error.raw_os_error()), Err(Some(libc::EBUSY)), "as ip link does");
    let sent = arrive(&pair);
    assert_eq!((other.seen(), classified(lab, &pair)), (0, sent));
    lab.down(&pair.a, "a0");
    let _link = other.attach(&pair.a, "a0");
    let sent = send(&pair.b, &pair.a, A, || other.seen());
    assert_eq!(other.seen(), sent);
}

fn tcx(lab: &Lab) {
    let pair = lab.pair();
    let all = [Hook::TcxIngress, Hook::TcxEgress, Hook::TcxIngress, Hook::TcxEgress];
    let all = all.map(|hook| Program::new(hook, Verdict::Pass));
    let (before, after) = all.split_at(2);
    let mut links: Vec<_> = before.iter().map(|program| program.attach(&pair.a, "a0")).collect();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "50mbit"]);
    links.extend(after.iter().map(|program| program.attach(&pair.a, "a0")));
    let seen = || [0, 1, 2, 3].map(|n: usize| all[n].seen());
    let (came, went) = (arrive(&pair), depart(&pair));
    assert_eq!(seen(), [came, went, came, went]);
    assert_eq!(classified(lab, &pair), came);
    lab.down(&pair.a, "a0");
    let (more_came, more_went) = (came + arrive(&pair), went + depart(&pair));
    assert_eq!(seen(), [more_came, more_went, more_came, more_went]);
}

/// Packets that an earlier foreign program redirects do not reach ours; they go where they went before.
fn tcx_redirects(lab: &Lab) {
    let pair = lab.pair();
    pair.a.ip("link add c0 type veth peer name c1");
    pair.a.ip("link set c0 up");
    pair.a.ip("link set c1 up");
    let other = Program::new(Hook::TcxIngress, Verdict::Redirect(pair.a.ifindex("c0")));
    let _link = other.attach(&pair.a, "a0");
    let there = Program::new(Hook::TcxIngress, Verdict::Pass);
    let _there = there.attach(&pair.a, "c1");
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "50mbit"]);
    let sent = send(&pair.b, &pair.a, A, || there.seen());
    assert_eq!((other.seen(), there.seen(), classified(lab, &pair)), (sent, sent, 0));
    lab.down(&pair.a, "a0");
    let more = send(&pair.b, &pair.a, A, || there.seen() - sent);
    assert_eq!((other.seen(), there.seen()), (sent + more, sent + more));
}

/// Filters run by preference, ours late. TC_ACT_UNSPEC continues with the next filter.
fn clsact(lab: &Lab) {
    let pair = lab.pair();
    let [inward, outward] = [(); 2].map(|()| Program::new(Hook::Filter, Verdict::Pass));
    pair.a.tc("qdisc add dev a0 clsact");
    for (side, program) in [("ingress", &inward), ("egress", &outward)] {
        program.pinned(|path| {
            pair.a.tc(&format!("filter add dev a0 {side} pref 7 bpf direct-action object-pinned {path}"));
        });
    }
    let before = pair.a.state("a0");
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "50mbit"]);
    let (came, went) = (arrive(&pair), depart(&pair));
    assert_eq!((inward.seen(), outward.seen()), (came, went));
    assert_eq!(classified(lab, &pair), came);
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
    let more = (came + arrive(&pair), went + depart(&pair));
    assert_eq!((inward.seen(), outward.seen()), more);
}
