//! One change of the policy of one interface: prepared, performed, and taken back where it fails.
//!
//! Both records are on disk while the change is on its way, and the tables say which of them is in force: a command that is
//! killed leaves one policy or the other.

use crate::command::waiting;
use crate::engine::features::Features;
use crate::engine::forwarding::checks::Scrutiny;
use crate::engine::options::Options;
use crate::engine::plan::{self, Plan};
use crate::engine::verify::verify;
use crate::engine::{self, Placed, driver, early_leaf, forwarding, members, xsk_checks, xsk_workers};
use crate::fault;
use crate::maps::tables::{self, spare_buffer};
use crate::maps::{counters, shared};
use crate::record::history::{self, Outcome};
use crate::record::origin::Origin;
use crate::record::policy::{Rates, choose_tag, compile, departing, parse, rates, resolve, resolved, written};
use crate::record::rule_starts::Counted;
use crate::record::{Engine, Record};
use crate::system::interface::Interface;
use crate::system::{bpffs, clock, qdiscs};
use sluice_error::{Error, Kind, Result};
use sluice_policy::difference::{self, difference};
use sluice_policy::network::Network;
use sluice_policy::{Difference, Policy, Rate, Resolved};
use std::path::PathBuf;
use std::time::Duration;

/// The rate that departures, or arrivals, shall be shaped to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateOption {
    /// The rate that the option gave last, if it gave one.
    AsBefore,
    /// This rate; none: the policy's.
    Set(Option<Rate>),
}

impl RateOption {
    /// The rate that holds instead of the policy's; none: the policy's.
    fn or(self, before: Option<Rate>) -> Option<Rate> {
        match self {
            RateOption::AsBefore => before,
            RateOption::Set(rate) => rate,
        }
    }
}

/// A policy that shall take the place of the present one.
#[derive(Debug, Clone)]
pub struct Request {
    /// Name of the interface.
    pub interface: String,
    /// The policy.
    pub policy: Policy,
    /// Source of the policy's text, such as a path.
    pub source: String,
    /// `--rate`.
    pub rate: RateOption,
    /// `--ingress-rate`.
    pub ingress_rate: RateOption,
    /// `--confirm`: time that the policy stays in force unless it is confirmed.
    pub confirm: Option<Duration>,
    /// `--message`: reason of the change, for the history.
    pub message: Option<String>,
    /// The command that makes the change.
    pub what: Origin,
    /// Number of the history entry that the change repeats.
    pub repeats: Option<u32>,
    /// `--force`: a new forward may take what others have, and more than half of the subscribers may go.
    pub force: bool,
}

/// A change that was made, with notes for the caller.
#[derive(Debug, Clone)]
pub struct Done {
    /// The interface as it is managed now.
    pub record: Record,
    /// Whether anything was done. If not, the policy in force said the same.
    pub performed: bool,
    /// Rate that departures are shaped to, the option's or the policy's, bits per second.
    pub rate_bps: Option<u64>,
    /// Difference from the policy before, if there was one.
    pub difference: Option<Difference>,
    /// Remarks on the policy, for its author.
    pub remarks: sluice_policy::Diagnostics,
    /// Notes that the operator can act on.
    pub notes: Vec<String>,
    /// Details of how the change was made.
    pub details: Vec<String>,
}

impl Done {
    /// The outcome of a change from one policy to another.
    pub(crate) fn change(record: Record, before: &Resolved, now: Resolved, notes: Vec<String>) -> Done {
        Done {
            performed: true,
            rate_bps: now.link_rate.map(|rate| rate.0),
            difference: Some(difference(before, &now)),
            remarks: now.remarks,
            notes,
            details: Vec::new(),
            record,
        }
    }

    /// The outcome for an interface whose policy says already what was asked for.
    pub(crate) fn nothing(record: Record) -> Done {
        Done {
            performed: false,
            rate_bps: record.rate_bps,
            difference: Some(Difference::default()),
            remarks: sluice_policy::Diagnostics::default(),
            notes: Vec::new(),
            details: Vec::new(),
            record,
        }
    }
}

