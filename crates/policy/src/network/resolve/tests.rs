//! Tests of networks as engines build them.

use super::super::difference::{changed_nodes, settings};
use super::super::{Guarantees, NodeScheduler, print};
use super::*;
use crate::bytes::FRAME_BYTES;
use crate::difference::Difference;
use crate::difference::change::{Change, changed};
use crate::parse::parse_file;
use crate::set::PolicyFile;
use crate::source::Source;
use proptest::prelude::*;

const POLICY: &str = include_str!("../../../tests/networks/inline.json");
const GROUPS: &str = include_str!("../../../tests/networks/each_host.json");
const CLASSES: &str = include_str!("../../../tests/networks/classes.json");
const CLASS_TREE: &str = include_str!("../../../tests/networks/class_tree.json");

fn policy(text: &str) -> Box<NetworkPolicy> {
    match parse_file(&Source::new("test.json", text)) {
        Ok(PolicyFile::One(policy)) => policy.network.expect("a network"),
        other => panic!("{other:?}"),
    }
}

fn difference(old: &Network, new: &Network) -> Difference {
    let (sites, subscribers) = changed_nodes(Some(old), Some(new));
    Difference { settings: changed(&settings(old), &settings(new)), sites, subscribers, ..Difference::default() }
}

fn resolved(text: &str) -> Network {
    resolve(&policy(text), &Context::default()).unwrap_or_else(|found| panic!("{found}"))
}

const MBIT: u64 = 1_000_000;

fn rates(down: Option<u64>, up: Option<u64>) -> Rates {
    EachWay { down: down.map(Rate), up: up.map(Rate) }
}

/// A part of a policy, resolved beside the guarantees of the rest, has the nodes that the whole has; the sums follow a change of the part.
#[test]
fn a_part_is_resolved_as_in_the_whole() {
    let (whole, network) = (policy(POLICY), resolved(POLICY));
    let (frame, all) = crate::edit::taken_apart(POLICY).expect("a list");
    for chosen in 0..1_usize << all.len() {
        let own = all.iter().enumerate().filter(|(place, _)| chosen >> place & 1 == 1).map(|(_, (_, text))| *text);
        let part = policy(&frame.around(own));
        let rest = whole.guarantees().without(&part.guarantees());
        let sums = rest.with(&part.guarantees());
        assert_eq!((sums.link, &sums.sites), (whole.guarantees().link, &whole.guarantees().sites));
        let part = part.beside(rest).expect("they fit");
        let part = resolve(&part, &Context::default()).unwrap_or_else(|found| panic!("{found}"));
        assert_eq!((&part.inner, part.guaranteed), (&network.inner, network.guaranteed), "sites of {chosen:b}");
        for leaf in &part.leaves {
            let same = network.leaves.iter().find(|one| one.node.id == leaf.node.id).expect("it is of the whole");
            let in_whole = Node { number: leaf.node.number, ..same.node.clone() };
            assert_eq!((&leaf.node, &leaf.plan), (&in_whole, &same.plan));
            let queues = |network: &Network, leaf: &Leaf| leaf.queue.map(|queue| network.queues[*queue]);
            assert_eq!(queues(&part, leaf), queues(&network, same));
        }
    }
    let much = Guarantees { link: EachWay::default(), sites: vec![EachWay::both(1 << 50); whole.sites.sites.len()] };
    let oversold = *policy(POLICY);
    let honest = NetworkPolicy { oversold: false, ..oversold.clone() };
    assert!(honest.beside(much.clone()).is_none() && oversold.beside(much).is_some(), "beyond the guarantee of a site");
}

/// On a wire the rate is that of arrivals: the policy's of the direction, or the one that is given for the side. Other engines queue no arrivals in a tree.
#[test]
fn a_wire_queues_what_arrives() {
    let text = r#"{ "link": { "rate": { "down": "100mbit", "up": "40mbit" } }, "subscriber_side": ["eth1"],
        "subscribers": [{ "name": "a", "addresses": ["192.0.2.1"] }] }"#;
    let Ok(PolicyFile::One(policy)) = parse_file(&Source::new("test.json", text)) else { panic!("a policy") };
    let at = |engine, mbit: Option<u64>, leaves_by| {
        let context = Context { engine, ingress_rate: mbit.map(|mbit| Rate(mbit * MBIT)), ..Context::default() };
        let resolved = crate::resolve(&policy, &context).map(|resolved| resolved.at(leaves_by));
        resolved.map(|own| (own.link_rate.map(|rate| rate.0 / MBIT), own.ingress_rate.map(|rate| rate.0 / MBIT)))
    };
    assert_eq!(at(Engine::Xsk, None, "eth1").ok(), Some((None, Some(100))));
    assert_eq!(at(Engine::Xsk, None, "eth0").ok(), Some((None, Some(40))));
    assert_eq!(at(Engine::Xsk, Some(30), "eth0").ok(), Some((None, Some(30))));
    assert_eq!(at(Engine::Qdisc, None, "eth0").ok(), Some((Some(40), None)));
    assert!(at(Engine::Qdisc, Some(30), "eth0").is_err());
}

