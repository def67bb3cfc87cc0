//! Policy to what is applied: every value chosen, checked against the link, and each choice that the file does not
//! make said in a note.

use crate::bytes::Bytes;
use crate::ceiling::{self, Ceiling, Limits, SharedCeiling};
use crate::diagnostic::{Diagnostic, Diagnostics, Kind, Severity};
use crate::limits::{self, Demand};
use crate::link::{Framing, SplitGso};
use crate::lint::{class_span, lint};
use crate::policy::{Class, ClassId, Exceed, MAX_QUEUED_PKTS, Malformed, Mode, Policy, Rule, Term, Terms};
use crate::queue::{Codel, Hosts, Queue};
use crate::rank::Rank;
use crate::rate::Rate;
use crate::scheduler::Scheduler;
use crate::{sums, window};
use ipnet::IpNet;
use std::collections::BTreeMap;

/// What a policy is resolved against.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context {
    /// The link's rate from the command line (`--rate`), which overrides the file's.
    pub link_rate: Option<Rate>,
    /// The rate of arrivals from the command line (`--ingress-rate`), which overrides the file's.
    pub ingress_rate: Option<Rate>,
    /// The engine it is for.
    pub engine: Engine,
}

/// What queues packets, as far as it decides what a policy may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    /// The scheduler core: all classes share [`MAX_QUEUED_PKTS`] slots.
    #[default]
    Core,
    /// The kernel's own qdiscs: each class has its own queue.
    Tc,
}

/// A policy with everything chosen.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The policy's name.
    pub name: String,
    /// What the policy is for.
    pub description: Option<String>,
    /// The discipline.
    pub scheduler: Scheduler,
    /// What a PIFO orders by; the default under other disciplines.
    pub rank: Rank,
    /// Which of classifying and queueing is done.
    pub mode: Mode,
    /// The rate to shape the link to, bits per second. None: it is not known and not shaped.
    pub link_rate: Option<Rate>,
    /// The rate to shape arrivals to, bits per second. None: they are not queued.
    pub ingress_rate: Option<Rate>,
    /// What a packet costs on the link.
    pub framing: Framing,
    /// The burst of the link's bucket, in bytes. None: the engine's own choice.
    pub link_burst: Option<Bytes>,
    /// Whether packets larger than a frame are split before they are queued.
    pub split_gso: SplitGso,
    /// What the interface keeps to beside, by dropping; bursts are chosen.
    pub limits: Limits,
    /// Where a packet goes that no rule matches.
    pub default_class: ClassId,
    /// Where ARP, neighbour discovery and DHCP go unless a rule says otherwise.
    pub urgent_class: ClassId,
    /// Entries of the flow table, 0 is off.
    pub flows: u32,
    /// What happens to packets with broken headers.
    pub malformed: Malformed,
    /// The classes by id.
    pub classes: Vec<ResolvedClass>,
    /// The rules in the order they are asked: the first that matches wins.
    pub rules: Vec<ResolvedRule>,
    /// Why engine `tc` cannot have it; None if it can.
    pub not_on_tc: Option<Diagnostics>,
    /// Warnings, and notes on what was chosen. No errors.
    pub remarks: Diagnostics,
}

impl Resolved {
    /// Whether the hooks before the queues may drop packets for their rate.
    pub fn polices(&self) -> bool {
        let class = |class: &ResolvedClass| {
            class.exceed == Exceed::Police || class.flow_ceil.is_some() || class.shared_ceil.is_some()
        };
        self.limits != Limits::default() || self.classes.iter().any(class)
    }

    /// Whether a queue may mark packets instead of dropping them.
    pub fn marks(&self) -> bool {
        self.classes.iter().any(|class| class.codel.is_some())
    }

    /// Whether a queue asks between which hosts packets pass.
    pub fn knows_hosts(&self) -> bool {
        let asks = |class: &ResolvedClass| class.queue.flows().is_some_and(|flows| flows.hosts != Hosts::None);
        self.classes.iter().any(asks)
    }

    /// The class with this id.
    pub fn class(&self, id: ClassId) -> Option<&ResolvedClass> {
        self.classes.iter().find(|class| class.id == id)
    }
}