impl Request {
    /// The request that brings back a record's policy.
    pub(crate) fn to(was: &Record, why: &str) -> Result<Request> {
        Ok(Request {
            interface: was.interface.clone(),
            policy: parse(&was.policy)?,
            source: was.policy_source.clone(),
            rate: RateOption::Set(was.rate_bps.map(Rate)),
            ingress_rate: RateOption::Set(rates(was).arrivals),
            confirm: None,
            message: Some(why.to_owned()),
            what: Origin::Revert,
            repeats: None,
            force: true,
        })
    }
}

/// Brings back the last policy that needed no confirmation. The caller holds the lock.
pub(crate) fn revert(record: &Record) -> Result<Done> {
    let Some(unconfirmed) = &record.unconfirmed else {
        return Err(Error::system(format!("{}: nothing waits to be confirmed", record.interface)));
    };
    let former = &unconfirmed.former;
    let was = Record {
        policy: former.policy.clone().into(),
        policy_source: former.source.clone(),
        rate_bps: former.rate_bps,
        ingress_rate_bps: former.ingress.map_or(record.ingress_rate_bps, |ingress| ingress.rate_bps),
        ingress_rate_of_policy: former.ingress.map_or(record.ingress_rate_of_policy, |ingress| ingress.of_policy),
        ..record.clone()
    };
    let request = Request::to(&was, &format!("not confirmed within {} s", unconfirmed.time_s))?;
    Change::prepare(record.clone(), &request, &[])?.perform(&request)
}

/// Counters of the rule places before a flip, and after the last program that used the former policy has ended.
struct Turn {
    before: Counted,
    after: Counted,
}

/// A change that has been checked and can be performed.
pub(crate) struct Change {
    found: Interface,
    pins: PathBuf,
    /// The record in force until now.
    pub was: Record,
    pub before: Resolved,
    /// The record in force from now on.
    pub record: Record,
    pub now: Resolved,
    notes: Vec<String>,
}

impl Change {
    /// Checks a request. `together`: all requests of the same command.
    pub fn prepare(was: Record, request: &Request, together: &[Request]) -> Result<Change> {
        let found = Interface::find(&was.interface)?;
        let pins = was.pins(&bpffs::root()?);
        let given = rates(&was);
        let rates =
            Rates { departures: request.rate.or(given.departures), arrivals: request.ingress_rate.or(given.arrivals) };
        let before = resolved(&was)?;
        let now = departing(resolve(&request.policy, rates, was.engine)?, &was);
        let options = Options {
            engine: Some(was.engine).filter(|engine| engine.queues()),
            hook: Some(was.hook),
            ingress_rate: now.ingress_rate,
            running: Some(was.queues),
            in_use: None,
            available_bytes: None,
        };
        let root = qdiscs::root(&was.interface)?;
        let kind = root.as_ref().map_or("", |root| root.kind.as_str());
        let plan = plan::plan(&now, &found, &Features::known()?, &options, kind)?;
        refuse(&was, &before, &now, &plan)?;
        if let Some(partner) = &was.partner {
            xsk_checks::check(&found, &partner.interface, &now)?;
            xsk_workers::check_policy(&was, &now)?;
        }
        if request.what == Origin::Apply && !request.force {
            refuse_shrinking(&was, &before, &now)?;
        }
        let changes: Vec<(&str, &Policy)> =
            together.iter().map(|request| (request.interface.as_str(), &request.policy)).collect();
        members::refuse(&was.interface, &now, &changes)?;
        members::refuse_member(&was.interface, &now, &changes)?;
        if was.engine.has_qdiscs() && !root.is_some_and(|root| engine::is_ours(&was, &root)) {
            return Err(again(&was, "its root qdisc is not ours any more: something has replaced it", ""));
        }
        let unconfirmed = request.confirm.map(|time| was.begin_waiting(time));
        let record = Record {
            policy: written(&request.policy),
            policy_name: now.name.clone(),
            policy_source: request.source.clone(),
            rate_bps: rates.departures.map(|rate| rate.0),
            ingress_rate_bps: now.ingress_rate.map(|rate| rate.0),
            ingress_rate_of_policy: rates.arrivals.is_none(),
            applied_s: clock::now_s(),
            what: request.what,
            message: request.message.clone(),
            repeats: request.repeats,
            unconfirmed,
            ..was.clone()
        };
        let together: Vec<&str> = together.iter().map(|request| request.interface.as_str()).collect();
        shared::refuse_other_rates(&record, &request.policy, &together)?;
        let scrutiny = match request.what {
            Origin::Rollback | Origin::Revert => Scrutiny::Restored,
            Origin::Up | Origin::Apply => Scrutiny::forced(request.force),
        };
        let mut notes = forwarding::checks::check(&found.name, &before.forwards, &now.forwards, scrutiny)?;
        notes.extend(forwarding::note_of_size(&record, &now)?);
        notes.extend(forwarding::note_of_translation(&now));
        Ok(Change { found, pins, was, before, record, now, notes })
    }

