//! The differences between a policy and its meaning on engine `tc`, for people. Pure.

use crate::engine::htb::{
    FLOOR, HANDLE, HTB_QUANTA_BYTES, LEAST_FLOW_QUANTUM_BYTES, Leaves, PRIORITIES, beyond_ceiling, least_weight, levels,
};
use sluice_policy::{Bytes, Cells, FRAME_BYTES, Flows, Framing, Rate, Resolved, ResolvedClass, Scheduler};
use sluice_tables::duration_ns;

/// The differences between a policy and its meaning on engine `tc`. `leaves` are unknown where no kernel was asked.
pub fn differences(policy: &Resolved, rate: Option<Rate>, leaves: Option<Leaves>, header_bytes: u32) -> Vec<String> {
    let mut all = Vec::new();
    let levels = levels(policy).len();
    if policy.scheduler == Scheduler::STRICT_PRIORITY {
        all.push(format!(
            "strict priority is HTB's: a class that others keep out still sends {FLOOR} (its guarantee, if it has one)"
        ));
        if levels > PRIORITIES {
            all.push(format!(
                "HTB has {PRIORITIES} priorities, the policy {levels}: the last {} share one",
                levels - PRIORITIES + 1
            ));
        }
    }
    if policy.scheduler == Scheduler::WEIGHTED_FAIR_QUEUING {
        all.push(
            "it shares by deficit round robin in proportion to weight: the same shares over time, in longer turns"
                .to_owned(),
        );
        let most = HTB_QUANTA_BYTES.end() / FRAME_BYTES;
        if policy.classes.iter().any(|class| class.weight / least_weight(policy) > most) {
            all.push(format!("a weight of more than {most} times the smallest counts as {most} times"));
        }
    } else if policy.classes.iter().any(|class| !HTB_QUANTA_BYTES.contains(&class.quantum_bytes)) {
        all.push(format!("quanta are kept within {} to {} bytes", HTB_QUANTA_BYTES.start(), HTB_QUANTA_BYTES.end()));
    }
    all.extend(queue_differences(policy, leaves));
    all.extend(of_link(&policy.framing, rate, header_bytes));
    let slow = policy
        .classes
        .iter()
        .filter(|class| class.ceil.is_some_and(|ceil| duration_ns(Bytes(1514), ceil) > 100_000_000));
    for class in slow {
        all.push(format!("class {} ({}): at its ceiling HTB is accurate to a packet only", class.id, class.name));
    }
    all.extend(difference(
        policy,
        |class| beyond_ceiling(class).map(|bytes| format!(" of {bytes} bytes")),
        &format!(
            "a class of HTB's own above it holds the ceiling and the class itself the peak, and its guarantee ({FLOOR} if it has none) \
             does not wait for the ceiling: what passes within a burst of that guarantee comes on top, and is made up for later"
        ),
    ));
    all.push(
        "`apply` drops the packets that are queued in a class that goes, whose kind of queue changes, whose limit changes between packets and \
         bytes, or whose priority changes, or whose peak comes or goes, while its queue does not run empty (tc then counts anew)"
            .to_owned(),
    );
    all.extend(of_every_policy());
    all
}

/// The differences in how HTB counts what the link carries.
pub(crate) fn of_link(framing: &Framing, rate: Option<Rate>, header_bytes: u32) -> Vec<String> {
    let all = [
        (framing.overhead_bytes < header_bytes as i32, "an overhead below the Ethernet header is counted as none"),
        (framing.cells == Cells::Ptm, "PTM's 65/64 is taken off the rates instead of being counted per packet"),
        (rate.is_none(), "without a link rate HTB queues only what the driver holds back"),
    ];
    all.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| what.to_owned()).collect()
}

/// The differences that hold for every policy.
pub(crate) fn of_every_policy() -> [String; 2] {
    [
        format!(
            "a privileged application (CAP_NET_ADMIN) that sets SO_PRIORITY to a handle of {HANDLE} chooses its class"
        ),
        "times in queue are not measured, and counters are those of tc".to_owned(),
    ]
}

