//! Network namespaces that remove themselves, and the removal of those that a killed run left.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};

use crate::process::{self, Process};
use crate::tool;
use sluice_error::{Error, Result};

/// Directory in which `ip netns` keeps its names.
const NAMES: &str = "/run/netns";
/// Time that a configuring command may take.
const CONFIGURE: Duration = Duration::from_secs(60);

/// A network namespace; dropping removes it with everything in it.
pub struct Namespace {
    name: String,
    /// The file of the namespace, which can be entered while the file is open, even if its name is gone.
    file: File,
}

impl Namespace {
    /// Make the namespace `<prefix>-<our pid>-<role>`.
    pub fn create(prefix: &str, role: &str) -> Result<Namespace> {
        let name = format!("{prefix}-{}-{role}", std::process::id());
        ip(&["netns", "add", &name]).map_err(|e| {
            e.help("network namespaces need root and a kernel with CONFIG_NET_NS; containers need --privileged")
        })?;
        let path = Path::new(NAMES).join(&name);
        let file =
            File::open(&path).map_err(|e| Error::system(format!("cannot open network namespace {name}: {e}")))?;
        Ok(Namespace { name, file })
    }

    /// Number of the namespace.
    pub fn inode(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|e| self.failure("cannot look at", &e))?.ino())
    }

    /// Whether the namespace still has its name.
    pub fn exists(&self) -> bool {
        let named = fs::metadata(Path::new(NAMES).join(&self.name)).map(|about| about.ino());
        named.is_ok_and(|inode| self.inode().is_ok_and(|own| own == inode))
    }

    /// Remove the name; the namespace goes with the last process in it.
    pub fn remove(&self) -> Result<()> {
        ip(&["netns", "del", &self.name]).map(drop)
    }

    /// Name of the namespace, as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Run many commands of `ip` in the namespace.
    pub fn ip_batch(&self, commands: &[String]) -> Result<()> {
        ip_batch(Some(&self.name), commands)
    }

    /// Run `tc` in the namespace.
    pub fn tc(&self, arguments: &[&str]) -> Result<String> {
        let arguments = [&["-n", &self.name], arguments].concat();
        process::run(&format!("tc {}", arguments.join(" ")), tool::TC.program, &arguments, CONFIGURE)
    }

    /// Run a program in the namespace to its end.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        self.start(program, arguments)?.finish(CONFIGURE, || Ok(()))?.expect_success().map(|output| output.stdout)
    }

    /// Start a program in the namespace.
    pub fn start(&self, program: &str, arguments: &[&str]) -> Result<Process> {
        let arguments = [&["netns", "exec", &self.name, program], arguments].concat();
        Process::start(program, tool::IP.program, &arguments)
    }

    /// Start a program that measures times in the namespace.
    pub fn start_timing(&self, program: &str, arguments: &[&str]) -> Result<Process> {
        let arguments = [&["netns", "exec", &self.name, program], arguments].concat();
        Process::start_timing(program, tool::IP.program, &arguments)
    }

    /// Run `work` in the namespace, on a thread of its own.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        thread::scope(|scope| {
            let worker = scope.spawn(|| setns(&self.file, CloneFlags::CLONE_NEWNET).map(|()| work()));
            match worker.join() {
                Ok(result) => result.map_err(|e| self.failure("cannot enter", &e.into())),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Wait until a socket listens on this port, at most `limit`; an error of `meanwhile` ends the wait. `table` is the kernel's
    /// list: tcp or udp.
    pub fn await_listener(
        &self,
        table: &str,
        port: u16,
        limit: Duration,
        mut meanwhile: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let deadline = Instant::now() + limit;
        loop {
            meanwhile()?;
            let listens = self.inside(|| {
                ["", "6"].iter().any(|family| {
                    let text = fs::read_to_string(format!("/proc/thread-self/net/{table}{family}"));
                    text.is_ok_and(|text| has_listener(&text, port))
                })
            })?;
            if listens {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(Error::system(format!(
                    "nothing listens on {table} port {port} after {} s: the server did not start",
                    limit.as_secs()
                )));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn failure(&self, what: &str, e: &std::io::Error) -> Error {
        Error::system(format!("{what} network namespace {}: {e}", self.name))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if !self.exists() {
            return;
        }
        if let Err(e) = self.remove() {
            eprintln!("warning: network namespace {} stays behind: {}", self.name, e.what);
        }
    }
}

/// Remove the namespaces of runs with this prefix whose process is gone. `before` sees each name while it still exists.
pub fn remove_stale(prefix: &str, mut before: impl FnMut(&str)) -> Result<()> {
    let Ok(entries) = fs::read_dir(NAMES) else {
        return Ok(()); // No namespace was ever made here.
    };
    for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        if is_stale(&name, prefix, |pid| Path::new("/proc").join(pid.to_string()).exists()) {
            before(&name);
            match ip(&["netns", "del", &name]) {
                // Another process was faster.
                Err(_) if !Path::new(NAMES).join(&name).exists() => {}
                other => drop(other?),
            }
        }
    }
    Ok(())
}

fn is_stale(name: &str, prefix: &str, alive: impl Fn(u32) -> bool) -> bool {
    let pid = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-')).and_then(|rest| rest.split_once('-'));
    pid.and_then(|(pid, _)| pid.parse().ok()).is_some_and(|pid: u32| !alive(pid))
}

/// Whether /proc/net/{tcp,udp} names a socket bound to this port that is not connected.
fn has_listener(table: &str, port: u16) -> bool {
    let suffix = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().is_some_and(|local| local.ends_with(&suffix));
        local && fields.next().is_some_and(|remote| remote.ends_with(":0000"))
    })
}

