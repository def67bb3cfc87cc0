//! Engine `tc`: a policy with subscribers lowered to HTB. The link, each site and each subscriber is a class of HTB, below which a subscriber's packets
//! queue in an fq_codel, codel or FIFO of its own.
//!
//! Pure: it writes `tc` command lines.

use crate::engine::differences;
use crate::engine::htb::{
    HANDLE, HTB_QUANTA_BYTES, LeafQdisc, Leaves, UNSHAPED, bits, burst, overhead, scaled, within_quanta,
};
use sluice_abi as abi;
use sluice_policy::network::{BURST_TIMES_NS, EachWay, Leaf, LeafClass, LeafQueue, Network, Node, NodeScheduler, Way};
use sluice_policy::{Bytes, FRAME_BYTES, Rate};
use sluice_tables::tree::{self, LINK, MOST_PKTS, NOBODY, Numbers, TreeTable};
use std::collections::HashSet;

/// Rate of an HTB class where the policy guarantees nothing. HTB wants a rate for each class and gives it without asking the class above, so
/// it is small; of a slower one, HTB could not count the time of a frame (2^32 ticks of 64 ns).
pub(crate) const FLOOR: Rate = Rate(64);
/// Queues to which fq_codel hashes the flows of a subscriber. The default of 1,024 takes 70 KB for each subscriber.
pub(crate) const FLOW_QUEUES: u32 = 256;
/// Packets of a FIFO without a limit.
const FIFO_LIMIT_PKTS: u32 = 1_000;
/// A tree of HTB classes.
#[derive(Clone, Copy)]
pub(crate) struct HtbTree<'a> {
    pub device: &'a str,
    pub network: &'a Network,
    pub way: Way,
    pub numbers: &'a Numbers,
    pub header_bytes: u32,
    pub leaves: Leaves,
}

/// The minor number of the HTB class of a node. The classifier knows it too (`bpf/htb_tree.bpf.c`).
pub(crate) fn minor(number: u32) -> u32 {
    number + 1
}

