//! The pipeline from a policy's text to tables, on any text.

use sluice_policy::{Context, Diagnostics, Engine, Policy, Rate, Resolved, Source, network};

/// Between two policies of one input.
const BETWEEN: &str = "\n---\n";
const CONTEXTS: [Context; 2] = [
    Context { link_rate: None, ingress_rate: None, engine: Engine::Qdisc },
    Context { link_rate: Some(Rate(20_000_000)), ingress_rate: None, engine: Engine::Tc },
];

/// Reads a file of policies, or two of which the second is to take the place of the first, and does all that follows from them.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let resolved: Vec<Vec<Resolved>> = text.splitn(2, BETWEEN).map(file).collect();
    let [old, new] = &resolved[..] else { return };
    for (old, new) in old.iter().zip(new) {
        let (forth, back) = (changes(old, new), changes(new, old));
        assert_eq!(forth == 0, back == 0, "what changes there changes back");
    }
}

/// How many lines tell the change.
fn changes(old: &Resolved, new: &Resolved) -> usize {
    let difference = sluice_policy::difference(old, new);
    let lines = difference.lines();
    assert_eq!(lines.is_empty(), difference.is_empty());
    assert!(!difference.summary().is_empty());
    lines.iter().for_each(|line| drop(line.to_string()));
    lines.len()
}

/// The policies of a file, as they are resolved against links that they name themselves.
fn file(text: &str) -> Vec<Resolved> {
    match sluice_policy::parse_file(&Source::new("fuzz.json", text)) {
        Ok(file) => file.policies().iter().filter_map(|(_, policy)| one(policy)).collect(),
        Err(found) => {
            assert!(found.has_errors(), "refused without an error");
            show(&found);
            Vec::new()
        }
    }
}

fn one(policy: &Policy) -> Option<Resolved> {
    let printed = sluice_policy::print(policy);
    let again = sluice_policy::parse(&Source::new("printed.json", printed.as_str()))
        .unwrap_or_else(|found| panic!("what was printed is refused:\n{found}"));
    assert_eq!(&again, policy, "printed as {printed}");
    let [by_core, _] = CONTEXTS.map(|context| {
        let (first, second) = (resolved(policy, &context), resolved(&again, &context));
        assert_eq!(first.is_some(), second.is_some(), "printed as {printed}");
        if let (Some(first), Some(second)) = (&first, &second) {
            assert_eq!(changes(first, second), 0, "printed as {printed}");
        }
        first
    });
    by_core.inspect(compile)
}

fn resolved(policy: &Policy, context: &Context) -> Option<Resolved> {
    match sluice_policy::resolve(policy, context) {
        Ok(resolved) => {
            assert!(!resolved.remarks.has_errors(), "{}", resolved.remarks);
            show(&resolved.remarks);
            resolved.not_on_tc.iter().for_each(show);
            sluice_policy::table(&resolved, sluice_policy::rank_resolution(&resolved).as_deref());
            resolved.network.iter().for_each(|tree| assert!(!network::summary(tree).is_empty()));
            Some(resolved)
        }
        Err(found) => {
            assert!(found.has_errors(), "refused without an error");
            show(&found);
            None
        }
    }
}

fn show(found: &Diagnostics) {
    assert_eq!(found.render(false).is_empty(), found.is_empty());
    found.render(true);
    for finding in found.iter() {
        found.line_column(finding);
        assert!(!finding.title().is_empty());
    }
}

/// On a machine that has every interface of which the rules speak.
fn compile(policy: &Resolved) {
    let names = policy.rules.iter().filter_map(|rule| rule.rule.in_interface.clone());
    let interfaces: Vec<(String, u32)> = names.zip(1..).collect();
    let context = sluice_tables::Context {
        egress_rate: policy.link_rate,
        ingress_rate: policy.link_rate,
        virtual_queues: true,
        queues: 4,
        ..sluice_tables::Context::ethernet(&interfaces)
    };
    if let Err(error) = sluice_tables::compile(policy, &context) {
        assert!(!error.to_string().is_empty());
    }
}