/// A class with everything chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedClass {
    /// Its number.
    pub id: ClassId,
    /// Its name.
    pub name: String,
    /// Urgency, 0 is the most urgent.
    pub priority: u8,
    /// Share under disciplines that have weights.
    pub weight: u32,
    /// Bytes per round of deficit round robin, and of a request of EEVDF.
    pub quantum_bytes: u32,
    /// How long after its arrival a packet should have left, ns.
    pub latency_budget_ns: Option<u64>,
    /// Guaranteed rate, bits per second.
    pub rate: Option<Rate>,
    /// Rate never exceeded, bits per second, at most the link's. None: only the link limits it.
    pub ceil: Option<Rate>,
    /// Burst of the ceiling's bucket, bytes. None without a ceiling.
    pub burst: Option<Bytes>,
    /// The most packets it may queue, 1 to [`MAX_QUEUED_PKTS`].
    pub limit_pkts: u32,
    /// The most bytes it may queue. None: only packets count.
    pub limit_bytes: Option<Bytes>,
    /// The most packets it may queue where the engine has only one line for it: what `limit_pkts` is for a FIFO of an
    /// engine whose classes do not share their room.
    pub fifo_limit_pkts: u32,
    /// What its packets stand in.
    pub queue: Queue,
    /// What is done about packets that wait too long, with a target that suits the class's rate; none: nothing.
    pub codel: Option<Codel>,
    /// What happens above the ceiling.
    pub exceed: Exceed,
    /// What each flow of it may not exceed; the burst is chosen.
    pub flow_ceil: Option<Ceiling>,
    /// What it may not exceed together with classes of other interfaces; the burst is chosen.
    pub shared_ceil: Option<SharedCeiling>,
    /// The DSCP values that mean it, in mode `schedule_only` by DSCP.
    pub dscp: Vec<u8>,
    /// The firewall marks that mean it, in mode `schedule_only` by mark.
    pub marks: Vec<u32>,
}

/// A rule with its sets spelled out. Empty lists: the rule does not ask.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedRule {
    /// As it is written.
    pub rule: Rule,
    /// Source prefixes.
    pub src: Vec<IpNet>,
    /// Destination prefixes.
    pub dst: Vec<IpNet>,
    /// First and last source ports.
    pub src_ports: Vec<(u16, u16)>,
    /// First and last destination ports.
    pub dst_ports: Vec<(u16, u16)>,
}

/// Chooses everything the policy leaves open, and checks it against the link.
pub fn resolve(policy: &Policy, context: &Context) -> Result<Resolved, Diagnostics> {
    let mut findings = lint(policy);
    let source = policy.origin.source().cloned();
    let Some((urgent_class, default_class)) = urgent_and_default(policy) else {
        findings.push(Diagnostic::error(Kind::NoClasses, "the policy has no classes").help("add at least one"));
        return Err(Diagnostics::new(source, findings));
    };
    findings.extend(chosen_classes(policy, urgent_class, default_class));
    let not_on_tc = not_on_tc(policy);
    findings.extend(not_on_tc.clone().filter(|_| context.engine == Engine::Tc));
    let link_rate = link_rate(policy, context, &mut findings);
    let placed: Vec<sums::Placed<'_>> = policy.classes.iter().enumerate().collect();
    findings.extend(sums::rates_above_link(&placed, link_rate, |pointer| policy.origin.span(pointer)));

    let ceils: Vec<Option<Rate>> = policy.classes.iter().map(|class| clamp(class.ceil, link_rate)).collect();
    findings.extend(clamped_ceils(policy, link_rate));
    let demands = sums::demands(&placed, link_rate);
    findings.extend(time_limits_without_rate(policy, &demands));
    let limits = fit_limits(policy, context.engine, &demands, &mut findings);

    if findings.iter().any(|finding| finding.severity() == Severity::Error) {
        return Err(Diagnostics::new(source, findings));
    }
    let classes = policy.classes.iter().zip(ceils).zip(demands.iter().zip(limits));
    let mut classes: Vec<ResolvedClass> =
        classes.map(|((class, ceil), room)| resolved_class(class, ceil, link_rate, room)).collect();
    classes.sort_by_key(|class| class.id);
    let mut rules: Vec<ResolvedRule> = policy.rules.iter().map(|rule| resolved_rule(rule, policy)).collect();
    rules.sort_by_key(|rule| rule.rule.priority);
    let mut resolved = Resolved {
        name: policy.name.clone(),
        description: policy.description.clone(),
        scheduler: policy.scheduler,
        rank: policy.rank,
        mode: policy.mode,
        link_rate,
        ingress_rate: context.ingress_rate.or(policy.link.ingress_rate),
        framing: policy.link.framing,
        link_burst: policy.link.burst,
        split_gso: policy.link.split_gso,
        limits: policy.limits.resolved(),
        default_class,
        urgent_class,
        flows: policy.flows,
        malformed: policy.malformed,
        classes,
        rules,
        not_on_tc: not_on_tc.map(|finding| Diagnostics::new(source.clone(), vec![finding])),
        remarks: Diagnostics::default(),
    };
    findings.extend(window::remarks(policy, &resolved));
    resolved.remarks = Diagnostics::new(source, findings);
    Ok(resolved)
}

