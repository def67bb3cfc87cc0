//! The programs that observe an interface, and the hooks where they are.

use super::request::{Records, Request};
use super::{Totals, possible_cpus};
use crate::bpf::hooks::{self, Passing};
use crate::bpf::inner;
use crate::bpf::mapped::Mapped;
use crate::bpf::object::{self, Loader};
use crate::engine::managed;
use crate::inspect::probe::Probe;
use crate::maps::observing::Calls;
use crate::maps::tables;
use crate::record::{Hook, Record};
use crate::status;
use crate::system::interface::{self, Interface};
use crate::system::{bpffs, netns, paths};
use libbpf_rs::{MapCore, MapHandle, Object};
use sluice_abi as abi;
use sluice_error::{Doing, Error, Result};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The observation of an interface. Dropping it ends it.
pub(super) struct Attachment {
    pub interface: String,
    pub ifindex: u32,
    pub ethernet: bool,
    pub names: Names,
    /// The ring of each CPU; none: no records are made.
    pub rings: Vec<MapHandle>,
    pub cells: Mapped<abi::sl_cell>,
    pub heavy: Mapped<abi::sl_heavy_set>,
    seen: Mapped<abi::sl_telemetry_cpu>,
    /// The pins of the interface's policy, if it has one.
    pins: Option<PathBuf>,
    /// The programs that the arrival hook of the interface calls.
    called: Option<Calls>,
    links: Vec<OwnedFd>,
    /// Keeps programs and maps alive.
    object: Object,
}

impl Attachment {
    /// Loads the programs for an interface and attaches them.
    pub fn new(name: &str, request: &Request, notes: &mut Vec<String>) -> Result<Attachment> {
        let interface = Interface::find(name)?;
        let record = managed_here(&interface)?;
        let pins = record.as_ref().map(|record| Ok::<_, Error>(record.pins(&bpffs::root()?))).transpose()?;
        let (object, rings) = load(request, &interface, pins.as_deref())?;
        let names = pins.as_deref().map_or(Ok(Names::default()), Names::read)?;
        let mut attachment = Attachment {
            interface: interface.name.clone(),
            ifindex: interface.ifindex,
            ethernet: interface.ethernet,
            names,
            rings,
            cells: Mapped::of_this_version(&map(&object, "cells")?)?,
            heavy: Mapped::of_this_version(&map(&object, "heavy_sets")?)?,
            seen: Mapped::of_this_version(&map(&object, "seen_by_cpu")?)?,
            pins: pins.clone(),
            called: None,
            links: Vec::new(),
            object,
        };
        if request.direction.arriving() {
            match (&record, pins) {
                (Some(record), Some(pins)) => attachment.call_from(record, &pins)?,
                _ => attachment.attach_arrival(&interface, request.hook, notes)?,
            }
        }
        if request.direction.departing() {
            attachment.attach_departure()?;
        }
        Ok(attachment)
    }

