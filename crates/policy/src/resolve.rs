//! Resolution of a policy: every value is chosen and checked against the link, and each choice that the file leaves open gets a
//! note.

use crate::ceiling::{self, Ceiling, SharedCeiling};
use crate::class_id::ClassId;
use crate::diagnostic::{Diagnostic, Diagnostics, Kind, Severity};
use crate::engine::Engine;
use crate::excerpt::excerpt;
use crate::limits::{self, Demand};
use crate::link::LinkQueues;
use crate::lint::{class_span, lint};
use crate::network::{self, NetworkPolicy, NodeScheduler};
use crate::policy::{Class, Exceed, MAX_QUEUED_PKTS, Mode, Policy, Rule, Term, Terms};
use crate::rate::Rate;
use crate::resolved::{Context, Resolved, ResolvedClass, ResolvedRule};
use crate::{one_queue, sums, window};
use std::collections::BTreeMap;

/// Chooses every open value of the policy, and checks it against the link.
pub fn resolve(policy: &Policy, context: &Context) -> Result<Resolved, Diagnostics> {
    match &policy.network {
        Some(network) => tree(policy, network, context),
        None => flat(policy, context),
    }
}

/// A policy with subscribers or a class tree. That class has no limits of its own.
fn tree(policy: &Policy, network: &NetworkPolicy, context: &Context) -> Result<Resolved, Diagnostics> {
    let source = network.origin.source().cloned();
    // A wire queues what arrives at either side.
    let is_wire = context.engine == Engine::Xsk;
    if context.ingress_rate.is_some() && !is_wire {
        let place = |key| network.origin.span(key);
        let finding = match network.class_tree {
            None => Diagnostic::error(Kind::Conflict, "--ingress-rate for a policy with subscribers")
                .at(place("/subscribers"), "queued where they depart")
                .help("leave it away, and manage both interfaces of the box: each shapes what departs from it"),
            Some(_) => Diagnostic::error(Kind::Conflict, "--ingress-rate for a policy with a class tree")
                .at(place("/classes"), "a class tree queues departures only")
                .help("leave it out, or write the classes without \"parent\""),
        };
        return Err(Diagnostics::new(source, vec![finding]));
    }
    let not_on_tc = scheduler_not_on_tc(network);
    if let Some(finding) = not_on_tc.clone().filter(|_| context.engine == Engine::Tc) {
        return Err(Diagnostics::new(source, vec![finding]));
    }
    let resolved = match is_wire {
        true => network::resolve(network, &Context { link_rate: context.ingress_rate, ..*context })?,
        false => network::resolve(network, context)?,
    };
    let base = flat(policy, &Context { engine: Engine::Qdisc, ..Context::default() })?;
    let link_rate = resolved.link().ceil.down.max(resolved.link().ceil.up);
    // Notes tell of chosen classes and of the link, which a tree has otherwise; warnings of rules and sets are true of it too.
    let remarks = resolved.remarks.iter().chain(base.remarks.without_notes().iter()).cloned().collect();
    let remarks = Diagnostics::new(source.clone(), remarks);
    let not_on_tc = not_on_tc.map(|finding| Diagnostics::new(source, vec![finding]));
    let (link_rate, ingress_rate) = if is_wire { (None, link_rate) } else { (link_rate, None) };
    let resolved = Resolved {
        link_rate,
        ingress_rate,
        remarks,
        network: Some(resolved),
        not_on_tc,
        queues: network.link.queues,
        ..base
    };
    match one_queue::refused_tree(network, &resolved, is_wire) {
        Some(finding) => Err(Diagnostics::new(network.origin.source().cloned(), vec![finding])),
        None => Ok(resolved),
    }
}

/// The error for classes that engine `tc` cannot order. HTB's priorities count between the subscribers of a site too, so that whoever marks its packets
/// would go ahead of others; and between classes of different parents. Its turns are of bytes.
fn scheduler_not_on_tc(network: &NetworkPolicy) -> Option<Diagnostic> {
    let lacks = |scheduler: NodeScheduler| match scheduler {
        NodeScheduler::StrictPriority => {
            Some((scheduler, "HTB compares priorities across the whole tree, not only below one parent"))
        }
        NodeScheduler::RoundRobin => Some((scheduler, "HTB shares by bytes, not by packets")),
        NodeScheduler::Eevdf => Some((scheduler, "HTB knows turns of bytes, and no deadlines")),
        NodeScheduler::Pifo(_) => Some((scheduler, "HTB does not order classes by their packets")),
        _ => None,
    };
    let finding = |title: String, place, instead: &str| {
        let finding = Diagnostic::error(Kind::Engine, title).at(place, "needs engine qdisc");
        let help = "use engine qdisc (a kernel from 6.17 with CONFIG_NET_SCH_BPF), or leave \"scheduler\" out";
        finding.help(format!("{help}{instead}"))
    };
    let words = |scheduler: NodeScheduler| scheduler.name().replace('_', " ");
    let instead = |scheduler, cure: &'static str| if scheduler == NodeScheduler::RoundRobin { "" } else { cure };
    if let Some(tree) = &network.class_tree {
        let of_policy = lacks(tree.scheduler).map(|lacking| (lacking, network.origin.span("/scheduler")));
        let of_class = tree.inner.iter().enumerate().find_map(|(place, own)| Some((lacks(own.scheduler)?, place)));
        let of_class = of_class.map(|(lacking, place)| (lacking, Some(network.sites.sites[place].span.0.clone())));
        let ((scheduler, why), place) = of_policy.or(of_class)?;
        let title = format!("engine tc cannot serve a class tree by {}: {why}", words(scheduler));
        let cure = instead(scheduler, " and give the urgent class a \"rate\" or a \"weight\"");
        return Some(finding(title, place, cure));
    }
    let (plan, (scheduler, why)) = network.plans.iter().find_map(|plan| Some((plan, lacks(plan.scheduler)?)))?;
    let title = format!(
        "engine tc cannot serve the classes of the plan {} by {}: {why}",
        excerpt(&plan.name),
        words(scheduler)
    );
    let cure = instead(scheduler, " and give the urgent class a \"weight\"");
    let finding = finding(title, Some(plan.span.0.clone()), cure);
    Some(network.origin.source().into_iter().fold(finding, Diagnostic::of))
}