#[test]
fn nodes_have_the_numbers_of_the_tree() {
    let network = resolved(POLICY);
    let inner: Vec<_> = network.inner.iter().map(|node| (node.number, node.parent, node.name.as_str())).collect();
    assert_eq!(
        inner,
        [
            (32768, 32768, "link"),
            (32769, 32768, "north"),
            (32770, 32769, "tower"),
            (32771, 32770, "sector 1"),
            (32772, 32769, "mast"),
            (32773, 32768, "south"),
        ]
    );
    let leaves: Vec<_> =
        network.leaves.iter().map(|leaf| (leaf.node.number, leaf.node.parent, leaf.node.id.as_str())).collect();
    assert_eq!(leaves, [(0, 32771, "1 High Street"), (1, 32768, "c-17"), (2, 32772, "c-18"), (3, 32773, "free")]);
    assert_eq!((network.way("eth1"), network.way("eth0")), (Way::Down, Way::Up));
    assert_eq!(network.levels(), 3);
    assert!(
        network
            .inner
            .iter()
            .chain(network.leaves.iter().map(|leaf| &leaf.node))
            .all(|node| { network.node(node.number) == Some(node) && network.node(node.parent).is_some() })
    );
    assert_eq!((network.node(4), network.node(u16::MAX)), (None, None));
}

#[test]
fn nodes_have_every_value() {
    let network = resolved(POLICY);
    assert_eq!(network.link().ceil, rates(Some(1000 * MBIT), Some(200 * MBIT)));
    let [north, tower, sector, mast, south] = network.sites() else { panic!("five sites") };
    assert_eq!((north.weight, south.weight), (3, 1));
    assert_eq!(north.rate, rates(Some(400 * MBIT), Some(5 * MBIT + 64_000)), "its own down; up what is below it");
    assert_eq!((tower.rate, sector.rate), (rates(Some(5 * MBIT), Some(5 * MBIT)), tower.rate));
    assert_eq!((mast.rate, south.rate), (rates(None, Some(64_000)), EachWay::default()));
    assert_eq!(tower.burst, EachWay { down: Some(Bytes(125_000)), up: None }, "10 ms at the ceiling, if there is one");
    let [home, office, own, free] = &network.leaves[..] else { panic!("four leaves") };
    assert_eq!(home.node.burst, EachWay { down: Some(Bytes(250_000)), up: Some(Bytes(65_536)) }, "20 ms; 64 kB");
    assert_eq!((office.node.ceil, office.node.weight), (rates(Some(200 * MBIT), Some(50 * MBIT)), 4));
    assert_eq!(own.node.rate, rates(None, Some(64_000)));
    assert_eq!(free.plan.as_deref(), Some("slow"));
    assert_eq!(network.guaranteed, EachWay { down: u128::from(400 * MBIT), up: u128::from(5 * MBIT + 64_000) });
}

#[test]
fn queues_stand_once() {
    let network = resolved(POLICY);
    let of = |leaf: usize| network.leaves[leaf].queue.map(|queue| network.queues[*queue]);
    let by_flow = Queue::Flows(Flows::default());
    let home = of(0);
    assert_eq!(home.down, LeafQueue { queue: by_flow, codel: Some(Codel::default()), limit_pkts: None });
    assert_eq!((home.up, of(2).down), (home.down, home.down), "the default");
    assert_eq!(network.leaves[0].queue, network.leaves[2].queue);
    let office = of(1);
    assert_eq!(
        (office.down.queue, office.down.limit_pkts),
        (Queue::Fifo, Some(1_250_000 / FRAME_BYTES)),
        "50 ms at 200 Mbit/s, in full frames"
    );
    assert_eq!(office.up.limit_pkts, Some(312_500 / FRAME_BYTES), "50 ms at 50 Mbit/s");
    let slow = of(3);
    assert_eq!((slow.down.codel, slow.down.limit_pkts), (None, Some(200)));
    assert_eq!(network.queues.len(), 4, "{:?}", network.queues);
    let slow = POLICY.replace("\"aqm\": \"none\", \"limit\": 200", "\"limit\": 200");
    let target = resolved(&slow).queues.iter().filter_map(|queue| queue.codel).map(|codel| codel.target_ns).max();
    assert_eq!(target, Some(18_168_000), "a frame and a half at 1 Mbit/s");
}

