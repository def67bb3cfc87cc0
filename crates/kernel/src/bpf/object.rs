//! Loads a BPF object: sets its constants and sizes, shares maps, and explains a refusal of the verifier.

use crate::system::private;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{DataSec, Var};
use libbpf_rs::{AsRawLibbpf, MapCore, MapHandle, MapType, Object, ObjectBuilder, OpenMapMut, OpenObject, PrintLevel};
use sluice_abi as abi;
use sluice_error::{Doing, Error, Kind, Result};
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

static BELONGING: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/belonging.bpf.o"));
static CLASSIFIER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classifier.bpf.o"));
static EARLY_LEAF: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/early_leaf.bpf.o"));
static FORWARD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/forward.bpf.o"));
static TELEMETRY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/telemetry.bpf.o"));
static STEAL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/steal.bpf.o"));
static HTB_TREE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/htb_tree.bpf.o"));
static STEER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/steer.bpf.o"));
static TREE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tree.bpf.o"));
static QDISC: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/qdisc.bpf.o"));
static LOG: Mutex<String> = Mutex::new(String::new());

fn record(_: PrintLevel, text: String) {
    if let Ok(mut log) = LOG.lock() {
        log.push_str(&text);
    }
}

/// SHA-256 of the BPF objects of this command, which identifies their programs.
pub fn digest() -> String {
    env!("BPF_DIGEST").to_owned()
}

/// Sets of a table for so many flows: a power of two, each of `SL_FLOW_SET_WAYS` flows.
fn flow_sets(flows: u32) -> u32 {
    flows.div_ceil(abi::SL_FLOW_SET_WAYS).next_power_of_two()
}

/// The compiler of the BPF programs, from their debug information, such as "clang 19.1.7".
pub fn compiler() -> String {
    const BEFORE: &[u8] = b"clang version ";
    let at = CLASSIFIER.windows(BEFORE.len()).position(|bytes| bytes == BEFORE);
    let rest = at.map_or(&[][..], |at| &CLASSIFIER[at + BEFORE.len()..]);
    let version: String =
        rest.iter().map(|&byte| char::from(byte)).take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    if version.is_empty() { "clang".to_owned() } else { format!("clang {version}") }
}

/// An object before it is loaded.
pub struct Loader {
    name: &'static str,
    open: OpenObject,
    /// The way out where the kernel has no memory for the maps.
    no_memory_help: String,
}

/// Maps of schedulers that share a link: those of one queue do without.
const SHARED_LINK: [&str; 3] = ["shared_link", "shared_conf", "shared_instance"];

/// Maps of trees that share a link: one tree does without.
const SHARED_TREES: [&str; 2] = ["shared_trees", "tree_part"];

/// Maps of a wire whose process queues in a tree of classes.
const WIRE_TREE: [&str; 6] = ["tree", "addresses", "hosts", "owners", "changes", "leaf_underway"];

impl Loader {
    /// The object of the hooks before the queues, without the schedulers' map (`state`), in which it can look whether a queue is full, and without
    /// the maps of engine `xsk`.
    pub fn classifier() -> Result<Loader> {
        let mut loader = Loader::open("classifier", CLASSIFIER)?;
        for map in ["state", "sockets", "workers", "sched_conf"].iter().chain(&SHARED_LINK).chain(&WIRE_TREE) {
            loader.map(map)?.set_autocreate(false).doing(|| "leaving a map out".to_owned())?;
        }
        Ok(loader)
    }

    /// The object of the scheduler as a qdisc.
    pub fn qdisc() -> Result<Loader> {
        let mut loader = Loader::open("qdisc", QDISC)?;
        for map in SHARED_LINK {
            loader.map(map)?.set_autocreate(false).doing(|| "leaving a map out".to_owned())?;
        }
        Ok(loader)
    }

    /// The object of the tree of classes as a qdisc.
    pub fn tree() -> Result<Loader> {
        let mut loader = Loader::open("tree", TREE)?;
        for map in SHARED_TREES {
            loader.map(map)?.set_autocreate(false).doing(|| "leaving a map out".to_owned())?;
        }
        Ok(loader)
    }

    /// The object that drops on arrival what a tree has no room for.
    pub fn early_leaf() -> Result<Loader> {
        Loader::open("early_leaf", EARLY_LEAF)
    }

