//! Engine `qdisc`: the scheduler core as a BPF qdisc, at the root or below mq at each of the queues.

use crate::bpf::mapped::Mapped;
use crate::bpf::object::{self, Loader};
use crate::engine::programs::{self, Loading};
use crate::engine::verify::Scheduler;
use crate::engine::{Counters, Driver, Placed, tx_queues};
use crate::fault;
use crate::maps::{schedulers, tables};
use crate::record::Record;
use crate::system::qdiscs::Qdisc;
use crate::system::{iproute, paths};
use sluice_abi as abi;
use sluice_error::{Doing, Error, Kind, Result};
use sluice_policy::Rate;
use sluice_tables::Compiled;
use std::path::Path;

/// Handle of mq where its children are ours.
pub(super) const MQ_HANDLE: &str = "5100:";
/// Names tried for the qdisc type, which is one for all network namespaces.
const NAMES: u32 = 256;

pub(super) struct BpfQdisc;

impl Driver for BpfQdisc {
    /// Loads the qdisc and registers it under a name that is free, which it sets in the record.
    fn load(&self, record: &mut Record, loading: &Loading<'_>) -> Result<()> {
        let interface = loading.interface;
        let instances = programs::instances(record);
        let (split, marks, queues) = (record.split, record.marks, record.queues);
        let netns = record.netns as u32;
        register(record, loading.pins, || {
            let mut loader = Loader::qdisc()?;
            loader.constant("sl_netns", netns)?;
            loader.constant("sl_l3_type", u32::from(!interface.ethernet))?;
            loader.constant("sl_ingress_ifb", loading.ingress_ifb)?;
            loader.constant("sl_split_ifb", loading.split_ifb)?;
            let marks = [(split || marks, abi::SL_EGRESS), (loading.ingress_ifb != 0, abi::SL_INGRESS)];
            loader.constant("sl_marks", marks.iter().map(|(does, direction)| u32::from(*does) << direction).sum())?;
            loader.flow_table(loading.policy.flows)?;
            loader.constant("sl_instances", instances)?;
            loader.constant("sl_frame_bytes", interface.mtu_bytes + interface.header_bytes() + 4)?;
            loader.entries("state", instances)?;
            loader.entries("packets", instances * abi::SL_SLOTS)?;
            if (1..=tx_queues::MOST_SHARING).contains(&queues) {
                loader.constant("sl_shares", 1)?;
                loader.make("shared_link", 1)?;
                loader.make("shared_conf", abi::SL_BUFFERS)?;
                loader.make("shared_instance", instances)?;
            }
            Ok(loader)
        })
    }

    fn install(&self, at: &Placed<'_>) -> Result<()> {
        install(at.record)
    }

    fn install_arrivals(&self, at: &Placed<'_>, _: Rate) -> Result<()> {
        replace_root(&at.record.ingress_device(), &at.record.qdisc)
    }

    /// Fails unless the schedulers' configuration is the one that was written, and schedulers that have sent since `seen` have taken it up.
    fn verify(&self, at: &Placed<'_>, (buffer, live): (u32, &Compiled), seen: &[Scheduler]) -> Result<()> {
        let wrong = |what: &str| Err(Error::system(format!("{}: {what}", at.record.interface)));
        let map = tables::open(at.pins, "sched_conf")?;
        for (direction, written) in live.sched.iter().enumerate() {
            let conf: Box<abi::sl_sched_conf> = tables::read(&map, buffer * abi::SL_DIRECTIONS + direction as u32)?;
            if abi::bytes_of(&*conf) != abi::bytes_of(&**written) {
                return wrong("the schedulers' configuration is not the one that was written");
            }
        }
        if at.pins.join("shared_conf").exists() {
            let conf: Box<abi::sl_shared_conf> = tables::read(&tables::open(at.pins, "shared_conf")?, buffer)?;
            if abi::bytes_of(&*conf) != abi::bytes_of(&*live.shared_link) {
                return wrong("the configuration of the shared link is not the one that was written");
            }
        }
        for now in self.schedulers(at.pins)? {
            let idle = seen.iter().any(|then| (then.number, then.moved) == (now.number, now.moved));
            // A scheduler that was reset, as by the link going down, takes up the configuration with its next packet.
            if !idle && now.generation != 0 && now.generation != at.record.generation {
                return wrong("a scheduler goes on with the configuration before this one");
            }
        }
        Ok(())
    }

