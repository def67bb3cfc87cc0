//! Engine `xsk`: two interfaces as a wire. What arrives at one is queued by a process, `sluice wire`, and leaves by the other; there is no qdisc of
//! ours. While no process runs, packets pass as they come.

use crate::bpf::object::Loader;
use crate::engine::qdisc::BpfQdisc;
use crate::engine::verify::Scheduler;
use crate::engine::xsk_tree::check_network;
use crate::engine::{Counters, Driver, Placed};
use crate::maps::tables;
use crate::maps::workers::Workers;
use crate::record::Record;
use crate::system::interface::{Interface, TAGGED_HEADER_BYTES};
use crate::system::{channels, iproute};
use sluice_abi as abi;
use sluice_error::{Error, Result};
use sluice_policy::{ClassFrom, Mode, Rate, Resolved, ResolvedRule};
use sluice_tables::Compiled;
use sluice_xsk::FrameBytes;
use std::path::Path;

pub(crate) struct Xsk;

/// Has the classifier's object hand packets to the socket of a process.
pub(super) fn hand_over(loader: &mut Loader) -> Result<()> {
    loader.constant("sl_is_wire", 1)?;
    loader.constant("sl_wire_frame_bytes", FrameBytes::Small.packet_bytes())?;
    loader.make("sockets", abi::SL_WIRE_QUEUES)?;
    loader.make("workers", abi::SL_WIRE_QUEUES)
}

impl Driver for Xsk {
    /// Has the classifier's object hand packets to a process.
    fn prepare(&self, _: &Record, loader: &mut Loader) -> Result<()> {
        hand_over(loader)?;
        loader.make("sched_conf", abi::SL_BUFFERS * abi::SL_DIRECTIONS)
    }

    /// Makes the scheduler of arrivals the interface's, before a process takes it up.
    fn install_arrivals(&self, at: &Placed<'_>, _: Rate) -> Result<()> {
        let state = tables::open(at.pins, "state")?;
        let mut instance: Box<abi::sl_instance> = abi::boxed_zeroed();
        instance.sched.ifindex = at.record.ifindex;
        instance.sched.direction = abi::SL_INGRESS;
        tables::write(&state, 0, &*instance)?;
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

/// Checks that an interface can be one side of a wire to another one, and its policy one that a wire can keep.
///
/// # Errors
///
/// The kernel, the interface or the policy lacks what the engine needs.
pub(crate) fn check(interface: &Interface, partner: &str, policy: &Resolved) -> Result<()> {
    let name = &interface.name;
    if !sluice_xsk::is_supported() {
        return Err(Error::unsupported(
            "this kernel has no AF_XDP sockets (CONFIG_XDP_SOCKETS), which engine xsk needs",
        )
        .help("use `sluice up`, whose engines work on a router, without AF_XDP"));
    }
    if !interface.ethernet || name == "lo" {
        return Err(Error::input(format!("{name} has no Ethernet header, and a wire carries Ethernet frames"))
            .help("name two Ethernet interfaces"));
    }
    let queues = channels::receive_queues(interface)?;
    if queues != 1 {
        return Err(Error::input(format!(
            "{name} has {queues} receive queues, and a wire has one worker, of one queue"
        ))
        .help(format!("ethtool -L {name} combined 1 (or rx 1)")));
    }
    let most = interface.mtu_bytes + TAGGED_HEADER_BYTES;
    if most > FrameBytes::Small.packet_bytes() {
        let what = format!(
            "frames of {name} have up to {most} bytes, and a frame of AF_XDP holds {}",
            FrameBytes::Small.packet_bytes()
        );
        let mtu = FrameBytes::Small.packet_bytes() - TAGGED_HEADER_BYTES;
        return Err(Error::input(what).help(format!("ip link set {name} mtu {mtu}, on the hosts beside it as well")));
    }
    if let Some(network) = &policy.network {
        check_network(network, name, partner)?;
    }
    check_policy(name, policy)
}

/// Checks that nothing else uses an interface that is to be a side of a wire: what comes for it would go to the other side.
///
/// # Errors
///
/// It has an address, or is part of another device.
pub(crate) fn check_unused(name: &str) -> Result<()> {
    let addresses = iproute::ip(&format!("-o addr show dev {name} scope global"))?;
    if let Some(address) = addresses.split_whitespace().nth(3) {
        return Err(Error::input(format!("{name} has the address {address}, which nobody would reach by it any more"))
            .help(format!("wire other interfaces, or remove it: ip addr flush dev {name}")));
    }
    let shown = iproute::ip(&format!("-o link show dev {name}"))?;
    let mut words = shown.split_whitespace().skip_while(|word| *word != "master");
    if let Some(master) = words.nth(1) {
        return Err(Error::input(format!("{name} is part of {master}, which would get no packets from it any more"))
            .help(format!("wire other interfaces, or take it out: ip link set dev {name} nomaster")));
    }
    Ok(())
}

fn check_policy(name: &str, policy: &Resolved) -> Result<()> {
    let cannot = [
        (policy.mode == Mode::ClassifyOnly, "\"mode\": \"classify_only\"", "a wire queues"),
        (
            policy.mode == Mode::ScheduleOnly { by: ClassFrom::Mark },
            "\"class_from\": \"mark\"",
            "packets have no marks where a wire takes them",
        ),
        (!policy.forwards.is_empty(), "\"forwards\"", "a wire has no addresses of its own"),
        (!policy.arrivals_of.is_empty(), "\"arrivals_of\"", "a wire is of two interfaces"),
    ];
    if let Some((_, key, why)) = cannot.iter().find(|(holds, _, _)| *holds) {
        return Err(Error::input(format!("{name}: the policy has {key}, and {why}")).help("remove it from the policy"));
    }
    let by_card = |one: &&ResolvedRule| one.rule.vlan.is_some() || one.rule.pcp.is_some() || one.rule.mark.is_some();
    if let Some(ResolvedRule { rule, .. }) = policy.rules.iter().find(by_card) {
        let what = format!(
            "{name}: the rule of priority {} asks for a VLAN, its priority or a mark, which XDP does not see",
            rule.priority
        );
        return Err(Error::input(what).help("remove vlan_id, pcp and mark from the rule"));
    }
    Ok(())
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