/// The class of ARP, neighbour discovery and DHCP, and that of what no rule matches: by budget where budgets order, else by
/// priority. None if there are no classes.
fn urgent_and_default(policy: &Policy) -> Option<(ClassId, ClassId)> {
    let by_budget = policy.scheduler.uses_budget(policy.rank);
    let order = |class: &&Class| (class.latency_budget_ns.filter(|_| by_budget), class.priority, class.id);
    let (urgent, last) = (policy.classes.iter().min_by_key(order)?, policy.classes.iter().max_by_key(order)?);
    Some((urgent.id, policy.default_class.unwrap_or(last.id)))
}

/// Says so where nothing in the file makes one class more urgent than another.
fn chosen_classes(policy: &Policy, urgent: ClassId, default: ClassId) -> Option<Diagnostic> {
    let first = policy.classes.first()?;
    let equal = policy.classes.iter().all(|class| class.priority == first.priority);
    let by_budget = policy.scheduler.uses_budget(policy.rank);
    if !equal || by_budget || policy.classes.len() == 1 || policy.default_class.is_some() {
        return None;
    }
    let name = |id| policy.class(id).map_or(String::new(), |class| format!("class {id} \"{}\"", class.name));
    let place = |id| policy.classes.iter().position(|class| class.id == id);
    let span = |id| place(id).and_then(|place| class_span(policy, place, &["id"]));
    let title = format!("no priorities tell the classes apart: what no rule matches goes to {}", name(default));
    let finding = Diagnostic::new(Severity::Note, Kind::ClassChosen, title)
        .at(span(default), "the default class, by the largest id")
        .at(span(urgent), "ARP, neighbour discovery and DHCP go here, by the smallest id");
    Some(finding.help("write \"default_class\", and give the most urgent class the smallest \"priority\""))
}

/// `room`: what it asks for, and the packets that it gets.
fn resolved_class(
    class: &Class,
    ceil: Option<Rate>,
    link_rate: Option<Rate>,
    (demand, limit_pkts): (&Demand, u32),
) -> ResolvedClass {
    // What is policed leaves at the link's rate.
    let sends_at = ceil.filter(|_| class.exceed == Exceed::Shape).or(link_rate);
    let as_fifo = limits::demand(class.limit, ceil.or(link_rate), false).wanted_pkts;
    ResolvedClass {
        id: class.id,
        name: class.name.clone(),
        priority: class.priority,
        weight: class.weight,
        quantum_bytes: class.quantum_bytes,
        latency_budget_ns: class.latency_budget_ns,
        rate: class.rate,
        ceil,
        burst: ceil.map(|ceil| class.burst.unwrap_or_else(|| ceiling::default_burst(ceil))),
        limit_pkts,
        limit_bytes: demand.bytes,
        // It is at most the most there are.
        fifo_limit_pkts: as_fifo.min(MAX_QUEUED_PKTS.into()) as u32,
        queue: class.queue,
        codel: class.codel.map(|codel| codel.at_rate(sends_at)),
        exceed: class.exceed,
        flow_ceil: class.flow_ceil.map(Ceiling::resolved),
        shared_ceil: class.shared_ceil.as_ref().map(SharedCeiling::resolved),
        dscp: class.dscp.clone(),
        marks: class.marks.clone(),
    }
}

/// Sets that the policy does not have were errors before this.
fn resolved_rule(rule: &Rule, policy: &Policy) -> ResolvedRule {
    ResolvedRule {
        src: spell_out(&rule.src, &policy.address_sets),
        dst: spell_out(&rule.dst, &policy.address_sets),
        src_ports: spell_out(&rule.src_ports, &policy.port_sets),
        dst_ports: spell_out(&rule.dst_ports, &policy.port_sets),
        rule: rule.clone(),
    }
}

fn spell_out<T: Clone>(terms: &Terms<T>, sets: &BTreeMap<String, Vec<T>>) -> Vec<T> {
    let mut values = Vec::new();
    for term in terms {
        match term {
            Term::Is(value) => values.push(value.clone()),
            Term::In(set) => values.extend(sets.get(set).into_iter().flatten().cloned()),
        }
    }
    values
}