/// Run many commands of `ip`, in a namespace or here. One process runs all: on an emulated processor each costs its time.
pub fn ip_batch(namespace: Option<&str>, commands: &[String]) -> Result<()> {
    let cannot = |e: std::io::Error| Error::system(format!("cannot write commands for ip to a temporary file: {e}"));
    let mut file = tempfile::NamedTempFile::new().map_err(cannot)?;
    file.write_all((commands.join("\n") + "\n").as_bytes()).map_err(cannot)?;
    let path = file.path().to_string_lossy();
    let inside = namespace.map_or(Vec::new(), |name| vec!["-n", name]);
    let name = format!("ip -batch, namespace {}", namespace.unwrap_or("of this process"));
    process::run(&name, tool::IP.program, &[inside, vec!["-batch", &path]].concat(), CONFIGURE).map(drop)
}

fn ip(arguments: &[&str]) -> Result<String> {
    process::run(&format!("ip {}", arguments.join(" ")), tool::IP.program, arguments, CONFIGURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_namespaces_of_dead_runs_are_stale() {
        let alive = |pid| pid == 7;
        assert!(is_stale("sluice-demo-8-router", "sluice-demo", alive));
        assert!(!is_stale("sluice-demo-7-router", "sluice-demo", alive));
        assert!(!is_stale("sluice-demo-router", "sluice-demo", alive));
        assert!(!is_stale("sluice-demonstration-8-router", "sluice-demo", alive));
        assert!(!is_stale("other", "sluice-demo", alive));
    }

    #[test]
    fn listeners_are_found_by_port_and_state() {
        let table = "  sl  local_address rem_address   st\n   0: 0101630A:1451 00000000:0000 0A\n   1: 0101630A:0C02 0203630A:9C40 01\n";
        assert!(has_listener(table, 5201));
        assert!(!has_listener(table, 3074));
    }

    #[test]
    #[ignore = "needs root: make test-native"]
    fn root_a_panic_removes_namespace_and_processes() {
        let caught = std::panic::catch_unwind(|| {
            let namespace = Namespace::create("sluice-demo-test", "panic").unwrap();
            let _sleeper = namespace.start("sleep", &["60"]).unwrap();
            std::thread::sleep(Duration::from_millis(200));
            assert!(Path::new(NAMES).join(namespace.name()).exists());
            assert!(!ip(&["netns", "pids", namespace.name()]).unwrap().is_empty());
            panic!("as planned");
        });
        assert!(caught.is_err());
        let name = format!("sluice-demo-test-{}-panic", std::process::id());
        assert!(!Path::new(NAMES).join(name).exists());
    }

    #[test]
    #[ignore = "needs root: make test-native"]
    fn root_stale_namespaces_go_away() {
        let name = "sluice-demo-stale-4194303-router"; // Beyond any pid that this test will see.
        ip(&["netns", "add", name]).unwrap();
        let mut seen = Vec::new();
        remove_stale("sluice-demo-stale", |name| seen.push(name.to_owned())).unwrap();
        assert_eq!(seen, [name]);
        assert!(!Path::new(NAMES).join(name).exists());
    }
}
