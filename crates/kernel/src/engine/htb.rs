//! Engine `tc`: a policy lowered to HTB. One class of HTB for each of ours, all below one that owns the link; a BPF
//! classifier at its root; leaves that queue as the class does: fq_codel, codel or a FIFO, and a FIFO in place of a leaf that the
//! kernel lacks.
//!
//! Pure: it writes `tc` command lines; `differences.rs` says where they differ from the policy.

use sluice_policy::{
    Bytes, Ceiling, Cells, Codel, Exceed, FRAME_BYTES, Flows, Framing, Rate, Resolved, ResolvedClass, Scheduler,
};
use std::ops::RangeInclusive;

/// Handle of our HTB: unusual by hand, so a qdisc that has it is ours.
pub const HANDLE: &str = "5101:";
/// Minor number of the HTB class of our class 0; class n follows n later. The classifier knows it too.
const FIRST_MINOR: u32 = 0x10;
/// Minor number of the HTB class that is the ceiling of our class 0, if that has a peak; of class n it follows n later.
const FIRST_CEILING_MINOR: u32 = 0x50;
/// Minor number of the HTB class that owns the link.
const ROOT_MINOR: u32 = 1;
/// Priorities that HTB has.
pub(crate) const PRIORITIES: usize = 8;
/// Rate of an HTB class where the policy guarantees nothing: HTB wants a rate for each class.
pub(crate) const FLOOR: Rate = Rate(8_000);
/// Rate of the parent class where the link's rate is not known.
pub(crate) const UNSHAPED: Rate = Rate(100_000_000_000);
/// Burst of HTB's buckets: the core's link burst, and no less than a frame.
const BURST_NS: u64 = 250_000;
const LEAST_BURST_BYTES: u64 = 1600;
/// Quanta that HTB takes without complaint.
pub(crate) const HTB_QUANTA_BYTES: RangeInclusive<u32> = 1000..=200_000;
/// Least flow quantum of fq_codel, which counts a smaller one as this.
pub(crate) const LEAST_FLOW_QUANTUM_BYTES: u32 = 256;
/// Memory that fq_codel may use where the policy limits packets: its default, written so that a change brings it back.
const FQ_CODEL_MEMORY_BYTES: u64 = 32 << 20;
/// Longest time that CoDel gets. As the target it turns CoDel off, for which fq_codel has no option.
const LONGEST_US: u64 = 1_000_000_000;

/// Parameters of a hierarchy besides the policy.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Device that gets the hierarchy.
    pub device: &'a str,
    /// Rate that the device is shaped to.
    pub rate: Option<Rate>,
    /// Bytes of link-layer header that the host counts.
    pub header_bytes: u32,
    /// Leaf qdiscs that the kernel has.
    pub leaves: Leaves,
}

/// Leaf qdiscs that a kernel has, besides FIFOs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaves {
    /// Whether the kernel has fq_codel.
    pub fq_codel: bool,
    /// Whether the kernel has codel.
    pub codel: bool,
}

impl Leaves {
    /// Whether a class can queue as the policy says.
    pub(crate) fn have(self, class: &ResolvedClass) -> bool {
        self.have_queue(class.queue.flows(), class.codel)
    }

    /// Whether there is a queue by flow, or a FIFO, with or without CoDel.
    pub(crate) fn have_queue(self, flows: Option<Flows>, codel: Option<Codel>) -> bool {
        match (flows, codel) {
            (Some(_), _) => self.fq_codel,
            (None, Some(_)) => self.codel,
            (None, None) => true,
        }
    }
}

/// A queue below an HTB class.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeafQdisc {
    /// How flows share it; none: it is a FIFO.
    pub flows: Option<Flows>,
    /// Number of queues that flows are hashed to; none: fq_codel's default.
    pub flow_queues: Option<u32>,
    /// CoDel; none: it is off.
    pub codel: Option<Codel>,
    /// The most packets, of a queue by flow.
    pub limit_pkts: u32,
    /// The most packets of a FIFO.
    pub fifo_limit_pkts: u32,
    /// The most bytes, instead of packets.
    pub limit_bytes: Option<Bytes>,
}