impl HtbTree<'_> {
    /// The commands that build all of it, classifier excluded.
    pub fn build(&self) -> Vec<String> {
        let root = format!("qdisc replace dev {} root handle {HANDLE} htb default {:x}", self.device, minor(NOBODY));
        std::iter::once(root).chain(self.lines(|_| true, |_| false)).collect()
    }

    /// The commands that make these nodes what the policy says, or add them: those above come first. `by_flow`: leaves that have an fq_codel already.
    pub fn lines(&self, wanted: impl Fn(u32) -> bool, by_flow: impl Fn(u32) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        if wanted(LINK) {
            lines.push(self.link_line());
        }
        // Packets of classes that are not there, for now, are nobody's.
        if wanted(NOBODY) {
            lines.push(self.nobody_line());
            lines.push(self.queue_line(NOBODY, &self.network.queue_of_nobody(self.way), by_flow(NOBODY)));
        }
        let sites = self.network.inner.iter().zip(&self.numbers.inner).skip(1);
        lines.extend(sites.filter(|(_, number)| wanted(**number)).map(|(site, number)| self.class_line(site, *number)));
        let leaves = self.network.leaves.iter().zip(&self.numbers.leaves);
        for ((leaf, number), parts) in leaves.zip(&self.numbers.classes) {
            let queue = |number: u32, queue: &EachWay<usize>| {
                self.queue_line(number, &self.network.queues[*queue.of(self.way)], by_flow(number))
            };
            if wanted(*number) {
                lines.push(self.class_line(&leaf.node, *number));
                if parts.is_empty() {
                    lines.push(queue(*number, &leaf.queue));
                }
            }
            let classes = leaf.classes.classes.iter().zip(parts).filter(|(_, part)| wanted(**part));
            for (class, part) in classes {
                lines.push(self.leaf_class_line(leaf, class, *number, *part));
                lines.push(queue(*part, &class.queue));
            }
        }
        lines
    }

    fn link_rate(&self) -> Rate {
        scaled(self.network.link().ceil.of(self.way).unwrap_or(UNSHAPED), &self.network.framing)
    }

    fn link_line(&self) -> String {
        let (rate, own) = (self.link_rate(), *self.network.link().burst.of(self.way));
        self.line(&format!("parent {HANDLE}"), LINK, (rate, burst(rate, own)), (rate, burst(rate, own)), 60_000)
    }

    /// The class of packets whose address no subscriber has, or of the unclassified ones of a class tree: these have a small guarantee.
    fn nobody_line(&self) -> String {
        let link = self.link_rate();
        let least = if self.network.is_class_tree() {
            scaled(tree::unclassified_rate(*self.network.link().ceil.of(self.way)), &self.network.framing)
        } else {
            FLOOR
        };
        let own = (least, burst(least, None));
        self.line(&self.parent(LINK), NOBODY, own, (link, burst(link, None)), FRAME_BYTES.into())
    }

    fn class_line(&self, node: &Node, number: u32) -> String {
        let parent = self.numbers.inner[usize::from(node.parent) - LINK as usize];
        let limits = (*node.rate.of(self.way), *node.ceil.of(self.way), *node.burst.of(self.way));
        self.limited_line(parent, number, limits, quantum(self.network.scheduler_above(node), node.weight))
    }

    /// The line of the HTB class for a class inside a subscriber; its parent is the subscriber's HTB class.
    fn leaf_class_line(&self, leaf: &Leaf, class: &LeafClass, above: u32, number: u32) -> String {
        let rate = class.rate.of(self.way).and_then(|rate| within(rate, leaf, self.way));
        let limits = (rate, *class.ceil.of(self.way), *class.burst.of(self.way));
        self.limited_line(above, number, limits, quantum(leaf.classes.scheduler, class.weight))
    }

    /// A class with a guarantee, a ceiling and the burst of that.
    fn limited_line(
        &self,
        parent: u32,
        number: u32,
        (rate, ceil, own): (Option<Rate>, Option<Rate>, Option<Bytes>),
        quantum: u64,
    ) -> String {
        let framing = &self.network.framing;
        let link = self.link_rate();
        let own = own.filter(|_| ceil.is_some());
        let ceil = ceil.map_or(link, |ceil| scaled(ceil, framing).min(link));
        let rate = rate.map_or(FLOOR, |rate| scaled(rate, framing)).min(ceil);
        // At a ceiling that the link cuts, a burst may last no longer than HTB counts.
        let own = own.map(|own| own.min(Bytes(ceil.bytes_in_ns(*BURST_TIMES_NS.end()).min(u32::MAX.into()))));
        self.line(&self.parent(parent), number, (rate, burst(rate, None)), (ceil, burst(ceil, own)), quantum)
    }

    fn parent(&self, number: u32) -> String {
        format!("parent {HANDLE}{:x}", minor(number))
    }

    fn line(&self, parent: &str, number: u32, rate: (Rate, u64), ceil: (Rate, u64), quantum: u64) -> String {
        format!(
            "class replace dev {} {parent} classid {HANDLE}{:x} htb rate {} ceil {} burst {} cburst {} quantum {quantum}{}",
            self.device,
            minor(number),
            bits(rate.0),
            bits(ceil.0),
            rate.1,
            ceil.1,
            overhead(&self.network.framing, self.header_bytes)
        )
    }

    /// `by_flow`: it is an fq_codel already, whose number of queues no change may name.
    fn queue_line(&self, number: u32, queue: &LeafQueue, by_flow: bool) -> String {
        let qdisc = LeafQdisc {
            flows: queue.queue.flows(),
            flow_queues: (!by_flow).then_some(FLOW_QUEUES),
            codel: queue.codel,
            // Without a limit, that of fq_codel's memory comes first.
            limit_pkts: queue.limit_pkts.unwrap_or(MOST_PKTS),
            fifo_limit_pkts: queue.limit_pkts.unwrap_or(FIFO_LIMIT_PKTS),
            limit_bytes: None,
        };
        format!("qdisc replace dev {} {} {}", self.device, self.parent(number), qdisc.words(self.leaves))
    }
}