    /// The number of a configuration that has not been in force.
    fn next_generation(&self) -> Result<u32> {
        // The record of a change of subscribers is written before its tables.
        Ok(tables::live_generation(&self.pins)?.max(self.was.generation).wrapping_add(1).max(1))
    }

    /// Makes the policy in force live anew, since interfaces that its rules name have other numbers now. The history has no part in it.
    pub fn renew(self) -> Result<()> {
        let generation = self.next_generation()?;
        self.renew_as(generation)
    }

    /// As [`Change::renew`], under this number, which no configuration had that was in force.
    pub fn renew_as(mut self, generation: u32) -> Result<()> {
        let live = tables::live_buffer(&self.pins)?;
        self.record = Record { generation, before: Some(Box::new(self.was.clone())), ..self.was.clone() };
        self.record.save()?;
        if let Err(error) = self.swap(&self.record, &self.now, |_| Ok(())) {
            return Err(self.take_back(error));
        }
        self.record.before = None;
        self.record.save()?;
        tables::forget(&self.pins, live)
    }

    /// Lets the interfaces go that leave this group, before another change of the same command adds them to another group.
    pub fn let_members_go(&mut self) -> Result<()> {
        if self.was.members.is_none() {
            return Ok(());
        }
        let let_go = members::let_go(&mut self.was, &self.now.arrivals_of, &self.pins);
        self.record.members.clone_from(&self.was.members);
        let_go.and_then(|()| self.was.save())
    }

    /// Takes those interfaces back, if the change is not performed.
    pub fn take_members_back(mut self) -> Result<()> {
        let tcx = Features::known()?.tcx;
        members::follow(&mut self.was, &self.before.arrivals_of, tcx, &self.pins, &mut Vec::new())?;
        self.was.save()
    }

