//! A `sluice-dpdk` that runs, and what it has counted.

#![allow(missing_docs)]

use nix::sys::signal::Signal;
use serde_json::Value;
use sluice_testbed::namespace::Namespace;
use sluice_testbed::process::Process;
use std::process::Command;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sluice-dpdk");
const LONG: Duration = Duration::from_secs(60);

/// A directory of a test.
pub struct Dir(tempfile::TempDir);

impl Dir {
    pub fn new() -> Dir {
        Dir(tempfile::tempdir().expect("a directory"))
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("written");
        path
    }
}

/// The number of a counter.
pub fn pkts(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// A class of a way.
pub fn class<'a>(way: &'a Value, name: &str) -> &'a Value {
    let classes = way["classes"].as_array().expect("classes");
    classes.iter().find(|class| class["name"] == name).unwrap_or_else(|| panic!("no class {name}"))
}

/// Runs the program to its end, and returns its counters.
pub fn sluice(dir: &Dir, policy: &str, arguments: &[&str]) -> Value {
    Running::start(dir, policy, arguments, None).counted()
}

/// Runs it, and it refuses with this exit code. Its message.
pub fn refuse(dir: &Dir, policy: &str, arguments: &[&str], code: i32) -> String {
    let output = Command::new(PROGRAM).args(all(dir, policy, arguments)).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{text}");
    text
}

fn all(dir: &Dir, policy: &str, arguments: &[&str]) -> Vec<String> {
    let own = ["--policy", &dir.write("policy.json", policy), "--json", &dir.path("counted.json")].map(str::to_owned);
    own.into_iter().chain(arguments.iter().map(|text| (*text).to_owned())).collect()
}

pub struct Running {
    process: Process,
    json: String,
}

impl Running {
    /// Starts it, in a namespace or here.
    pub fn start(dir: &Dir, policy: &str, arguments: &[&str], namespace: Option<&Namespace>) -> Running {
        let arguments = all(dir, policy, arguments);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let process = match namespace {
            Some(namespace) => namespace.start(PROGRAM, &arguments),
            None => Process::start("sluice-dpdk", PROGRAM, &arguments),
        };
        Running { process: process.expect("it starts"), json: dir.path("counted.json") }
    }

    /// Waits until it has written a line with this text.
    pub fn await_line(&mut self, text: &str) {
        let until = Instant::now() + LONG;
        while !self.process.written()[0].contains(text) {
            let written = self.process.written();
            assert!(self.process.running().expect("known") && Instant::now() < until, "{}{}", written[0], written[1]);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn signal(&mut self, signal: Signal) {
        self.process.signal(signal).expect("it runs");
    }

    /// Waits for its end.
    pub fn ended(self) {
        self.process.finish(LONG, || Ok(())).expect("it ends");
    }

    /// Waits for the end of the program, which has no error, and returns its counters.
    pub fn counted(self) -> Value {
        let output = self.process.finish(LONG, || Ok(())).expect("it ends");
        output.expect_success().unwrap_or_else(|error| panic!("{error}"));
        let text = std::fs::read_to_string(&self.json).expect("counters");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}