impl LeafQdisc {
    /// The name and options of the qdisc, as tc takes them; a FIFO where the kernel lacks that qdisc.
    pub(crate) fn words(&self, leaves: Leaves) -> String {
        match (self.flows, self.codel, self.limit_bytes) {
            (Some(flows), codel, bytes) if leaves.have_queue(self.flows, self.codel) => {
                let queues = self.flow_queues.map_or(String::new(), |queues| format!(" flows {queues}"));
                format!("{}{queues}", fq_codel(self.limit_pkts, bytes, flows, codel))
            }
            (None, Some(codel), bytes) if leaves.have_queue(None, Some(codel)) => {
                format!("codel limit {} {}", bytes.map_or(self.limit_pkts, frames), times(Some(codel)))
            }
            (_, _, None) => format!("pfifo limit {}", self.fifo_limit_pkts),
            (_, _, Some(bytes)) => format!("bfifo limit {}", bytes.0),
        }
    }
}

/// The commands that build the hierarchy, classifier excluded. `replace` makes them serve for a change too: a queue that stays
/// keeps its packets.
pub fn build(policy: &Resolved, target: &Target<'_>, fresh: bool) -> Vec<String> {
    let dev = target.device;
    let link = scaled(target.rate.unwrap_or(UNSHAPED), &policy.framing);
    let mut lines = Vec::new();
    if fresh {
        lines.push(format!("qdisc replace dev {dev} root handle {HANDLE} htb default 0"));
    }
    lines.push(format!(
        "class replace dev {dev} parent {HANDLE} classid {HANDLE}1 htb rate {0} ceil {0} burst {1} cburst {1} quantum 60000{2}",
        bits(link),
        burst(link, None),
        overhead(&policy.framing, target.header_bytes)
    ));
    for class in &policy.classes {
        lines.extend(class_lines(policy, class, target, link));
        lines.push(leaf_line(class, target));
    }
    lines
}

/// The commands that remove, of the HTB classes that are there, those which the policy does not have.
pub fn remove(there: &[u32], policy: &Resolved, device: &str) -> Vec<String> {
    let wanted = minors(policy);
    let gone = there.iter().filter(|minor| !wanted.contains(minor));
    gone.map(|minor| format!("class del dev {device} classid {HANDLE}{minor:x}")).collect()
}

/// The minor numbers of the HTB classes that a policy makes, in order.
pub fn minors(policy: &Resolved) -> Vec<u32> {
    let ceilings = policy.classes.iter().filter(|class| shaped_peak(class).is_some()).map(ceiling_minor);
    let mut minors: Vec<u32> = policy.classes.iter().map(minor).chain(ceilings).chain([ROOT_MINOR]).collect();
    minors.sort_unstable();
    minors
}

/// The minor numbers of our HTB classes in the output of `tc class show`, in order.
pub fn minors_shown(text: &str) -> Vec<u32> {
    let shown = text.lines().filter_map(|line| line.strip_prefix("class htb ")?.strip_prefix(HANDLE));
    let mut minors: Vec<u32> =
        shown.filter_map(|rest| u32::from_str_radix(rest.split_whitespace().next()?, 16).ok()).collect();
    minors.sort_unstable();
    minors
}

/// The classes that `tc class show` prints with another priority than the policy gives them.
pub fn moved<'a>(text: &str, policy: &'a Resolved) -> Vec<&'a ResolvedClass> {
    let shown = |class: &ResolvedClass| {
        let name = format!("class htb {HANDLE}{:x} ", minor(class));
        let line = text.lines().find_map(|line| line.strip_prefix(&name))?;
        line.split_once(" prio ")?.1.split_whitespace().next()?.parse::<usize>().ok()
    };
    let differs = |class: &&ResolvedClass| shown(class).is_some_and(|prio| prio != priority(policy, class));
    policy.classes.iter().filter(differs).collect()
}

/// The classes that `tc class show` prints below another HTB class than the policy puts them: HTB does not move a class.
pub fn reparented<'a>(text: &str, policy: &'a Resolved) -> Vec<&'a ResolvedClass> {
    let shown = |class: &ResolvedClass| {
        let name = format!("class htb {HANDLE}{:x} parent {HANDLE}", minor(class));
        let parent = text.lines().find_map(|line| line.strip_prefix(&name))?.split_whitespace().next()?;
        u32::from_str_radix(parent, 16).ok()
    };
    let differs = |class: &&ResolvedClass| shown(class).is_some_and(|parent| parent != parent_minor(class));
    policy.classes.iter().filter(differs).collect()
}