    pub fn perform(mut self, request: &Request) -> Result<Done> {
        let command = request.what.name();
        let (live, spare) = (tables::live_buffer(&self.pins)?, spare_buffer(&self.pins)?);
        self.record.generation = self.next_generation()?;
        self.record.tag = choose_tag(&self.record)?;
        // A policy that cannot be compiled is refused before anything is touched.
        compile(&self.now, &self.record, &self.found, spare)?;
        let kept = difference::kept_rules(&self.before, &self.now);
        self.record.rule_starts = self.was.rule_starts.next(&kept, &counters::of_rules(&self.pins, self.places())?);
        self.record.before = Some(Box::new(self.was.clone()));
        self.record.save()?;
        let swapped = fault::step(command, "recorded")
            .and_then(|()| waiting::start_waiting(&self.record))
            .and_then(|()| fault::step(command, "waited-for"))
            .and_then(|()| self.swap(&self.record, &self.now, |name| fault::step(command, name)))
            .and_then(|turn| self.follow_members().map(|()| turn));
        let turn = match swapped {
            Ok(turn) => turn,
            Err(error) => return Err(self.take_back(error)),
        };
        self.record.rule_starts = self.was.rule_starts.next(&kept, &turn.before);
        self.record.rule_starts.settle(&turn.after);
        let mut notes: Vec<String> = history::note_change(&self.record).into_iter().collect();
        notes.extend(driver(&self.record).notes(&self.record, &self.now));
        notes.append(&mut self.notes);
        fault::point(&format!("{command}-noted"));
        // Other interfaces may have a policy of this name than had one of the former. What is missing then, `ensure` mends.
        if let Err(error) = early_leaf::follow(&self.record, true) {
            notes.push(error.to_string());
        }
        self.record.before = None;
        self.record.save()?;
        fault::point(&format!("{command}-settled"));
        tables::forget(&self.pins, live)?;
        shared::sweep()?;
        Ok(Done::change(self.record, &self.before, self.now, notes))
    }

    /// The hooks of a group come to the members of the new policy, and leave others.
    fn follow_members(&mut self) -> Result<()> {
        let tcx = Features::known()?.tcx;
        members::follow(&mut self.record, &self.now.arrivals_of, tcx, &self.pins, &mut self.notes)
    }

    /// Number of rule places that may have counted.
    fn places(&self) -> u32 {
        (self.before.rules.len().max(self.now.rules.len()) as u32).max(self.was.rule_starts.places)
    }

    fn placed<'a>(&'a self, record: &'a Record, policy: &'a Resolved) -> Placed<'a> {
        Placed { record, policy, interface: &self.found, pins: &self.pins }
    }

    /// Makes a record's policy live, and verifies it.
    fn swap(&self, record: &Record, policy: &Resolved, step: impl Fn(&str) -> Result<()>) -> Result<Turn> {
        let spare = spare_buffer(&self.pins)?;
        let (at, driver) = (self.placed(record, policy), driver(record));
        let compiled = at.compiled(spare)?;
        driver.change(&at)?;
        step("queued")?;
        tables::stage(&self.pins, &compiled, spare)?;
        step("staged")?;
        let before = counters::of_rules(&self.pins, self.places())?;
        tables::flip(&self.pins, spare, record.generation)?;
        let after = counters::of_rules(&self.pins, self.places())?;
        step("live")?;
        forwarding::follow(record, Some(policy))?;
        step("forwarding")?;
        let seen = driver.schedulers(&self.pins)?;
        driver.prune(&at)?;
        step("pruned")?;
        verify(&at, &seen)?;
        step("verified")?;
        Ok(Turn { before, after })
    }

    /// Brings back the former policy after a failure. The error says whether that has succeeded.
    fn take_back(&self, mut error: Error) -> Error {
        let took_force = tables::live_generation(&self.pins).is_ok_and(|live| live == self.record.generation);
        // A generation that has been in force is not used again.
        let generation = if took_force { self.record.generation.wrapping_add(1).max(1) } else { self.was.generation };
        let mut back = Record { generation, members: self.record.members.clone(), ..self.was.clone() };
        let restored = if took_force {
            let swapped = self.swap(&back, &self.before, |_| Ok(()));
            swapped.map(|turn| back.rule_starts.without(&self.record.rule_starts, &turn.after))
        } else {
            let (at, driver) = (self.placed(&back, &self.before), driver(&back));
            driver.change(&at).and_then(|()| driver.prune(&at))
        };
        let restored = restored.and_then(|()| {
            let tcx = Features::known()?.tcx;
            members::follow(&mut back, &self.before.arrivals_of, tcx, &self.pins, &mut Vec::new())
        });
        history::note(&self.record, Outcome::Failed, Some(&error.what));
        error.kind = Kind::System;
        match restored.and_then(|()| back.save()).and_then(|()| shared::sweep()) {
            Ok(()) => error.what += &format!("\n  the former policy, {}, is in force again", back.policy_name),
            Err(rest) => {
                error.what +=
                    &format!("\n  and bringing back the former policy, {}, failed: {}", back.policy_name, rest.what);
                error.cure = Some(format!("sluice down {0}, then sluice up {0}", back.interface));
            }
        }
        error
    }
}

