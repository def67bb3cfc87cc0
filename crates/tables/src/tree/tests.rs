//! Tests of trees and of the changes between them, on the core itself.

use super::*;
use sluice_policy::{Context, Source};

const PLANS: &str = r#""plans": { "home": { "rate": "5mbit", "ceil": "50mbit" }, "work": { "ceil": { "down": "200mbit", "up": "20mbit" }, "weight": 4 },
    "split": { "ceil": "50mbit", "classes": [{ "id": 0, "rate": "5mbit", "ceil": "10mbit" }, { "id": 3, "weight": 4, "queue": "fifo" }] },
    "urgent": { "ceil": "50mbit", "scheduler": "strict_priority", "classes": [{ "id": 0, "priority": 0 }, { "id": 3, "priority": 2 }] } }"#;

fn network(sites: &str, subscribers: &str) -> Network {
    let text = format!(
        r#"{{ "subscriber_side": ["eth1"], "link": {{ "rate": "1gbit" }}, "sites": {sites}, {PLANS}, "subscribers": [{subscribers}] }}"#
    );
    let policy =
        sluice_policy::parse(&Source::new("test.json", text.as_str())).unwrap_or_else(|found| panic!("{found}"));
    let resolved = sluice_policy::resolve(&policy, &Context::default()).unwrap_or_else(|found| panic!("{found}"));
    resolved.network.expect("a network")
}