/// The command that removes the HTB class of a class, with its queue.
pub fn remove_class(class: &ResolvedClass, device: &str) -> String {
    format!("class del dev {device} classid {HANDLE}{:x}", minor(class))
}

/// The commands that empty a class's queue by making it anew.
pub fn renew_leaf(class: &ResolvedClass, target: &Target<'_>) -> [String; 2] {
    [format!("qdisc del dev {} parent {HANDLE}{:x}", target.device, minor(class)), leaf_line(class, target)]
}

/// The parent of a class's queue, as tc names it.
pub fn parent_of(id: u8) -> String {
    format!("{HANDLE}{:x}", minor_of(id))
}

/// Minor number of the HTB class of a class id.
pub fn minor_of(id: u8) -> u32 {
    FIRST_MINOR + u32::from(id)
}

fn minor(class: &ResolvedClass) -> u32 {
    minor_of(class.id.0)
}

/// The peak of a class that HTB holds back: a policed class is limited by the classifier.
fn shaped_peak(class: &ResolvedClass) -> Option<Ceiling> {
    class.peak.filter(|_| class.exceed == Exceed::Shape && class.ceil.is_some())
}

fn ceiling_minor(class: &ResolvedClass) -> u32 {
    FIRST_CEILING_MINOR + u32::from(class.id.0)
}

/// Minor number of the parent of a class's HTB class.
fn parent_minor(class: &ResolvedClass) -> u32 {
    shaped_peak(class).map_or(ROOT_MINOR, |_| ceiling_minor(class))
}

/// The HTB class of a class; behind one for its ceiling if it has a peak. A class of HTB borrows while its own ctokens and those
/// of every class above it last (htb_class_mode and htb_charge_class in sch_htb.c), so the leaf's bucket is the peak's, and that
/// of the class above it the ceiling's.
fn class_lines(policy: &Resolved, class: &ResolvedClass, target: &Target<'_>, link: Rate) -> Vec<String> {
    // A policed class is limited by the classifier; here it may take all.
    let shaped = class.exceed == Exceed::Shape;
    let ceil = class.ceil.filter(|_| shaped).map_or(link, |ceil| scaled(ceil, &policy.framing)).min(link);
    let rate = class.rate.map_or(FLOOR, |rate| scaled(rate, &policy.framing)).min(ceil);
    let ceil_burst = burst(ceil, class.burst.filter(|_| class.ceil.is_some()));
    let line = |parent: u32, minor: u32, ceil: Rate, cburst: u64| {
        format!(
            "class replace dev {} parent {HANDLE}{parent:x} classid {HANDLE}{minor:x} htb rate {} ceil {} burst {} cburst {cburst} prio {} quantum {}{}",
            target.device,
            bits(rate),
            bits(ceil),
            burst(rate, None),
            priority(policy, class),
            quantum(policy, class),
            overhead(&policy.framing, target.header_bytes)
        )
    };
    let Some(peak) = shaped_peak(class) else {
        return vec![line(ROOT_MINOR, minor(class), ceil, ceil_burst)];
    };
    let fastest = scaled(peak.rate, &policy.framing).min(link);
    vec![
        line(ROOT_MINOR, ceiling_minor(class), ceil, ceil_burst),
        line(ceiling_minor(class), minor(class), fastest, burst(fastest, peak.burst)),
    ]
}

/// The bytes that a class with a peak may send above its ceiling: HTB sends a guarantee without asking the class above.
pub(crate) fn beyond_ceiling(class: &ResolvedClass) -> Option<u64> {
    shaped_peak(class).map(|_| burst(class.rate.unwrap_or(FLOOR), None))
}

fn leaf_line(class: &ResolvedClass, target: &Target<'_>) -> String {
    let queue = LeafQdisc {
        flows: class.queue.flows(),
        flow_queues: None,
        codel: class.codel.map(|codel| codel.at_rate(target.rate)),
        limit_pkts: class.limit_pkts,
        fifo_limit_pkts: class.fifo_limit_pkts,
        limit_bytes: class.limit_bytes,
    };
    format!("qdisc replace dev {} parent {HANDLE}{:x} {}", target.device, minor(class), queue.words(target.leaves))
}

