//! A difference names every change, and nothing else.

use proptest::prelude::*;
use serde_json::{Value, json};
use sluice_policy::difference::{Change, Field};
use sluice_policy::*;
use std::collections::BTreeMap;

fn resolved(policy: &Value, rate: Option<u64>) -> Resolved {
    let policy = parse(&Source::new("test.json", policy.to_string())).unwrap_or_else(|found| panic!("{found}"));
    resolve(&policy, &Context { link_rate: rate.map(Rate), engine: Engine::Tc, ..Context::default() })
        .unwrap_or_else(|found| panic!("{found}"))
}

fn lines(old: &Value, new: &Value) -> Vec<String> {
    difference(&resolved(old, None), &resolved(new, None)).lines().iter().map(ToString::to_string).collect()
}

fn base() -> Value {
    json!({ "name": "base", "scheduler": "strict_priority", "link": { "rate": "20mbit" },
        "classes": [
            { "id": 0, "name": "game", "priority": 0, "limit": 100 },
            { "id": 1, "name": "bulk", "priority": 1, "limit": 100 } ],
        "rules": [
            { "priority": 10, "name": "calls", "dscp": "ef", "class_id": 0 },
            { "priority": 20, "src_ip": "10.0.0.0/8", "class_id": 1 } ] })
}

/// The policy with changes, each at a JSON pointer.
fn with<const N: usize>(mut policy: Value, changes: [(&str, Value); N]) -> Value {
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        match policy.pointer_mut(parent).expect("the place is there") {
            Value::Array(list) if key == "-" => list.push(value),
            Value::Array(list) => list[key.parse::<usize>().expect("an index")] = value,
            object => object[key] = value,
        }
    }
    policy
}

#[test]
fn equal_policies_do_not_differ() {
    assert_eq!(lines(&base(), &base()), Vec::<String>::new());
    let nothing = difference(&resolved(&base(), None), &resolved(&base(), None));
    assert!(nothing.is_empty());
    assert_eq!(nothing.summary(), "nothing changes");
}

#[test]
fn settings_and_limits_by_their_names() {
    let new = with(
        base(),
        [
            ("/scheduler", json!("deficit_round_robin")),
            ("/link", json!({ "rate": "30mbit", "overhead": "ethernet" })),
            ("/classes/1/limit", json!("64kb")),
            ("/classes/1/ceil", json!("5mbit")),
        ],
    );
    assert_eq!(
        lines(&base(), &new),
        [
            "~ scheduler strict_priority -> deficit_round_robin",
            "~ link.rate 20mbit -> 30mbit",
            "~ link.overhead 14 -> 38",
            "~ link.mpu 0 -> 84",
            "~ class 1 bulk: limit 100 -> 1000, ceil none -> 5mbit, burst none -> 6250b, limit_bytes none -> 64kb",
        ]
    );
    assert_eq!(difference(&resolved(&base(), None), &resolved(&new, None)).summary(), "4 settings, 1 class changed");
}

#[test]
fn queues_key_by_key() {
    let flows = |class: Value| {
        let mut new = json!({ "id": 1, "name": "bulk", "priority": 1, "limit": 100, "queue": "flows" });
        new.as_object_mut().unwrap().extend(class.as_object().unwrap().clone());
        with(base(), [("/classes/1", new)])
    };
    let plain = flows(json!({}));
    let on = "flow_quantum none -> 1514, allowance none -> 48448b, aqm none -> codel, target none -> 5ms, interval none -> 100ms";
    assert_eq!(lines(&base(), &plain), [format!("~ class 1 bulk: queue fifo -> flows, hosts none -> both, {on}")]);
    for (class, line) in [
        (json!({ "hosts": "source" }), "hosts both -> source"),
        (json!({ "hosts": "none" }), "hosts both -> none"),
        (json!({ "flow_quantum": 300 }), "flow_quantum 1514 -> 300"),
        (json!({ "allowance": "64kb" }), "allowance 48448b -> 64kb"),
        (json!({ "aqm": "none" }), "aqm codel -> none, target 5ms -> none, interval 100ms -> none"),
        (json!({ "target": "10ms" }), "target 5ms -> 10ms"),
        (json!({ "interval": "50ms" }), "interval 100ms -> 50ms"),
        (json!({ "hosts": "both", "aqm": "codel", "target": "0.005s", "allowance": 48448 }), ""),
    ] {
        let expected = if line.is_empty() { vec![] } else { vec![format!("~ class 1 bulk: {line}")] };
        assert_eq!(lines(&plain, &flows(class)), expected);
    }
    assert_eq!(
        lines(&base(), &flows(json!({ "hosts": "none" }))),
        [format!("~ class 1 bulk: queue fifo -> flows, {on}")]
    );
    let slow = [plain, flows(json!({ "target": "6ms" }))].map(|policy| with(policy, [("/link/rate", json!("1mbit"))]));
    assert_eq!(
        lines(&slow[0], &slow[1]),
        ["~ class 1 bulk: interval 113168us -> 112168us"],
        "the target is a frame and a half"
    );
}