fn flat(policy: &Policy, context: &Context) -> Result<Resolved, Diagnostics> {
    let mut findings = lint(policy);
    let source = policy.origin.source().cloned();
    let Some((urgent_class, default_class)) = urgent_and_default(policy) else {
        findings.push(Diagnostic::error(Kind::NoClasses, "the policy has no classes").help("add at least one"));
        return Err(Diagnostics::new(source, findings));
    };
    findings.extend(chosen_classes(policy, urgent_class, default_class));
    let not_on_tc = not_on_tc(policy);
    findings.extend(not_on_tc.clone().filter(|_| context.engine == Engine::Tc));
    // The link of a group, and of a side of a wire, is what its arrivals are shaped to.
    let is_group = !policy.arrivals_of.is_empty() || context.engine == Engine::Xsk;
    let ingress_rate = context.ingress_rate.or(policy.link.ingress_rate);
    findings.extend(rate_of_group(policy, context));
    let link_rate = if is_group { ingress_rate } else { link_rate(policy, context, &mut findings) };
    let placed: Vec<sums::Placed<'_>> = policy.classes.iter().enumerate().collect();
    findings.extend(sums::rates_above_link(&placed, link_rate, |pointer| policy.origin.span(pointer)));

    // A ceiling holds for both directions, and may bind in the faster one alone.
    let fastest = link_rate.map(|link| link.max(ingress_rate.unwrap_or(link)));
    let ceils: Vec<Option<Rate>> = policy.classes.iter().map(|class| clamp(class.ceil, fastest)).collect();
    findings.extend(clamped_ceils(policy, fastest));
    let demands = sums::demands(&placed, link_rate);
    findings.extend(time_limits_without_rate(policy, &demands));
    let limits = fit_limits(policy, context.engine, &demands, &mut findings);

    if findings.iter().any(|finding| finding.severity() == Severity::Error) {
        return Err(Diagnostics::new(source, findings));
    }
    let classes = policy.classes.iter().zip(ceils).zip(demands.iter().zip(limits));
    let mut classes: Vec<ResolvedClass> =
        classes.map(|((class, ceil), room)| resolved_class(class, ceil, (link_rate, fastest), room)).collect();
    classes.sort_by_key(|class| class.id);
    let mut rules: Vec<ResolvedRule> = policy.rules.iter().map(|rule| resolved_rule(rule, policy)).collect();
    rules.sort_by_key(|rule| rule.rule.priority);
    let mut forwards = policy.forwards.clone();
    forwards.sort_by(|a, b| a.name.cmp(&b.name));
    let mut resolved = Resolved {
        name: policy.name.clone(),
        description: policy.description.clone(),
        scheduler: policy.scheduler,
        rank: policy.rank,
        mode: policy.mode,
        link_rate: link_rate.filter(|_| !is_group),
        ingress_rate,
        arrivals_of: policy.arrivals_of.clone(),
        framing: policy.link.framing,
        link_burst: policy.link.burst,
        split_gso: policy.link.split_gso,
        queues: policy.link.queues,
        limits: policy.limits.resolved(),
        default_class,
        urgent_class,
        flows: policy.flows,
        connections: policy.connections,
        malformed: policy.malformed,
        classes,
        rules,
        forwards,
        network: None,
        not_on_tc: not_on_tc.map(|finding| Diagnostics::new(source.clone(), vec![finding])),
        remarks: Diagnostics::default(),
    };
    if let Some(finding) = one_queue::refused(policy, &resolved, context.engine == Engine::Xsk) {
        findings.push(finding);
        return Err(Diagnostics::new(source, findings));
    }
    findings.extend(window::remarks(policy, &resolved));
    resolved.remarks = Diagnostics::new(source, findings);
    Ok(resolved)
}

