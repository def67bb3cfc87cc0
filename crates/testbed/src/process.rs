//! Child processes that never outlive us: each wait is bounded, each drop kills by pid, and the kernel kills the children of a
//! parent that was killed itself.

use std::env;
use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::priority::Priority;
use crate::tool;
use sluice_error::{Error, Result};

/// Time between two looks at a running child: short at first, since most programs end at once.
const FIRST_POLL: Duration = Duration::from_millis(1);
const POLL: Duration = Duration::from_millis(50);

/// A running program, its output being collected.
pub struct Process {
    name: String,
    child: Child,
    stdout: Option<PipeReader>,
    stderr: Option<PipeReader>,
    lines: Lines,
    /// Whether the program cleans up by itself when it is asked to end.
    cleans_up: bool,
}

/// A line that a program wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Time at which the line came.
    pub at: SystemTime,
    /// Whether the line came on standard error.
    pub is_error: bool,
    /// Text of the line, without its end.
    pub text: String,
}

type Lines = Arc<Mutex<Vec<Line>>>;

/// The output from a pipe, and the thread that reads it.
pub struct PipeReader {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

/// Most bytes of a pipe that are kept; the rest is read and dropped.
const MAX_BYTES: usize = 64 << 20;
/// Time to wait for the pipes of a program that has ended: a program that it left running may still hold them.
const DRAIN: Duration = Duration::from_secs(2);

/// Time that a program which cleans up may take to end.
const TERM_TIMEOUT: Duration = Duration::from_secs(20);

/// The exit status and the output of a program that ended.
pub struct Output {
    name: String,
    /// Exit status of the program.
    pub status: ExitStatus,
    /// Standard output of the program.
    pub stdout: String,
    /// Standard error of the program.
    pub stderr: String,
    /// Lines of both, in the order and at the time in which they came.
    pub lines: Vec<Line>,
}

impl Process {
    /// Start a program, which errors call `name`.
    pub fn start(name: &str, program: impl AsRef<OsStr>, arguments: &[&str]) -> Result<Process> {
        Process::start_with(name, program.as_ref(), arguments, false, false)
    }

    /// Start a program that measures times: it runs before all programs without deadlines, so that its times are those of packets,
    /// and not of its wait for the processor that the other programs of the harness have.
    pub fn start_timing(name: &str, program: impl AsRef<OsStr>, arguments: &[&str]) -> Result<Process> {
        Process::start_with(name, program.as_ref(), arguments, false, true)
    }

    /// Start a program that cleans up when it is asked to end: SIGTERM asks it before it is killed.
    pub fn start_with_cleanup(name: &str, program: impl AsRef<OsStr>, arguments: &[&str]) -> Result<Process> {
        Process::start_with(name, program.as_ref(), arguments, true, false)
    }

    fn start_with(name: &str, program: &OsStr, arguments: &[&str], cleans_up: bool, timing: bool) -> Result<Process> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: Ctrl-C reaches us alone, and we end the children in order.
        command.process_group(0).env("LC_ALL", "C");
        if let Ok(path) = env::join_paths(tool::search_path()) {
            command.env("PATH", path);
        }
        Process::spawn_with(name, &mut command, cleans_up, timing)
    }

    /// Start a command as it is, with the input and output that it was given; piped output is collected.
    pub fn spawn(name: &str, command: &mut Command) -> Result<Process> {
        Process::spawn_with(name, command, false, false)
    }

    fn spawn_with(name: &str, command: &mut Command, cleans_up: bool, timing: bool) -> Result<Process> {
        let if_we_die = if cleans_up { Signal::SIGTERM } else { Signal::SIGKILL };
        let priority = timing.then(Priority::of_this_machine);
        let set_up = move || {
            if let Some(priority) = priority {
                priority.take();
            }
            set_pdeathsig(if_we_die).map_err(Into::into)
        };
        // SAFETY: between fork and exec only prctl(2), and sched_setscheduler(2) or setpriority(2), are called, which are
        // async-signal-safe and allocate nothing.
        unsafe { command.pre_exec(set_up) };
        let mut child = command.spawn().map_err(|e| Error::system(format!("cannot start {name}: {e}")))?;
        let lines = Lines::default();
        let stdout = child.stdout.take().map(|from| PipeReader::start_lines(from, &lines, false));
        let stderr = child.stderr.take().map(|from| PipeReader::start_lines(from, &lines, true));
        Ok(Process { name: name.to_owned(), child, stdout, stderr, lines, cleans_up })
    }

