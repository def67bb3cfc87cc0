//! Port forwarding, one for all interfaces of a network namespace: its object, its tables, and the hooks where targets answer.
//!
//! The tables are made to follow the policies of all managed interfaces (`follow`). A forward that differs from before takes a new place, and
//! `listens` leads there from then on, by one word for each port: so no connection sees half a change, and those that are open stay with
//! the old place.

mod attach;
pub(crate) mod checks;
mod leaving;
mod own_clients;
mod routes;
mod shortcuts;
mod tables;

use crate::bpf::hooks;
use crate::bpf::object::{self, Loader};
use crate::engine::managed::settled;
use crate::maps::forwarding::{CALL_TABLE, directory};
use crate::maps::tables as maps;
use crate::record::{Phase, Record, policy};
use crate::system::interface::Interface;
use crate::system::{netns, paths};
use attach::{attach, detach};
pub use leaving::{ForwardWay, Leaving, SharedWay};
pub(crate) use leaving::{leaving, ways as ways_of};
use libbpf_rs::{MapCore, MapFlags};
use routes::{routes, ways, ways_to};
pub use shortcuts::Queued;
use shortcuts::acts_on_departures;
use sluice_abi as abi;
use sluice_error::{Doing, Error, Result};
use sluice_policy::{Forward, Resolved};
use sluice_tables::forward::{Routed, timeouts};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tables::Tables;

/// The beginning of a link's file name; the number of its interface follows.
const LINK: &str = "link_";
/// The beginning of the file names of its programs.
const PROGRAM: &str = "sl_";

/// The forwards of an interface.
struct OfInterface {
    ifindex: u32,
    forwards: Vec<Forward>,
    /// The most connections that its policy asks room for.
    connections: u32,
    tag: u16,
    /// Whether packets that depart are scheduled, limited or counted there.
    acts_on_departures: bool,
    /// Whether packets that arrive are queued.
    queues_arrivals: bool,
}

impl OfInterface {
    fn of(record: &Record, policy: &Resolved) -> OfInterface {
        OfInterface {
            ifindex: record.ifindex,
            forwards: policy.forwards.clone(),
            connections: policy.connections,
            tag: record.tag,
            acts_on_departures: acts_on_departures(policy),
            queues_arrivals: record.ingress_ifindex.is_some(),
        }
    }
}

/// The other managed interfaces of a record's network namespace.
fn others(own: &Record) -> Result<Vec<OfInterface>> {
    let mut interfaces = Vec::new();
    for other in Record::all()?.into_iter().filter(|other| other.netns == own.netns && other.key != own.key) {
        if other.phase == Phase::Active && Interface::is_there(&other.interface, other.ifindex) {
            let other = settled(other)?;
            interfaces.push(OfInterface::of(&other, &policy::resolved(&other)?));
        }
    }
    Ok(interfaces)
}

/// Makes the tables follow the policies of all interfaces of the record's network namespace, of which the record's own has this one now; none: it
/// is managed no longer.
pub(crate) fn follow(own: &Record, policy: Option<&Resolved>) -> Result<()> {
    let mut interfaces = others(own)?;
    interfaces.extend(policy.map(|policy| OfInterface::of(own, policy)));
    let directory = directory(own.netns)?;
    let loaded = directory.join("listens").exists();
    if interfaces.iter().all(|interface| interface.forwards.is_empty()) {
        return match (loaded, interfaces.is_empty()) {
            (_, true) => remove(own.netns),
            (true, false) => Tables::open(&directory)?.change(&[], &interfaces).map(drop),
            (false, false) => Ok(()),
        };
    }
    let routes = routes(&interfaces)?;
    if !loaded {
        let connections = interfaces.iter().map(|interface| interface.connections).max();
        load(&directory, connections.unwrap_or(abi::SL_DEFAULT_CONNECTIONS))?;
    }
    let mut routed = Vec::new();
    for interface in &interfaces {
        for forward in &interface.forwards {
            match ways(interface, forward, &routes) {
                // It stays as it is; new forwards have been held against the routes before (checks.rs).
                Err(error) => {
                    eprintln!("warning: {error}");
                    routed.push(Routed { ifindex: interface.ifindex, forward, routes: Vec::new(), strict: false });
                }
                Ok(ways) => routed.push(ways),
            }
        }
    }
    let tables = Tables::open(&directory)?;
    let left = tables.change(&routed, &interfaces)?;
    // Targets of replaced forwards answer until their connections end; one that has no way any more does not.
    let former = ways_to(&left).unwrap_or_default();
    let devices: BTreeSet<&str> = routes.values().chain(former.values()).map(|way| way.dev.as_str()).collect();
    tables.depart(&attach(&directory, own.netns, &devices, &interfaces)?)
}

/// A note for a policy that asks room for more connections than the table has: it is made when the first forward of all interfaces begins.
pub(crate) fn note_of_size(record: &Record, policy: &Resolved) -> Result<Option<String>> {
    let directory = directory(record.netns)?;
    if policy.forwards.is_empty() || !directory.join("listens").exists() {
        return Ok(None);
    }
    let room = maps::open(&directory, "connections")?.max_entries();
    Ok((policy.connections > room).then(|| {
        format!(
            "the table of connections keeps its {room} entries: it grows when all interfaces with forwards are `down`, and \
             `up` again"
        )
    }))
}