/// The fq_codel leaf of a class. A change cannot set its number of flows; the default is 1024, as in the core.
fn fq_codel(limit_pkts: u32, limit_bytes: Option<Bytes>, flows: Flows, codel: Option<Codel>) -> String {
    let memory = limit_bytes.map_or(FQ_CODEL_MEMORY_BYTES, |bytes| bytes.0);
    let quantum = flows.quantum_bytes.max(LEAST_FLOW_QUANTUM_BYTES);
    format!("fq_codel limit {limit_pkts} memory_limit {memory} quantum {quantum} {}", times(codel))
}

/// CoDel's times in whole microseconds, as tc takes them, and the option to mark.
fn times(codel: Option<Codel>) -> String {
    let us = |ns: u64| (ns / 1_000).clamp(1, LONGEST_US);
    let [target, interval] = codel.map_or([LONGEST_US; 2], |codel| [us(codel.target_ns), us(codel.interval_ns)]);
    format!("target {target}us interval {interval}us ecn")
}

/// Number of full frames that a limit in bytes holds, at least 1.
fn frames(bytes: Bytes) -> u32 {
    u32::try_from(bytes.0 / u64::from(FRAME_BYTES)).unwrap_or(u32::MAX).max(1)
}

/// HTB quantum of a class, bytes. Weights become quanta in proportion, a frame for the smallest.
fn quantum(policy: &Resolved, class: &ResolvedClass) -> u64 {
    let bytes = match policy.scheduler {
        Scheduler::WEIGHTED_FAIR_QUEUING => {
            u64::from(FRAME_BYTES) * u64::from(class.weight) / u64::from(least_weight(policy))
        }
        _ => class.quantum_bytes.into(),
    };
    within_quanta(bytes)
}

/// The nearest quantum that HTB takes, bytes.
pub(crate) fn within_quanta(bytes: u64) -> u64 {
    bytes.clamp((*HTB_QUANTA_BYTES.start()).into(), (*HTB_QUANTA_BYTES.end()).into())
}

pub(crate) fn least_weight(policy: &Resolved) -> u32 {
    policy.classes.iter().map(|class| class.weight).min().unwrap_or(1)
}

/// The priorities of the classes, each once, the most urgent first.
pub(crate) fn levels(policy: &Resolved) -> Vec<u8> {
    let mut levels: Vec<u8> = policy.classes.iter().map(|class| class.priority).collect();
    levels.sort_unstable();
    levels.dedup();
    levels
}

fn priority(policy: &Resolved, class: &ResolvedClass) -> usize {
    match policy.scheduler {
        Scheduler::STRICT_PRIORITY => levels(policy).binary_search(&class.priority).unwrap_or(0).min(PRIORITIES - 1),
        _ => 0,
    }
}

/// Rate without the overhead of PTM, which sends 65 bytes for 64: HTB does not know PTM.
pub(crate) fn scaled(rate: Rate, framing: &Framing) -> Rate {
    if framing.cells == Cells::Ptm { Rate(rate.0 * 64 / 65) } else { rate }
}

pub(crate) fn overhead(framing: &Framing, header_bytes: u32) -> String {
    let bytes = (framing.overhead_bytes - header_bytes as i32).max(0);
    let mut words = String::new();
    if bytes > 0 || framing.cells == Cells::Atm {
        words += &format!(" overhead {bytes}");
    }
    if framing.mpu_bytes > 0 {
        words += &format!(" mpu {}", framing.mpu_bytes);
    }
    if framing.cells == Cells::Atm {
        words += " linklayer atm";
    }
    words
}

pub(crate) fn bits(rate: Rate) -> String {
    format!("{}bit", rate.0)
}

