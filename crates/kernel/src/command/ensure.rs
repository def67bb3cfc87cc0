//! `sluice ensure`: puts back the parts of a managed interface that other programs have removed. The parts that are there stay
//! untouched, so queued packets stay queued, and counters go on.

use crate::bpf::hooks::{self, Side};
use crate::command::change::{Change, Request};
use crate::command::recover::recover;
use crate::engine::features::Features;
use crate::engine::managed::managed_or_lost_group;
use crate::engine::parts::{Missing, missing};
use crate::engine::{
    self, Placed, attach, devices, driver, early_leaf, forwarding, members, qdisc, steering, xsk_checks,
};
use crate::maps::{observing, tables};
use crate::record::{Phase, Record, policy};
use crate::system::bpffs;
use crate::system::interface::Interface;
use crate::system::lock::Lock;
use crate::system::privilege::require_root;
use libbpf_rs::{MapCore, MapFlags};
use sluice_error::{Doing, Error, Result};
use std::path::Path;

/// The parts that were put back.
#[derive(Debug, Clone, Default)]
pub struct Healed {
    /// The parts that were missing, in words.
    pub was_missing: Vec<String>,
    /// Notes for the operator.
    pub notes: Vec<String>,
}

/// Puts back the missing parts of an interface that is wholly up.
pub fn ensure(interface: &str) -> Result<Healed> {
    require_root()?;
    recover()?;
    let record = managed_or_lost_group(interface)?;
    let pins = record.pins(&bpffs::root()?);
    observing::sweep(&pins)?;
    early_leaf::sweep(&pins)?;
    if missing(&record, &pins)?.is_empty() {
        return Ok(Healed::default());
    }
    let _lock = Lock::take()?;
    // The command that held the lock may have put the parts back, or changed the interface.
    let mut record = managed_or_lost_group(interface)?;
    let was = missing(&record, &pins)?;
    // An interface that has left does not come back: a note says so.
    let back = was.iter().filter(|one| !matches!(one, Missing::Left(_)));
    let mut healed = Healed { was_missing: back.map(ToString::to_string).collect(), notes: Vec::new() };
    refuse_foreign(&record, &was)?;
    heal(&mut record, &pins, &was, &mut healed.notes)?;
    record.save()?;
    if was.iter().any(|one| matches!(one, Missing::Member(_) | Missing::Left(_))) {
        renew_rules(&record)?;
    }
    match missing(&record, &pins)?.first() {
        None => Ok(healed),
        Some(still) => Err(again(&record, &format!("{still}, and putting it back has not helped"))),
    }
}

/// Refuses to replace a queue that was made by hand in place of ours: it may be intended.
fn refuse_foreign(record: &Record, was: &[Missing]) -> Result<()> {
    let foreign = was.iter().find(|one| matches!(one, Missing::Root { default: false, .. }));
    let Some(foreign) = foreign else { return Ok(()) };
    let cure = format!(
        "remove it (tc qdisc del dev {0} root) and run sluice ensure {0} again, or sluice down {0} to leave it there",
        record.interface
    );
    Err(Error::input(format!("{}: {foreign}, made by hand: it stays", record.interface)).help(cure))
}

