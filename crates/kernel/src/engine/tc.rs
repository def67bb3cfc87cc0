//! Engine `tc`: the kernel's HTB with a BPF classifier at its root.

use crate::engine::htb::{self, Leaves, Target};
use crate::engine::verify::Scheduler;
use crate::engine::{Counters, Driver, Placed, differences, leaves};
use crate::record::Record;
use crate::system::iproute;
use crate::system::qdiscs::{self, Qdisc};
use sluice_error::{Error, Result};
use sluice_policy::{Rate, Resolved, ResolvedClass};
use sluice_tables::Compiled;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Time that a queue of HTB may take to run empty before it is made anew.
const SOON_EMPTY: Duration = Duration::from_millis(100);

pub(super) struct Tc;

impl Driver for Tc {
    fn programs(&self, record: &Record) -> &'static [&'static str] {
        if record.ingress_rate_bps.is_some() { &["sl_htb_egress", "sl_htb_ingress"] } else { &["sl_htb_egress"] }
    }

    fn install(&self, at: &Placed<'_>) -> Result<()> {
        install(at, &at.record.interface, at.policy.link_rate, "sl_htb_egress")
    }

    fn install_arrivals(&self, at: &Placed<'_>, rate: Rate) -> Result<()> {
        install(at, &at.record.ingress_device(), Some(rate), "sl_htb_ingress")
    }

    /// HTB and the packets in it stay; its filter is replaced.
    fn renew(&self, at: &Placed<'_>) -> Result<()> {
        if at.record.members.is_none() {
            iproute::tc_batch(&[classifier(&at.record.interface, at.pins, "sl_htb_egress")])?;
        }
        if at.record.ingress_rate_bps.is_some() {
            iproute::tc_batch(&[classifier(&at.record.ingress_device(), at.pins, "sl_htb_ingress")])?;
        }
        Ok(())
    }

    fn change(&self, at: &Placed<'_>) -> Result<()> {
        for (device, rate) in devices(at.record, at.policy) {
            let target = target(at, &device, rate);
            let before = iproute::tc(&format!("class show dev {device}"))?;
            let mut lines = Vec::new();
            for class in htb::reparented(&before, at.policy) {
                await_empty(class, &device)?;
                lines.push(htb::remove_class(class, &device));
            }
            lines.extend(htb::build(at.policy, &target, false));
            iproute::tc_batch(&lines)?;
            htb::moved(&before, at.policy).into_iter().try_for_each(|class| take_new_priority(class, &target))?;
        }
        Ok(())
    }

    /// Removes the HTB classes that the policy does not have, to which no packet is sent any more.
    fn prune(&self, at: &Placed<'_>) -> Result<()> {
        for (device, _) in devices(at.record, at.policy) {
            iproute::tc_batch(&htb::remove(&minors(&device)?, at.policy, &device))?;
        }
        Ok(())
    }

    fn verify(&self, at: &Placed<'_>, _: (u32, &Compiled), _: &[Scheduler]) -> Result<()> {
        for (device, _) in devices(at.record, at.policy) {
            if minors(&device)? != htb::minors(at.policy) {
                let interface = &at.record.interface;
                return Err(Error::system(format!(
                    "{interface}: the HTB classes of {device} are not those of the policy"
                )));
            }
        }
        Ok(())
    }

    fn counters(&self, _: &Path) -> Result<Counters> {
        Ok(Counters::Leaves)
    }

    fn makes(&self, root: &Qdisc) -> bool {
        root.kind == "htb" && root.handle == htb::HANDLE
    }

    fn is_root(&self, _: &Record, root: &Qdisc) -> bool {
        self.makes(root)
    }

    fn keeps_packets(&self) -> bool {
        true
    }

    fn notes(&self, record: &Record, policy: &Resolved) -> Vec<String> {
        differences::fallbacks(policy, Some(leaf_kinds(record))).iter().map(note).collect()
    }

    fn details(&self, at: &Placed<'_>) -> Vec<String> {
        let leaves = Some(leaf_kinds(at.record));
        // A difference that a module would mend is a note, not a detail.
        let noted = differences::fallbacks(at.policy, leaves);
        let all = differences::differences(at.policy, at.policy.link_rate, leaves, at.interface.header_bytes());
        all.iter().filter(|one| !noted.contains(one)).map(note).collect()
    }
}

pub(super) fn note(difference: &String) -> String {
    format!("engine tc: {difference}")
}

/// The queues that the kernel had for classes when the interface came under management.
pub(super) fn leaf_kinds(record: &Record) -> Leaves {
    Leaves { fq_codel: record.fq_codel, codel: record.codel }
}

fn target<'a>(at: &Placed<'_>, device: &'a str, rate: Option<Rate>) -> Target<'a> {
    Target { device, rate, header_bytes: at.interface.header_bytes(), leaves: leaf_kinds(at.record) }
}

fn install(at: &Placed<'_>, device: &str, rate: Option<Rate>, program: &str) -> Result<()> {
    let mut lines = htb::build(at.policy, &target(at, device, rate), true);
    lines.push(classifier(device, at.pins, program));
    iproute::tc_batch(&lines)
}

pub(super) fn classifier(device: &str, pins: &Path, program: &str) -> String {
    format!(
        "filter replace dev {device} parent {0} protocol all pref 1 handle 1 bpf direct-action object-pinned {1} classid {0}",
        htb::HANDLE,
        pins.join(program).display()
    )
}

/// HTB leaves a class among those of its former priority until its queue is empty (htb_deactivate in sch_htb.c). If the queue
/// does not empty soon, it is made anew, and its packets are lost.
fn take_new_priority(class: &ResolvedClass, target: &Target<'_>) -> Result<()> {
    if await_empty(class, target.device)? { Ok(()) } else { iproute::tc_batch(&htb::renew_leaf(class, target)) }
}

/// Whether the queue of a class has run empty soon.
fn await_empty(class: &ResolvedClass, device: &str) -> Result<bool> {
    let until = Instant::now() + SOON_EMPTY;
    while leaves::queued_pkts(device, class.id.0)? > 0 {
        if Instant::now() > until {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(true)
}

/// Whether our HTB is at the root of a device.
pub(super) fn has_htb(device: &str) -> Result<bool> {
    Ok(qdiscs::root(device)?.is_some_and(|root| Tc.makes(&root)))
}

pub(super) fn minors(device: &str) -> Result<Vec<u32>> {
    Ok(htb::minors_shown(&iproute::tc(&format!("class show dev {device}"))?))
}

fn devices(record: &Record, policy: &Resolved) -> Vec<(String, Option<Rate>)> {
    let mut devices = Vec::new();
    if record.members.is_none() {
        devices.push((record.interface.clone(), policy.link_rate));
    }
    devices.extend(record.ingress_rate_bps.map(|bps| (record.ingress_device(), Some(Rate(bps)))));
    devices
}