    /// Reads the names of classes and rules again, if another policy has come into force.
    pub fn renew_names(&mut self) -> Result<()> {
        match &self.pins {
            Some(pins) if pins.exists() && Names::live_word(pins)? != self.names.live => {
                self.names = Names::read(pins)?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Has the arrival hook of a managed interface call the programs.
    fn call_from(&mut self, record: &Record, pins: &Path) -> Result<()> {
        if Calls::are_taken(pins)? {
            return Err(Error::input(format!("another command observes {}", record.interface))
                .help("one at a time: stop the other one; one that was killed gives way after 2 s"));
        }
        let mut programs = vec![("observer_tc", self.program("sl_telemetry_in_called")?)];
        if record.hook == Hook::Xdp {
            programs.push(("observer_xdp", self.program("sl_telemetry_xdp_called")?));
        }
        let calls =
            Calls::begin(pins, &programs).doing(|| format!("having the hook of {} call programs", record.interface))?;
        self.called = Some(calls);
        Ok(())
    }

    /// The programs that the arrival hook calls.
    pub fn calls(&self) -> Option<&Calls> {
        self.called.as_ref()
    }

    fn attach_arrival(&mut self, interface: &Interface, wanted: Option<Hook>, notes: &mut Vec<String>) -> Result<()> {
        let name = &interface.name;
        let real = interface.kind.is_none() && interface.ethernet && name != "lo";
        let mut places = match wanted {
            Some(Hook::Xdp) => vec![Passing::Xdp],
            Some(Hook::Tc) => vec![Passing::ArrivalFirst],
            None if real => vec![Passing::Xdp, Passing::ArrivalFirst, Passing::GenericXdp],
            // XDP turns off segmentation offload at the peer of a veth.
            None => vec![Passing::ArrivalFirst, Passing::GenericXdp],
        };
        if !interface.ethernet {
            places.retain(|place| *place == Passing::ArrivalFirst);
        }
        if interface.has_xdp && wanted != Some(Hook::Xdp) {
            notes.push(format!(
                "{name}: another XDP program is attached, and stays; what it drops or sends elsewhere is not seen"
            ));
        }
        let mut errors = Vec::new();
        for place in places {
            let program = if place == Passing::ArrivalFirst { "sl_telemetry_in" } else { "sl_telemetry_xdp" };
            match self.attach(program, place) {
                Ok(()) => return Ok(()),
                Err(error) => errors.push(format!("{}: {error}", place_name(place))),
            }
        }
        Err(Error::unsupported(format!("{name} takes no program on arrival ({})", errors.join("; ")))
            .help("tcx needs Linux 6.6; XDP needs an Ethernet interface without another XDP program: ip link show"))
    }

    fn attach_departure(&mut self) -> Result<()> {
        self.attach("sl_telemetry_out", Passing::DepartureFirst).map_err(|error| {
            Error::unsupported(format!("{} takes no program on departure: {error}", self.interface))
                .help("tcx needs Linux 6.6; arriving packets can be observed before, by XDP: leave out --departing and --both")
        })
    }

    fn attach(&mut self, program: &str, place: Passing) -> std::result::Result<(), String> {
        let fd = self.program(program).map_err(|error| error.to_string())?;
        // SAFETY: the object, which has the program, is alive.
        let program = unsafe { BorrowedFd::borrow_raw(fd) };
        let link = hooks::attach_while_open(program, self.ifindex, place).map_err(|error| error.to_string())?;
        self.links.push(link);
        Ok(())
    }

    fn program(&self, name: &str) -> Result<i32> {
        program(&self.object, name)
    }

    /// Why the interface is not observed any more, as a sentence; None: it is.
    pub fn fate(&self) -> Option<String> {
        let name = &self.interface;
        if let Some(fate) = interface::fate(name, self.ifindex) {
            return Some(fate);
        }
        if self.pins.as_ref().is_some_and(|pins| !pins.exists()) {
            return Some(format!("{name} was given back (sluice down)"));
        }
        let called = self.called.as_ref().is_none_or(Calls::are_in_place);
        (!called).then(|| format!("{name} was upgraded, or another command observes it since this one was stopped"))
    }

    /// Whether the interface has come into management or out of it since.
    pub fn is_outdated(&self) -> bool {
        let managed = Interface::find(&self.interface).and_then(|interface| managed_here(&interface));
        managed.is_ok_and(|record| record.is_some() != self.pins.is_some())
    }

    /// What each CPU has seen.
    pub fn cpus(&self) -> impl Iterator<Item = abi::sl_telemetry_cpu> + '_ {
        // SAFETY: `values` gives addresses of whole values, which stay mapped while the attachment is borrowed.
        self.seen.values().map(|value| unsafe { value.read_volatile() })
    }

    /// The sums over CPUs of what was seen.
    pub fn totals(&self) -> Totals {
        Totals::of(&self.seen)
    }
}

impl Attachment {
    /// Takes the programs off their hooks. Their maps stay.
    pub fn detach(&mut self) {
        self.links.clear();
        if let Some(calls) = self.called.take() {
            calls.end();
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.detach();
    }
}

/// Names of a policy's classes and rules.
#[derive(Default)]
pub(super) struct Names {
    /// `sl_live.word` of when they were read.
    pub live: u64,
    pub classes: Vec<String>,
    pub rules: Vec<String>,
}

impl Names {
    fn read(pins: &Path) -> Result<Names> {
        let live = Names::live_word(pins)?;
        let tables = tables::live(pins)?;
        let rule = |rule: &abi::sl_rule| match (status::text(&rule.name), rule.line) {
            (name, _) if name.is_empty() => rule.priority.to_string(),
            (name, 0) => format!("{} \"{name}\"", rule.priority),
            (name, line) => format!("{} \"{name}\", line {line} of the policy", rule.priority),
        };
        Ok(Names {
            live,
            classes: tables.class_name.iter().map(|name| status::text(name)).collect(),
            rules: tables.rule.iter().map(rule).collect(),
        })
    }

    fn live_word(pins: &Path) -> Result<u64> {
        Ok(tables::read::<abi::sl_live>(&tables::open(pins, "live")?, 0)?.word)
    }
}

fn place_name(place: Passing) -> &'static str {
    match place {
        Passing::Xdp => "XDP",
        Passing::GenericXdp => "XDP in the stack",
        Passing::ArrivalFirst | Passing::DepartureFirst => "tcx",
    }
}

/// The record of an interface, if it is managed.
pub(in crate::inspect) fn managed_here(interface: &Interface) -> Result<Option<Record>> {
    match Record::find(&interface.name)? {
        Some(record) if record.netns == netns::inode()? => managed::managed(&interface.name).map(Some),
        _ => Ok(None),
    }
}

pub(in crate::inspect) fn map(object: &Object, name: &str) -> Result<MapHandle> {
    let missing = || Error::system(format!("the BPF object has no map {name}"));
    let found = object.maps().find(|map| map.name() == name).ok_or_else(missing)?;
    MapHandle::try_from(&found).doing(|| format!("opening {name}"))
}

/// The descriptor of a program of an object.
pub(in crate::inspect) fn program(object: &Object, name: &str) -> Result<i32> {
    let found = object.progs().find(|program| program.name() == name);
    found
        .map(|program| object::program_fd(&program))
        .filter(|fd| *fd >= 0)
        .ok_or_else(|| Error::system(format!("the program {name} was not loaded")))
}

/// Loads the programs, sharing the maps of a policy if there is one, and makes the rings.
fn load(request: &Request, interface: &Interface, pins: Option<&Path>) -> Result<(Object, Vec<MapHandle>)> {
    let mut loader = Loader::telemetry()?;
    loader.constant("sl_l3_type", u32::from(!interface.ethernet))?;
    prepare(&mut loader, request, pins.is_some())?;
    let mut programs = Vec::new();
    match pins {
        Some(pins) => {
            if !loader.fits(pins)? {
                return Err(Error::system(format!("{}: its maps are of another version", interface.name))
                    .help(format!("sluice upgrade {} swaps them", interface.name)));
            }
            loader.flow_table(0)?;
            loader.share(pins)?;
            programs.extend(["sl_telemetry_in_called", "sl_telemetry_xdp_called"]);
        }
        None => {
            loader.own_flow_table(0)?;
            programs.extend(["sl_telemetry_in", "sl_telemetry_xdp"]);
        }
    }
    programs.push("sl_telemetry_out");
    loader.only(&programs);
    let object = loader.load(paths::run())?;
    let rings = make_rings(&object, request)?;
    Ok((object, rings))
}

/// Loads programs of an object that includes those of the observer, to serve a request with the tables of a policy in memory: nothing is attached.
/// Returns the ring of each CPU too; none where no records are made.
///
/// # Errors
///
/// An object without the observer's maps, a request that contradicts itself, a kernel that refuses the programs.
pub fn load_unattached(
    object: &[u8],
    programs: &[&str],
    constants: &[(&str, u32)],
    request: &Request,
) -> Result<(Probe, Vec<MapHandle>)> {
    request.check()?;
    let mut loader = Loader::own(object)?;
    for (name, value) in constants {
        loader.constant(name, *value)?;
    }
    prepare(&mut loader, request, true)?;
    loader.own_flow_table(0)?;
    loader.only(programs);
    let object = loader.load(paths::run())?;
    let rings = make_rings(&object, request)?;
    Ok((Probe::of_loaded(object), rings))
}

/// Sets the constants and the sizes of maps for a request. by_policy: the programs have the tables of a policy.
fn prepare(loader: &mut Loader, request: &Request, by_policy: bool) -> Result<()> {
    let cpus = possible_cpus()?;
    loader.constant_struct("sl_conf", &request.conf(by_policy))?;
    loader.entries("seen_by_cpu", cpus)?;
    loader.entries("cells", if request.is_dense() { cpus << abi::SL_CELL_BITS } else { 1 })?;
    loader.entries("heavy_sets", if request.is_dense() { 1 } else { cpus * request.heavy_sets() })?;
    loader.entries("rings", cpus)
}

/// Makes a ring for each CPU, if records are asked for.
fn make_rings(object: &Object, request: &Request) -> Result<Vec<MapHandle>> {
    let mut rings = Vec::new();
    if request.records != Records::None {
        let outer = map(object, "rings")?;
        for cpu in 0..possible_cpus()? {
            let ring = inner::ring("telemetry", request.ring_bytes)?;
            inner::place(&outer, cpu, &ring)?;
            rings.push(ring);
        }
    }
    Ok(rings)
}