#[test]
fn classes_come_and_go() {
    let new = with(base(), [("/classes/1", json!({ "id": 4, "name": "late", "priority": 9 })), ("/rules", json!([]))]);
    let lines = lines(&base(), &new);
    assert!(lines.contains(&"~ default_class 1 -> 4".to_owned()), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("- class 1 bulk: priority 1, ")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("+ class 4 late: priority 9, ")), "{lines:?}");
    assert!(lines.contains(&"- rule 10 calls: dscp ef, class_id 0".to_owned()), "{lines:?}");
}

#[test]
fn rules_are_paired_by_name_then_conditions_then_place() {
    let rules = |rules: Value| lines(&base(), &with(base(), [("/rules", rules)]));
    let calls = |priority: u32| json!({ "priority": priority, "name": "calls", "dscp": "ef", "class_id": 0 });
    let lan = |priority: u32| json!({ "priority": priority, "src_ip": "10.0.0.0/8", "class_id": 1 });
    assert_eq!(rules(json!([lan(20), calls(10)])), Vec::<String>::new(), "the order in the file says nothing");
    assert_eq!(
        rules(json!([calls(20), lan(10)])),
        ["~ rule 10: moved, priority 20 -> 10", "~ rule 20 calls: moved, priority 10 -> 20"]
    );
    assert_eq!(
        rules(json!([{ "priority": 30, "name": "calls", "dscp": "cs5", "class_id": 0 }, lan(20)])),
        ["~ rule 30 calls: priority 10 -> 30, dscp ef -> cs5"]
    );
    assert_eq!(
        rules(json!([calls(10), { "priority": 20, "protocol": "udp", "class_id": 1 }])),
        ["~ rule 20: src_ip 10.0.0.0/8 -> any, protocol any -> udp"]
    );
    assert_eq!(
        rules(json!([calls(10), { "priority": 20, "vlan_id": 7, "class_id": 1 }, lan(30)])),
        ["+ rule 20: vlan_id 7, class_id 1", "~ rule 30: moved, priority 20 -> 30"]
    );
}

#[test]
fn as_json() {
    let new = with(base(), [("/link/rate", json!("30mbit")), ("/rules/0/priority", json!(5))]);
    let json = serde_json::to_value(difference(&resolved(&base(), None), &resolved(&new, None))).unwrap();
    assert_eq!(json["settings"], json!([{ "field": "link.rate", "old": "20mbit", "new": "30mbit" }]));
    assert_eq!(json["classes"], json!([]));
    assert_eq!(
        json["rules"],
        json!([{ "change": "moved", "priority": 5, "name": "calls",
            "fields": [{ "field": "priority", "old": "10", "new": "5" }] }])
    );
}

/// All values that a difference covers.
fn content(resolved: &Resolved) -> String {
    let mut resolved = resolved.clone();
    resolved.remarks = Diagnostics::default();
    resolved.rules.iter_mut().for_each(|rule| rule.rule.line = 0);
    format!("{resolved:?}")
}

type Values = BTreeMap<String, String>;

/// All values of one side, as the difference from nothing.
fn values(fields: &[Field]) -> Values {
    fields.iter().filter_map(|field| Some((field.field.to_owned(), field.new.clone()?))).collect()
}