fn heal(record: &mut Record, pins: &Path, was: &[Missing], notes: &mut Vec<String>) -> Result<()> {
    if !pins.join("sl_ingress").exists() {
        return Err(again(record, "its programs are not pinned any more"));
    }
    for one in was {
        match (one, &record.partner) {
            (Missing::Partner(_), Some(partner)) => {
                return Err(Error::system(format!("{}: {one}", record.interface)).help(format!(
                    "sluice down {}, then sluice wire {0} {} once {1} is back",
                    record.interface, partner.interface
                )));
            }
            (Missing::Worker { process, .. }, Some(partner)) => {
                let other = Record::of_number(partner.ifindex)?;
                let is_whole = other.is_some_and(|other| other.phase == Phase::Active && other.partner.is_some());
                let cure = match (is_whole, process) {
                    (true, None) => format!("run sluice wire {} {}", record.interface, partner.interface),
                    (true, Some(process)) => process.cure([&record.interface, &partner.interface]),
                    (false, _) => format!(
                        "{1} is not its other side any more: sluice down {0}, or sluice wire {0} {1} --policy P --rate R",
                        record.interface, partner.interface
                    ),
                };
                return Err(Error::system(format!("{}: {one}", record.interface)).help(cure));
            }
            (Missing::Workers(..), Some(partner)) => {
                return Err(Error::system(format!("{}: {one}", record.interface)).help(format!(
                    "its thread hangs: stop `sluice wire {} {}`, and start it again",
                    record.interface, partner.interface
                )));
            }
            (Missing::ReceiveQueues { interface, workers, .. }, Some(partner)) => {
                return Err(Error::system(format!("{}: {one}", record.interface)).help(format!(
                    "ethtool -L {interface} combined {workers} (or rx {workers} tx {workers}); or stop `sluice wire`, give {} as many queues, and start it \
                     again",
                    partner.interface
                )));
            }
            (Missing::LongFrames { interface, .. }, Some(_)) => {
                return Err(Error::system(format!("{}: {one}", record.interface)).help(format!(
                    "ip link set {interface} mtu {}, on the hosts beside it as well",
                    xsk_checks::LONGEST_MTU
                )));
            }
            _ => {}
        }
    }
    if let Some(beyond) = was.iter().find(|one| matches!(one, Missing::Beyond(_))) {
        let cure = format!(
            "take them out of use (ethtool -L {0} combined {1}, or tx {1}), or sluice down {0}, then sluice up {0}: this makes a scheduler for each",
            record.interface, record.queues
        );
        return Err(Error::system(format!("{}: {beyond}", record.interface)).help(cure));
    }
    let policy = policy::resolved(record)?;
    let (ingress, split) = (record.ingress_device(), record.split_device());
    let is = |test: &dyn Fn(&Missing) -> bool| was.iter().any(test);
    let of_device = |name: &str| {
        is(&|one| match one {
            Missing::Device(device) | Missing::Down(device) | Missing::Root { device, .. } => device == name,
            _ => false,
        })
    };
    let lost = [(&ingress, record.ingress_ifindex), (&split, record.split_ifindex)];
    for (name, number) in lost {
        if number.is_none() && is(&|one| *one == Missing::Device(name.clone())) {
            return Err(again(record, &format!("{name} was deleted, and its number is not known")));
        }
    }
    devices::make(record)?;
    let found = Interface::find(&record.interface)?;
    // A device that was only down still has its queues.
    let now = missing(record, pins)?;
    let lacks_queues = |name: &str| now.iter().any(|one| matches!(one, Missing::Root { device, .. } if device == name));
    if record.members.is_none() && lacks_queues(&record.interface) {
        driver(record).install(&Placed { record, policy: &policy, interface: &found, pins })?;
    }
    for one in was {
        if let Missing::Children(queues) = one {
            qdisc::install_children(record, queues)?;
        }
    }
    if lacks_queues(&ingress) {
        engine::install_arrivals(&Placed { record, policy: &policy, interface: &found, pins })?;
    }
    if of_device(&ingress) {
        forget_silence(pins)?;
    }
    if of_device(&split) || is(&|one| *one == Missing::Splitter) {
        attach::install_splitter(record, pins)?;
    }
    if is(&|one| *one == Missing::Steering) {
        steering::install(record, pins)?;
    }
    let tcx = Features::probe()?.tcx;
    if record.members.is_some() {
        return members::follow(record, &policy.arrivals_of, tcx, pins, notes);
    }
    if is(&|one| *one == Missing::Xdp) {
        hooks::detach(&pins.join("link_xdp"))?;
        attach::attach_xdp(record, pins, notes)?;
    }
    for (side, link) in [(Side::Ingress, "link_ingress"), (Side::Egress, "link_egress")] {
        // Without tcx, the filter behind ours redirects arriving packets to the device that was made anew.
        let redirects = side == Side::Ingress && !tcx && of_device(&ingress);
        if redirects || is(&|one| *one == Missing::Hook(side)) {
            hooks::detach(&pins.join(link))?;
            attach::attach_hook(record, tcx, side, pins)?;
        }
    }
    if is(&|one| *one == Missing::Forwarding) {
        forwarding::follow(record, Some(&policy))?;
    }
    if is(&|one| matches!(one, Missing::EarlyDrop(_))) {
        early_leaf::follow(record, true)?;
    }
    Ok(())
}

/// Rules about the interfaces of a group hold their numbers, which may be others now.
fn renew_rules(record: &Record) -> Result<()> {
    if policy::parse(&record.policy)?.rules.iter().all(|rule| rule.in_interface.is_none()) {
        return Ok(());
    }
    let request = Request::to(record, "an interface of the group has another number")?;
    Change::prepare(record.clone(), &request, &[])?.renew()
}

/// Resets the answers: all arriving packets go to the queue again at once, not only one in a while (`bpf/lib/answers.h`).
fn forget_silence(pins: &Path) -> Result<()> {
    let map = tables::open(pins, "answers")?;
    let cpus = libbpf_rs::num_possible_cpus().doing(|| "counting processors".to_owned())?;
    let none = vec![vec![0; map.value_size() as usize]; cpus];
    map.update_percpu(&0u32.to_ne_bytes(), &none, MapFlags::ANY).doing(|| "writing answers".to_owned())
}

fn again(record: &Record, what: &str) -> Error {
    Error::system(format!("{}: {what}", record.interface))
        .help(format!("sluice down {0}, then sluice up {0}: this makes everything anew", record.interface))
}
