//! Sets of policies: each interface gets the policy of a file written for it alone.

use sluice_policy::{Policy, PolicyFile, Source, parse, parse_file, print};

fn set() -> Vec<(String, Policy)> {
    match parse_file(&Source::new("office.json", include_str!("sets/office.json"))) {
        Ok(PolicyFile::Set(set)) => set.policies,
        other => panic!("not a set: {other:?}"),
    }
}

fn alone(text: &str) -> Policy {
    parse(&Source::new("office.json", text)).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn own_keys_take_the_place_of_common_ones() {
    let rules = r#""address_sets": { "guests": ["192.0.2.0/24"] },
        "rules": [{ "priority": 1, "src_ip": "@guests", "class_id": 1 }]"#;
    let common = format!(
        r#""name": "office", "scheduler": "strict_priority", {rules},
        "classes": [{{ "id": 0, "name": "calls", "priority": 0 }},
            {{ "id": 1, "name": "guests", "priority": 1, "shared_ceil": {{ "name": "guests", "rate": "20mbit" }} }}]"#
    );
    let expected = [
        ("fibre0", format!(r#"{{ {common}, "link": {{ "rate": "95mbit" }} }}"#)),
        (
            "lte0",
            format!(
                r#"{{ {common}, "link": {{ "rate": "30mbit" }}, "description": "the second way out", "default_class": 0 }}"#
            ),
        ),
        (
            "lan0",
            format!(
                r#"{{ "name": "office", {rules}, "scheduler": "weighted_fair_queuing",
                "classes": [{{ "id": 0, "weight": 3 }}, {{ "id": 1, "weight": 1 }}] }}"#
            ),
        ),
    ];
    let found = set();
    assert_eq!(found.len(), expected.len());
    for ((name, policy), (wanted, text)) in found.iter().zip(&expected) {
        assert_eq!(name, wanted);
        assert_eq!(policy, &alone(text), "{name}");
        assert_eq!(&alone(&print(policy)), policy, "{name} printed");
    }
}

#[test]
fn places_refer_to_the_effective_text() {
    let line = |policy: &Policy, pointer: &str| policy.origin.line_column(pointer).map(|(line, _)| line);
    for (name, policy) in set() {
        assert_eq!(line(&policy, "/classes/1"), Some(if name == "lan0" { 16 } else { 7 }), "{name}");
        assert_eq!(policy.rules[0].line, 10, "{name}");
    }
}

#[test]
fn an_interface_gets_its_own_policy_or_none() {
    let file = parse_file(&Source::new("office.json", include_str!("sets/office.json"))).unwrap();
    assert_eq!(file.clone().of("lte0").unwrap().description.as_deref(), Some("the second way out"));
    let refused = file.clone().of("lte1").unwrap_err().render(false);
    assert!(refused.contains("no policy for lte1") && refused.contains("did you mean lte0?"), "{refused}");
    assert!(file.one().is_err());
    let any = parse_file(&Source::new("any", r#"{ "scheduler": "round_robin", "classes": [{ "id": 0 }] }"#)).unwrap();
    assert_eq!(any.clone().of("whatever0").unwrap(), any.one().unwrap());
}

#[test]
fn arrivals_are_queued_in_one_place() {
    let refused = |interfaces: &str, says: &str| {
        let text =
            format!(r#"{{ "scheduler": "eevdf", "classes": [{{ "id": 0 }}], "interfaces": {{ {interfaces} }} }}"#);
        let errors = parse_file(&Source::new("lines.json", text)).expect_err(says).render(false);
        assert!(errors.contains(says), "{errors}");
    };
    let one = r#""one": { "arrivals_of": ["eth1"] }"#;
    refused(&format!(r#"{one}, "two": {{ "arrivals_of": ["eth1"] }}"#), "arrivals of eth1 are queued in one too");
    refused(
        &format!(r#"{one}, "eth1": {{ "link": {{ "ingress_rate": "1mbit" }} }}"#),
        "arrivals of eth1 are queued by its own policy too",
    );
    refused(
        &format!(r#"{one}, "two": {{ "arrivals_of": ["one"] }}"#),
        "one is no interface, but queues arrivals itself",
    );
    let forwards = r#""forwards": [{ "name": "web", "protocol": "tcp", "port": 80, "targets": "192.0.2.1" }]"#;
    refused(&format!(r#"{one}, "eth1": {{ {forwards} }}"#), "eth1 forwards ports, and so cannot be in a group");
}
