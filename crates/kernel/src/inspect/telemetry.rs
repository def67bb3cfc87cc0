//! Observes packets of interfaces while a command runs: counts by key, and records of packets through a ring for each CPU.
//!
//! The programs go with the process, except behind the arrival hooks of managed interfaces, which call them under a lease.

pub(in crate::inspect) mod attachment;
mod counts;
mod keeper;
mod request;
mod rings;

pub use attachment::load_unattached;
pub use counts::{Counted, Key, Rest, Sizes};
pub use request::{Direction, Filter, KeyPart, Records, Request, Sampling};

use crate::bpf::mapped::Mapped;
use crate::maps::observing::Calls;
use crate::system::{clock, privilege};
use attachment::Attachment;
use keeper::Keeper;
use rings::Rings;
use sluice_abi as abi;
use sluice_error::{Error, Result};
use std::time::Duration;

/// Time after which names are read again.
const RENEWED: Duration = Duration::from_millis(500);

/// What programs have seen since the observer began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Totals {
    /// Packets that the filter lets through. Super-packets count as the frames that they become.
    pub seen_pkts: u64,
    /// Bytes of these.
    pub seen_bytes: u64,
    /// Packets that the filter does not let through.
    pub filtered_pkts: u64,
    /// Packets of which a record was to be made.
    pub sampled_pkts: u64,
    /// Records that found no room.
    pub missed_pkts: u64,
    /// Bytes of the packets of these.
    pub missed_bytes: u64,
    /// Packets that these records stood for.
    pub missed_weight: u64,
    /// Packets that were captured in part.
    pub truncated_pkts: u64,
}

impl Totals {
    /// The sums over CPUs. Histograms, which are most of what each CPU has, are not read.
    pub(in crate::inspect) fn of(seen: &Mapped<abi::sl_telemetry_cpu>) -> Totals {
        let mut totals = Totals::default();
        macro_rules! add {
            ($cpu:ident, $($field:ident),*) => {
                // SAFETY: `values` gives addresses of whole values, which stay mapped while the map is borrowed.
                $(totals.$field += unsafe { (&raw const (*$cpu).$field).read_volatile() };)*
            };
        }
        for cpu in seen.values() {
            add!(cpu, seen_pkts, seen_bytes, filtered_pkts, sampled_pkts, missed_pkts, missed_bytes, missed_weight);
            add!(cpu, truncated_pkts);
        }
        totals
    }
}

/// Programs that observe interfaces of this network namespace, until it is dropped.
pub struct Observer {
    request: Request,
    attachments: Vec<Attachment>,
    rings: Rings,
    /// Renews the leases under which hooks call programs, if any do.
    keeper: Option<Keeper>,
    /// When names were read last.
    renewed: Duration,
    notes: Vec<String>,
}

impl Observer {
    /// Begins to observe interfaces. All are attached, or none.
    ///
    /// # Errors
    ///
    /// An interface that is not there or that another command observes, a request that contradicts itself, a kernel without the hook.
    pub fn start(interfaces: &[String], request: &Request) -> Result<Observer> {
        privilege::require_root()?;
        request.check()?;
        if let Some(twice) = interfaces.iter().enumerate().find(|(n, one)| interfaces[..*n].contains(one)) {
            return Err(Error::input(format!("{} is named twice", twice.1)).help("name each interface once"));
        }
        let mut notes = Vec::new();
        let attachments: Result<Vec<Attachment>> =
            interfaces.iter().map(|name| Attachment::new(name, request, &mut notes)).collect();
        let attachments = attachments?;
        let rings = Rings::open(&attachments)?;
        let calls: Vec<Calls> = attachments.iter().filter_map(|one| one.calls().cloned()).collect();
        let keeper = if calls.is_empty() { None } else { Some(Keeper::start(calls)?) };
        Ok(Observer { request: request.clone(), attachments, rings, keeper, renewed: Duration::ZERO, notes })
    }