pub(crate) fn burst(rate: Rate, wanted: Option<Bytes>) -> u64 {
    let timed = (u128::from(rate.0) * u128::from(BURST_NS) / 8_000_000_000) as u64;
    wanted.map_or(timed, |bytes| bytes.0).max(LEAST_BURST_BYTES)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub fn resolved(text: &str) -> Resolved {
        let policy = sluice_policy::parse(&sluice_policy::Source::new("test.json", text)).expect("a valid policy");
        sluice_policy::resolve(&policy, &sluice_policy::Context::default()).expect("resolves")
    }

    const TARGET: Target<'_> =
        Target { device: "eth0", rate: Some(Rate(20_000_000)), header_bytes: 14, leaves: NOTHING };
    pub const NOTHING: Leaves = Leaves { fq_codel: false, codel: false };
    pub const ALL: Leaves = Leaves { fq_codel: true, codel: true };

    pub const TWO: &str = r#"{ "scheduler": "strict_priority", "classes": [
        { "id": 0, "name": "game", "priority": 0, "limit": 100 },
        { "id": 3, "name": "bulk", "priority": 5, "ceil": "5mbit", "burst": "10kb", "limit": "64kb" } ] }"#;

    pub const PEAK: &str = r#"{ "scheduler": "deficit_round_robin", "classes": [
        { "id": 2, "rate": "1mbit", "ceil": "4mbit", "burst": "64kb", "peak": "16mbit", "peak_burst": 3000, "limit": 100 },
        { "id": 3, "ceil": "4mbit", "peak": "8mbit", "police": true, "limit": 100 } ] }"#;

    #[test]
    fn a_class_is_a_class() {
        let lines = build(&resolved(TWO), &TARGET, true);
        assert_eq!(
            lines,
            [
                "qdisc replace dev eth0 root handle 5101: htb default 0",
                "class replace dev eth0 parent 5101: classid 5101:1 htb rate 20000000bit ceil 20000000bit burst 1600 cburst 1600 quantum 60000",
                "class replace dev eth0 parent 5101:1 classid 5101:10 htb rate 8000bit ceil 20000000bit burst 1600 cburst 1600 prio 0 quantum 1514",
                "qdisc replace dev eth0 parent 5101:10 pfifo limit 100",
                "class replace dev eth0 parent 5101:1 classid 5101:13 htb rate 8000bit ceil 5000000bit burst 1600 cburst 10240 prio 1 quantum 1514",
                "qdisc replace dev eth0 parent 5101:13 bfifo limit 65536",
            ]
        );
    }

    #[test]
    fn a_peak_is_a_class_below_the_ceilings() {
        let policy = resolved(PEAK);
        let lines = build(&policy, &TARGET, false);
        assert_eq!(
            lines[1..3],
            [
                "class replace dev eth0 parent 5101:1 classid 5101:52 htb rate 1000000bit ceil 4000000bit burst 1600 cburst 65536 prio 0 quantum 1514",
                "class replace dev eth0 parent 5101:52 classid 5101:12 htb rate 1000000bit ceil 16000000bit burst 1600 cburst 3000 prio 0 quantum 1514",
            ]
        );
        assert!(lines[4].starts_with("class replace dev eth0 parent 5101:1 classid 5101:13 "), "policed: {lines:?}");
        assert_eq!(minors(&policy), [1, 0x12, 0x13, 0x52]);
        let plain = resolved(&PEAK.replace(r#""peak": "16mbit", "peak_burst": 3000,"#, ""));
        assert_eq!(remove(&minors(&policy), &plain, "eth0"), ["class del dev eth0 classid 5101:52"]);
        let shown = "class htb 5101:12 parent 5101:1 leaf 8001: prio 0 rate 1Mbit ceil 4Mbit burst 1600b cburst 64Kb \n\
                     class htb 5101:13 parent 5101:1 leaf 8002: prio 0 rate 8Kbit ceil 20Mbit burst 1600b cburst 1600b \n";
        let moved: Vec<u8> = reparented(shown, &policy).iter().map(|class| class.id.0).collect();
        assert_eq!(moved, [2]);
        assert!(reparented(shown, &plain).is_empty());
        assert_eq!(remove_class(&policy.classes[0], "eth0"), "class del dev eth0 classid 5101:12");
    }

    #[test]
    fn a_class_with_another_priority_is_seen() {
        let shown = "class htb 5101:1 root rate 20Mbit ceil 20Mbit burst 1600b cburst 1600b \n\
                     class htb 5101:10 parent 5101:1 leaf 8001: prio 0 rate 8Kbit ceil 20Mbit burst 1600b cburst 1600b \n\
                     class htb 5101:13 parent 5101:1 leaf 8002: prio 0 rate 8Kbit ceil 5Mbit burst 1600b cburst 10Kb \n";
        let policy = resolved(TWO);
        let moved: Vec<u8> = moved(shown, &policy).iter().map(|class| class.id.0).collect();
        assert_eq!(moved, [3]);
        assert_eq!(
            renew_leaf(&policy.classes[1], &TARGET),
            ["qdisc del dev eth0 parent 5101:13", "qdisc replace dev eth0 parent 5101:13 bfifo limit 65536"]
        );
    }

    #[test]
    fn weights_become_quanta() {
        let quanta = |classes: &str| -> Vec<u64> {
            let policy = resolved(&format!(r#"{{ "scheduler": "weighted_fair_queuing", "classes": [{classes}] }}"#));
            policy.classes.iter().map(|class| quantum(&policy, class)).collect()
        };
        let three = quanta(r#"{ "id": 0, "weight": 30 }, { "id": 1, "weight": 50 }, { "id": 2, "weight": 10 }"#);
        assert_eq!(three, [4542, 7570, 1514]);
        let own = quanta(r#"{ "id": 0, "weight": 4, "quantum": 9000 }, { "id": 1, "weight": 2 }"#);
        assert_eq!(own, [3028, 1514], "the quantum does nothing");
        assert_eq!(quanta(r#"{ "id": 0, "weight": 500 }, { "id": 1 }"#), [200_000, 1514], "HTB's most");
    }

    #[test]
    fn classes_that_go_are_removed() {
        let one = r#"{ "scheduler": "deficit_round_robin", "classes": [ { "id": 0, "name": "all" } ] }"#;
        let there = minors(&resolved(TWO));
        assert_eq!(remove(&there, &resolved(one), "eth0"), ["class del dev eth0 classid 5101:13"]);
        assert!(remove(&minors(&resolved(one)), &resolved(TWO), "eth0").is_empty());
    }

    #[test]
    fn classes_are_read_from_what_tc_shows() {
        let text = "class htb 5101:13 parent 5101:1 leaf 8006: prio 1 rate 8Kbit ceil 5Mbit burst 1600b cburst 10Kb \n\
            class htb 5101:1 root rate 20Mbit ceil 20Mbit burst 1600b cburst 1600b \n\
            class htb 5101:10 parent 5101:1 leaf 8005: prio 0 rate 8Kbit ceil 20Mbit burst 1600b cburst 1600b \n\
            class fq_codel 8005:1 parent 8005: \n";
        assert_eq!(minors_shown(text), minors(&resolved(TWO)));
    }

    pub const QUEUES: &str = r#"{ "scheduler": "deficit_round_robin", "classes": [
        { "id": 0, "name": "plain", "limit": 100 },
        { "id": 1, "name": "early", "aqm": "codel", "limit": "64kb" },
        { "id": 2, "name": "bulk", "queue": "flows" },
        { "id": 3, "name": "rest", "queue": "flows", "aqm": "none", "flow_quantum": 64, "limit": "1mb" } ] }"#;

    fn leaves_of(policy: &Resolved, leaves: Leaves, rate: u64) -> Vec<String> {
        let target = Target { leaves, rate: Some(Rate(rate)), ..TARGET };
        let lines = build(policy, &target, false).into_iter();
        lines.filter_map(|line| Some(line.strip_prefix("qdisc replace dev eth0 parent 5101:1")?.to_owned())).collect()
    }

    #[test]
    fn leaves_queue_as_the_policy_says() {
        let policy = resolved(QUEUES);
        let [plain, early] = ["0 pfifo limit 100", "1 codel limit 43 target 5000us interval 100000us ecn"];
        let bulk = "2 fq_codel limit 16384 memory_limit 33554432 quantum 1514 target 5000us interval 100000us ecn";
        let rest =
            "3 fq_codel limit 1000 memory_limit 1048576 quantum 256 target 1000000000us interval 1000000000us ecn";
        assert_eq!(leaves_of(&policy, ALL, 20_000_000), [plain, early, bulk, rest]);
        let slow = leaves_of(&policy, ALL, 1_000_000);
        assert!(slow[2].ends_with("quantum 1514 target 18168us interval 113168us ecn"), "{slow:?}");
        // A leaf that the kernel lacks is a FIFO, as long as that of a class without queues by flow.
        let fifos = ["1 bfifo limit 65536", "2 pfifo limit 1000", "3 bfifo limit 1048576"];
        assert_eq!(leaves_of(&policy, NOTHING, 20_000_000), [plain, fifos[0], fifos[1], fifos[2]]);
        let no_fq = Leaves { fq_codel: false, codel: true };
        assert_eq!(leaves_of(&policy, no_fq, 20_000_000), [plain, early, fifos[1], fifos[2]]);
        let longest = leaves_of(&policy, ALL, 8);
        assert!(longest[1].ends_with("target 1000000000us interval 1000000000us ecn"), "{longest:?}");
    }
}