/// The differences between queues and those of the policy.
fn queue_differences(policy: &Resolved, leaves: Option<Leaves>) -> Vec<String> {
    let has = |class: &ResolvedClass| leaves.is_none_or(|leaves| leaves.have(class));
    let small = |flows: Flows| flows.quantum_bytes < LEAST_FLOW_QUANTUM_BYTES;
    let of = |chosen: &dyn Fn(&ResolvedClass) -> bool, what: &str| {
        difference(policy, |class| (has(class) && chosen(class)).then(String::new), what)
    };
    let mut all: Vec<String> = [
        of(
            &by_flow,
            "the queue is fq_codel, which is fair between flows but not between hosts, and gives a new flow one quantum \
             ahead of others instead of its allowance",
        ),
        of(
            &|class| class.queue.flows().is_some_and(small),
            &format!("fq_codel counts a smaller flow quantum than {LEAST_FLOW_QUANTUM_BYTES} bytes as that"),
        ),
        of(
            &|class| by_flow(class) && class.limit_bytes.is_some(),
            "fq_codel counts a limit in bytes with what the kernel needs to hold a packet",
        ),
        of(
            &|class| codel_alone(class) && class.limit_bytes.is_some(),
            "codel has no limit in bytes: it is as many packets as full frames fit",
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    all.extend(fallbacks(policy, leaves));
    let fifo = |class: &ResolvedClass| match leaves {
        Some(leaves) if !leaves.have(class) => true,
        _ => !by_flow(class) && class.codel.is_none(),
    };
    if policy.classes.iter().any(|class| class.limit_bytes.is_some() && fifo(class)) {
        all.push("a limit in bytes leaves the limit in packets out".to_owned());
    }
    all
}

/// Notes on the classes that are plain FIFOs for want of a better leaf.
pub fn fallbacks(policy: &Resolved, leaves: Option<Leaves>) -> Vec<String> {
    let without = |leaf: &str| match leaves {
        Some(_) => format!("this kernel has no {leaf}, so the queue is a plain FIFO"),
        None => format!("where the kernel has no {leaf}, the queue is a plain FIFO"),
    };
    let room = |class: &ResolvedClass| match class.limit_bytes {
        Some(bytes) => format!(" of {bytes}"),
        None => format!(" of {} packets", class.fifo_limit_pkts),
    };
    let lacks = |class: &ResolvedClass| leaves.is_none_or(|leaves| !leaves.have(class));
    let of = |chosen: fn(&ResolvedClass) -> bool, what: &str| {
        difference(policy, |class| (lacks(class) && chosen(class)).then(|| room(class)), what)
    };
    let by_flow = of(by_flow, &format!("{}: its flows do not share, and CoDel does not act", without("fq_codel")));
    let alone = of(codel_alone, &format!("{}: CoDel does not act", without("codel")));
    by_flow.into_iter().chain(alone).collect()
}

fn by_flow(class: &ResolvedClass) -> bool {
    class.queue.flows().is_some()
}

fn codel_alone(class: &ResolvedClass) -> bool {
    !by_flow(class) && class.codel.is_some()
}

/// A sentence on the classes for which `detail` has text, each with that text behind its name. None: there are no such classes.
fn difference(policy: &Resolved, detail: impl Fn(&ResolvedClass) -> Option<String>, what: &str) -> Option<String> {
    let of = |class: &ResolvedClass| Some(format!("{} ({}){}", class.id, class.name, detail(class)?));
    let list: Vec<String> = policy.classes.iter().filter_map(of).collect();
    let plural = if list.len() == 1 { "class" } else { "classes" };
    (!list.is_empty()).then(|| format!("{plural} {}: {what}", list.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::htb::tests::{ALL, NOTHING, QUEUES, TWO, resolved};

    #[test]
    fn weights_beyond_htb_are_differences() {
        let differences = |weight: u32| {
            let classes = format!(r#"[{{ "id": 0, "weight": {weight} }}, {{ "id": 1 }}]"#);
            let policy = resolved(&format!(r#"{{ "scheduler": "weighted_fair_queuing", "classes": {classes} }}"#));
            let notes = differences(&policy, Some(Rate(20_000_000)), Some(ALL), 14);
            notes.iter().filter(|note| note.contains("weight")).count()
        };
        assert_eq!([differences(4), differences(132), differences(133)], [1, 1, 2]);
    }

    #[test]
    fn queues_that_leaves_lack_are_differences() {
        let policy = resolved(QUEUES);
        let differences = |leaves| queue_differences(&policy, leaves);
        let count = |notes: &[String], word: &str| notes.iter().filter(|note| note.contains(word)).count();
        let (all, none, unknown) = (differences(Some(ALL)), differences(Some(NOTHING)), differences(None));
        assert_eq!(
            [
                count(&all, "not between hosts"),
                count(&all, "than 256"),
                count(&all, "as full frames"),
                count(&all, "FIFO")
            ],
            [1, 1, 1, 0],
            "{all:?}"
        );
        assert!(all[0].starts_with("classes 2 (bulk), 3 (rest): the queue is fq_codel"), "{all:?}");
        assert_eq!([count(&none, "is fq_codel"), count(&none, "plain FIFO")], [0, 2], "{none:?}");
        assert!(
            none[0].starts_with("classes 2 (bulk) of 1000 packets, 3 (rest) of 1mb: this kernel has no fq_codel"),
            "{none:?}"
        );
        assert!(none[1].starts_with("class 1 (early) of 64kb: this kernel has no codel"), "{none:?}");
        assert_eq!([count(&unknown, "is fq_codel"), count(&unknown, "where the kernel has no")], [1, 2], "{unknown:?}");
        assert!(queue_differences(&resolved(TWO), Some(NOTHING)).len() == 1, "a FIFO is what the policy says");
    }
}
