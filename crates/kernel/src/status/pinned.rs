//! A managed interface with its pinned maps open, to be read again and again.

use super::counts::{BUILTIN, class_counts, matched, parsed, rules};
use super::policers::Policers;
use super::tree::{Kept, Snapshot};
use super::{
    ClassStatus, Count, DirectionStatus, Framing, Packets, PolicyStatus, PortStatus, Status, UnconfirmedStatus,
    add_drops, text,
};
use super::{forwards, leaves, schedulers, shared_link};
use crate::engine::{Counters, driver, early_leaf, parts, programs};
use crate::maps::counters::RuleCounts;
use crate::maps::flows::{self, FlowTable};
use crate::maps::tables;
use crate::maps::workers::Workers;
use crate::record::rule_starts::RuleStarts;
use crate::record::{Record, policy};
use crate::system::bpffs;
use crate::system::interface::Interface;
use libbpf_rs::{MapCore, MapHandle};
use sluice_abi as abi;
use sluice_error::Result;
use sluice_policy::network::{Address, Network};
use sluice_policy::{Resolved, ResolvedClass, Scheduler};
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for which a check of the parts is believed.
const LOOKED_AT: Duration = Duration::from_secs(5);

pub(crate) struct Pinned {
    record: Record,
    pins: PathBuf,
    policy: Resolved,
    /// The addresses of each subscriber.
    addresses: Vec<Arc<[Address]>>,
    framing: Framing,
    /// Tables that were in force when the maps were opened.
    live: Box<abi::sl_tables>,
    live_word: MapHandle,
    class_counts: MapHandle,
    rule_counts: RuleCounts,
    parse_counts: MapHandle,
    flows: MapHandle,
    policers: Policers,
    counters: Counters,
    /// The workers of a wire.
    workers: Option<Workers>,
    /// Parts that were not in place, and the time of that check.
    missing: RefCell<Option<(Instant, Vec<String>)>>,
    /// The parts of the tree's readings that the next one can use.
    kept: RefCell<Kept>,
}

impl Pinned {
    /// Opens the maps of a record that is wholly up.
    pub fn open(record: Record) -> Result<Pinned> {
        let pins = record.pins(&bpffs::root()?);
        let policy = policy::resolved(&record)?;
        let header_bytes = Interface::find(&record.interface)?.header_bytes();
        Ok(Pinned {
            live: tables::live(&pins)?,
            policers: Policers::open(&pins, &policy)?,
            framing: Framing::of(&policy.framing, header_bytes),
            addresses: policy.network.as_ref().map(Network::addresses).unwrap_or_default(),
            policy,
            live_word: tables::open(&pins, "live")?,
            class_counts: tables::open(&pins, "class_counts")?,
            rule_counts: RuleCounts::open(&pins)?,
            parse_counts: tables::open(&pins, "parse_counts")?,
            flows: tables::open(&pins, "flows")?,
            counters: driver(&record).counters(&pins)?,
            workers: Workers::open_if_there(&pins)?,
            missing: RefCell::default(),
            kept: RefCell::default(),
            pins,
            record,
        })
    }

    /// The record of the interface.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Directory of the interface's pins.
    pub fn pins(&self) -> &std::path::Path {
        &self.pins
    }

    /// Number of the configuration in force now; that of the tables that were read is `read_generation`.
    pub fn generation(&self) -> Result<u32> {
        Ok((tables::read::<abi::sl_live>(&self.live_word, 0)?.word >> 32) as u32)
    }

    /// Number of the configuration whose tables were read.
    pub fn read_generation(&self) -> u32 {
        self.live.generation
    }

    /// Takes the record as it was written since, of the same pins and the same configuration.
    pub fn renew(&mut self, record: Record) {
        self.record = record;
    }

    /// The flow table, as it is now. None: the policy keeps no flows.
    pub fn flows(&self) -> Result<Option<FlowTable>> {
        if self.policy.flows == 0 {
            return Ok(None);
        }
        Ok(Some(FlowTable {
            flows: flows::read(&self.flows)?,
            capacity: self.flows.max_entries() * abi::SL_FLOW_SET_WAYS,
            rules: self.rule_names(),
            generation: self.live.generation,
        }))
    }

    /// Names of the rules by index; built-in rules and the default have the indices of `enum sl_no_rule`.
    fn rule_names(&self) -> Vec<(u16, String)> {
        let own = self.live.rule.iter().take(self.live.rules as usize).enumerate().map(|(index, rule)| {
            let name = text(&rule.name);
            let name = if name.is_empty() { format!("rule {}", rule.priority) } else { name };
            (index as u16, name)
        });
        let builtin =
            BUILTIN.iter().enumerate().map(|(n, name)| (abi::SL_RULE_ARP as u16 + n as u16, (*name).to_owned()));
        own.chain(builtin).chain([(abi::SL_RULE_NONE as u16, "default".to_owned())]).collect()
    }