    /// The object that finds the class of a tree that HTB has.
    pub fn htb_tree() -> Result<Loader> {
        Loader::open("htb_tree", HTB_TREE)
    }

    /// The object that leads packets to the tx queue of their tree.
    pub fn steer() -> Result<Loader> {
        Loader::open("steer", STEER)
    }

    /// The object of port forwarding.
    pub fn forward() -> Result<Loader> {
        Loader::open("forward", FORWARD)
    }

    /// The object that finds connections of forwards.
    pub fn belonging() -> Result<Loader> {
        Loader::open("belonging", BELONGING)
    }

    /// The object that observes packets while a command runs.
    pub fn telemetry() -> Result<Loader> {
        Loader::open("telemetry", TELEMETRY)
    }

    /// The object that takes packets from the host while a command runs.
    pub fn steal() -> Result<Loader> {
        Loader::open("steal", STEAL)
    }

    /// An object from elsewhere, which no command installs.
    pub fn own(bytes: &[u8]) -> Result<Loader> {
        Loader::open("own", bytes)
    }

    fn open(name: &'static str, bytes: &[u8]) -> Result<Loader> {
        libbpf_rs::set_print(Some((PrintLevel::Info, record)));
        let open = ObjectBuilder::default().open_memory(bytes).doing(|| {
            format!("opening the BPF object {name}: {}", LOG.lock().map(|log| log.clone()).unwrap_or_default())
        })?;
        Ok(Loader {
            name,
            open,
            no_memory_help: "free some, or give the machine more; a container has a limit of its own".to_owned(),
        })
    }

    /// Sets a constant that the programs are compiled against.
    pub fn constant(&mut self, variable: &str, value: u32) -> Result<()> {
        self.constant_bytes(variable, &value.to_ne_bytes())
    }

    /// Sets a constant that is a struct.
    pub fn constant_struct<T: abi::Pod>(&mut self, variable: &str, value: &T) -> Result<()> {
        self.constant_bytes(variable, abi::bytes_of(value))
    }

    /// Draws random keys for the hashes by which programs find flows and hosts, from /dev/urandom. Programs that share the map `hash` have
    /// the keys that it has.
    fn draw_hash_keys(&mut self) -> Result<()> {
        let mut keys = [0; 8 * abi::SL_HASH_KEYS as usize];
        let urandom = || "reading /dev/urandom".to_owned();
        std::fs::File::open("/dev/urandom").doing(urandom)?.read_exact(&mut keys).doing(urandom)?;
        self.write_hash(0, &keys)
    }

    /// Writes to the section of `struct sl_hash`, from an offset on. An object that hashes nothing has none.
    fn write_hash(&mut self, offset: usize, value: &[u8]) -> Result<()> {
        let short = || Error::system(format!("the section .data.hash of {} is too short", self.name));
        let Some(mut map) = self.open.maps_mut().find(|map| map.name() == ".data.hash") else { return Ok(()) };
        let bytes = map.initial_value_mut().ok_or_else(short)?;
        bytes.get_mut(offset..offset + value.len()).ok_or_else(short)?.copy_from_slice(value);
        Ok(())
    }

    /// Writes to a section of its own, as `.data.live`, from the beginning on.
    pub fn section<T: abi::Pod>(&mut self, section: &str, value: &T) -> Result<()> {
        let missing = || Error::system(format!("the BPF object {} has no section {section}", self.name));
        let mut map = self.open.maps_mut().find(|map| map.name() == section).ok_or_else(missing)?;
        let bytes = map.initial_value_mut().ok_or_else(missing)?;
        bytes.get_mut(..size_of::<T>()).ok_or_else(missing)?.copy_from_slice(abi::bytes_of(value));
        Ok(())
    }

