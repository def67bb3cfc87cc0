//! The shipped schema against the parser: both accept the same policies, as far as a schema can check them.

use jsonc_parser::ParseOptions;
use jsonschema::Validator;
use serde_json::Value;
use sluice_policy::network::Unreadable;
use sluice_policy::{ALL_KEYS, SCHEMA, Source, parse, parse_file, parse_file_with};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn schema() -> (Value, Validator) {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is plain JSON");
    jsonschema::meta::validate(&schema).expect("the schema is a schema");
    let validator = jsonschema::validator_for(&schema).expect("the schema compiles");
    (schema, validator)
}

/// Every policy in a directory beside this crate's manifest.
fn policies(directory: &str) -> Vec<(PathBuf, String, Value)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        if name.ends_with(".json") && !name.ends_with(".schema.json") {
            let text = fs::read_to_string(&path).unwrap();
            let value = jsonc_parser::parse_to_serde_value(&text, &ParseOptions::default()).expect(&name).expect(&name);
            found.push((path, text, value));
        }
    }
    assert!(!found.is_empty());
    found
}

/// A table of the golden policies.
fn table(name: &str) -> Result<Source, Unreadable> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/tables").join(name);
    Ok(Source::new(name, fs::read_to_string(path).unwrap()))
}

#[test]
fn valid_policies_pass_both() {
    let (_, validator) = schema();
    for directory in [
        "tests/valid",
        "tests/sets",
        "tests/networks",
        "../../lab/contenders",
        "tests/golden/link",
        "tests/golden/engine",
        "tests/golden/remarks",
        "../../policies",
    ] {
        for (path, text, value) in policies(directory) {
            if let Err(error) = validator.validate(&value) {
                panic!("{}: the schema refuses {}: {error}", path.display(), error.instance_path());
            }
            if let Err(errors) = parse_file_with(&Source::new("policy", text), None, &table) {
                panic!("{}: the parser refuses it:\n{errors}", path.display());
            }
        }
    }
}

#[test]
fn errors_of_shape_fail_schema_and_parser() {
    let (_, validator) = schema();
    for (path, text, value) in policies("tests/golden/shape") {
        assert!(!validator.is_valid(&value), "{}: the schema accepts it", path.display());
        assert!(parse_file(&Source::new("policy", text)).is_err(), "{}: the parser accepts it", path.display());
    }
}

/// Errors beyond a schema: comparisons between values, arithmetic on texts.
#[test]
fn errors_of_meaning_fail_only_the_parser() {
    let (_, validator) = schema();
    for (path, text, value) in policies("tests/golden/meaning") {
        assert!(validator.is_valid(&value), "{}: belongs into shape", path.display());
        assert!(parse(&Source::new("policy", text)).is_err(), "{}: the parser accepts it", path.display());
    }
}

/// For each key, both refuse a wrong type, and both know the same keys.
#[test]
fn schema_and_parser_know_the_same_keys() {
    let (schema, _) = schema();
    for (object, keys) in ALL_KEYS {
        let place = if *object == "policy" { &schema } else { &schema["$defs"][object] };
        let in_schema: BTreeSet<&str> = place["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(in_schema, keys.iter().copied().collect(), "keys of {object}");
    }
}

#[test]
fn schema_and_parser_refuse_wrong_types_of_every_key() {
    let (_, validator) = schema();
    let base = serde_json::json!({
        "scheduler": "deficit_round_robin", "link": {}, "limits": {}, "classes": [{ "id": 0, "shared_ceil": { "name": "n", "rate": "1mbit" } }],
        "rules": [{ "priority": 1, "class_id": 0 }],
        "forwards": [{ "name": "n", "protocol": "tcp", "port": 1, "targets": [{ "address": "192.0.2.1" }] }],
    });
    assert!(validator.is_valid(&base));
    let mut set = base.clone();
    set["interfaces"] = serde_json::json!({ "eth0": {} });
    assert!(validator.is_valid(&set));
    let network = serde_json::json!({
        "subscriber_side": ["eth1"], "sites": { "north": { "ceil": { "down": "1gbit" } } }, "plans": { "home": { "ceil": "10mbit" } },
        "subscribers": [{ "name": "a", "addresses": ["192.0.2.1"], "plan": "home" }],
    });
    assert!(validator.is_valid(&network));
    for (object, keys) in ALL_KEYS {
        let base = match *object {
            "interface" => &set,
            "site" | "plan" | "subscriber" | "each_way" => &network,
            _ => &base,
        };
        let pointer = match *object {
            "policy" => "",
            "interface" => "/interfaces/eth0",
            "link" => "/link",
            "limits" => "/limits",
            "class" => "/classes/0",
            "shared_ceil" => "/classes/0/shared_ceil",
            "forward" => "/forwards/0",
            "target" => "/forwards/0/targets/0",
            "site" => "/sites/north",
            "plan" => "/plans/home",
            "subscriber" => "/subscribers/0",
            "each_way" => "/sites/north/ceil",
            _ => "/rules/0",
        };
        for key in *keys {
            let mut broken = base.clone();
            broken.pointer_mut(pointer).unwrap()[key] = Value::Null;
            assert!(!validator.is_valid(&broken), "the schema accepts null for {object}.{key}");
            assert!(
                parse_file(&Source::new("p", broken.to_string())).is_err(),
                "the parser accepts null for {object}.{key}"
            );
        }
    }
}