    /// The status of the interface, as it is now.
    pub fn status(&self) -> Result<Status> {
        let record = &self.record;
        // A record of another configuration than the tables' has the starts of other rules.
        let none = RuleStarts::default();
        let starts = if record.generation == self.live.generation { &record.rule_starts } else { &none };
        let counts = [
            matched(&self.rule_counts, abi::SL_EGRESS, &self.live, starts)?,
            matched(&self.rule_counts, abi::SL_INGRESS, &self.live, starts)?,
        ];
        let tree = self.tree()?;
        let early_drop_at = match (&tree, &record.partner) {
            (None, _) => Vec::new(),
            (Some(_), Some(_)) => vec![record.interface.clone()],
            (Some(_), None) => early_leaf::places(&self.pins)?,
        };
        let egress = self.direction(abi::SL_EGRESS, counts[0].all, tree.as_ref())?;
        let ingress = self.direction(abi::SL_INGRESS, counts[1].all, tree.as_ref())?;
        let missing = self.missing()?;
        let (mut rules, unmatched) = rules(&self.live, &counts);
        let own = rules.iter_mut().filter(|rule| rule.priority.is_some());
        own.zip(&self.policy.rules).for_each(|(shown, rule)| shown.matches = sluice_policy::asks(&rule.rule));
        let of_tree = tree.as_ref().map(|tree| tree.status(early_drop_at));
        if let Some(tree) = tree {
            self.kept.borrow_mut().put_back(tree);
        }
        Ok(Status {
            interface: record.interface.clone(),
            ifindex: record.ifindex,
            phase: record.phase,
            engine: record.engine,
            classifier: record.hook,
            qdisc: record.qdisc.clone(),
            in_place: missing.is_empty(),
            missing,
            outdated: !programs::runs_own_programs(record),
            policy: PolicyStatus {
                name: record.policy_name.clone(),
                source: record.policy_source.clone(),
                scheduler: if self.policy.network.is_some() { "tree" } else { self.policy.scheduler.name() }.to_owned(),
                generation: self.live.generation,
                applied_s: record.applied_s,
            },
            unconfirmed: record.unconfirmed.as_ref().map(|unconfirmed| UnconfirmedStatus {
                left_s: unconfirmed.left().as_secs_f64().ceil() as u64,
                former: unconfirmed.former.name.clone(),
            }),
            rate_bps: self.policy.link_rate.map(|rate| rate.0),
            ingress_rate_bps: record.ingress_rate_bps,
            arrivals_of: record.member_names(),
            split: record.split,
            queues: if record.partner.is_some() { record.workers() } else { record.queues },
            directions: vec![egress, ingress],
            rules,
            unmatched,
            forwards: forwards::read(record, &self.policy)?,
            tree: of_tree,
        })
    }