/// The class of ARP, neighbour discovery and DHCP, and the default class: by budget if budgets order, else by priority. `None`
/// without classes.
fn urgent_and_default(policy: &Policy) -> Option<(ClassId, ClassId)> {
    let by_budget = policy.scheduler.uses_budget(policy.rank);
    let order = |class: &&Class| (class.latency_budget_ns.filter(|_| by_budget), class.priority, class.id);
    let (urgent, last) = (policy.classes.iter().min_by_key(order)?, policy.classes.iter().max_by_key(order)?);
    Some((urgent.id, policy.default_class.unwrap_or(last.id)))
}

/// The note on chosen classes if no key makes one class more urgent than another.
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
    let title = format!("no priorities distinguish the classes: packets that no rule matches go to {}", name(default));
    let finding = Diagnostic::new(Severity::Note, Kind::ClassChosen, title)
        .at(span(default), "the default class, by the largest id")
        .at(span(urgent), "ARP, neighbour discovery and DHCP go here, by the smallest id");
    Some(finding.help("write \"default_class\", and give the most urgent class the smallest \"priority\""))
}

/// The resolved class; `fastest` is the rate of the faster direction, `room` its demand and the packets that it gets.
fn resolved_class(
    class: &Class,
    ceil: Option<Rate>,
    (link_rate, fastest): (Option<Rate>, Option<Rate>),
    (demand, limit_pkts): (&Demand, u32),
) -> ResolvedClass {
    // A policed class sends at the link's rate.
    let sends_at = ceil.filter(|_| class.exceed == Exceed::Shape).or(link_rate);
    let burst = ceil.map(|ceil| class.burst.unwrap_or_else(|| ceiling::default_burst(ceil)));
    let peak = class.peak.zip(burst).map(|(peak, burst)| {
        let rate = clamp(Some(peak.rate), fastest).unwrap_or(peak.rate);
        Ceiling { rate, burst: Some(peak.burst.unwrap_or_else(|| ceiling::default_peak_burst(rate, burst))) }
    });
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
        burst,
        peak,
        limit_pkts,
        limit_bytes: demand.bytes,
        // The limit is at most the number of slots.
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

/// The resolved rule. Sets that do not exist were reported before.
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

/// The error for what engine `tc` lacks: a discipline, as no engine substitutes another one, or several queues.
fn not_on_tc(policy: &Policy) -> Option<Diagnostic> {
    if policy.mode == Mode::ClassifyOnly {
        return None;
    }
    if policy.link.queues == LinkQueues::All {
        let finding = Diagnostic::error(Kind::Engine, "engine tc cannot use all tx queues: HTB has one lock");
        let help = "use engine qdisc (a kernel from 6.17 with CONFIG_NET_SCH_BPF), or `\"queues\": \"auto\"`";
        return Some(finding.at(policy.origin.span("/link/queues"), "needs engine qdisc").help(help));
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

/// The finding on the rate of a group: it has none, or one of departures.
fn rate_of_group(policy: &Policy, context: &Context) -> Option<Diagnostic> {
    if policy.arrivals_of.is_empty() {
        return None;
    }
    let place = policy.origin.span("/arrivals_of");
    if let Some(rate) = context.link_rate {
        let finding = Diagnostic::error(Kind::Conflict, format!("--rate {rate} for a policy that queues arrivals"));
        return Some(finding.at(place, "nothing departs from here").help("give --ingress-rate instead"));
    }
    if context.ingress_rate.or(policy.link.ingress_rate).is_some() {
        return None;
    }
    let finding = Diagnostic::new(Severity::Note, Kind::LinkRateUnknown, "the rate of the arrivals is not known");
    let help = "write it in the policy, as in `\"link\": { \"ingress_rate\": \"100mbit\" }`, or give `--ingress-rate` to `sluice up`";
    Some(finding.at(place, "queued together, at one rate").help(help))
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

/// The notes on ceilings and peaks that are lowered to the link.
fn clamped_ceils(policy: &Policy, link: Option<Rate>) -> Vec<Diagnostic> {
    let Some(link) = link else { return Vec::new() };
    let note = |what: &str, keys: &[&str], above: &dyn Fn(&Class) -> bool| {
        let clamped: Vec<(usize, &Class)> =
            policy.classes.iter().enumerate().filter(|(_, class)| above(class)).collect();
        if clamped.is_empty() {
            return None;
        }
        let names: Vec<&str> = clamped.iter().map(|(_, class)| class.name.as_str()).collect();
        let title = format!("the {what} of {} is above the link and was lowered to its {link}", names.join(", "));
        let mut finding = Diagnostic::new(Severity::Note, Kind::CeilClamped, title);
        for (place, _) in clamped {
            finding = finding.at(class_span(policy, place, keys), format!("now {link}"));
        }
        Some(finding)
    };
    let ceils = note("ceiling", &["ceil", "rate_limit_mbps"], &|class| class.ceil > Some(link));
    let peaks = note("peak", &["peak"], &|class| class.peak.is_some_and(|peak| peak.rate > link));
    ceils.into_iter().chain(peaks).collect()
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

/// Packets for each class; if they cannot fit, an error among the findings and the demands as they are.
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