fn subscriber(name: &str, address: &str, plan: &str, site: &str) -> String {
    format!(r#"{{ "name": "{name}", "addresses": ["{address}"], "plan": "{plan}", "site": "{site}" }}"#)
}

fn table(network: &Network, owners: &[u64], running: &TreeTable) -> (TreeTable, Numbers) {
    let numbers = Numbers::of(network, owners).unwrap_or_else(|error| panic!("{error}"));
    let table = TreeTable::of(network, Way::Down, &numbers, running, 14).unwrap_or_else(|error| panic!("{error}"));
    (table, numbers)
}

const SITES: &str = r#"{ "north": { "ceil": "500mbit", "sites": { "mast": {} } }, "south": {} }"#;

fn three() -> Network {
    let all = [
        subscriber("a", "192.0.2.1", "home", "mast"),
        subscriber("b", "192.0.2.2", "work", "mast"),
        subscriber("c", "192.0.2.3", "home", "south"),
    ];
    network(SITES, &all.join(","))
}

#[test]
fn the_core_holds_what_the_network_says() {
    let (table, numbers) = table(&three(), &[], &TreeTable::empty());
    let tree = table.build().unwrap_or_else(|node| panic!("node {node} is refused"));
    let read = TreeTable::read(tree.state());
    assert!(read.includes(&table) && table.includes(&read));
    assert_eq!(numbers.leaves, [0, 1, 2]);
    assert_eq!(table.nodes.len(), 3 + 3 + 1, "subscribers, sites, nobody's leaf");
    let own = &table.nodes[&1];
    assert_eq!((own.weight, own.ceil_cost, own.rate_cost), (4, 655_360, 0), "200 Mbit/s are 40 ns a byte");
    assert_eq!(table.link.ceil_cost, 131_072);
}

/// Three subscribers, the second of which has classes.
fn divided(plan: &str, site: &str) -> Network {
    let all = [
        subscriber("a", "192.0.2.1", "home", "mast"),
        subscriber("b", "192.0.2.2", plan, site),
        subscriber("c", "192.0.2.3", "home", "south"),
    ];
    network(SITES, &all.join(","))
}

#[test]
fn classes_are_leaves_below_their_subscriber() {
    let town = divided("split", "mast");
    let (split, numbers) = table(&town, &[], &TreeTable::empty());
    assert_eq!((&numbers.leaves[..], &numbers.classes[..]), (&[0, 1, 2][..], &[vec![], vec![3, 4], vec![]][..]));
    let (whole, [first, second]) = (&split.nodes[&1], [&split.nodes[&3], &split.nodes[&4]]);
    assert_eq!((whole.queue, first.parent, second.parent), (abi::SL_LEAF_DIVIDED, 1, 1));
    assert_eq!((whole.ceil_cost, first.ceil_cost, second.ceil_cost), (2_621_440, 13_107_200, 0));
    assert_eq!((first.rate_cost, second.rate_cost, second.weight), (26_214_400, 0, 4));
    // Class 0 is the first; those that the plan lacks, and packets without one, are of the last.
    let mut of_class = [5; abi::SL_PART_CLASSES as usize];
    of_class[0] = 4;
    assert_eq!(split.parts[&1].of_class, of_class);
    let mut tree = split.build().unwrap_or_else(|node| panic!("node {node} is refused"));
    let part = |tree: &mut Tree, leaf: u32, class: u32| tree.leaf_of_class(leaf, class);
    assert_eq!([0, 3, 7, 15].map(|class| part(&mut tree, 1, class)), [Some(3), Some(4), Some(4), Some(4)]);
    assert_eq!((part(&mut tree, 0, 3), part(&mut tree, 9, 0)), (Some(0), None), "no classes, and no such leaf");
    let read = TreeTable::read(tree.state());
    assert!(read.includes(&split) && split.includes(&read));
    // In another order, it is another node, and so are its classes.
    let (urgent, others) = table(&divided("urgent", "mast"), &numbers.owners, &split);
    assert_eq!((&others.leaves[..], &others.classes[1], others.gone()), (&[0, 5, 2][..], &vec![6, 7], vec![1, 3, 4]));
    assert_eq!((urgent.nodes[&5].discipline, urgent.nodes[&7].priority), (abi::SL_TREE_PRIORITY, 2));
    let removed: Vec<u32> = split.removals(&others.gone(), |_| false).iter().map(|change| change.at).collect();
    assert_eq!(removed, [3, 4, 1], "classes before their subscriber");
    let removed: Vec<u32> = split.removals(&others.gone(), |leaf| leaf == 4).iter().map(|change| change.at).collect();
    assert_eq!(removed, [3], "one with packets stays, and its subscriber");
}

/// A tree of classes below an office.
fn office(scheduler: &str, more: &str) -> Network {
    class_tree(&format!(
        r#"{{ "name": "office", "ceil": "100mbit", "scheduler": "{scheduler}" }},
            {{ "id": 5, "name": "calls", "parent": "office" {more} }}, {{ "id": 63, "name": "guests", "weight": 7 }}"#
    ))
}

fn class_tree(classes: &str) -> Network {
    let text = format!(r#"{{ "link": {{ "rate": "1gbit" }}, "classes": [{classes}] }}"#);
    let policy = sluice_policy::parse(&Source::new("test.json", text)).unwrap_or_else(|found| panic!("{found}"));
    let resolved = sluice_policy::resolve(&policy, &Context::default()).unwrap_or_else(|found| panic!("{found}"));
    resolved.network.expect("a tree of classes")
}

#[test]
fn classes_alone_lead_to_their_leaves() {
    let (weighted, numbers) = table(&office("elastic_round_robin", ""), &[], &TreeTable::empty());
    assert_eq!(weighted.classes, BTreeMap::from([(5, 0), (63, 1), (abi::SL_TREE_CLASSES - 1, NOBODY)]));
    assert_eq!((weighted.nodes[&0].parent, weighted.nodes[&1].parent), (LINK + 1, LINK));
    let mut tree = weighted.build().unwrap_or_else(|node| panic!("node {node} is refused"));
    let led = |tree: &mut Tree| [5, 63, 6, 127].map(|class| tree.leaf_by_class(class));
    assert_eq!(led(&mut tree), [Some(0), Some(1), None, Some(NOBODY)]);
    let read = TreeTable::read(tree.state());
    assert!(read.includes(&weighted) && weighted.includes(&read));
    // In another order the office is another node, and the calls move there.
    let (urgent, others) = table(&office("strict_priority", r#", "priority": 9"#), &numbers.owners, &weighted);
    assert_eq!((others.inner[1], &others.leaves[..], others.gone()), (LINK + 2, &[0, 1][..], vec![LINK + 1]));
    assert_eq!((urgent.nodes[&(LINK + 2)].discipline, urgent.nodes[&0].priority), (abi::SL_TREE_PRIORITY, 9));
    for change in weighted.changes_to(&urgent) {
        tree.make(&change, 1).unwrap_or_else(|refused| panic!("{refused:?}"));
    }
    // Under every other scheduler too; a quantum is a weight.
    for (scheduler, more, discipline, weight) in [
        ("round_robin", "", abi::SL_TREE_ROUND_ROBIN, 1),
        ("weighted_fair_queuing", r#", "weight": 4"#, abi::SL_TREE_FAIR, 4),
        ("deficit_round_robin", r#", "quantum": 9000"#, abi::SL_TREE_ELASTIC, 9000),
        ("deficit_round_robin", "", abi::SL_TREE_ELASTIC, 1514),
    ] {
        let (other, numbers) = table(&office(scheduler, more), &numbers.owners, &weighted);
        assert_eq!((other.nodes[&(LINK + 2)].discipline, other.nodes[&0].weight), (discipline, weight), "{scheduler}");
        assert_eq!(numbers.gone(), vec![LINK + 1], "{scheduler} is another node");
    }
    // EEVDF has a request beside the weight, and a PIFO a rank function and latency budgets, in microseconds.
    let by_deadline = r#"pifo", "rank": "earliest_deadline"#;
    for (scheduler, more, discipline, rank, request) in [
        ("eevdf", r#", "weight": 4, "quantum": 300"#, abi::SL_TREE_EEVDF, 0, 300),
        ("eevdf", "", abi::SL_TREE_EEVDF, 0, 1514),
        (by_deadline, r#", "latency_budget": "5ms""#, abi::SL_TREE_PIFO, abi::SL_RANK_EARLIEST_DEADLINE, 5000),
        ("pifo", r#", "priority": 4"#, abi::SL_TREE_PIFO, abi::SL_RANK_PRIORITY, 0),
    ] {
        let (other, new) = table(&office(scheduler, more), &numbers.owners, &weighted);
        let (node, leaf) = (&other.nodes[&(LINK + 2)], &other.nodes[&0]);
        assert_eq!((node.discipline, node.rank, leaf.request), (discipline, rank, request), "{scheduler}");
        assert_eq!(new.gone(), vec![LINK + 1], "{scheduler} is another node");
        let built = other.build().unwrap_or_else(|node| panic!("node {node} is refused"));
        let read = TreeTable::read(built.state());
        assert!(read.includes(&other) && other.includes(&read), "{scheduler}");
    }
    let slack = office(r#"pifo", "rank": "slack"#, r#", "latency_budget": "5ms""#);
    let deadline = office(by_deadline, r#", "latency_budget": "5ms""#);
    let (first, numbers_of_first) = table(&deadline, &[], &TreeTable::empty());
    assert_eq!(
        table(&slack, &numbers_of_first.owners, &first).1.gone(),
        vec![LINK + 1],
        "another rank is another node"
    );
    let longer = office(by_deadline, r#", "latency_budget": "7ms""#);
    let (second, same) = table(&longer, &numbers_of_first.owners, &first);
    let changed: Vec<u32> = first.changes_to(&second).iter().map(|change| change.at).collect();
    assert_eq!((changed, same.gone()), (vec![0], vec![]), "a budget changes in place");
    // A class that goes leads to its leaf until that goes too.
    let (last, after) = table(&without_guests(), &others.owners, &urgent);
    for change in urgent.changes_to(&last) {
        tree.make(&change, 1).unwrap_or_else(|refused| panic!("{refused:?}"));
    }
    assert_eq!(led(&mut tree), [Some(0), Some(1), None, Some(NOBODY)]);
    for change in TreeTable::read(tree.state()).removals(&after.gone(), |_| false) {
        tree.make(&change, 1).unwrap_or_else(|refused| panic!("{refused:?}"));
    }
    assert_eq!(led(&mut tree), [Some(0), None, None, Some(NOBODY)]);
    let is = TreeTable::read(tree.state());
    assert!(is.includes(&last) && last.includes(&is));
}

/// The office without guests beside it.
fn without_guests() -> Network {
    class_tree(r#"{ "name": "office" }, { "id": 5, "name": "calls", "parent": "office" }"#)
}

#[test]
fn a_part_has_the_classes_of_the_whole() {
    let (whole, numbers) = table(&divided("split", "mast"), &[], &TreeTable::empty());
    let tree = whole.build().unwrap_or_else(|node| panic!("node {node} is refused"));
    let part = network(SITES, &subscriber("b", "192.0.2.2", "split", "south"));
    let of_part = Numbers::of_part(&part, &numbers.owners).expect("all of them are there");
    assert_eq!(of_part.all_leaves(), [1, 3, 4]);
    let own = [1, 3, 4, NOBODY].into_iter().chain(LINK..NODES as u32);
    let running = TreeTable::read_part(tree.state(), own);
    let wanted = TreeTable::of(&part, Way::Down, &of_part, &running, 14).unwrap_or_else(|error| panic!("{error}"));
    let changed: Vec<u32> =
        running.changes_to(&wanted).iter().map(|change| change.at).filter(|at| *at < LINK).collect();
    assert_eq!(changed, [1], "it moves, and its classes with it");
}

#[test]
fn who_stays_keeps_the_number() {
    let (first, numbers) = table(&three(), &[], &TreeTable::empty());
    let later = network(
        SITES,
        &[
            subscriber("d", "192.0.2.4", "home", "south"),
            subscriber("c", "192.0.2.3", "work", "north"),
            subscriber("a", "192.0.2.1", "home", "mast"),
        ]
        .join(","),
    );
    let (second, after) = table(&later, &numbers.owners, &first);
    assert_eq!(after.leaves, [3, 2, 0], "d has a free one, not that of b, who has left");
    assert_eq!(after.gone(), [1]);
    let kinds = |changes: &[abi::sl_tree_change]| -> Vec<(u32, u32)> {
        changes.iter().map(|change| (change.kind, change.at)).collect()
    };
    let changes = first.changes_to(&second);
    assert_eq!(kinds(&changes), [(abi::SL_CHANGE_NODE, 2), (abi::SL_CHANGE_NODE, 3)], "a is not touched");
    let joined = first.clone().after(&changes);
    assert_eq!(kinds(&joined.removals(&after.gone(), |_| true)), [], "b has packets");
    assert_eq!(kinds(&joined.removals(&after.gone(), |_| false)), [(abi::SL_CHANGE_REMOVE, 1)]);
}

#[test]
fn a_part_has_the_numbers_and_nodes_of_the_whole() {
    let (whole, numbers) = table(&three(), &[], &TreeTable::empty());
    let tree = whole.build().unwrap_or_else(|node| panic!("node {node} is refused"));
    let part = network(SITES, &subscriber("c", "192.0.2.3", "work", "mast"));
    let of_part = Numbers::of_part(&part, &numbers.owners).expect("all of them are there");
    assert_eq!((&of_part.leaves[..], &of_part.inner), (&[2][..], &numbers.inner));
    let running = TreeTable::read_part(tree.state(), [2, NOBODY].into_iter().chain(LINK..NODES as u32));
    assert_eq!(running.nodes.len(), 1 + 1 + 3);
    assert_eq!(running.queues.len(), whole.queues.len(), "kinds of others are not free");
    let wanted = TreeTable::of(&part, Way::Down, &of_part, &running, 14).unwrap_or_else(|error| panic!("{error}"));
    let changed: Vec<u32> = running.changes_to(&wanted).iter().map(|change| change.at).collect();
    // Without the guarantees of others, sites have none: a change tells of them.
    assert!(changed.contains(&2) && !changed.contains(&0) && !changed.contains(&1), "{changed:?}");
    let stranger = network(SITES, &subscriber("d", "192.0.2.4", "home", "south"));
    assert!(Numbers::of_part(&stranger, &numbers.owners).is_none());
}

#[test]
fn nobody_inherits_what_is_yet_to_be_removed() {
    let (now, numbers) = table(&three(), &[], &TreeTable::empty());
    let left = network(SITES, &subscriber("a", "192.0.2.1", "home", "mast"));
    let (_, after) = table(&left, &numbers.owners, &now);
    // The qdisc has not made the removals yet.
    let soon = now.clone().after(&now.removals(&after.gone(), |_| false));
    let owners = now.owners_in_use(&soon, &after.owners);
    let others = [subscriber("a", "192.0.2.1", "home", "mast"), subscriber("d", "192.0.2.4", "home", "mast")];
    let joined = network(SITES, &others.join(","));
    assert_eq!(table(&joined, &owners, &soon).1.leaves, [0, 3], "the places of b and c still have their packets");
    let owners = soon.owners_in_use(&soon, &after.owners);
    assert_eq!(table(&joined, &owners, &soon).1.leaves, [0, 1], "they are gone");
    let again = table(&three(), &now.owners_in_use(&soon, &after.owners), &soon).1;
    assert_eq!(again.leaves, [0, 1, 2], "who comes back has the former place");
}

#[test]
fn a_removal_that_finds_packets_is_no_refusal() {
    let (table, _) = table(&three(), &[], &TreeTable::empty());
    let mut tree = table.build().unwrap_or_else(|node| panic!("node {node} is refused"));
    for _ in 0..2 {
        tree.enqueue(0, 1000, 1).expect("there is room");
    }
    let mut ring = abi::boxed_zeroed::<abi::sl_tree_changes>();
    ring.change[0] = abi::sl_tree_change { kind: abi::SL_CHANGE_REMOVE, at: 0, what: [0; 6] };
    ring.written = 1;
    tree.catch_up(&mut ring, 1);
    assert_eq!((ring.made, ring.refused), (1, 0));
    assert!(TreeTable::read(tree.state()).nodes.contains_key(&0), "it stays");
    // A node whose parent is no inner node is one.
    ring.change[1] = change(abi::SL_CHANGE_NODE, 1, &abi::sl_node_conf { parent: 2, ..table.nodes[&1] });
    ring.written = 2;
    tree.catch_up(&mut ring, 1);
    assert_eq!((ring.made, ring.refused), (2, 1));
}

#[test]
fn the_core_follows_every_change() {
    let deeper = r#"{ "south": { "sites": { "north": { "sites": { "mast": {} } } } } }"#;
    let steps = [
        three(),
        network(SITES, &subscriber("a", "192.0.2.1", "work", "south")),
        network(
            deeper,
            &[subscriber("a", "192.0.2.1", "work", "mast"), subscriber("b", "192.0.2.9", "home", "north")].join(","),
        ),
        network("{}", &subscriber("b", "192.0.2.9", "home", "").replace(r#", "site": """#, "")),
        three(),
        divided("split", "mast"),
        divided("split", "south"),
        divided("urgent", "south"),
        three(),
    ];
    let mut tree = Tree::default();
    let mut owners = vec![0; NODES];
    for (step, network) in steps.iter().enumerate() {
        let running = TreeTable::read(tree.state());
        let numbers = Numbers::of(network, &owners).unwrap_or_else(|error| panic!("{error}"));
        let wanted = TreeTable::of(network, Way::Up, &numbers, &running, 0).unwrap_or_else(|error| panic!("{error}"));
        let mut changes = running.changes_to(&wanted);
        changes.extend(running.after(&changes).removals(&numbers.gone(), |_| false));
        let mut ring = abi::boxed_zeroed::<abi::sl_tree_changes>();
        ring.change[..changes.len()].copy_from_slice(&changes);
        ring.written = changes.len() as u64;
        let calls = (0..)
            .take_while(|_| {
                tree.catch_up(&mut ring, 1);
                ring.made < ring.written
            })
            .count();
        assert_eq!((ring.made, ring.refused), (ring.written, 0), "step {step}");
        assert!(calls <= changes.len() / 16, "step {step}");
        let is = TreeTable::read(tree.state());
        assert!(is.includes(&wanted) && wanted.includes(&is), "step {step}");
        owners = numbers.owners.clone();
        numbers.gone().iter().for_each(|number| owners[*number as usize] = 0);
    }
}

#[test]
fn a_full_tree_says_so() {
    let mut owners = vec![0; NODES];
    owners[..NOBODY as usize].fill(7);
    let error = Numbers::of(&three(), &owners).expect_err("no leaf is free");
    assert_eq!(error, TreeError::NoLeaves(3));
}

/// All that is below a child of the link has one home, and the children are dealt out over all trees; classes have the homes of their leaves.
#[test]
fn leaves_of_a_child_have_one_home() {
    let mut table = TreeTable::empty();
    let mut add = |number, parent| {
        let conf = Node::below(parent).conf();
        table.nodes.insert(number, conf);
    };
    (1..=4).for_each(|site| add(LINK + site, LINK));
    add(LINK + 5, LINK + 2);
    (0..8).for_each(|leaf| add(leaf, LINK + 1 + leaf % 5));
    (8..16).for_each(|leaf| add(leaf, LINK));
    // A part of a divided leaf.
    add(16, 3);
    add(NOBODY, LINK);
    let homes = table.homes(4);
    // Site 5 is below site 2.
    assert_eq!(homes.of_leaf[..8], [1, 2, 3, 0, 2, 1, 2, 3]);
    assert_eq!(homes.of_leaf[8..16], [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!((homes.of_leaf[16], homes.of_leaf[NOBODY as usize], homes.by_class), (0, 3, 0));
    assert!(table.homes(1).of_leaf.iter().all(|home| *home == 0));
    table.classes = [(0, 9), (5, 4)].into();
    let homes = table.homes(4);
    assert_eq!((homes.by_class, homes.of_class[0], homes.of_class[5], homes.of_class[6]), (1, 1, 2, 3));
}