/// The differences between a policy and its meaning on engine `tc`, for people.
pub fn of_tree(network: &Network, way: Way, header_bytes: u32) -> Vec<String> {
    let words = if network.is_class_tree() {
        [
            "class",
            "the inner classes above",
            "a class that queues by flow: its",
            "a class that goes, moves to another parent",
        ]
    } else {
        ["subscriber", "their sites", "a subscriber's", "a subscriber who goes, moves to another site"]
    };
    let [one, above, own, goes] = words;
    let mut all = vec![
        format!(
            "what is left is shared by {one}, whatever the weights of {above}; a node without a guarantee has one of {FLOOR}"
        ),
        format!("{own} flows are hashed to {FLOW_QUEUES} queues, and no hosts are told apart"),
        format!("`apply` drops the packets that are queued for {goes} or gets another kind of queue"),
    ];
    let is_cut =
        |leaf: &Leaf, class: &LeafClass| class.rate.of(way).is_some_and(|rate| within(rate, leaf, way) != Some(rate));
    if network.leaf_classes().any(|(leaf, class)| is_cut(&network.leaves[leaf], class)) {
        all.push(
            "the guarantees of the classes inside a subscriber are scaled down to the subscriber's own guarantee"
                .to_owned(),
        );
    }
    let most = HTB_QUANTA_BYTES.end() / FRAME_BYTES;
    let nodes = network.leaves.iter().map(|leaf| &leaf.node).chain(network.sites());
    let nodes = nodes.map(|node| (network.scheduler_above(node), node.weight));
    let classes = network.leaf_classes().map(|(leaf, class)| (network.leaves[leaf].classes.scheduler, class.weight));
    let (quanta, weights): (Vec<_>, Vec<_>) =
        nodes.chain(classes).partition(|(scheduler, _)| *scheduler == NodeScheduler::DeficitRoundRobin);
    if weights.iter().any(|(_, weight)| *weight > most) {
        all.push(format!("a weight of more than {most} counts as {most}"));
    }
    if quanta.iter().any(|(_, quantum)| !HTB_QUANTA_BYTES.contains(quantum)) {
        all.push(format!("a quantum of less than {0} bytes counts as {0}", HTB_QUANTA_BYTES.start()));
    }
    if weights.iter().any(|(scheduler, _)| *scheduler == NodeScheduler::WeightedFairQueuing) {
        all.push("weighted_fair_queuing shares by turns of a quantum, and not to a packet".to_owned());
    }
    all.extend(differences::of_link(&network.framing, *network.link().ceil.of(way), header_bytes));
    all.extend(differences::of_every_policy());
    all
}

/// The guarantee of a class inside a subscriber, scaled so that those of all classes fit into the subscriber's. HTB sends a guarantee without asking the
/// class above, so a larger one would take from other subscribers.
fn within(rate: Rate, leaf: &Leaf, way: Way) -> Option<Rate> {
    let whole = leaf.node.rate.of(way).map(|rate| u128::from(rate.0))?;
    let sum: u128 =
        leaf.classes.classes.iter().filter_map(|class| *class.rate.of(way)).map(|rate| u128::from(rate.0)).sum();
    let part = u128::from(rate.0) * whole.min(sum) / sum.max(1);
    // No more than the rate itself.
    Some(Rate(u64::try_from(part).unwrap_or(rate.0)))
}

/// The nodes whose HTB classes a change touches; a change of the link or of its framing touches all.
pub(crate) fn touched(changes: &[abi::sl_tree_change], to: &TreeTable) -> HashSet<u32> {
    let is_of_all = |change: &abi::sl_tree_change| match change.kind {
        abi::SL_CHANGE_SET_UP => true,
        abi::SL_CHANGE_NODE => change.at == LINK,
        _ => false,
    };
    if changes.iter().any(is_of_all) {
        return to.nodes.keys().copied().chain([LINK]).collect();
    }
    changes.iter().filter(|change| change.kind == abi::SL_CHANGE_NODE).map(|change| change.at).collect()
}

