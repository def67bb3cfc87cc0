//! The mistakes in classes inside subscribers: names that differ between plans, guarantees that do not fit, depth, and the number of leaves.

use super::{EachWay, MAX_SITE_DEPTH, MAX_SUBSCRIBERS, NetworkPolicy, Plan, PlanClass, Subscriber, sums};
use crate::diagnostic::{Diagnostic, Kind, Severity};
use crate::excerpt::excerpt;
use crate::rate::Rate;
use std::collections::BTreeMap;

/// The errors of the classes of all plans.
pub(super) fn errors(policy: &NetworkPolicy) -> Vec<Diagnostic> {
    let mut findings = other_names(policy);
    findings.extend(guarantees(policy).into_iter().filter(|one| one.severity() == Severity::Error));
    findings.extend(too_deep(policy));
    findings.extend(too_many_leaves(policy));
    findings
}

/// The warnings about the classes of all plans.
pub(super) fn warnings(policy: &NetworkPolicy) -> Vec<Diagnostic> {
    let mut findings = guarantees(policy);
    findings.retain(|one| one.severity() != Severity::Error);
    findings.extend(classes_of_nobody(policy));
    findings.extend(bursts_without_ceil(policy));
    findings
}

/// The warning that no subscriber and no host has a plan with classes.
fn classes_of_nobody(policy: &NetworkPolicy) -> Option<Diagnostic> {
    let plan = policy.plans.iter().find(|plan| !plan.classes.is_empty())?;
    let groups = policy.groups.iter().map(|group| &group.each);
    let mut all = policy.subscribers.subscribers.iter().chain(groups);
    if all.any(|one| policy.plan(one).is_some_and(|plan| !plan.classes.is_empty())) {
        return None;
    }
    let title = "no subscriber has a plan with classes, so the classes and the rules do nothing";
    let finding = Diagnostic::new(Severity::Warning, Kind::NoEffect, title).at(plan.span.0.clone(), "such a plan");
    Some(of_file(policy, finding.help("name the plan of each subscriber; LibreQoS's ShapedDevices.csv names none")))
}

/// Bursts of classes that have no ceiling.
fn bursts_without_ceil(policy: &NetworkPolicy) -> Vec<Diagnostic> {
    let all = policy.plans.iter().flat_map(|plan| plan.classes.iter().map(move |class| (plan, class)));
    let unused = all.filter(|(_, class)| {
        let both = [(class.burst.down, class.ceil.down), (class.burst.up, class.ceil.up)];
        both.iter().all(|(_, ceil)| ceil.is_none()) && both.iter().any(|(burst, _)| burst.is_some())
    });
    let finding = |(plan, class): (&Plan, &PlanClass)| {
        let (class_name, plan) = (excerpt(&class.name), excerpt(&plan.name));
        let title = format!("the burst of the class {class_name} of the plan {plan} does nothing without a ceiling");
        let finding = Diagnostic::new(Severity::Note, Kind::NoEffect, title).at(class.span.0.clone(), "of this class");
        of_file(policy, finding.help("add \"ceil\" to the class, or remove the burst"))
    };
    unused.map(finding).collect()
}

/// The warnings about guarantees that engine `tc` cannot give: those of classes whose plan guarantees less than they are promised together.
pub(super) fn cut_by_tc(policy: &NetworkPolicy) -> Vec<Diagnostic> {
    let cut = policy.plans.iter().filter_map(|plan| {
        let rates = plan.rate.named().into_iter().zip(sum(plan).named().map(|(way, sum)| (way, *sum)));
        let (way, whole, sum) = rates.into_iter().find_map(|((way, rate), (_, sum))| {
            let whole = rate.map_or(0, |rate| u128::from(rate.0));
            (sum > whole).then_some((way, whole, sum))
        })?;
        let (name, sum) = (excerpt(&plan.name), sums::shown(sum));
        let whole = if whole == 0 { "nothing".to_owned() } else { sums::shown(whole).to_string() };
        let title = format!(
            "engine tc guarantees the classes of the plan {name} only {whole} of their {sum} {way}, which is what their subscriber is guaranteed"
        );
        let finding = Diagnostic::new(Severity::Warning, Kind::Engine, title).at(plan.span.0.clone(), "this plan");
        Some(of_file(policy, finding.help(format!("raise the \"rate\" of the plan to {sum}, or give its urgent class a larger \"weight\""))))
    });
    cut.collect()
}