/// Refuses the changes that a running interface cannot take.
fn refuse(was: &Record, before: &Resolved, now: &Resolved, plan: &Plan) -> Result<()> {
    let mut changes = Vec::new();
    if plan.engine != was.engine {
        changes.push("whether packets are queued");
    }
    let kind = |policy: &Resolved| policy.network.as_ref().map(Network::is_class_tree);
    if kind(before) != kind(now) {
        let named = |kind| match kind {
            None => "flat classes",
            Some(true) => "a class tree",
            Some(false) => "subscribers",
        };
        let (was_of, is_of) = (named(kind(before)), named(kind(now)));
        let what = format!(
            "the policy in force has {was_of}, the new one {is_of}; a running interface cannot change between them"
        );
        return Err(again(was, &what, " with the new policy"));
    }
    let at_link = |policy: &Resolved| policy.network.as_ref().map(|network| network.link().scheduler);
    if before.network.is_some() && now.network.is_some() && at_link(before) != at_link(now) {
        changes.push("the \"scheduler\" of the policy");
    }
    if now.network.as_ref().is_some_and(|network| was.way.is_some_and(|way| way != network.way(was.departs_by()))) {
        changes.push("on which side of the subscribers the interface is");
    }
    if before.flows != now.flows {
        changes.push("the size of the flow table");
    }
    if was.queues > 0 && plan.queues == 0 && plan.engine == Engine::Qdisc {
        changes.push("one scheduler for all queues instead of one for each");
    }
    if was.queues == 0 && plan.queues > 0 && plan.engine == Engine::Qdisc {
        changes.push("one scheduler for each queue instead of one for all");
    }
    if was.ingress_rate_bps.is_some() != now.ingress_rate.is_some() {
        changes.push("whether arrivals are queued");
    }
    if was.members.is_some() == now.arrivals_of.is_empty() {
        changes.push("whether this is a group of interfaces");
    }
    if !changes.is_empty() {
        let what = format!("this changes {}, which a running interface cannot", changes.join(" and "));
        return Err(again(was, &what, " with the new policy"));
    }
    if plan.split && !was.split {
        let what = "at this rate super-packets must be split, which a running interface cannot begin";
        return Err(again(was, what, " with the new policy"));
    }
    if was.engine.has_qdiscs() && now.has_leaf_classes() && !was.split && !was.classifies {
        let what = "classes inside subscribers need a hook on departure, which a running interface does not get";
        return Err(again(was, what, " with the new policy"));
    }
    Ok(())
}

/// Refuses a policy that has lost more than half of its subscribers: its table may have been cut short.
fn refuse_shrinking(was: &Record, before: &Resolved, now: &Resolved) -> Result<()> {
    let subscribers = |policy: &Resolved| {
        let network = policy.network.as_ref().filter(|network| !network.is_class_tree())?;
        Some(network.subscribers().len())
    };
    let many = |policy: &Resolved| subscribers(policy).unwrap_or(0);
    let (before, now) = (many(before), many(now));
    if now >= before.div_ceil(2) {
        return Ok(());
    }
    let what = format!("{}: {now} of {before} subscribers are left: has the table been cut short?", was.interface);
    Err(Error::input(what).help("check the table; if it is meant, use --force"))
}

fn again(was: &Record, what: &str, with: &str) -> Error {
    let name = &was.interface;
    let cure = match &was.partner {
        Some(partner) => format!("stop the wire, then sluice wire {name} {} --policy P", partner.interface),
        None => format!("sluice down {name}, then sluice up {name}{with}"),
    };
    Error::input(format!("{name}: {what}")).help(cure)
}