    fn constant_bytes(&mut self, variable: &str, value: &[u8]) -> Result<()> {
        let missing = || Error::system(format!("the BPF object {} has no constant {variable}", self.name));
        let offset = {
            // SAFETY: the object outlives the BTF that is read from it here.
            let raw = unsafe { self.open.as_libbpf_object().as_ref() };
            let btf = Btf::from_bpf_object(raw).doing(|| format!("types of {}", self.name))?.ok_or_else(missing)?;
            let section: DataSec<'_> = btf.type_by_name(".rodata").ok_or_else(missing)?;
            section
                .iter()
                .find(|entry| {
                    btf.type_by_id::<Var<'_>>(entry.ty).and_then(|var| var.name()).is_some_and(|name| name == variable)
                })
                .map(|entry| entry.offset as usize)
                .ok_or_else(missing)?
        };
        let mut map =
            self.open.maps_mut().find(|map| map.name().to_string_lossy().ends_with(".rodata")).ok_or_else(missing)?;
        let bytes = map.initial_value_mut().ok_or_else(missing)?;
        bytes.get_mut(offset..offset + value.len()).ok_or_else(missing)?.copy_from_slice(value);
        Ok(())
    }

    /// Sets what is said to do where the kernel has no memory for the maps.
    pub fn help_without_memory(&mut self, help: String) {
        self.no_memory_help = help;
    }

    /// Sets the number of elements of a map.
    pub fn entries(&mut self, map: &str, entries: u32) -> Result<()> {
        self.map(map)?.set_max_entries(entries).doing(|| format!("size of {map}"))
    }

    /// Makes a map that is left out otherwise, with so many elements.
    pub fn make(&mut self, map: &str, entries: u32) -> Result<()> {
        self.map(map)?.set_autocreate(true).doing(|| format!("making {map}"))?;
        self.entries(map, entries)
    }

    /// Makes the maps of a wire whose process queues in a tree of classes, in the classifier's object.
    pub fn make_tree(&mut self) -> Result<()> {
        WIRE_TREE.iter().try_for_each(|map| self.map(map)?.set_autocreate(true).doing(|| format!("making {map}")))
    }

    /// Tells the programs whether there is a flow table. The object that makes the maps needs `own_flow_table`.
    pub fn flow_table(&mut self, flows: u32) -> Result<()> {
        self.constant("sl_keep_flows", u32::from(flows > 0))
    }

    /// Makes a flow table of so many flows, 0: none.
    pub fn own_flow_table(&mut self, flows: u32) -> Result<()> {
        self.flow_table(flows)?;
        let mask = flow_sets(flows) - 1;
        self.write_hash(std::mem::offset_of!(abi::sl_hash, flow_mask), &mask.to_ne_bytes())?;
        self.entries("flows", mask + 1)
    }

    /// Sets the name under which `tc` knows the qdisc: at most 15 characters.
    pub fn qdisc_name(&mut self, qdisc: &str) -> Result<()> {
        let mut map = self.map("sluice")?;
        let id = map
            .initial_value_mut()
            .and_then(|bytes| bytes.get_mut(..16))
            .ok_or_else(|| Error::system("the BPF object has no qdisc"))?;
        id.fill(0);
        for (to, from) in id[..15].iter_mut().zip(qdisc.bytes()) {
            *to = from;
        }
        Ok(())
    }

    /// Restricts loading to these programs.
    pub fn only(&mut self, programs: &[&str]) {
        for mut program in self.open.progs_mut() {
            let wanted = programs.iter().any(|name| program.name() == *name);
            program.set_autoload(wanted);
        }
    }

