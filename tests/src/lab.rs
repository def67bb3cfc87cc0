//! The equipment of a test: namespaces, the product, policies in files. Leftovers are found, reported and removed when the test
//! ends.

use crate::command::{Output, Process, run};
use crate::net::{self, Ns, Pair, Routed};
use crate::status::Status;
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Qdisc,
    Tc,
    /// The engine that the product chooses.
    Auto,
}

impl Engine {
    pub fn name(self) -> &'static str {
        match self {
            Engine::Qdisc => "qdisc",
            Engine::Tc => "tc",
            Engine::Auto => "auto",
        }
    }
}

/// The program under test.
pub fn binary() -> PathBuf {
    std::env::var_os("SLUICE_BIN").map_or_else(|| PathBuf::from("sluice"), PathBuf::from)
}

pub struct Lab {
    pub engine: Engine,
    namespaces: RefCell<Vec<Ns>>,
    policies: PathBuf,
    written: RefCell<u32>,
}

impl Lab {
    pub fn new(engine: Engine) -> Lab {
        let policies = std::env::temp_dir().join(format!("sluice-tests-{}", std::process::id()));
        fs::create_dir_all(&policies).expect("creating a directory for policies");
        Lab { engine, namespaces: RefCell::default(), policies, written: RefCell::new(0) }
    }

    pub fn ns(&self, role: &str) -> Ns {
        let ns = Ns::create(role);
        self.namespaces.borrow_mut().push(ns.clone());
        ns
    }

    pub fn pair(&self) -> Pair {
        self.pair_with("")
    }

    /// A pair, its wire made with options of `ip link add`.
    pub fn pair_with(&self, options: &str) -> Pair {
        let pair = Pair { a: self.ns("a"), b: self.ns("b") };
        net::wire_pair(&pair, options);
        pair
    }

    pub fn routed(&self) -> Routed {
        self.routed_with("")
    }

    /// `options`: of both veths.
    pub fn routed_with(&self, options: &str) -> Routed {
        let net = Routed { client: self.ns("client"), router: self.ns("router"), server: self.ns("server") };
        net::wire_routed(&net, options);
        net
    }

    /// Writes a file that the test may name; removed with the lab.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.policies.join(name);
        fs::write(&path, content).expect("writing a file");
        path
    }

    /// Writes a policy and returns its path.
    pub fn policy(&self, policy: &serde_json::Value) -> String {
        *self.written.borrow_mut() += 1;
        let name = format!("policy-{}.json", self.written.borrow());
        self.file(&name, format!("{policy:#}")).display().to_string()
    }

    /// The product's command line in a namespace.
    pub fn command(&self, ns: &Ns, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(["--netns", &ns.name]).args(arguments);
        command
    }

    pub fn sluice(&self, ns: &Ns, arguments: &[&str]) -> Output {
        run(&mut self.command(ns, arguments))
    }

    pub fn start(&self, ns: &Ns, arguments: &[&str]) -> Process {
        Process::start(&mut self.command(ns, arguments))
    }

    fn up_arguments<'a>(&self, dev: &'a str, policy: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        [&["up", dev, "--policy", policy, "--engine", self.engine.name()], more].concat()
    }

    /// `sluice up`, with the engine of the test, which must succeed.
    #[track_caller]
    pub fn up(&self, ns: &Ns, dev: &str, policy: &str, more: &[&str]) -> Output {
        self.try_up(ns, dev, policy, more).ok()
    }

    pub fn try_up(&self, ns: &Ns, dev: &str, policy: &str, more: &[&str]) -> Output {
        self.sluice(ns, &self.up_arguments(dev, policy, more))
    }

    /// Runs `sluice` and kills it at a fault point.
    #[track_caller]
    pub fn killed_at(&self, point: &str, ns: &Ns, arguments: &[&str]) {
        let output = run(self.command(ns, arguments).env("SLUICE_FAULT", point));
        assert_eq!(output.signal, Some(9), "{point} was not passed by: {output}");
    }

    #[track_caller]
    pub fn down(&self, ns: &Ns, dev: &str) -> Output {
        self.sluice(ns, &["down", dev]).ok()
    }

    #[track_caller]
    pub fn status(&self, ns: &Ns, dev: &str) -> Status {
        let output = self.sluice(ns, &["status", dev, "--json"]).ok();
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("status --json: {error}: {output}"))
    }

    /// Traces of the product and the test; there should be none.
    pub fn leftovers(&self) -> Vec<String> {
        let mut found = Vec::new();
        for ns in self.namespaces.borrow().iter() {
            found.extend(traces(ns.inode).iter().map(|path| path.display().to_string()));
            if ns.exists() {
                let devices = ns.interfaces().into_iter().filter(|name| name.starts_with("sluice-"));
                found.extend(devices.map(|device| format!("device {device} in {}", ns.name)));
                let pids = run(Command::new("ip").args(["netns", "pids", &ns.name])).stdout;
                found.extend(pids.split_whitespace().map(|pid| format!("process {pid} in {}", ns.name)));
            }
        }
        found
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for ns in self.namespaces.borrow().iter() {
            for path in traces(ns.inode).iter().filter(|path| path.extension().is_some_and(|e| e == "json")) {
                let key = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
                if let (true, Some((dev, _))) = (ns.exists(), key.rsplit_once('@')) {
                    self.sluice(ns, &["down", dev]);
                }
            }
            if ns.exists() {
                ns.remove();
            }
            for path in traces(ns.inode).into_iter().chain(histories(ns.inode)) {
                let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            }
        }
        let _ = fs::remove_dir_all(&self.policies);
    }
}

/// The product's files on interfaces in the namespace of this number: records, and directories of pins.
pub fn traces(inode: u64) -> Vec<PathBuf> {
    files_of(inode, &["/run/sluice", "/sys/fs/bpf/sluice"])
}

/// The record of the only managed interface of a namespace.
pub fn record(ns: &Ns) -> PathBuf {
    let mut files = traces(ns.inode).into_iter();
    files.find(|path| path.extension().is_some_and(|end| end == "json")).expect("a record")
}

/// The histories of interfaces in the namespace of this number, which `down` does not end.
pub fn histories(inode: u64) -> Vec<PathBuf> {
    files_of(inode, &["/var/lib/sluice/history"])
}

fn files_of(inode: u64, directories: &[&str]) -> Vec<PathBuf> {
    let mark = format!("@{inode}");
    let entries = |dir: &&str| fs::read_dir(Path::new(dir)).into_iter().flatten().flatten().map(|entry| entry.path());
    directories
        .iter()
        .flat_map(entries)
        .filter(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.ends_with(&mark) || name.contains(&format!("{mark}."))
        })
        .collect()
}
