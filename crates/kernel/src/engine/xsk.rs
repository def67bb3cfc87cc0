//! Engine `xsk`: two interfaces as a wire. What arrives at one is queued by a process, `sluice wire`, and leaves by the other; there is no qdisc of
//! ours. While no process runs, packets pass as they come.

use crate::bpf::object::Loader;
use crate::engine::qdisc::BpfQdisc;
use crate::engine::verify::Scheduler;
use crate::engine::{Counters, Driver, Placed};
use crate::maps::tables;
use crate::maps::workers::Workers;
use crate::record::Record;
use crate::system::iproute;
use sluice_abi as abi;
use sluice_error::Result;
use sluice_policy::Rate;
use sluice_tables::Compiled;
use sluice_xsk::FrameBytes;
use std::path::Path;

pub(crate) struct Xsk;

/// Has the classifier's object hand packets to the sockets of a process.
pub(super) fn hand_over(loader: &mut Loader) -> Result<()> {
    loader.constant("sl_is_wire", 1)?;
    loader.constant("sl_wire_frame_bytes", FrameBytes::Small.packet_bytes())?;
    loader.make("sockets", abi::SL_WIRE_QUEUES)?;
    loader.make("workers", abi::SL_WIRE_QUEUES)
}

impl Driver for Xsk {
    /// Has the classifier's object hand packets to a process.
    fn prepare(&self, record: &Record, loader: &mut Loader) -> Result<()> {
        hand_over(loader)?;
        if record.workers() > 1 {
            loader.entries("underway", abi::SL_CLASSES * record.workers())?;
            loader.make("shared_link", 1)?;
            loader.make("shared_conf", abi::SL_BUFFERS)?;
            loader.make("shared_instance", record.workers())?;
        }
        loader.make("sched_conf", abi::SL_BUFFERS * abi::SL_DIRECTIONS)
    }

    /// Makes the schedulers of arrivals the interface's, before a process takes them up.
    fn install_arrivals(&self, at: &Placed<'_>, _: Rate) -> Result<()> {
        let state = tables::open(at.pins, "state")?;
        let mut instance: Box<abi::sl_instance> = abi::boxed_zeroed();
        instance.sched.ifindex = at.record.ifindex;
        instance.sched.direction = abi::SL_INGRESS;
        for queue in 0..at.record.workers() {
            instance.sched.tx_queue = queue as u16;
            tables::write(&state, queue, &*instance)?;
        }
        let live = tables::open(at.pins, "live")?;
        let mut word: Box<abi::sl_live> = tables::read(&live, 0)?;
        word.arrivals = 1;
        tables::write(&live, 0, &*word)
    }

    fn verify(&self, at: &Placed<'_>, live: (u32, &Compiled), seen: &[Scheduler]) -> Result<()> {
        Workers::open(at.pins)?.await_turn();
        BpfQdisc.verify(at, live, seen)
    }

    fn schedulers(&self, pins: &Path) -> Result<Vec<Scheduler>> {
        BpfQdisc.schedulers(pins)
    }

    fn counters(&self, pins: &Path) -> Result<Counters> {
        BpfQdisc.counters(pins)
    }

    fn shows_its_queues(&self) -> bool {
        true
    }

    fn keeps_packets(&self) -> bool {
        true
    }
}

/// Makes an interface promiscuous. Returns whether it was not before.
pub(crate) fn make_promiscuous(name: &str) -> Result<bool> {
    let is = iproute::ip(&format!("-d link show dev {name}"))?.contains("promiscuity 0");
    if is {
        iproute::ip(&format!("link set dev {name} promisc on"))?;
    }
    Ok(is)
}

/// Ends what `make_promiscuous` began, if it did.
pub(crate) fn end_promiscuous(record: &Record) -> Result<()> {
    if record.partner.as_ref().is_some_and(|partner| partner.made_promiscuous) {
        iproute::ip(&format!("link set dev {} promisc off", record.interface))?;
    }
    Ok(())
}