/// A finding with the place of a class, or of a plan, in the policy's file.
fn of_file(policy: &NetworkPolicy, finding: Diagnostic) -> Diagnostic {
    policy.origin.source().into_iter().fold(finding, Diagnostic::of)
}

/// Classes of one id that two plans call differently: rules, counters and metrics know one name.
fn other_names(policy: &NetworkPolicy) -> Vec<Diagnostic> {
    let mut by_id: BTreeMap<u8, (&Plan, &PlanClass)> = BTreeMap::new();
    let mut by_name: BTreeMap<&str, (&Plan, &PlanClass)> = BTreeMap::new();
    let mut findings = Vec::new();
    for (plan, class) in policy.plans.iter().flat_map(|plan| plan.classes.iter().map(move |class| (plan, class))) {
        let (first, named) =
            (*by_id.entry(class.id.0).or_insert((plan, class)), *by_name.entry(&class.name).or_insert((plan, class)));
        let (other, title) = if first.1.name != class.name {
            let (own, other) = (excerpt(&class.name), excerpt(&first.1.name));
            let (plan, first_plan) = (excerpt(&plan.name), excerpt(&first.0.name));
            let id = class.id;
            (first.1, format!("class {id} is \"{own}\" in the plan {plan} and \"{other}\" in {first_plan}"))
        } else if named.1.id != class.id {
            let name = excerpt(&class.name);
            let (plan, first_plan) = (excerpt(&plan.name), excerpt(&named.0.name));
            let (id, other) = (class.id, named.1.id);
            (named.1, format!("the class \"{name}\" has the id {id} in the plan {plan} and {other} in {first_plan}"))
        } else {
            continue;
        };
        let finding = Diagnostic::error(Kind::Conflict, title)
            .at(class.span.0.clone(), "this one")
            .at(other.span.0.clone(), "the other one")
            .help("rules name classes by id, and counters by name: let both be the same in all plans");
        findings.push(of_file(policy, finding));
    }
    findings
}

/// The sum of what the classes of a plan are guaranteed, bits per second.
fn sum(plan: &Plan) -> EachWay<u128> {
    let mut sum = EachWay::default();
    plan.classes.iter().for_each(|class| sums::add(&mut sum, sums::bits(&class.rate)));
    sum
}

/// The direction and the numbers of a sum that is above a ceiling.
fn above(sum: &EachWay<u128>, ceil: &EachWay<Option<Rate>>) -> Option<(&'static str, u128, Rate)> {
    let pairs = sum.named().into_iter().zip(ceil.named());
    pairs.into_iter().find_map(|((way, sum), (_, ceil))| {
        let ceil = (*ceil)?;
        (*sum > u128::from(ceil.0)).then_some((way, *sum, ceil))
    })
}

