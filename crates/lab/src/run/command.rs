//! Commands of contenders: words without a shell, run in a host's network namespace.

use std::time::Duration;

use crate::run::network::lacks_qdisc;
use sluice_error::{Error, Kind, Result};
use sluice_testbed::Namespace;
use sluice_testbed::process::{Output, Process};
use sluice_testbed::tool;

/// Time limit of a command.
const LIMIT: Duration = Duration::from_secs(60);

/// Fails if the program of a command is not installed.
pub fn require(command: &str) -> Result<()> {
    let program = command.split_whitespace().next().unwrap_or_default();
    if program.contains('/') || tool::search_path().iter().any(|directory| directory.join(program).is_file()) {
        return Ok(());
    }
    Err(Error::new(Kind::Unsupported, format!("{program} is not installed (scripts/setup lab installs it)")))
}

/// Starts a command.
pub fn start(host: &Namespace, command: &str) -> Result<Process> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let (program, arguments) = words.split_first().ok_or_else(|| Error::system("a command has no words"))?;
    host.start(program, arguments)
}

/// Runs a command to its end. One that needs what the kernel lacks fails as unsupported.
pub fn run(host: &Namespace, command: &str, watch: &dyn Fn() -> Result<()>) -> Result<Output> {
    let output = start(host, command)?.finish(LIMIT, watch)?;
    if output.status.success() {
        return Ok(output);
    }
    let words = output.error_text().lines().next().unwrap_or_default().to_owned();
    let kind = if lacks_qdisc(output.error_text()) { Kind::Unsupported } else { Kind::System };
    Err(Error::new(kind, format!("\"{command}\": {words}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named() {
        assert!(require("ip link").is_ok());
        let error = require("sluice-no-such-program -x").unwrap_err();
        assert_eq!(error.kind, Kind::Unsupported);
    }
}
