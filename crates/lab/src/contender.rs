//! Who owns the router's egress during a run: nobody, or Sluice. Others get their arm here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::error::{Error, Kind, Result};
use crate::netns::Namespace;
use crate::process::Process;

/// Loading programs may take long where the processor is emulated.
const LIMIT: Duration = Duration::from_secs(180);

/// Something that may own an interface.
#[derive(Debug, Clone)]
pub enum Contender {
    /// The interface stays as the kernel made it.
    Nothing,
    /// Sluice with a policy.
    Sluice(Sluice),
}

/// How Sluice is called.
#[derive(Debug, Clone)]
pub struct Sluice {
    /// The program.
    pub program: PathBuf,
    /// A profile or a policy file.
    pub policy: String,
    /// The rate to shape to, kbit/s.
    pub rate_kbit: u32,
    /// What `--engine` says, if anything.
    pub engine: Option<String>,
}

/// A contender at work; dropping ends it.
pub struct Active<'a> {
    host: &'a Namespace,
    interface: &'a str,
    program: Option<PathBuf>,
    /// Which engine runs, if the contender has such a thing.
    pub engine: Option<String>,
}

impl Contender {
    /// What people call it.
    pub fn title(&self) -> &'static str {
        match self {
            Contender::Nothing => "without Sluice",
            Contender::Sluice(_) => "with Sluice",
        }
    }

    /// Put it to work on an interface.
    pub fn start<'a>(&self, host: &'a Namespace, interface: &'a str) -> Result<Active<'a>> {
        let mut active = Active { host, interface, program: None, engine: None };
        if let Contender::Sluice(sluice) = self {
            // From here on, even a failed `up` is followed by `down`.
            active.program = Some(sluice.program.clone());
            let rate = rate(sluice.rate_kbit);
            let mut arguments =
                vec!["--netns", host.name(), "up", interface, "--policy", &sluice.policy, "--rate", &rate];
            if let Some(engine) = &sluice.engine {
                arguments.extend(["--engine", engine]);
            }
            call("sluice up", &sluice.program, &arguments)?;
            let status = ["--netns", host.name(), "status", interface, "--json"];
            active.engine = Some(engine(&call("sluice status", &sluice.program, &status)?)?);
        }
        Ok(active)
    }
}

impl Active<'_> {
    /// End it and say so if that fails.
    pub fn stop(mut self) -> Result<()> {
        self.program.take().map_or(Ok(()), |program| down(&program, self.host.name(), self.interface))
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        if let Some(program) = self.program.take() {
            // Only on the way out of an error, which is what gets reported.
            let _ = down(&program, self.host.name(), self.interface);
        }
    }
}

/// Take Sluice off an interface.
pub fn down(program: &Path, namespace: &str, interface: &str) -> Result<()> {
    call("sluice down", program, &["--netns", namespace, "down", interface]).map(drop)
}

/// Call Sluice and take its output; its failure keeps its words and its meaning.
fn call(name: &str, program: &Path, arguments: &[&str]) -> Result<String> {
    let output = Process::start(name, program, arguments)?.finish(LIMIT, || Ok(()))?;
    let kind = match output.status.code() {
        Some(0) => return Ok(output.stdout),
        Some(2) => Kind::Input,
        Some(3) => Kind::Unsupported,
        Some(4) => Kind::Privilege,
        _ => return Err(output.failure()),
    };
    let words = output.words();
    Err(Error::new(kind, format!("{name}: {}", words.strip_prefix("error: ").unwrap_or(words))))
}

fn rate(kbit: u32) -> String {
    if kbit % 1_000 == 0 { format!("{}mbit", kbit / 1_000) } else { format!("{kbit}kbit") }
}

/// The first engine named in `sluice status --json`, wherever the document has it.
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
    fn rates_read_as_people_write_them() {
        assert_eq!(rate(19_000), "19mbit");
        assert_eq!(rate(4_750), "4750kbit");
    }

    #[test]
    fn a_refusal_keeps_its_words_and_its_meaning() {
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
