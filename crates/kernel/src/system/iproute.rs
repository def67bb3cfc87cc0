//! Runs `tc` and `ip` of iproute2, which know every netlink attribute of every kernel that they ship for.

use serde::de::DeserializeOwned;
use sluice_error::{Error, Result};
use std::io::Write;
use std::process::{Command, Stdio};

/// Directories that may hold the tools, though a user's PATH lacks them.
const SYSTEM_PATHS: &str = "/usr/sbin:/sbin:/usr/bin:/bin";

pub(crate) fn command(tool: &str) -> Command {
    let path = std::env::var("PATH").map_or_else(|_| SYSTEM_PATHS.to_owned(), |path| format!("{path}:{SYSTEM_PATHS}"));
    let mut command = Command::new(tool);
    command.env("PATH", path).env("LC_ALL", "C").stdin(Stdio::null());
    command
}

pub(crate) fn not_run(tool: &str, error: &std::io::Error) -> Error {
    Error::unsupported(format!("{tool} does not run: {error}")).help(format!("install iproute2, which brings {tool}"))
}

/// Runs a tool to its end. Returns its output, or its complaint as the error.
pub fn run(tool: &str, args: &[&str]) -> Result<String> {
    let output = command(tool).args(args).output().map_err(|error| not_run(tool, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::system(format!("{tool} {}: {}", args.join(" "), complaint(&output.stderr))))
}

/// Runs `tc` with words separated by blanks.
pub fn tc(line: &str) -> Result<String> {
    run("tc", &line.split_whitespace().collect::<Vec<_>>())
}

/// Runs `ip` with words separated by blanks.
pub fn ip(line: &str) -> Result<String> {
    run("ip", &line.split_whitespace().collect::<Vec<_>>())
}

/// Runs several `tc` commands in one process. The first that fails ends it.
pub fn tc_batch(lines: &[String]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut child = command("tc")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| not_run("tc", &error))?;
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all((lines.join("\n") + "\n").as_bytes()));
    let output = child.wait_with_output().map_err(|error| not_run("tc", &error))?;
    if output.status.success() && written.is_ok() {
        return Ok(());
    }
    let complaint = complaint(&output.stderr);
    let failed = complaint.rsplit_once("Command failed -:").and_then(|(_, n)| n.trim().parse::<usize>().ok());
    let line = failed.and_then(|n| lines.get(n.saturating_sub(1))).map_or("-batch", String::as_str);
    let reason = complaint.split("Command failed").next().unwrap_or_default().trim();
    Err(Error::system(format!("tc {line}: {}", if reason.is_empty() { &complaint } else { reason })))
}

/// The answers of several `ip` commands in JSON, which one process gives; none for a command that fails.
pub fn ip_batch<T: DeserializeOwned>(lines: &[String]) -> Result<Vec<T>> {
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let mut child = command("ip")
        .args(["-json", "-force", "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| not_run("ip", &error))?;
    let text = lines.join("\n") + "\n";
    let mut stdin = child.stdin.take().expect("it is piped");
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().map_err(|error| not_run("ip", &error))?;
    // A tool that ends early has said all that it will.
    let _ = writer.join();
    let answers = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<T>();
    answers
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| Error::system(format!("ip -batch: unexpected answer: {error}")))
}

/// A tool's answer in JSON. An empty answer is an empty list.
pub fn json<T: DeserializeOwned>(tool: &str, line: &str) -> Result<T> {
    let text = run(tool, &line.split_whitespace().collect::<Vec<_>>())?;
    let text = if text.trim().is_empty() { "[]" } else { &text };
    serde_json::from_str(text).map_err(|error| Error::system(format!("{tool} {line}: unexpected answer: {error}")))
}

fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.trim().trim_start_matches("Error: ").trim_start_matches("RTNETLINK answers: "))
        .filter(|line| {
            !line.is_empty() && !line.starts_with("We have an error talking") && !line.starts_with("Warning:")
        })
        .collect();
    if lines.is_empty() { "failed without a word".to_owned() } else { lines.join("; ") }
}