/// Applies changes to values after checking the former ones.
fn patch(values: &mut Values, fields: &[Field]) {
    for field in fields {
        assert_eq!(values.get(field.field), field.old.as_ref(), "{}", field.field);
        assert_ne!(field.old, field.new, "{}", field.field);
        match &field.new {
            Some(new) => values.insert(field.field.to_owned(), new.clone()),
            None => values.remove(field.field),
        };
    }
}

/// A policy as a flat map of values, by applying a difference to another policy's.
#[derive(Debug, Clone, Default, PartialEq)]
struct Flat {
    classes: BTreeMap<u8, Values>,
    rules: BTreeMap<u32, Values>,
}

impl Flat {
    fn apply(mut self, difference: &Difference) -> Flat {
        for class in &difference.classes {
            let mut values = self.classes.remove(&class.id).unwrap_or_default();
            patch(&mut values, &class.fields);
            if class.change == Change::Removed {
                assert!(values.is_empty(), "{values:?} is left of class {}", class.id);
            } else {
                self.classes.insert(class.id, values);
            }
        }
        // Rules may change places: all are removed before one is put back.
        let taken: Vec<Values> = difference
            .rules
            .iter()
            .map(|rule| {
                let place = rule.fields.iter().find(|field| field.field == "priority");
                let old = match place {
                    Some(field) => field.old.as_ref().map(|old| old.parse().expect("a number")),
                    None => Some(rule.priority),
                };
                old.map(|old| self.rules.remove(&old).expect("the rule that changes is there")).unwrap_or_default()
            })
            .collect();
        for (rule, mut values) in difference.rules.iter().zip(taken) {
            patch(&mut values, &rule.fields);
            if rule.change == Change::Removed {
                assert!(values.is_empty(), "{values:?} is left of rule {}", rule.priority);
            } else {
                assert!(self.rules.insert(rule.priority, values).is_none(), "priorities are unique");
            }
        }
        self
    }
}

/// A class with few values for each key.
fn class() -> impl Strategy<Value = (u8, Value)> {
    let class = (
        0..4u8,
        prop::sample::select(vec!["a", "b"]),
        0..3u8,
        prop::sample::select(vec![json!(100), json!("64kb"), json!("50ms")]),
        prop::option::of(prop::sample::select(vec!["2mbit", "3mbit"])),
        any::<bool>(),
        1..3u32,
        prop::sample::select(vec![
            json!({}),
            json!({ "aqm": "codel", "target": "1ms" }),
            json!({ "queue": "flows" }),
            json!({ "queue": "flows", "hosts": "none", "flow_quantum": 300 }),
            json!({ "queue": "flows", "aqm": "none", "allowance": "16kb" }),
        ]),
    );
    class.prop_map(|(id, name, priority, limit, ceil, police, weight, queue)| {
        let mut class = json!({ "id": id, "name": format!("{name}{id}"), "priority": priority,
            "limit": limit, "weight": weight, "quantum": 1514 * weight });
        class.as_object_mut().expect("an object").extend(queue.as_object().expect("an object").clone());
        if let Some(ceil) = ceil {
            class["ceil"] = json!(ceil);
            class["police"] = json!(police);
            if limit == json!(100) {
                class["peak"] = json!("100mbit");
            }
        }
        (id, class)
    })
}

/// A rule without its class, with few values for each key.
fn rule() -> impl Strategy<Value = (u32, Value)> {
    let rule = (
        1..6u32,
        prop::option::of(prop::sample::select(vec!["x", "y"])),
        prop::option::of(prop::sample::select(vec!["10.0.0.0/8", "2001:db8::/32", "ipv4"])),
        prop::option::of(prop::sample::select(vec!["udp", "tcp"])),
        prop::option::of((80..82u16, 82..84u16)),
        prop::option::of(1..3u16),
    );
    rule.prop_map(|(priority, name, src, protocol, ports, vlan)| {
        let mut rule = json!({ "priority": priority });
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                rule[key] = value;
            }
        };
        set("name", name.map(Into::into));
        set("src_ip", src.map(Into::into));
        set("protocol", protocol.map(Into::into));
        set("dst_port_min", ports.map(|(min, _)| min.into()));
        set("dst_port_max", ports.map(|(_, max)| max.into()));
        set("vlan_id", vlan.map(Into::into));
        (priority, rule)
    })
}