    fn schedulers(&self, pins: &Path) -> Result<Vec<Scheduler>> {
        let all = schedulers::all(pins)?.into_iter().map(|(number, sched)| Scheduler {
            number,
            generation: sched.generation,
            moved: sched.classes.iter().map(|class| class.sent_pkts).sum(),
        });
        Ok(all.collect())
    }

    fn counters(&self, pins: &Path) -> Result<Counters> {
        let mapped = Mapped::new(&tables::open(pins, "state")?)?;
        mapped.map(Counters::Schedulers).ok_or_else(|| {
            Error::system(format!("{}: the map state does not hold what this version expects", pins.display()))
                .help("it was made by another version of sluice: use that one for `sluice down`, then this one")
        })
    }

    fn makes(&self, root: &Qdisc) -> bool {
        makes(root)
    }

    fn is_root(&self, record: &Record, root: &Qdisc) -> bool {
        is_root(record, root)
    }

    fn knows_hosts(&self) -> bool {
        true
    }

    fn shows_its_queues(&self) -> bool {
        true
    }
}

/// Loads an object with a qdisc, registers that under a name that is free, which it sets in the record, and pins it with its maps.
pub(super) fn register(record: &mut Record, pins: &Path, object: impl Fn() -> Result<Loader>) -> Result<()> {
    let taken: Vec<String> = Record::all()?.into_iter().map(|other| other.qdisc).collect();
    for n in 0..NAMES {
        let name = format!("sluice{n}");
        if taken.contains(&name) && record.qdisc != name {
            continue;
        }
        let mut loader = object()?;
        loader.qdisc_name(&name)?;
        loader.share(pins)?;
        fault::step("load", "qdisc").map_err(|error| Error { kind: Kind::Unsupported, ..error })?;
        let mut qdisc = loader.load(paths::run())?;
        let registered = {
            let mut ops = struct_ops(&mut qdisc)?;
            ops.attach_struct_ops()
        };
        let mut link = match registered {
            Ok(link) => link,
            Err(error) if error.kind() == libbpf_rs::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(Error::system(format!("registering the qdisc {name}: {error}"))),
        };
        object::pin_maps(&mut qdisc, pins)?;
        link.pin(pins.join("qdisc")).doing(|| format!("pinning {}", pins.join("qdisc").display()))?;
        record.qdisc = name;
        return Ok(());
    }
    Err(Error::system(format!("all {NAMES} names for a qdisc are taken"))
        .help("`sluice status` lists the managed interfaces"))
}

/// Puts the qdisc of a record at the root of its interface, or below mq at each of the queues.
pub(super) fn install(record: &Record) -> Result<()> {
    if record.queues == 0 {
        return replace_root(&record.interface, &record.qdisc);
    }
    replace_root(&record.interface, &format!("handle {MQ_HANDLE} mq"))?;
    install_children(record, &(1..=record.queues).collect::<Vec<_>>())
}

fn is_our_mq(root: &Qdisc) -> bool {
    root.kind == "mq" && root.handle == MQ_HANDLE
}

/// Whether a root qdisc is one that `install` makes.
pub(super) fn makes(root: &Qdisc) -> bool {
    is_name(&root.kind) || is_our_mq(root)
}

/// Whether a root qdisc is the one of a record.
pub(super) fn is_root(record: &Record, root: &Qdisc) -> bool {
    root.kind == record.qdisc || (record.queues > 0 && is_our_mq(root))
}

/// Puts a qdisc at the root of a device.
pub(super) fn replace_root(device: &str, qdisc: &str) -> Result<()> {
    iproute::tc(&format!("qdisc replace dev {device} root {qdisc}")).map(drop)
}

/// Puts schedulers below mq, at these queues.
pub(crate) fn install_children(record: &Record, queues: &[u32]) -> Result<()> {
    let (dev, qdisc) = (&record.interface, &record.qdisc);
    let lines = queues.iter().map(|n| format!("qdisc replace dev {dev} parent {MQ_HANDLE}{n:x} {qdisc}"));
    iproute::tc_batch(&lines.collect::<Vec<_>>())
}

/// Whether this is a name that we give to qdisc types.
pub(crate) fn is_name(kind: &str) -> bool {
    kind.strip_prefix("sluice").is_some_and(|n| n.parse().is_ok_and(|n: u32| n < NAMES))
}

fn struct_ops(object: &mut libbpf_rs::Object) -> Result<libbpf_rs::MapMut<'_>> {
    use libbpf_rs::MapCore;
    object.maps_mut().find(|map| map.name() == "sluice").ok_or_else(|| Error::system("the BPF object has no qdisc"))
}
