//! Programs as children: each wait is bounded, no program outlives the test, and every failure shows the program's output.

use nix::sys::signal::Signal;
use sluice_testbed as testbed;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit of a command, on a slow emulated machine too.
const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(2);

/// The exit code and output of a program that ended.
#[derive(Debug)]
pub struct Output {
    line: String,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// The output of a program that must have succeeded.
    #[track_caller]
    pub fn ok(self) -> Output {
        self.exits(0)
    }

    /// The output of a program that must have ended with this code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Output {
        assert_eq!(self.code, Some(code), "exit code of: {self}");
        self
    }

    /// The output, whose standard error must contain this.
    #[track_caller]
    pub fn says(self, text: &str) -> Output {
        assert!(self.stderr.contains(text), "`{text}` is not in the standard error of: {self}");
        self
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}\n  exit code {:?}, signal {:?}", self.line, self.code, self.signal)?;
        write!(f, "  stdout: {}\n  stderr: {}", self.stdout.trim_end(), self.stderr.trim_end())
    }
}

/// A running program, killed when dropped.
pub struct Process {
    line: String,
    running: testbed::Process,
}

impl Process {
    /// Starts a program and collects its output.
    pub fn start(command: &mut Command) -> Process {
        Process::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// Starts a program with the given input and output; pipes are collected.
    pub fn spawn(command: &mut Command) -> Process {
        let line = format!("{command:?}");
        command.env("LC_ALL", "C");
        let running = testbed::Process::spawn(&line, command).unwrap_or_else(|error| panic!("{error}"));
        Process { line, running }
    }

    /// Wraps a running process.
    pub fn of(line: &str, running: testbed::Process) -> Process {
        Process { line: line.to_owned(), running }
    }

    /// Kills the process as `kill -9` does, unless it has ended.
    pub fn kill(&mut self) {
        if !self.has_ended() {
            self.signal(Signal::SIGKILL);
        }
    }

    /// The process's standard output until now.
    pub fn stdout(&self) -> String {
        let [stdout, _] = self.running.written();
        stdout
    }

    /// The process's standard error until now.
    pub fn stderr(&self) -> String {
        let [_, stderr] = self.running.written();
        stderr
    }

    /// Waits until standard error contains this.
    #[track_caller]
    pub fn await_stderr(&self, words: &str) {
        await_that(&format!("`{words}` from {}", self.line), LIMIT, || self.stderr().contains(words));
    }

    /// Waits until standard output has so many lines with this in them.
    #[track_caller]
    pub fn await_stdout_lines(&self, words: &str, count: usize) {
        let lines =
            || self.stdout().split_inclusive('\n').filter(|line| line.ends_with('\n') && line.contains(words)).count();
        await_that(&format!("{count} times `{words}` from {}", self.line), LIMIT, || lines() >= count);
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        !self.running.running().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Sends the process a signal.
    pub fn signal(&self, signal: Signal) {
        self.running.signal(signal).unwrap_or_else(|error| panic!("{error}"));
    }

    /// The numbers of the threads of the process that have this name.
    pub fn threads(&self, name: &str) -> Vec<i32> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.running.id())).into_iter().flatten();
        let numbers = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
        let named = |number: &i32| {
            let comm = std::fs::read_to_string(format!("/proc/{}/task/{number}/comm", self.running.id()));
            comm.is_ok_and(|comm| comm.trim_end() == name)
        };
        numbers.filter(named).collect()
    }

    /// Waits for the process's end.
    #[track_caller]
    pub fn finish(self) -> Output {
        let Process { line, running } = self;
        let left = running.finish(LIMIT, || Ok(())).unwrap_or_else(|error| panic!("{error}"));
        let (code, signal) = (left.status.code(), left.status.signal());
        Output { line, code, signal, stdout: left.stdout, stderr: left.stderr }
    }
}

/// Runs a program to its end.
pub fn run(command: &mut Command) -> Output {
    Process::start(command).finish()
}

/// A command line without quotes, split at spaces.
pub fn words(program: &str, line: &str) -> Command {
    let mut command = Command::new(program);
    command.args(line.split_whitespace());
    command
}

/// Waits until a condition holds; after `limit` it fails with `what`.
#[track_caller]
pub fn await_that(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < deadline, "waited {limit:?} in vain: {what}");
        thread::sleep(POLL);
    }
}