    /// The program's standard output so far, and its standard error.
    pub fn written(&self) -> [String; 2] {
        [&self.stdout, &self.stderr].map(|from| from.as_ref().map(PipeReader::text).unwrap_or_default())
    }

    /// Send the program a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill(Pid::from_raw(self.child.id() as i32), signal)
            .map_err(|e| Error::system(format!("cannot send {signal} to {}: {e}", self.name)))
    }

    /// Number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The lines that the program wrote so far.
    pub fn lines(&self) -> Vec<Line> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the program still runs.
    pub fn running(&mut self) -> Result<bool> {
        match self.child.try_wait() {
            Ok(status) => Ok(status.is_none()),
            Err(e) => Err(Error::system(format!("cannot wait for {}: {e}", self.name))),
        }
    }

    /// Wait for the program's end, at most this long, calling `meanwhile` about twenty times a second; its error ends the wait.
    pub fn finish(mut self, limit: Duration, mut meanwhile: impl FnMut() -> Result<()>) -> Result<Output> {
        let (deadline, mut pause) = (Instant::now() + limit, FIRST_POLL);
        while self.running()? {
            meanwhile()?;
            if Instant::now() >= deadline {
                let seconds = limit.as_secs();
                return Err(Error::system(format!("{} did not end within {seconds} s and was killed", self.name))
                    .help("the machine may be overloaded; try again when it is idle"));
            }
            thread::sleep(pause);
            pause = (pause * 2).min(POLL);
        }
        self.output()
    }

    /// End the program now, and take its output.
    pub fn stop(mut self) -> Result<Output> {
        self.end();
        self.output()
    }

    fn output(mut self) -> Result<Output> {
        let status = self.child.wait().map_err(|e| Error::system(format!("cannot wait for {}: {e}", self.name)))?;
        let (stdout, stderr) = (text(self.stdout.take()), text(self.stderr.take()));
        Ok(Output { name: self.name.clone(), status, stdout, stderr, lines: self.lines() })
    }

    fn end(&mut self) {
        // An error means that the program ended in between, which is intended.
        if self.cleans_up {
            let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM);
            let deadline = Instant::now() + TERM_TIMEOUT;
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(POLL);
            }
        }
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

impl Output {
    /// The output if the program succeeded, else an error with the program's own words.
    pub fn expect_success(self) -> Result<Output> {
        if self.status.success() {
            return Ok(self);
        }
        Err(self.failure())
    }

    /// The program's failure in its own words.
    pub fn failure(&self) -> Error {
        Error::system(format!("{} failed ({}): {}", self.name, self.status, self.error_text()))
    }

    /// The program's message on its failure: its standard error, else its standard output.
    pub fn error_text(&self) -> &str {
        let error_text = if self.stderr.trim().is_empty() { self.stdout.trim() } else { self.stderr.trim() };
        if error_text.is_empty() { "it printed no message" } else { error_text }
    }
}

/// Run a program to its end, at most this long, and take its output if it succeeds.
pub fn run(name: &str, program: impl AsRef<OsStr>, arguments: &[&str], limit: Duration) -> Result<String> {
    let output = Process::start(name, program, arguments)?.finish(limit, || Ok(()))?;
    Ok(output.expect_success()?.stdout)
}

impl PipeReader {
    /// Begin to read a pipe.
    pub fn start(from: impl Read + Send + 'static) -> PipeReader {
        PipeReader::start_lines(from, &Lines::default(), false)
    }

