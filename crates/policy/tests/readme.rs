//! The policies in the README and the manual are valid.

#[test]
fn the_readme_shows_a_valid_policy() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).expect("README.md");
    let block = readme.split("```jsonc").nth(1).and_then(|rest| rest.split("```").next()).expect("a policy");
    let policy =
        sluice_policy::parse(&sluice_policy::Source::new("README.md", block)).unwrap_or_else(|e| panic!("{e}"));
    sluice_policy::resolve(&policy, &sluice_policy::Context::default()).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn the_manual_shows_policies_without_remarks() {
    let manual = include_str!("../../../docs/policy.md");
    let blocks: Vec<&str> = manual.split("```jsonc").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 2);
    for block in blocks {
        let source = sluice_policy::Source::new("policy.md", block);
        let file = sluice_policy::parse_file(&source).unwrap_or_else(|e| panic!("{e}"));
        for (_, policy) in file.policies() {
            let given = "100mbit".parse().ok().filter(|_| policy.network.is_none());
            let link_rate = policy.link.rate.or(given);
            let context = sluice_policy::Context { link_rate, ..Default::default() };
            let resolved = sluice_policy::resolve(&policy, &context).unwrap_or_else(|e| panic!("{e}"));
            assert!(resolved.remarks.is_empty(), "{}", resolved.remarks);
        }
    }
}