    /// The tree as it is now. None: the policy has no subscribers.
    pub fn tree(&self) -> Result<Option<Snapshot<'_>>> {
        match (&self.counters, &self.policy.network, self.record.way) {
            (Counters::Tree(maps), Some(network), Some(way)) => {
                let kept = &mut self.kept.borrow_mut();
                Snapshot::take(maps, (network, &self.addresses), way, &self.record, kept).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The parts that are not in place. A check asks several tools, so its result is kept for some seconds.
    fn missing(&self) -> Result<Vec<String>> {
        let mut kept = self.missing.borrow_mut();
        if let Some((_, missing)) = kept.as_ref().filter(|(when, _)| when.elapsed() < LOOKED_AT) {
            return Ok(missing.clone());
        }
        let missing: Vec<String> = parts::missing(&self.record, &self.pins)?.iter().map(ToString::to_string).collect();
        *kept = Some((Instant::now(), missing.clone()));
        Ok(missing)
    }

    /// The status of a direction.
    fn direction(&self, direction: u32, matched: Count, tree: Option<&Snapshot<'_>>) -> Result<DirectionStatus> {
        let record = &self.record;
        let egress = direction == abi::SL_EGRESS;
        let queued = if egress {
            record.queues_departures()
        } else {
            record.engine.queues() && record.ingress_rate_bps.is_some()
        };
        let hooks = class_counts(&self.class_counts, direction)?;
        let mut classes: Vec<ClassStatus> = (0..abi::SL_CLASSES as usize)
            .filter(|id| self.live.classes >> id & 1 == 1)
            .map(|id| self.class(id))
            .collect();
        for class in &mut classes {
            let hook = &hooks[usize::from(class.id)];
            for (reason, count) in abi::limit_names().zip(hook.refused).chain([("malformed", hook.malformed)]) {
                class.dropped.add(count);
                add_drops(class, reason, count.pkts);
            }
            if !queued {
                // A direction without queues has no limits of them.
                (class.limit_pkts, class.limit_bytes, class.target_us) = (None, None, None);
                class.sent = hook.seen;
                hook.refused.into_iter().for_each(|count| class.sent.take(count));
            }
        }
        let device = if egress { record.interface.clone() } else { record.arrivals_are_queued_on() };
        let mut totals = schedulers::Totals::default();
        match &self.counters {
            Counters::Schedulers(state) if queued => {
                let ifindex = if egress { record.ifindex } else { ifindex(&device) };
                totals = schedulers::add(&mut classes, state, ifindex);
                // Of a wire what arrives, of other engines what departs.
                if egress != record.partner.is_some() {
                    shared_link::add(&mut totals, &mut classes, &self.pins)?;
                }
            }
            // A device that was deleted has no leaves.
            Counters::Leaves if queued && ifindex(&device) > 0 => {
                leaves::add(&mut classes, &crate::engine::leaves::of_device(&device)?)
            }
            Counters::Tree(_) if queued => {
                if let Some(tree) = tree {
                    totals.link_fill = tree.add_to(&mut classes, self.policy.default_class);
                    totals.tx_queues.clone_from(&tree.tx_queues);
                    // Each subscriber's queue has its own.
                    for class in &mut classes {
                        (class.limit_pkts, class.target_us) = (None, None);
                    }
                }
            }
            _ => {}
        }
        let (mut lost, mut port) = (None, None);
        if let Some(workers) = self.workers.as_ref().filter(|_| queued) {
            let each = workers.lost_pkts(record.workers());
            lost = Some(Packets { pkts: each.iter().sum() });
            let ports = workers.ports(record.workers());
            let limit_bytes = ports.iter().map(|port| port.limit_bytes).sum::<u64>();
            port = Some(PortStatus {
                wait_s: ports.iter().map(|port| port.wait_ns as f64 / 1e9).sum(),
                limit_bytes: Some(limit_bytes).filter(|bytes| *bytes > 0),
            });
            for one in &mut totals.tx_queues {
                one.lost = each.get(usize::from(one.queue)).map(|pkts| Packets { pkts: *pkts });
            }
        }
        let rate_bps = if egress { self.policy.link_rate.map(|rate| rate.0) } else { record.ingress_rate_bps };
        let limits = &self.policy.limits;
        let limit = if egress { limits.egress } else { limits.ingress };
        let mut status = DirectionStatus {
            direction: if egress { "egress" } else { "ingress" },
            queued,
            rate_bps: rate_bps.filter(|_| queued),
            framing: rate_bps.filter(|_| queued).map(|_| self.framing),
            link_fill: totals.link_fill,
            limit_bps: limit.map(|limit| limit.rate.0),
            limit_fill: None,
            scheduler: totals.state,
            classes,
            parsed: parsed(&self.parse_counts, direction, matched)?,
            tx_queues: totals.tx_queues,
            lost,
            port,
        };
        let is_queued = queued && matches!(self.counters, Counters::Schedulers(_));
        self.policers.add(&mut status, &self.live, direction, is_queued)?;
        Ok(status)
    }

    /// The status of a class as the policy has it; nothing is counted yet.
    fn class(&self, id: usize) -> ClassStatus {
        let name = text(&self.live.class_name[id]);
        let empty = ClassStatus { id: id as u8, name, ..ClassStatus::default() };
        let policy = &self.policy;
        let Some(class) = policy.classes.iter().find(|class| usize::from(class.id.0) == id) else { return empty };
        ClassStatus {
            ceil_bps: class.ceil.map(|rate| rate.0),
            peak_bps: class.peak.map(|peak| peak.rate.0),
            rate_bps: class.rate.map(|rate| rate.0),
            flow_ceil_bps: class.flow_ceil.map(|ceiling| ceiling.rate.0),
            shared_ceil_bps: class.shared_ceil.as_ref().map(|shared| shared.ceiling.rate.0),
            priority: policy.scheduler.uses_priority(policy.rank).then_some(class.priority),
            weight: policy.scheduler.uses_weight(policy.rank).then_some(class.weight),
            quantum_bytes: policy.scheduler.uses_quantum(policy.rank).then_some(class.quantum_bytes),
            share: share(policy, class),
            urgent: is_urgent(policy, class),
            limit_pkts: Some(class.limit_pkts),
            limit_bytes: class.limit_bytes.map(|bytes| bytes.0),
            target_us: class.codel.map(|codel| codel.at_rate(policy.link_rate).target_ns as f64 / 1e3),
            ..empty
        }
    }
}

fn ifindex(device: &str) -> u32 {
    nix::net::if_::if_nametoindex(device).unwrap_or(0)
}

/// Whether a class is for little, urgent traffic: it goes before others, or its packets have deadlines.
fn is_urgent(policy: &Resolved, class: &ResolvedClass) -> bool {
    let last = policy.classes.iter().map(|class| class.priority).max().unwrap_or(0);
    let before = policy.scheduler.uses_priority(policy.rank) && class.priority < last;
    before || (policy.scheduler.uses_budget(policy.rank) && class.latency_budget_ns.is_some())
}

/// The share that a discipline gives a class while all have packets, 0 to 1.
fn share(policy: &Resolved, class: &ResolvedClass) -> Option<f64> {
    let part = |of: fn(&ResolvedClass) -> u32| {
        let all: f64 = policy.classes.iter().map(|class| f64::from(of(class))).sum();
        (all > 0.0).then(|| f64::from(of(class)) / all)
    };
    match policy.scheduler {
        scheduler if scheduler.uses_weight(policy.rank) => part(|class| class.weight),
        Scheduler::DEFICIT_ROUND_ROBIN => part(|class| class.quantum_bytes),
        _ => None,
    }
}