/// HTB quantum of a class with this weight, or this quantum, bytes.
fn quantum(scheduler: NodeScheduler, weight: u32) -> u64 {
    let unit = if scheduler == NodeScheduler::DeficitRoundRobin { 1 } else { FRAME_BYTES };
    within_quanta(u64::from(unit) * u64::from(weight))
}

/// The nodes to be made anew for a change, since HTB moves no class: those that get another parent, with all below them. Deepest first.
pub(crate) fn moved(from: &TreeTable, to: &TreeTable) -> Vec<u32> {
    let own = |number: &u32| {
        let (was, is) = (from.nodes.get(number), to.nodes.get(number));
        was.zip(is).is_some_and(|(was, is)| was.parent != is.parent)
    };
    let mut all: HashSet<u32> = from.nodes.keys().copied().filter(own).collect();
    loop {
        let below = from.nodes.iter().filter(|(number, node)| all.contains(&node.parent) && !all.contains(*number));
        let below: Vec<u32> = below.map(|(number, _)| *number).collect();
        if below.is_empty() {
            break;
        }
        all.extend(below);
    }
    let mut order: Vec<u32> = all.into_iter().collect();
    order.sort_by_key(|number| (*number >= LINK, std::cmp::Reverse(from.depth(*number)), *number));
    order
}

/// The commands that remove the HTB classes of these nodes with their queues.
pub(crate) fn remove(numbers: &[u32], device: &str) -> Vec<String> {
    numbers.iter().map(|number| format!("class del dev {device} classid {HANDLE}{:x}", minor(*number))).collect()
}

