//! Calls of Sluice by its command.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use sluice_error::{Error, Kind, Result};
use sluice_testbed::process::Process;

/// Time limit: loading programs may take long on an emulated processor.
const LIMIT: Duration = Duration::from_secs(180);

/// Takes Sluice off an interface.
pub fn down(program: &Path, namespace: &str, interface: &str) -> Result<()> {
    call("sluice down", program, &["--netns", namespace, "down", interface]).map(drop)
}

/// The engine on an interface.
pub fn engine_of(program: &Path, namespace: &str, interface: &str) -> Result<String> {
    engine(&call("sluice status", program, &["--netns", namespace, "status", interface, "--json"])?)
}

/// Calls Sluice and returns its output; a failure keeps its message and its kind.
pub fn call(name: &str, program: &Path, arguments: &[&str]) -> Result<String> {
    let output = Process::start(name, program, arguments)?.finish(LIMIT, || Ok(()))?;
    let kind = match output.status.code() {
        Some(0) => return Ok(output.stdout),
        Some(2) => Kind::Input,
        Some(3) => Kind::Unsupported,
        Some(4) => Kind::Privilege,
        _ => return Err(output.failure()),
    };
    let words = output.error_text();
    Err(Error::new(kind, format!("{name}: {}", words.strip_prefix("error: ").unwrap_or(words))))
}

/// A rate in Sluice's notation.
pub fn rate(bps: u64) -> String {
    if bps % 1_000_000 == 0 { format!("{}mbit", bps / 1_000_000) } else { format!("{}kbit", bps / 1_000) }
}

/// The first engine named in `sluice status --json`, at any depth of the document.
fn engine(json: &str) -> Result<String> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Status {
        One { engine: String },
        Many(Vec<Status>),
        Wrapped { interfaces: Vec<Status> },
    }
    fn first(status: Status) -> Option<String> {
        match status {
            Status::One { engine } => Some(engine),
            Status::Many(all) | Status::Wrapped { interfaces: all } => all.into_iter().find_map(first),
        }
    }
    serde_json::from_str(json)
        .ok()
        .and_then(first)
        .ok_or_else(|| Error::system("\"sluice status --json\" names no engine: Sluice is not active on the interface"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_printed_in_units() {
        assert_eq!(rate(19_000_000), "19mbit");
        assert_eq!(rate(4_750_000), "4750kbit");
    }

    #[test]
    fn refusal_keeps_message_and_kind() {
        let refuse = ["-c", "printf 'error: no such engine\\n  help: another one\\n' >&2; exit 3"];
        let error = call("sluice up", Path::new("sh"), &refuse).unwrap_err();
        assert_eq!(error.kind, Kind::Unsupported);
        assert_eq!(error.what, "sluice up: no such engine\n  help: another one");
    }

    #[test]
    fn the_engine_is_found_alone_or_in_a_list() {
        assert_eq!(engine(r#"{"interface":"a","engine":"qdisc"}"#).unwrap(), "qdisc");
        assert_eq!(engine(r#"[{"engine":"tc","classes":[]}]"#).unwrap(), "tc");
        assert_eq!(engine(r#"{"interfaces":[{"engine":"tc"}]}"#).unwrap(), "tc");
        assert!(engine("[]").is_err());
        assert!(engine("not json").is_err());
    }
}