/// Few values for each key, so that policies often agree in most of them. Rules choose the class with the lowest id.
fn policy() -> impl Strategy<Value = Value> {
    let header = (
        prop::sample::select(vec!["strict_priority", "deficit_round_robin", "weighted_fair_queuing"]),
        prop::sample::select(vec![
            json!({}),
            json!({ "rate": "10mbit", "overhead": "atm" }),
            json!({ "rate": "20mbit" }),
        ]),
        prop::sample::select(vec!["pass", "drop"]),
        prop::sample::select(vec!["full", "classify_only"]),
        prop::sample::select(vec!["one", "two"]),
    );
    (header, prop::collection::vec(class(), 1..4), prop::collection::vec(rule(), 0..5)).prop_map(
        |((scheduler, link, malformed, mode, name), classes, rules)| {
            let classes: BTreeMap<u8, Value> = classes.into_iter().collect();
            let mut rules: BTreeMap<u32, Value> = rules.into_iter().collect();
            let lowest = *classes.keys().next().expect("there is a class");
            rules.values_mut().for_each(|rule| rule["class_id"] = json!(lowest));
            json!({ "name": name, "scheduler": scheduler, "link": link, "malformed": malformed, "mode": mode,
                "classes": classes.into_values().collect::<Vec<_>>(),
                "rules": rules.into_values().collect::<Vec<_>>() })
        },
    )
}

proptest! {
    #[test]
    fn a_policy_does_not_differ_from_itself(policy in policy(), rate in prop::option::of(5_000_000..6_000_000u64)) {
        prop_assert!(difference(&resolved(&policy, rate), &resolved(&policy, rate)).is_empty());
    }

    #[test]
    fn every_differing_value_is_named(old in policy(), new in policy()) {
        let (old, new) = (resolved(&old, None), resolved(&new, None));
        let found = difference(&old, &new);
        prop_assert_eq!(found.is_empty(), content(&old) == content(&new));
        prop_assert_eq!(found.lines().len(), found.settings.len() + found.classes.len() + found.rules.len());
        for line in found.lines() {
            prop_assert!(!line.text.ends_with(": "), "{}", line);
        }
    }

    /// The difference turns the values of one policy into those of the other.
    #[test]
    fn difference_is_complete(old in policy(), new in policy()) {
        let (old, new) = (resolved(&old, None), resolved(&new, None));
        let nothing = Resolved { classes: Vec::new(), rules: Vec::new(), ..old.clone() };
        let flat = |of: &Resolved| Flat::default().apply(&difference(&nothing, of));
        prop_assert_eq!(flat(&old).apply(&difference(&old, &new)), flat(&new));
        let bare = |of: &Resolved| Resolved { classes: Vec::new(), rules: Vec::new(), ..of.clone() };
        let settings = difference(&bare(&old), &bare(&new)).settings;
        prop_assert_eq!(&settings, &difference(&old, &new).settings);
        let forth: Vec<_> = settings.iter().map(|field| (field.field, field.old.clone(), field.new.clone())).collect();
        let back = difference(&new, &old).settings;
        let back: BTreeMap<_, _> = back.iter().map(|field| (field.field, (field.old.clone(), field.new.clone()))).collect();
        prop_assert_eq!(forth.len(), back.len());
        for (field, was, is) in forth {
            prop_assert_eq!(back.get(field), Some(&(is, was)), "{}", field);
        }
    }
}

/// Every pair of shipped profiles: the difference has exactly the values that differ.
#[test]
fn differences_between_profiles_are_exact() {
    let all: Vec<Resolved> = profiles()
        .iter()
        .map(|name| {
            let policy = load(name).expect("a profile").1.one().expect("for any interface");
            resolve(
                &policy,
                &Context { link_rate: Some(Rate(20_000_000)), engine: Engine::Qdisc, ..Context::default() },
            )
            .expect("resolves")
        })
        .collect();
    for (n, a) in all.iter().enumerate() {
        for (m, b) in all.iter().enumerate() {
            assert_eq!(difference(a, b).is_empty(), n == m);
        }
    }
    assert!(!values(&difference(&all[0], &all[1]).settings).is_empty());
}