/// The minor numbers of the HTB classes of a tree, in order.
pub(crate) fn minors(tree: &TreeTable) -> Vec<u32> {
    let mut all: Vec<u32> = tree.nodes.keys().chain([&LINK]).map(|number| minor(*number)).collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_policy::{Context, Source};

    const TOWN: &str = r#"{ "subscriber_side": ["eth1"], "link": { "rate": "100mbit", "overhead": 18 },
        "sites": { "north": { "ceil": "60mbit", "sites": { "mast": {} } } },
        "plans": { "home": { "rate": { "down": "5mbit", "up": "1mbit" }, "ceil": { "down": "20mbit", "up": "4mbit" }, "weight": 3 }, "old": { "queue": "fifo" } },
        "subscribers": [ { "name": "a", "addresses": ["192.0.2.1"], "plan": "home", "site": "mast" },
            { "name": "b", "addresses": ["192.0.2.2"], "plan": "old" } ] }"#;

    fn network(text: &str) -> Network {
        let policy = sluice_policy::parse(&Source::new("town.json", text)).expect("a valid policy");
        sluice_policy::resolve(&policy, &Context::default()).expect("resolves").network.expect("a network")
    }

    fn tree<'a>(network: &'a Network, numbers: &'a Numbers) -> HtbTree<'a> {
        let leaves = Leaves { fq_codel: true, codel: true };
        HtbTree { device: "eth1", network, way: Way::Down, numbers, header_bytes: 14, leaves }
    }

    fn table(network: &Network, numbers: &Numbers) -> TreeTable {
        TreeTable::of(network, Way::Down, numbers, &TreeTable::empty(), 14).expect("it fits")
    }

    #[test]
    fn a_node_is_a_class() {
        let town = network(TOWN);
        let numbers = Numbers::of(&town, &[]).expect("they fit");
        let lines = tree(&town, &numbers).build();
        let queue = "limit 65535 memory_limit 33554432 quantum 1514 target 5000us interval 100000us ecn flows 256";
        assert_eq!(
            lines,
            [
                "qdisc replace dev eth1 root handle 5101: htb default 8000".to_owned(),
                "class replace dev eth1 parent 5101: classid 5101:8001 htb rate 100000000bit ceil 100000000bit burst 3125 cburst 3125 quantum 60000 overhead 4".to_owned(),
                "class replace dev eth1 parent 5101:8001 classid 5101:8000 htb rate 64bit ceil 100000000bit burst 1600 cburst 3125 quantum 1514 overhead 4".to_owned(),
                format!("qdisc replace dev eth1 parent 5101:8000 fq_codel {queue}"),
                "class replace dev eth1 parent 5101:8001 classid 5101:8002 htb rate 5000000bit ceil 60000000bit burst 1600 cburst 75000 quantum 1514 overhead 4".to_owned(),
                "class replace dev eth1 parent 5101:8002 classid 5101:8003 htb rate 5000000bit ceil 100000000bit burst 1600 cburst 3125 quantum 1514 overhead 4".to_owned(),
                "class replace dev eth1 parent 5101:8003 classid 5101:1 htb rate 5000000bit ceil 20000000bit burst 1600 cburst 25000 quantum 4542 overhead 4".to_owned(),
                format!("qdisc replace dev eth1 parent 5101:1 fq_codel {queue}"),
                "class replace dev eth1 parent 5101:8001 classid 5101:2 htb rate 64bit ceil 100000000bit burst 1600 cburst 3125 quantum 1514 overhead 4".to_owned(),
                "qdisc replace dev eth1 parent 5101:2 pfifo limit 826".to_owned(),
            ]
        );
        assert_eq!(minors(&table(&town, &numbers)), [1, 2, 0x8000, 0x8001, 0x8002, 0x8003]);
        let again = tree(&town, &numbers).lines(|number| number == 0, |_| true);
        assert!(again.len() == 2 && again[1].ends_with("ecn"), "fq_codel takes no number of queues twice: {again:?}");
    }

    #[test]
    fn only_what_differs_is_touched() {
        let (town, numbers) = {
            let town = network(TOWN);
            let numbers = Numbers::of(&town, &[]).expect("they fit");
            (town, numbers)
        };
        let before = table(&town, &numbers);
        let to = |text: &str| {
            let town = network(text);
            let numbers = Numbers::of(&town, &numbers.owners).expect("they fit");
            let after = TreeTable::of(&town, Way::Down, &numbers, &before, 14).expect("it fits");
            let touched = touched(&before.changes_to(&after), &after);
            let mut touched: Vec<u32> = touched.into_iter().collect();
            touched.sort_unstable();
            (moved(&before, &after), touched)
        };
        assert_eq!(to(TOWN), (vec![], vec![]));
        assert_eq!(to(&TOWN.replace("20mbit", "30mbit")), (vec![], vec![0]));
        assert_eq!(to(&TOWN.replace("\"site\": \"mast\"", "\"site\": \"north\"")), (vec![0], vec![0, LINK + 2]));
        let all = vec![0, 1, NOBODY, LINK, LINK + 1, LINK + 2];
        assert_eq!(
            to(&TOWN.replace("100mbit", "90mbit")),
            (vec![], all.clone()),
            "ceilings are the link's where there is none"
        );
        assert_eq!(to(&TOWN.replace("\"overhead\": 18", "\"overhead\": 40")), (vec![], all));
    }

    #[test]
    fn a_site_moves_with_all_below_it() {
        let sites =
            |below: &str| TOWN.replace(r#""sites": { "north": { "ceil": "60mbit", "sites": { "mast": {} } } }"#, below);
        let here = network(&sites(r#""sites": { "north": { "sites": { "mast": {} } }, "south": {} }"#));
        let there = network(&sites(r#""sites": { "north": {}, "south": { "sites": { "mast": {} } } }"#));
        let numbers = Numbers::of(&here, &[]).expect("they fit");
        let before = table(&here, &numbers);
        let later = Numbers::of(&there, &numbers.owners).expect("they fit");
        let moved = moved(&before, &table(&there, &later));
        let mast = *numbers.inner.iter().zip(&here.inner).find(|(_, node)| node.id == "mast").expect("it is there").0;
        assert_eq!(moved, [0, mast], "the subscriber below it first");
        assert_eq!(remove(&moved, "eth1")[0], "class del dev eth1 classid 5101:1");
    }
}