/// The tree keeps limits by leaf, and rounds the times of turns: ceilings of many rates make few kinds of queues, plans that differ make many.
#[test]
fn kinds_of_queues_are_those_of_the_tree() {
    let network = |plan: &dyn Fn(usize) -> String| {
        let rows = |of: &dyn Fn(usize) -> String| (0..1100).map(of).collect::<Vec<_>>().join(",");
        let subscribers = rows(&|n| {
            format!(r#"{{ "name": "s{n}", "addresses": ["10.0.{}.{}"], "plan": "p{n}" }}"#, n / 256, n % 256)
        });
        let plans = rows(&|n| format!(r#""p{n}": {{ {} }}"#, plan(n)));
        let text = format!(
            r#"{{ "subscriber_side": ["eth1"], "link": {{ "rate": "1gbit" }}, "plans": {{ {plans} }}, "subscribers": [{subscribers}] }}"#
        );
        let policy = crate::parse(&Source::new("kinds.json", text.as_str())).unwrap_or_else(|found| panic!("{found}"));
        crate::resolve(&policy, &Context::default()).map(|resolved| resolved.network.expect("a network"))
    };
    let many_limits = network(&|n| {
        let aqm = if n % 2 == 0 { "codel" } else { "none" };
        format!(r#""ceil": "{}kbit", "queue": "fifo", "aqm": "{aqm}""#, 8000 + 205 * (n / 2))
    });
    assert!(many_limits.expect("few kinds").queues.len() > 1023, "limits follow the rate");
    let many_quanta = network(&|n| format!(r#""ceil": "10mbit", "queue": "flows", "flow_quantum": {}"#, 300 + n));
    let found = many_quanta.expect_err("many kinds").to_string();
    assert!(found.contains("1100 kinds of queues, more than 1023"), "{found}");
}

#[test]
fn addresses_are_sorted_and_disjoint() {
    let network = resolved(POLICY);
    let shown: Vec<String> = network.addresses.iter().map(|(address, leaf)| format!("{address} {leaf}")).collect();
    assert_eq!(shown, ["192.0.2.1/32 0", "192.0.2.64/26 1", "198.51.100.0/24 3", "2001:db8:1::/56 0"]);
}

#[test]
fn marks_and_vlans_tell_subscribers() {
    let text = r#"{ "subscriber_side": ["eth1"], "link": { "rate": "100mbit" }, "subscribers": [
        { "name": "a", "addresses": ["vlan:7", "192.0.2.1", "mark:0x10", "vlan:7"], "ceil": "1mbit" },
        { "name": "b", "addresses": ["mark:7", "2001:db8::/56"], "ceil": "1mbit" }] }"#;
    let network = resolved(text);
    let shown: Vec<String> = network.addresses.iter().map(|(address, leaf)| format!("{address} {leaf}")).collect();
    assert_eq!(shown, ["192.0.2.1/32 0", "2001:db8::/56 1", "vlan:7 0", "mark:7 1", "mark:16 0"]);
    let marked = |mark, vlan| network.marked(mark, vlan).map(|(address, leaf)| (address.to_string(), leaf));
    assert_eq!(marked(Some(7), Some(7)), Some(("mark:7".to_owned(), 1)), "the mark goes first");
    assert_eq!(marked(Some(8), Some(7)), Some(("vlan:7".to_owned(), 0)));
    assert_eq!((marked(Some(8), Some(8)), marked(None, None)), (None, None));
    let again = resolved(&print(&policy(text)));
    assert!(difference(&network, &again).is_empty());
    assert_eq!(network.addresses, again.addresses);
    assert!(crate::network::summary(&network).contains("2, with 2 prefixes, 1 VLAN, 2 marks"));
}

#[test]
fn a_site_is_guaranteed_no_more_than_passes() {
    let text = r#"{ "subscriber_side": ["eth1"], "oversold": true, "sites": { "a": { "ceil": "10mbit", "sites": { "b": {} } } },
        "subscribers": [{ "name": "c", "addresses": ["192.0.2.1"], "rate": "8mbit", "site": "b" },
                        { "name": "d", "addresses": ["192.0.2.2"], "rate": "8mbit", "site": "a" }] }"#;
    let network = resolved(text);
    assert_eq!(network.sites()[0].rate, EachWay::both(Some(Rate(10 * MBIT))));
    assert_eq!(network.sites()[1].rate, EachWay::both(Some(Rate(8 * MBIT))));
    assert!(network.remarks.iter().any(|one| one.kind() == Kind::RateSum), "{}", network.remarks);
}

#[test]
fn printed_networks_are_the_same() {
    for text in [POLICY, GROUPS, CLASSES, CLASS_TREE] {
        let first = policy(text);
        let printed = print(&first);
        let again = policy(&printed);
        assert_eq!(again, first, "{printed}");
        assert_eq!(print(&again), printed);
    }
}

#[test]
fn a_group_has_a_node_and_leaves() {
    let network = resolved(GROUPS);
    let inner: Vec<_> = network.inner.iter().map(|node| (node.parent, node.id.as_str())).collect();
    assert_eq!(inner, [(32768, "link"), (32768, "wifi"), (32768, "staff"), (32769, "guests")]);
    assert_eq!((network.subscribers().len(), network.leaves.len()), (1, 1 + 1025 + 513), "rounded up to 512");
    let [staff, guests] = &network.groups[..] else { panic!("two groups") };
    assert_eq!((staff.shared, staff.hosts.clone(), staff.ipv6_length), (1, 2..1026, 64));
    assert_eq!((guests.inner, guests.shared, guests.hosts.clone()), (3, 1026, 1027..1539));
    let guest = &network.leaves[1500].node;
    assert_eq!((guest.parent, guest.weight, guest.ceil), (32771, 2, rates(Some(20 * MBIT), Some(5 * MBIT))));
    let id = |address: &str| {
        network.leaf_of(address.parse().expect("an address")).map(|leaf| network.leaves[leaf].node.id.as_str())
    };
    assert_eq!(id("10.2.0.9"), Some("printer"), "the subscriber's address is longer");
    assert_eq!((id("10.2.0.8"), id("2001:db8:1:7::1"), id("10.3.0.1")), (Some("guests"), Some("staff"), None));
    let changed =
        resolved(&GROUPS.replace("\"hosts\": 300", "\"hosts\": 600").replace("\"weight\": 2", "\"weight\": 3"));
    let found = difference(&network, &changed);
    let fields: Vec<_> = found.sites[0].fields.iter().map(|field| field.field).collect();
    assert_eq!((found.sites.len(), found.sites[0].id.as_str(), fields), (1, "guests", vec!["weight", "hosts"]));
    assert!(found.subscribers.is_empty());
}

#[test]
fn subscribers_have_the_classes_of_their_plan() {
    let network = resolved(CLASSES);
    let classes: Vec<_> = network.classes.iter().map(|(id, name)| (id.0, name.as_str())).collect();
    assert_eq!(classes, [(0, "calls"), (1, "rest"), (2, "bulk")]);
    let [home, office, ..] = &network.leaves[..] else { panic!("two subscribers") };
    let (of_home, of_office) = (&home.classes, &office.classes);
    assert_eq!((of_home.default, of_office.default, of_office.scheduler), (1, 1, NodeScheduler::StrictPriority));
    let [calls, rest, bulk] = &of_home.classes[..] else { panic!("three classes") };
    assert_eq!((calls.rate, calls.ceil), (rates(Some(4 * MBIT), Some(MBIT)), rates(None, None)));
    assert_eq!((rest.weight, bulk.burst.down), (4, Some(Bytes(75_000))), "20 ms at 30 Mbit/s");
    let queue = |of: usize| network.queues[of];
    assert_eq!((queue(calls.queue.down).limit_pkts, queue(calls.queue.down).queue.name()), (Some(200), "flows"));
    assert_eq!((queue(bulk.queue.down).limit_pkts, queue(bulk.queue.down).queue.name()), (Some(43), "fifo"));
    let [urgent, other] = &of_office.classes[..] else { panic!("two classes") };
    assert_eq!((queue(urgent.queue.down).queue.name(), queue(other.queue.down).queue.name()), ("fifo", "flows"));
    // By the number of a class, then without one.
    let by_number = of_home.by_number();
    assert_eq!((by_number[0], by_number[1], by_number[2], by_number[3], by_number[15]), (0, 1, 2, 1, 1));
    let guests = &network.leaves[network.groups[0].shared];
    assert!(Arc::ptr_eq(&guests.classes, &network.leaves[5].classes), "hosts of a group share what they have");
    assert_eq!(network.leaf_classes().count(), 3 + 2 + 65 * 2);
    let whole = resolved_policy(CLASSES);
    let ids: Vec<u8> = whole.classes.iter().map(|class| class.id.0).collect();
    assert_eq!((ids, whole.rules.len(), whole.default_class), (vec![0, 1, 2], 2, ClassId(1)));
    let found = difference(&network, &resolved(&CLASSES.replace("\"weight\": 4", "\"weight\": 5")));
    let fields: Vec<_> = found.subscribers.iter().flat_map(|one| one.fields.iter().map(|field| field.field)).collect();
    assert_eq!(fields, ["classes"]);
}

/// The whole policy of a text, resolved as `up` does.
fn resolved_policy(text: &str) -> crate::Resolved {
    let policy = crate::parse(&Source::new("test.json", text)).unwrap_or_else(|found| panic!("{found}"));
    crate::resolve(&policy, &Context::default()).unwrap_or_else(|found| panic!("{found}"))
}

#[test]
fn a_difference_names_what_changes() {
    let old = resolved(POLICY);
    assert!(difference(&old, &old).is_empty());
    let text = POLICY
        .replace("\"up\": \"200mbit\"", "\"up\": \"300mbit\"")
        .replace("\"mast\": {}", "\"mast\": { \"weight\": 2 }, \"pole\": {}")
        .replace("\"free\", \"addresses\": [\"198.51.100.0/24\"]", "\"paid\", \"addresses\": [\"198.51.100.0/25\"]")
        .replace("\"burst\": { \"down\": \"20ms\"", "\"burst\": { \"down\": \"10ms\"");
    let found = difference(&old, &resolved(&text));
    assert_eq!(found.settings.iter().map(|one| one.field).collect::<Vec<_>>(), ["link.rate.up"]);
    let named = |changes: &[super::super::difference::NodeChange]| -> Vec<(Change, String, Vec<&'static str>)> {
        let fields = |one: &super::super::difference::NodeChange| one.fields.iter().map(|field| field.field).collect();
        changes.iter().map(|one| (one.change, one.id.clone(), fields(one))).collect()
    };
    let sites = named(&found.sites);
    assert_eq!(sites[0], (Change::Changed, "mast".to_owned(), vec!["weight"]));
    assert_eq!(sites[1], (Change::Added, "pole".to_owned(), vec!["name", "site", "weight"]));
    let subscribers = named(&found.subscribers);
    assert_eq!((subscribers[0].0, subscribers[0].1.as_str()), (Change::Removed, "free"));
    assert_eq!(subscribers[1], (Change::Changed, "1 High Street".to_owned(), vec!["burst.down"]));
    assert_eq!((subscribers[2].0, subscribers[2].1.as_str()), (Change::Added, "paid"));
    assert_eq!(subscribers.len(), 3, "the one whose queue is elsewhere is the same: {subscribers:?}");
}

/// A network of random sites, plans and subscribers, as text.
fn text() -> impl Strategy<Value = String> {
    let rates = prop::sample::select(vec![
        serde_json::json!(null),
        serde_json::json!("31kbit"),
        serde_json::json!("12.5mbit"),
        serde_json::json!({ "down": "1gbit" }),
        serde_json::json!({ "down": "1gbit", "up": "100mbit" }),
    ]);
    let name = "[a-z \"\\\\ä漢/~,:{}]{1,8}";
    let sites = prop::collection::vec((name, any::<prop::sample::Index>(), rates.clone(), 1..=10_000u32), 0..8);
    let plans =
        prop::collection::vec((name, rates.clone(), prop::sample::select(vec!["10ms", "2kb"]), any::<bool>()), 0..8);
    let subscribers =
        prop::collection::vec((name, any::<prop::sample::Index>(), any::<prop::sample::Index>(), rates), 0..8);
    (sites, plans, subscribers).prop_map(|(sites, plans, subscribers)| {
        let mut tree = serde_json::Map::new();
        let mut names: Vec<String> = Vec::new();
        for (i, (name, _, ceil, weight)) in sites.into_iter().enumerate() {
            let name = format!("{i}{name}");
            let mut site = serde_json::json!({ "weight": weight });
            if !ceil.is_null() {
                site["ceil"] = ceil;
            }
            // Every second one has those before it below it.
            if i % 2 == 1 && i < 6 {
                site["sites"] = serde_json::Value::Object(std::mem::take(&mut tree));
            }
            tree.insert(name.clone(), site);
            names.push(name);
        }
        let mut all_plans = serde_json::Map::new();
        for (i, (name, ceil, burst, fifo)) in plans.into_iter().enumerate() {
            let mut plan = serde_json::json!({ "burst": burst });
            if !ceil.is_null() {
                plan["ceil"] = ceil;
            }
            if fifo {
                plan["queue"] = "fifo".into();
            }
            if i > 1 {
                let mut calls = serde_json::json!({ "id": i, "rate": "31kbit", "queue": "flows" });
                let mut rest = serde_json::json!({ "id": 14, "name": "rest", "burst": burst });
                let (scheduler, _) = NodeScheduler::NAMES[(2 * i + usize::from(fifo)) % NodeScheduler::NAMES.len()];
                plan["scheduler"] = scheduler.into();
                match scheduler {
                    "strict_priority" => (calls["priority"], rest["priority"]) = (2.into(), 15.into()),
                    "deficit_round_robin" => rest["quantum"] = 3000.into(),
                    "round_robin" => {}
                    "eevdf" => (rest["weight"], rest["quantum"]) = (3.into(), 300.into()),
                    "pifo" => {
                        plan.as_object_mut().expect("an object").remove("queue");
                        plan["rank"] = "slack".into();
                        calls = serde_json::json!({ "id": i, "latency_budget": "5ms", "limit": 7 });
                        rest["latency_budget"] = "1s".into();
                    }
                    _ => rest["weight"] = 3.into(),
                }
                plan["classes"] = serde_json::json!([calls, rest]);
            }
            all_plans.insert(format!("{i}{name}"), plan);
        }
        let plan_names: Vec<String> = all_plans.keys().cloned().collect();
        let mut list = Vec::new();
        for (i, (name, site, plan, rate)) in subscribers.into_iter().enumerate() {
            let mut one = serde_json::json!({ "name": format!("{i}{name}"), "addresses": [format!("192.0.2.{i}"), format!("2001:db8:{i}::/48")] });
            if !names.is_empty() && i % 3 != 0 {
                one["site"] = site.get(&names).clone().into();
            }
            match plan_names.is_empty() || i % 2 == 0 {
                true if !rate.is_null() => one["ceil"] = rate,
                true => {}
                false => one["plan"] = plan.get(&plan_names).clone().into(),
            }
            list.push(one);
        }
        serde_json::json!({ "subscriber_side": ["eth1"], "name": "n", "sites": tree, "plans": all_plans, "subscribers": list })
            .to_string()
    })
}

proptest! {
    #[test]
    fn random_networks_are_printed_and_resolved(text in text()) {
        let first = policy(&text);
        let printed = print(&first);
        prop_assert_eq!(&policy(&printed), &first, "{}", printed);
        let network = resolved(&text);
        // Each parent is an inner node before its child.
        for node in &network.inner[1..] {
            prop_assert!(node.parent < node.number && node.parent >= network.link().number);
        }
        for (place, leaf) in network.leaves.iter().enumerate() {
            prop_assert_eq!(usize::from(leaf.node.number), place);
            prop_assert!(usize::from(leaf.node.parent - network.link().number) < network.inner.len());
            let classes = leaf.classes.classes.iter().map(|class| class.queue);
            for queue in std::iter::once(leaf.queue).chain(classes) {
                prop_assert!(queue.down < network.queues.len() && queue.up < network.queues.len());
            }
            for (ceil, burst) in [(leaf.node.ceil.down, leaf.node.burst.down), (leaf.node.ceil.up, leaf.node.burst.up)] {
                prop_assert_eq!(ceil.is_some(), burst.is_some());
            }
        }
        prop_assert!(network.addresses.windows(2).all(|two| two[0].0 < two[1].0 && !two[0].0.holds(&two[1].0)));
        prop_assert!(difference(&network, &resolved(&printed)).is_empty());
    }
}