/// A note for forwards whose packets are not queued on arrival, though others are.
pub(crate) fn note_of_translation(policy: &Resolved) -> Option<String> {
    let name = &policy.forwards.iter().find(|forward| forward.translates())?.name;
    policy.ingress_rate.map(|_| {
        format!("forward \"{name}\" translates between IPv4 and IPv6: its packets go past the queue of arrivals, for the stack cannot send them on")
    })
}

/// Whether the tables and hooks that the forwards of an interface need are in place. Without forwards, nothing is looked at.
pub(crate) fn is_in_place(record: &Record) -> Result<bool> {
    // Most policies have none, and need not be read for that.
    if !record.policy.contains("\"forwards\"") || policy::parse(&record.policy)?.forwards.is_empty() {
        return Ok(true);
    }
    let directory = directory(record.netns)?;
    if !directory.join("listens").exists() {
        return Ok(false);
    }
    let mut links = fs::read_dir(&directory).doing(|| format!("reading {}", directory.display()))?.flatten();
    Ok(links.all(|entry| {
        let name = entry.file_name();
        !name.to_string_lossy().starts_with(LINK) || hooks::is_attached(&entry.path())
    }))
}

/// Swaps the programs for those of this command, which take over tables and connections. If the tables of this version are others, all begins
/// anew. Returns whether open connections are lost.
pub(crate) fn renew(record: &Record, policy: &Resolved) -> Result<bool> {
    let directory = directory(record.netns)?;
    if !directory.join("listens").exists() {
        return Ok(false);
    }
    let mut loader = Loader::forward()?;
    let kept = loader.fits(&directory)?;
    if kept {
        loader.share(&directory)?;
        remove_pins(&directory, |name| name.starts_with(PROGRAM))?;
        install(loader, &directory)?;
        attach::renew(&directory)?;
    } else {
        detach(&directory, record.netns)?;
        remove_pins(&directory, |name| name != CALL_TABLE)?;
    }
    follow(record, Some(policy))?;
    Ok(!kept)
}

/// Removes the pins of these names; what is in use stays until it is not.
fn remove_pins(directory: &Path, these: impl Fn(&str) -> bool) -> Result<()> {
    for entry in fs::read_dir(directory).doing(|| format!("reading {}", directory.display()))?.flatten() {
        if these(&entry.file_name().to_string_lossy()) {
            hooks::detach(&entry.path())?;
        }
    }
    Ok(())
}

/// Whether an interface of this network namespace has forwards.
pub(crate) fn is_used(netns: u64) -> Result<bool> {
    let has = |record: &Record| policy::parse(&record.policy).map(|policy| !policy.forwards.is_empty());
    Record::all()?.iter().filter(|record| record.netns == netns).try_fold(false, |any, record| Ok(any || has(record)?))
}

/// Removes all of it from a network namespace.
pub(crate) fn remove(netns: u64) -> Result<()> {
    let directory = directory(netns)?;
    if directory.join("listens").exists() {
        detach(&directory, netns)?;
    }
    match fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).doing(|| format!("removing {}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Ports that this host gives to connections of its own.
fn own_ports() -> abi::sl_own_ports {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ports = text.split_whitespace().map_while(|word| word.parse::<u32>().ok());
    match (ports.next(), ports.next()) {
        (Some(first), Some(last)) if first <= last => abi::sl_own_ports { first, many: last - first + 1 },
        _ => abi::sl_own_ports { first: 0, many: 0 },
    }
}

/// Loads the programs, with room for so many connections at least, and has the arrival hooks call them.
fn load(directory: &Path, connections: u32) -> Result<()> {
    let mut loader = Loader::forward()?;
    let connections = connections.next_power_of_two();
    let sets = connections / abi::SL_CONNECTIONS_PER_SET;
    loader.entries("connections", connections)?;
    loader.entries("places", sets)?;
    let forwarding = abi::sl_forwarding {
        last_connection: connections - 1,
        last_set: sets - 1,
        timeouts: timeouts(),
        own_ports: own_ports(),
        netns_cookie: netns::cookie()?,
    };
    loader.section(".data.forwarding", &forwarding)?;
    install(loader, directory)
}

/// Loads the object, pins what is not pinned yet, and has the arrival hooks call the new programs.
fn install(loader: Loader, directory: &Path) -> Result<()> {
    let mut object = loader.load(paths::run())?;
    object::pin_programs(&object, directory)?;
    let programs = maps::open(directory, CALL_TABLE)?;
    object::pin_maps(&mut object, directory)?;
    let called = object.progs().find(|program| program.name() == "sl_forward_called");
    let called = called.ok_or_else(|| Error::system("the BPF object forward has no program sl_forward_called"))?;
    programs
        .update(&0u32.to_ne_bytes(), &object::program_fd(&called).to_ne_bytes(), MapFlags::ANY)
        .doing(|| "making port forwarding a part of the arrival hooks".to_owned())
}