    /// Whether the maps that are pinned in `dir` have keys and values as long as those that the programs expect, and lists of programs as many
    /// places.
    pub fn fits(&self, dir: &Path) -> Result<bool> {
        for map in self.open.maps() {
            let Some(path) = pin(dir, map.name()).filter(|path| path.exists()) else { continue };
            let there = MapHandle::from_pinned_path(&path).doing(|| format!("opening {}", path.display()))?;
            let of_programs = map.map_type() == MapType::ProgArray && map.max_entries() != there.max_entries();
            if of_programs || (there.key_size(), there.value_size()) != (map.key_size(), map.value_size()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Uses each map that is pinned in `dir` under its own name, instead of a new one.
    pub fn share(&mut self, dir: &Path) -> Result<()> {
        for mut map in self.open.maps_mut() {
            let Some(path) = pin(dir, map.name()) else { continue };
            if path.exists() {
                map.reuse_pinned_map(&path).doing(|| format!("sharing {}", path.display()))?;
            }
        }
        Ok(())
    }

    /// Uses the map that is pinned at `path`, instead of a new one.
    pub fn use_map(&mut self, map: &str, path: &Path) -> Result<()> {
        self.map(map)?.reuse_pinned_map(path).doing(|| format!("sharing {}", path.display()))
    }

    fn map(&mut self, map: &str) -> Result<OpenMapMut<'_>> {
        let missing = || Error::system(format!("the BPF object {} has no map {map}", self.name));
        self.open.maps_mut().find(|candidate| candidate.name() == map).ok_or_else(missing)
    }

    /// Loads the object. If the verifier refuses it, the whole log goes into a file in `log_dir`, and the error has the log's end.
    pub fn load(mut self, log_dir: &Path) -> Result<Object> {
        self.draw_hash_keys()?;
        if let Ok(mut log) = LOG.lock() {
            log.clear();
        }
        let (name, help) = (self.name, self.no_memory_help);
        self.open.load().map_err(|error| refusal(name, &error, log_dir, help))
    }
}

fn refusal(name: &str, error: &libbpf_rs::Error, log_dir: &Path, no_memory_help: String) -> Error {
    let log = LOG.lock().map(|log| log.clone()).unwrap_or_default();
    if error.kind() == libbpf_rs::ErrorKind::PermissionDenied && !log.contains("processed") {
        return Error::new(Kind::Unsupported, format!("the kernel does not let BPF programs be loaded ({error})"))
            .help("check `sysctl kernel.unprivileged_bpf_disabled`, lockdown (`cat /sys/kernel/security/lockdown`), and the capabilities CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON of this process");
    }
    if log.contains("-ENOMEM") {
        return Error::system(format!("the kernel has no memory for the maps of the BPF object `{name}`"))
            .help(no_memory_help);
    }
    let path: PathBuf = log_dir.join(format!("verifier-{name}.log"));
    let saved = private::directory(log_dir)
        .and_then(|()| std::fs::write(&path, &log).doing(|| format!("writing {}", path.display())));
    let telling: Vec<&str> = log
        .lines()
        .filter(|line| {
            !line.trim().is_empty()
                && !line.starts_with("processed ")
                && !line.contains("-- END")
                && !line.contains("-- BEGIN")
        })
        .collect();
    let tail = telling[telling.len().saturating_sub(6)..].join("\n    ");
    let mut error =
        Error::new(Kind::Unsupported, format!("this kernel refuses the BPF object `{name}` ({error}):\n    {tail}"));
    error.cure = Some(match saved {
        Ok(()) => format!("the whole log is in {}; `sluice doctor` says what this kernel lacks", path.display()),
        Err(e) => format!("the log could not be saved in {}: {e}", path.display()),
    });
    error
}

/// The pin of a map. None: the qdisc, and constants and globals, which are named after the object; but a global in a section of
/// its own (`.data.live`) is shared.
fn pin(dir: &Path, map: &OsStr) -> Option<PathBuf> {
    let name = map.to_str()?;
    let name = name.strip_prefix(".data.").unwrap_or(name);
    (!name.contains('.') && name != "sluice").then(|| dir.join(name))
}

/// Pins every map of a loaded object in `dir`, under its name, but those that were left out. A map that is pinned there already is a shared one.
pub fn pin_maps(object: &mut Object, dir: &Path) -> Result<()> {
    for mut map in object.maps_mut() {
        let Some(path) = pin(dir, map.name()).filter(|_| map.autocreate()) else { continue };
        if !path.exists() {
            map.pin(&path).doing(|| format!("pinning {}", path.display()))?;
        }
    }
    Ok(())
}

/// The descriptor of a program; negative if it was not loaded.
pub fn program_fd(program: &libbpf_rs::Program<'_>) -> i32 {
    // SAFETY: the program belongs to an object, which is alive.
    unsafe { libbpf_sys::bpf_program__fd(libbpf_rs::AsRawLibbpf::as_libbpf_object(program).as_ptr()) }
}

/// Pins every program that was loaded.
pub fn pin_programs(object: &Object, dir: &Path) -> Result<()> {
    for mut program in object.progs_mut() {
        // SAFETY: the program belongs to the object, which is alive.
        let loaded =
            unsafe { libbpf_sys::bpf_program__fd(libbpf_rs::AsRawLibbpf::as_libbpf_object(&*program).as_ptr()) } >= 0;
        if loaded {
            let path = dir.join(program.name());
            program.pin(&path).doing(|| format!("pinning {}", path.display()))?;
        }
    }
    Ok(())
}