    /// What the observer cannot see, and why; each a sentence.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Hands over the records that have come, or come within this time: the number of their interface, and their bytes. Returns how many there
    /// were; at most a few thousand at once.
    pub fn poll(&mut self, limit: Duration, take: &mut dyn FnMut(usize, &[u8])) -> Result<usize> {
        let records = self.collect(limit)?;
        self.collected(take);
        Ok(records)
    }

    /// Collects the records that have come, or come within this time, as `poll` does, and keeps them until the next call.
    pub fn collect(&mut self, limit: Duration) -> Result<usize> {
        self.renew()?;
        self.rings.collect(limit.min(RENEWED))
    }

    /// Hands over what was collected.
    pub fn collected(&self, take: &mut dyn FnMut(usize, &[u8])) {
        self.rings.collected(take);
    }

    /// Reads the names of classes and rules again, if it is time.
    ///
    /// # Errors
    ///
    /// The leases of the programs could not be renewed, so nothing is observed any more.
    pub fn renew(&mut self) -> Result<()> {
        let now = clock::monotonic();
        if now.saturating_sub(self.renewed) >= RENEWED {
            self.renewed = now;
            self.keeper.as_ref().map_or(Ok(()), Keeper::check)?;
            self.attachments.iter_mut().try_for_each(Attachment::renew_names)?;
        }
        Ok(())
    }

    /// Time in which packets were not observed on interfaces with a policy: the process was stopped for longer than it had leave.
    pub fn gap(&self) -> Duration {
        self.keeper.as_ref().map_or(Duration::ZERO, Keeper::gap)
    }

    /// Ends the observation. What is in the rings can still be polled, and counts can be read.
    pub fn stop(&mut self) {
        self.attachments.iter_mut().for_each(Attachment::detach);
        // Programs that run at this moment end within it.
        crate::maps::tables::wait_for_readers();
    }

    /// What was seen on an interface.
    pub fn totals(&self, interface: usize) -> Totals {
        self.attachments[interface].totals()
    }

    /// Records of an interface's CPUs that found no room since the last that did, and so stand in no record.
    pub fn missed_at_the_end(&self, interface: usize) -> u64 {
        self.attachments[interface].cpus().map(|cpu| u64::from(cpu.missed_since)).sum()
    }

    /// The keys that were counted on an interface, and how much any other key can have sent at most.
    pub fn counts(&self, interface: usize) -> (Vec<Counted>, Rest) {
        counts::read(&self.request, &self.attachments[interface])
    }

    /// Sizes of packets, and of keys that gave their place to others.
    pub fn sizes(&self, interface: usize) -> Sizes {
        Sizes::of(self.attachments[interface].cpus())
    }

    /// Names of the classes of an interface's policy; none where it has none.
    pub fn class_names(&self, interface: usize) -> &[String] {
        &self.attachments[interface].names.classes
    }

    /// Another number whenever another policy of an interface is in force.
    pub fn policy(&self, interface: usize) -> u64 {
        self.attachments[interface].names.live
    }

    /// The rules of an interface's policy in words, by their places.
    pub fn rules(&self, interface: usize) -> &[String] {
        &self.attachments[interface].names.rules
    }

    /// Whether packets of an interface begin with an Ethernet header.
    pub fn is_ethernet(&self, interface: usize) -> bool {
        self.attachments[interface].ethernet
    }

    /// Why an interface is not observed any more, as a sentence about the first such one; None: all are.
    pub fn gone(&self) -> Option<String> {
        self.attachments.iter().find_map(Attachment::fate)
    }

    /// Whether an interface has come into management or out of it since the observer began: another one would see classes and verdicts, or its packets.
    pub fn is_outdated(&self) -> bool {
        self.attachments.iter().any(Attachment::is_outdated)
    }
}

/// CPUs that can ever run a program.
pub(in crate::inspect) fn possible_cpus() -> Result<u32> {
    libbpf_rs::num_possible_cpus()
        .map(|cpus| cpus as u32)
        .map_err(|error| Error::system(format!("counting the processors: {error}")))
}
