//! Whether what was written is what runs, as the kernel tells.

use crate::engine::attachment as attach;
use crate::error::{Error, Result};
use crate::maps::{schedulers, tables};
use crate::record::{Engine, Record, policy};
use crate::system::interface::Interface;
use crate::system::qdiscs;
use sluice_abi as abi;
use sluice_policy::Resolved;
use std::path::Path;

/// Reads back what is live: tables, queues, and which configuration schedulers have taken up since `seen`.
pub(crate) fn verify(
    record: &Record,
    policy: &Resolved,
    interface: &Interface,
    pins: &Path,
    seen: &[Scheduler],
) -> Result<()> {
    let wrong = |what: &str| Err(Error::system(format!("{}: {what}", record.interface)));
    let buffer = tables::live_buffer(pins)?;
    let compiled = policy::compile(policy, record, interface, buffer)?;
    if abi::bytes_of(&*tables::live(pins)?) != abi::bytes_of(&*compiled.tables) {
        return wrong("the tables in force are not those that were written");
    }
    if record.engine == Engine::Qdisc {
        let map = tables::open(pins, "sched_conf")?;
        for (direction, written) in compiled.sched.iter().enumerate() {
            let conf: Box<abi::sl_sched_conf> = tables::read(&map, buffer * abi::SL_DIRECTIONS + direction as u32)?;
            if abi::bytes_of(&*conf) != abi::bytes_of(&**written) {
                return wrong("what schedulers are told is not what was written");
            }
        }
        for now in schedulers(record, pins)? {
            let idle = seen.iter().any(|then| (then.number, then.moved) == (now.number, now.moved));
            // One that was reset, as by the link going down, takes up the configuration with its next packet.
            if !idle && now.generation != 0 && now.generation != record.generation {
                return wrong("a scheduler goes on with the configuration before this one");
            }
        }
    }
    queues(record)?;
    if record.engine == Engine::Tc {
        if let Some(device) = attach::wrong_htb(record, policy)? {
            return wrong(&format!("the HTB classes of {device} are not those of the policy"));
        }
    }
    Ok(())
}

/// The root qdisc is ours.
pub(crate) fn queues(record: &Record) -> Result<()> {
    if record.engine == Engine::None {
        return Ok(());
    }
    match qdiscs::root(&record.interface)? {
        Some(root) if attach::is_ours(record, &root) => Ok(()),
        root => Err(Error::system(format!(
            "{}: the root qdisc is {}, not ours",
            record.interface,
            root.map_or("none".to_owned(), |root| format!("{} {}", root.kind, root.handle))
        ))
        .help("something else (NetworkManager, systemd-networkd, another script) sets qdiscs on it: stop that first")),
    }
}

/// A scheduler in the kernel at one moment.
#[derive(Debug)]
pub(crate) struct Scheduler {
    number: u32,
    generation: u32,
    /// What it has sent. One that sends nothing has no occasion to look for a new configuration.
    moved: u64,
}

/// The schedulers that run, with engine `qdisc`.
pub(crate) fn schedulers(record: &Record, pins: &Path) -> Result<Vec<Scheduler>> {
    if record.engine != Engine::Qdisc {
        return Ok(Vec::new());
    }
    let all = schedulers::all(pins)?.into_iter().map(|(number, sched)| Scheduler {
        number,
        generation: sched.generation,
        moved: sched.classes.iter().map(|class| class.sent_pkts).sum(),
    });
    Ok(all.collect())
}
