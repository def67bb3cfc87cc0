//! Programs as children: each wait is bounded, nothing outlives us, and what they said is in every complaint.

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use std::io::{ErrorKind, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longer than any command takes, on a slow emulated machine too.
const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(2);

/// What a program that ended left.
#[derive(Debug)]
pub struct Output {
    line: String,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Itself, if the program succeeded.
    #[track_caller]
    pub fn ok(self) -> Output {
        self.exits(0)
    }

    /// Itself, if the program ended with this code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Output {
        assert_eq!(self.code, Some(code), "exit code of: {self}");
        self
    }

    /// Itself, if its standard error has this in it.
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
    child: Child,
    /// Of those that are not given elsewhere.
    output: (Option<Collector>, Option<Collector>),
}

impl Process {
    /// Starts it, its output being collected.
    pub fn start(command: &mut Command) -> Process {
        Process::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// Starts it with the input and output that it was given; what is piped is collected.
    pub fn spawn(command: &mut Command) -> Process {
        let line = format!("{command:?}");
        command.env("LC_ALL", "C");
        // SAFETY: between fork and exec only prctl(2) is called, which is async-signal-safe and allocates nothing.
        unsafe { command.pre_exec(|| set_pdeathsig(Signal::SIGKILL).map_err(Into::into)) };
        let mut child = command.spawn().unwrap_or_else(|error| panic!("starting {line}: {error}"));
        let output = (child.stdout.take().map(Collector::start), child.stderr.take().map(Collector::start));
        Process { line, child, output }
    }

    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        // It may have ended by itself: that is as good.
        let _ = self.child.kill();
    }

    /// What it has said on its standard output until now.
    pub fn said(&self) -> String {
        self.output.0.as_ref().map(|out| text(&out.so_far())).unwrap_or_default()
    }

    /// What it has said on its standard error until now.
    pub fn complained(&self) -> String {
        self.output.1.as_ref().map(|err| text(&err.so_far())).unwrap_or_default()
    }

    /// Waits until it has written this on its standard error.
    #[track_caller]
    pub fn await_complaint(&self, words: &str) {
        await_that(&format!("`{words}` from {}", self.line), LIMIT, || self.complained().contains(words));
    }

    /// Waits until it has written so many lines with this in them on its standard output.
    #[track_caller]
    pub fn await_lines(&self, words: &str, count: usize) {
        let lines =
            || self.said().split_inclusive('\n').filter(|line| line.ends_with('\n') && line.contains(words)).count();
        await_that(&format!("{count} times `{words}` from {}", self.line), LIMIT, || lines() >= count);
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it to end.
    pub fn signal(&self, signal: Signal) {
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(pid, signal).expect("sending a signal");
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Output {
        let deadline = Instant::now() + LIMIT;
        let status = loop {
            match self.child.try_wait().expect("waiting for a child") {
                Some(status) => break status,
                None if Instant::now() > deadline => panic!("{} did not end within {LIMIT:?}", self.line),
                None => thread::sleep(POLL),
            }
        };
        let (out, err) = (self.output.0.take(), self.output.1.take());
        let all = |of: Option<Collector>| of.map(|of| text(&of.end())).unwrap_or_default();
        Output {
            line: self.line.clone(),
            code: status.code(),
            signal: status.signal(),
            stdout: all(out),
            stderr: all(err),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

/// What comes out of a pipe, from when it comes.
pub struct Collector {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Collector {
    pub fn start(mut from: impl Read + Send + 'static) -> Collector {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&bytes);
        let read = move || {
            let mut some = [0; 4096];
            loop {
                match from.read(&mut some) {
                    Ok(count @ 1..) => {
                        all.lock().expect("nobody panics while holding it").extend_from_slice(&some[..count]);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Ok(_) | Err(_) => break,
                }
            }
        };
        Collector { bytes, thread: thread::spawn(read) }
    }

    /// What has come until now.
    pub fn so_far(&self) -> Vec<u8> {
        self.bytes.lock().expect("nobody panics while holding it").clone()
    }

    /// All of it, once nobody can write any more.
    pub fn end(self) -> Vec<u8> {
        self.thread.join().expect("reading the output of a program");
        self.bytes.lock().expect("nobody panics while holding it").clone()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
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

/// Waits until something holds; fails, naming it, after `limit`.
#[track_caller]
pub fn await_that(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < deadline, "waited {limit:?} in vain: {what}");
        thread::sleep(POLL);
    }
}