/// An engine never gives a substitute for a discipline that it does not have.
fn not_on_tc(policy: &Policy) -> Option<Diagnostic> {
    if policy.mode == Mode::ClassifyOnly {
        return None;
    }
    let scheduler = policy.scheduler;
    let instead = scheduler.instead_on_tc(policy.rank)?;
    Some(
        Diagnostic::error(Kind::Engine, format!("engine tc has no {scheduler}: the kernel's HTB has nothing like it"))
            .at(policy.origin.span("/scheduler"), "needs engine qdisc")
            .help(format!(
                "use engine qdisc (a kernel from 6.17 with CONFIG_NET_SCH_BPF), or `\"scheduler\": \"{instead}\"`"
            )),
    )
}

fn clamp(ceil: Option<Rate>, link: Option<Rate>) -> Option<Rate> {
    ceil.map(|ceil| link.map_or(ceil, |link| ceil.min(link)))
}

fn link_rate(policy: &Policy, context: &Context, findings: &mut Vec<Diagnostic>) -> Option<Rate> {
    match (context.link_rate, policy.link.rate) {
        (Some(given), Some(own)) if given != own => {
            let title = format!("--rate {given} takes the place of the policy's {own}");
            let finding = Diagnostic::new(Severity::Note, Kind::LinkRateOverridden, title)
                .at(policy.origin.span("/link/rate"), "not used");
            findings.push(finding);
        }
        (None, None) => {
            let title = "the link's rate is not known: it is not shaped, and rates are not checked against it";
            let finding = Diagnostic::new(Severity::Note, Kind::LinkRateUnknown, title)
                .help("give `--rate`, or write it in the policy, as in `\"link\": { \"rate\": \"20mbit\" }`");
            findings.push(finding);
        }
        _ => {}
    }
    context.link_rate.or(policy.link.rate)
}

fn clamped_ceils(policy: &Policy, link: Option<Rate>) -> Option<Diagnostic> {
    let link = link?;
    let clamped: Vec<(usize, &Class)> =
        policy.classes.iter().enumerate().filter(|(_, class)| class.ceil > Some(link)).collect();
    if clamped.is_empty() {
        return None;
    }
    let names: Vec<&str> = clamped.iter().map(|(_, class)| class.name.as_str()).collect();
    let title = format!("the ceiling of {} is above the link and was lowered to its {link}", names.join(", "));
    let mut finding = Diagnostic::new(Severity::Note, Kind::CeilClamped, title);
    for (place, _) in clamped {
        finding = finding.at(class_span(policy, place, &["ceil", "rate_limit_mbps"]), format!("now {link}"));
    }
    Some(finding)
}

fn time_limits_without_rate(policy: &Policy, demands: &[Demand]) -> Option<Diagnostic> {
    let affected: Vec<(usize, &Class)> =
        policy.classes.iter().enumerate().filter(|&(place, _)| demands[place].rate_missing).collect();
    if affected.is_empty() {
        return None;
    }
    let names: Vec<&str> = affected.iter().map(|(_, class)| class.name.as_str()).collect();
    let title = format!("the limit of {} is a time, but at no known rate: the default is used", names.join(", "));
    let mut finding = Diagnostic::new(Severity::Note, Kind::LinkRateUnknown, title);
    for (place, _) in affected {
        finding = finding.at(class_span(policy, place, &["limit"]), "needs a rate");
    }
    Some(finding.help("give `--rate`, a \"ceil\", or the limit in packets or bytes"))
}

/// Packets for each class; if they cannot fit, an error among the findings and whatever was asked for.
fn fit_limits(policy: &Policy, engine: Engine, demands: &[Demand], findings: &mut Vec<Diagnostic>) -> Vec<u32> {
    let wanted: Vec<u32> = demands.iter().map(|d| d.wanted_pkts.min(MAX_QUEUED_PKTS.into()) as u32).collect();
    if engine == Engine::Tc {
        return wanted;
    }
    let Some(limits) = limits::fit(demands) else {
        let placed: Vec<sums::Placed<'_>> = policy.classes.iter().enumerate().collect();
        findings.push(sums::limits_above_slots(&placed, demands, |pointer| policy.origin.span(pointer)));
        return wanted;
    };
    let lowered: Vec<String> = (policy.classes.iter().zip(&limits).zip(&wanted))
        .filter(|((_, limit), wanted)| limit < wanted)
        .map(|((class, limit), _)| format!("{} {limit}", class.name))
        .collect();
    if !lowered.is_empty() {
        let title =
            format!("not all limits fit {MAX_QUEUED_PKTS} packets, so those not set in packets or bytes are lowered");
        let finding = Diagnostic::new(Severity::Note, Kind::LimitsLowered, title);
        findings.push(finding.help(format!("packets now: {}", lowered.join(", "))));
    }
    limits
}