    fn start_lines(mut from: impl Read + Send + 'static, lines: &Lines, is_error: bool) -> PipeReader {
        let (lines, bytes) = (Arc::clone(lines), Arc::new(Mutex::new(Vec::new())));
        let kept = Arc::clone(&bytes);
        let reader = thread::spawn(move || {
            let (mut line, mut some) = (Vec::new(), [0; 4096]);
            let end_line = |line: &mut Vec<u8>| {
                let text = String::from_utf8_lossy(line).trim_end().to_owned();
                lines.lock().unwrap_or_else(PoisonError::into_inner).push(Line {
                    at: SystemTime::now(),
                    is_error,
                    text,
                });
                line.clear();
            };
            loop {
                // Output that was read before an error is kept.
                let count = match from.read(&mut some) {
                    Ok(count @ 1..) => count,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Ok(_) | Err(_) => break,
                };
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() + count > MAX_BYTES {
                    continue;
                }
                kept.extend_from_slice(&some[..count]);
                for part in some[..count].split_inclusive(|byte| *byte == b'\n') {
                    line.extend_from_slice(part);
                    if part.ends_with(b"\n") {
                        end_line(&mut line);
                    }
                }
            }
            if !line.is_empty() {
                end_line(&mut line);
            }
        });
        PipeReader { bytes, reader }
    }

    /// The output until now.
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All output, once no process can write any more, or a while after the program has ended.
    pub fn end(self) -> Vec<u8> {
        let deadline = Instant::now() + DRAIN;
        while !self.reader.is_finished() && Instant::now() < deadline {
            thread::sleep(FIRST_POLL);
        }
        self.bytes()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}

fn text(from: Option<PipeReader>) -> String {
    from.map(|from| String::from_utf8_lossy(&from.end()).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_quotes_the_program() {
        let error = run("the shell", "sh", &["-c", "echo no >&2; exit 3"], Duration::from_secs(10)).unwrap_err();
        assert_eq!(error.what, "the shell failed (exit status: 3): no");
    }

    #[test]
    fn a_program_that_hangs_is_killed() {
        let process = Process::start("sleep", "sleep", &["60"]).unwrap();
        let pid = process.child.id();
        let error = process.finish(Duration::from_millis(100), || Ok(())).err().unwrap();
        assert!(error.what.contains("did not end"));
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn background_children_are_not_waited_for() {
        let began = Instant::now();
        let output = run("the shell", "sh", &["-c", "sleep 30 & echo $!"], Duration::from_secs(10)).unwrap();
        let waited = began.elapsed();
        kill(Pid::from_raw(output.trim().parse().unwrap()), Signal::SIGKILL).unwrap();
        assert!(waited < Duration::from_secs(20), "{waited:?}");
    }

    /// The nice value and the scheduling policy of a process are fields 19 and 41 of its stat (proc_pid_stat(5)).
    #[test]
    fn timing_program_has_a_high_priority() {
        let scheduled = |process: Process| {
            let output = process.finish(Duration::from_secs(10), || Ok(())).unwrap();
            output.expect_success().unwrap().stdout.trim().to_owned()
        };
        let stat = ["-d", " ", "-f", "19,41", "/proc/self/stat"];
        let usual = scheduled(Process::start("cut", "cut", &stat).unwrap());
        let timing = scheduled(Process::start_timing("cut", "cut", &stat).unwrap());
        let due = match Priority::of_this_machine() {
            _ if !nix::unistd::geteuid().is_root() => usual.as_str(),
            Priority::RealTime => "0 1",
            Priority::Nice => "-20 0",
        };
        assert_eq!((usual.ends_with(" 0"), timing.as_str()), (true, due));
    }

    #[test]
    fn lines_have_arrival_times_and_sigterm_allows_cleanup() {
        let script = "trap 'echo cleaned; exit 0' TERM; echo begun; while :; do sleep 0.05; done";
        let process = Process::start_with_cleanup("the shell", "sh", &["-c", script]).unwrap();
        while process.lines().is_empty() {
            thread::sleep(POLL);
        }
        let output = process.stop().unwrap();
        let texts: Vec<&str> = output.lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!((texts, output.status.success()), (vec!["begun", "cleaned"], true));
        assert!(output.lines[0].at <= output.lines[1].at && !output.lines[0].is_error);
    }
}