/// Plans, and subscribers with a ceiling of their own, whose classes are guaranteed more than passes.
fn guarantees(policy: &NetworkPolicy) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let finding = |title: String| Diagnostic::new(sums::severity(policy), Kind::RateSum, title);
    for plan in &policy.plans {
        let Some((way, sum, ceil)) = above(&sum(plan), &plan.ceil) else { continue };
        let (name, sum) = (excerpt(&plan.name), sums::shown(sum));
        let title =
            format!("the classes of the plan {name} are guaranteed {sum} {way}, more than its ceiling of {ceil}");
        let finding = finding(title).at(plan.span.0.clone(), "this plan");
        findings.push(of_file(policy, finding.help("lower the \"rate\" of some of its classes")));
    }
    let sums: Vec<EachWay<u128>> = policy.plans.iter().map(sum).collect();
    let has_own = |one: &&Subscriber| one.ceil != EachWay::default();
    let lower = policy.subscribers.subscribers.iter().filter(has_own).filter_map(|one| {
        let (way, sum, ceil) = above(&sums[one.plan?], &one.ceil)?;
        Some((one, way, sum, ceil))
    });
    let lower: Vec<_> = lower.collect();
    if let Some((first, way, sum, ceil)) = lower.first() {
        let (name, sum) = (excerpt(&first.name), sums::shown(*sum));
        let more = match lower.len() {
            1 => String::new(),
            2 => ", and so are those of another one".to_owned(),
            many => format!(", and so are those of {} others", many - 1),
        };
        let title =
            format!("the classes of {name} are guaranteed {sum} {way}, more than its own ceiling of {ceil}{more}");
        let finding = finding(title).at(first.span.0.clone(), "this subscriber").of(&policy.subscribers.source);
        findings.push(finding.help("raise the ceiling, or give it a plan whose classes have less"));
    }
    findings
}

/// Subscribers with classes that are so deep that their classes have no room.
fn too_deep(policy: &NetworkPolicy) -> Option<Diagnostic> {
    let sites = &policy.sites.sites;
    let depth = |site: Option<usize>| std::iter::successors(site, |&site| sites[site].parent).count();
    let is_divided = |one: &&Subscriber| policy.plan(one).is_some_and(|plan| !plan.classes.is_empty());
    let of_groups = policy.groups.iter().map(|group| (&group.each, 1));
    let all = policy.subscribers.subscribers.iter().map(|one| (one, 0)).chain(of_groups);
    let deep = all.filter(|(one, _)| is_divided(one)).find(|(one, more)| depth(one.parent) + more >= MAX_SITE_DEPTH);
    let (one, more) = deep?;
    let above = depth(one.parent) + more;
    let title = format!("{} has classes, and {above} sites above it", excerpt(&one.name));
    let finding = Diagnostic::error(Kind::TooMany, title).at(one.span.0.clone(), "too deep");
    let finding = if more == 0 { finding.of(&policy.subscribers.source) } else { of_file(policy, finding) };
    let most = MAX_SITE_DEPTH - 1;
    Some(finding.help(format!("{most} levels are the most above classes; each host of a group has one more")))
}

/// More leaves than the tree has, with those of classes.
fn too_many_leaves(policy: &NetworkPolicy) -> Option<Diagnostic> {
    let classes = |one: &Subscriber| policy.plan(one).map_or(0, |plan| plan.classes.len() as u64);
    let all = &policy.subscribers.subscribers;
    let of_classes: u64 = all.iter().map(classes).sum();
    let of_groups: u64 =
        policy.groups.iter().map(|group| (u64::from(group.places()) + 1) * (1 + classes(&group.each))).sum();
    let leaves = all.len() as u64 + of_classes + of_groups;
    let groups_alone: u64 = policy.groups.iter().map(|group| u64::from(group.places()) + 1).sum();
    // Without classes, others tell it.
    if leaves <= MAX_SUBSCRIBERS as u64 || leaves == all.len() as u64 + groups_alone {
        return None;
    }
    let title = format!("subscribers, hosts and their classes are {leaves}, more than {MAX_SUBSCRIBERS}");
    let place = policy.plans.iter().find(|plan| !plan.classes.is_empty()).map(|plan| plan.span.0.clone());
    let finding = Diagnostic::error(Kind::TooMany, title).at(place, "a plan with classes");
    Some(of_file(
        policy,
        finding.help("a subscriber takes a place, and one for each of its classes: let fewer have classes"),
    ))
}
