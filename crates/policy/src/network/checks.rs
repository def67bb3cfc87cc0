//! The mistakes of a network whose files can be read: names that two have, addresses that two subscribers have, rates that a node cannot
//! have, and guarantees that do not fit.

use super::sums::{add, severity, shown};
use super::{
    Address, BURST_TIMES_NS, Burst, EachWay, MAX_MISTAKES, MAX_SUBSCRIBERS, NODE_RATES, NetworkPolicy, Subscriber,
    WrittenAddress, addresses, class_checks, class_tree, group_checks,
};
use crate::diagnostic::{Diagnostic, Kind, Severity};
use crate::excerpt::excerpt;
use crate::rate::Rate;
use crate::source::{Source, Span};
use crate::time;
use std::collections::HashMap;

/// The error of a table that has more rows than a network has leaves.
pub(crate) fn too_many(place: Span) -> Diagnostic {
    let title = format!("there are more than {MAX_SUBSCRIBERS} subscribers");
    let finding = Diagnostic::error(Kind::TooMany, title).at(place, "one too many");
    finding.help("leave some out, or divide them among several links")
}

/// The error of a table with so many mistakes that the rest is not read.
pub(crate) fn too_many_mistakes(place: Span) -> Diagnostic {
    let title = format!("there are more than {MAX_MISTAKES} mistakes: the rest of the table is not read");
    let finding = Diagnostic::error(Kind::TooMany, title).at(place, "read up to here");
    finding.help("many rows with one mistake often come from a wrong column or separator")
}

type Rates = EachWay<Option<Rate>>;

/// The errors of a network in itself.
pub(crate) fn errors(policy: &NetworkPolicy) -> Vec<Diagnostic> {
    let mut findings = same_names(policy);
    findings.extend(overlapping(policy));
    findings.extend(group_checks::errors(policy));
    findings.extend(class_checks::errors(policy));
    findings.extend(nodes(policy));
    findings.extend(guarantees_above_site(policy).into_iter().filter(|one| one.severity() == Severity::Error));
    findings
}

/// The warnings of a network in itself.
pub(super) fn warnings(policy: &NetworkPolicy) -> Vec<Diagnostic> {
    let mut findings = guarantees_above_site(policy);
    findings.retain(|one| one.severity() != Severity::Error);
    findings.extend(without_addresses(policy));
    findings.extend(by_vlan_alone(policy));
    findings.extend(without_rates(policy));
    findings.extend(class_checks::warnings(policy));
    findings.extend(bursts_without_ceil(policy));
    findings
}

/// The findings on a network at a link of these rates.
pub(super) fn against_link(policy: &NetworkPolicy, link: &Rates) -> Vec<Diagnostic> {
    let mut findings = class_tree::out_of_reach(policy, link.down);
    let whole = promised(policy).whole;
    for ((way, rate), (_, sum)) in link.named().into_iter().zip(whole.named()) {
        let Some(way) = policy.way_name(way) else { continue };
        let Some(rate) = rate.filter(|rate| *sum > u128::from(rate.0)) else { continue };
        let title = format!("the guarantees come to {}{way}, more than the link's {rate}", shown(*sum));
        let places = ["/link/rate", "/subscribers", "/classes"];
        let place = places.iter().find_map(|place| policy.origin.span(place));
        let finding = Diagnostic::new(severity(policy), Kind::RateSum, title).at(place, "does not suffice");
        findings.push(finding.help(cure(policy)));
    }
    findings
}

fn cure(policy: &NetworkPolicy) -> &'static str {
    if policy.oversold {
        "when all of them send, none has a guarantee: lower the least rates"
    } else if policy.class_tree.is_some() {
        "lower some \"rate\""
    } else {
        "lower some \"rate\"; if more is sold than there is, write `\"oversold\": true`"
    }
}

/// Subscribers with one key. Rows of LibreQoS with one key are devices of one subscriber.
fn same_names(policy: &NetworkPolicy) -> Vec<Diagnostic> {
    let mut first: HashMap<&str, &Subscriber> = HashMap::new();
    let mut findings = Vec::new();
    for subscriber in &policy.subscribers.subscribers {
        match first.get(subscriber.id.as_str()) {
            Some(earlier) => {
                let title = format!("two subscribers are called \"{}\"", excerpt(&subscriber.id));
                let finding = Diagnostic::error(Kind::DuplicateName, title)
                    .at(subscriber.span.0.clone(), "the second one")
                    .at(earlier.span.0.clone(), "the first one")
                    .of(&policy.subscribers.source);
                findings.push(
                    finding.help("give each a name of its own, or list all addresses of one subscriber together"),
                );
            }
            None => _ = first.insert(&subscriber.id, subscriber),
        }
    }
    findings
}

/// Addresses of two subscribers of which one holds the other. Those of one subscriber may.
fn overlapping(policy: &NetworkPolicy) -> Vec<Diagnostic> {
    let subscribers = &policy.subscribers;
    let all: Vec<(usize, &WrittenAddress)> = subscribers
        .subscribers
        .iter()
        .enumerate()
        .flat_map(|(place, subscriber)| subscriber.addresses.iter().map(move |address| (place, address)))
        .collect();
    let addresses: Vec<Address> = all.iter().map(|(_, written)| written.address).collect();
    let name = |place: usize| excerpt(&subscribers.subscribers[place].name);
    let pairs = addresses::overlaps(&addresses).into_iter().filter(|&(narrow, wide)| all[narrow].0 != all[wide].0);
    let finding = |(narrow, wide): (usize, usize)| {
        let ((narrow, own), (wide, other)) = (all[narrow], all[wide]);
        let title = format!("{} of {} is {} of {} too", own.address, name(narrow), other.address, name(wide));
        Diagnostic::error(Kind::Conflict, title)
            .at(own.span.0.clone(), format!("of {}", name(narrow)))
            .at(other.span.0.clone(), format!("of {}", name(wide)))
            .of(&subscribers.source)
            .help("a packet belongs to one subscriber: remove the address from one of the two")
    };
    pairs.map(finding).collect()
}

/// A site, a plan, a class of one, or a subscriber with rates of its own.
struct Rated<'a> {
    /// Its name with what it is, if that does not go without saying.
    name: String,
    rate: Rates,
    ceil: Rates,
    burst: EachWay<Option<Burst>>,
    place: Span,
    source: Option<&'a Source>,
    /// Whether its place is a row, which has columns instead of keys.
    in_table: bool,
}

/// The mistakes in the rates of single nodes. Those of a plan are not told again for its subscribers.
fn nodes(policy: &NetworkPolicy) -> Vec<Diagnostic> {
    let own = policy.origin.source();
    let sites = policy.sites.sites.iter().map(|site| Rated {
        name: format!("the {} {}", policy.word("site"), excerpt(&site.name)),
        rate: site.rate,
        ceil: site.ceil,
        burst: EachWay::default(),
        place: site.span.0.clone(),
        source: policy.sites.source.as_ref(),
        in_table: false,
    });
    let plans = policy.plans.iter().map(|plan| Rated {
        name: format!("the {} {}", policy.word("plan"), excerpt(&plan.name)),
        rate: plan.rate,
        ceil: plan.ceil,
        burst: plan.burst,
        place: plan.span.0.clone(),
        source: own,
        in_table: false,
    });
    let subscribers = &policy.subscribers;
    let with_own = subscribers.subscribers.iter().filter(|one| (one.rate, one.ceil) != <(Rates, Rates)>::default());
    let with_own = with_own.map(|subscriber| Rated {
        name: excerpt(&subscriber.name).into_owned(),
        rate: policy.rate(subscriber),
        ceil: policy.ceil(subscriber),
        burst: EachWay::default(),
        place: subscriber.span.0.clone(),
        source: Some(&subscribers.source),
        in_table: !own.is_some_and(|own| own.is(&subscribers.source)),
    });
    let groups = policy.groups.iter().filter(|group| group.each.ceil != Rates::default());
    let groups = groups.map(|group| Rated {
        name: format!("a host of {}", excerpt(&group.each.name)),
        rate: EachWay::default(),
        ceil: policy.ceil(&group.each),
        burst: EachWay::default(),
        place: group.each.span.0.clone(),
        source: own,
        in_table: false,
    });
    let classes = policy.plans.iter().flat_map(|plan| plan.classes.iter().map(move |class| (plan, class)));
    let classes = classes.map(|(plan, class)| Rated {
        name: format!("the class {} of the plan {}", excerpt(&class.name), excerpt(&plan.name)),
        rate: class.rate,
        ceil: class.ceil,
        burst: class.burst,
        place: class.span.0.clone(),
        source: own,
        in_table: false,
    });
    sites.chain(plans).chain(classes).chain(with_own).chain(groups).flat_map(|rated| node(&rated, policy)).collect()
}

fn node(rated: &Rated<'_>, policy: &NetworkPolicy) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let at_place = |finding: Diagnostic, label: &str| {
        let finding = finding.at(rated.place.clone(), label);
        rated.source.into_iter().fold(finding, |finding, source| finding.of(source))
    };
    // A mistake in one value for both directions is told once.
    let differs = |way: &str| way == "down" || rated.rate.zip(&rated.ceil).down != rated.rate.zip(&rated.ceil).up;
    for ((way, rate), (_, ceil)) in rated.rate.named().into_iter().zip(rated.ceil.named()) {
        let Some(way) = policy.way_name(way).filter(|_| differs(way)) else { continue };
        // LibreQoS takes guarantees from 10 kbit/s on: `resolve` raises those below what a node can have.
        let least = rate.filter(|rate| !rated.in_table || rate > NODE_RATES.start());
        if let Some(wrong) = [least, *ceil].into_iter().flatten().find(|rate| !NODE_RATES.contains(rate)) {
            let (least, most) = (NODE_RATES.start(), NODE_RATES.end());
            let title = match policy.class_tree {
                Some(_) => {
                    let key = if Some(wrong) == *rate { "rate" } else { "ceil" };
                    format!("\"{key}\" of {} is {wrong}, which is not between {least} and {most}", rated.name)
                }
                None => format!("{} has a rate of {wrong}{way}, which is not between {least} and {most}", rated.name),
            };
            let finding = Diagnostic::error(Kind::OutOfRange, title);
            findings.push(at_place(finding, "cannot be kept").help("write a rate within that range"));
        }
        if let Some((rate, ceil)) = rate.zip(*ceil).filter(|(rate, ceil)| rate > ceil) {
            let title = format!("{} gets at least {rate}{way}, and at most {ceil}", rated.name);
            let finding = Diagnostic::error(Kind::RateAboveCeil, title);
            let label = if rated.in_table { "min above max" } else { "\"rate\" above \"ceil\"" };
            findings.push(at_place(finding, label).help("lower the least rate, or raise the most"));
        }
    }
    for ((way, ceil), (_, burst)) in rated.ceil.named().into_iter().zip(rated.burst.named()) {
        let (Some(ceil), Some(Burst::Bytes(bytes)), true) = (ceil, burst, differs(way)) else { continue };
        let Some(way) = policy.way_name(way) else { continue };
        let most_ns = *BURST_TIMES_NS.end();
        let most = ceil.bytes_in_ns(most_ns);
        if bytes.0 > most {
            let most = crate::bytes::Bytes(most);
            let title = format!(
                "the burst of {} lasts longer than {}{way}: {bytes} at {ceil}",
                rated.name,
                time::format(most_ns)
            );
            let finding = Diagnostic::error(Kind::OutOfRange, title);
            findings.push(
                at_place(finding, "passes at once").help(format!("write {most} or less, or a time, as \"20ms\"")),
            );
        }
    }
    findings
}

/// The guarantees below each site and below the link, bits per second.
struct Promised<'a> {
    sites: Vec<EachWay<u128>>,
    whole: EachWay<u128>,
    /// A subscriber below each site, if there is one.
    one: Vec<Option<&'a Subscriber>>,
}

/// A site counts at its parent with its own guarantee, or without one with what is guaranteed below it.
fn promised(policy: &NetworkPolicy) -> Promised<'_> {
    let sites = &policy.sites.sites;
    let guarantees = policy.guarantees().with(&policy.unlisted);
    let (mut sums, mut whole) = (guarantees.sites, guarantees.link);
    sums.resize(sites.len(), EachWay::default());
    let mut one: Vec<Option<&Subscriber>> = vec![None; sites.len()];
    for subscriber in &policy.subscribers.subscribers {
        if let Some(site) = subscriber.parent {
            one[site].get_or_insert(subscriber);
        }
    }
    // Each site comes behind its parent.
    for (place, site) in sites.iter().enumerate().rev() {
        let below = sums[place];
        let counts = site.rate.map(|rate| rate.map(|rate| u128::from(rate.0)));
        let counts = EachWay { down: counts.down.unwrap_or(below.down), up: counts.up.unwrap_or(below.up) };
        match site.parent {
            Some(parent) => {
                add(&mut sums[parent], counts);
                one[parent] = one[parent].or(one[place]);
            }
            None => add(&mut whole, counts),
        }
    }
    Promised { sites: sums, whole, one }
}

/// The guarantee of each site, and the sum of those right below the link: what `resolve` gives the nodes. A site that has none of its own is
/// guaranteed what is guaranteed below it, as far as its ceiling goes.
pub(super) fn guarantees(policy: &NetworkPolicy) -> Vec<Rates> {
    let sums = promised(policy).sites;
    let of = |own: Option<Rate>, ceil: Option<Rate>, sum: u128| {
        own.or_else(|| {
            (sum > 0).then(|| {
                ceil.map_or(shown(sum), |ceil| shown(sum).min(ceil)).clamp(*NODE_RATES.start(), *NODE_RATES.end())
            })
        })
    };
    let of_site = |(site, sum): (&super::Site, &EachWay<u128>)| EachWay {
        down: of(site.rate.down, site.ceil.down, sum.down),
        up: of(site.rate.up, site.ceil.up, sum.up),
    };
    policy.sites.sites.iter().zip(&sums).map(of_site).collect()
}

/// The sum of all guarantees, bits per second.
pub(super) fn whole(policy: &NetworkPolicy) -> EachWay<u128> {
    promised(policy).whole
}

/// Whether no site promises more than it has, or that is meant.
pub(super) fn guarantees_fit(policy: &NetworkPolicy) -> bool {
    guarantees_above_site(policy).iter().all(|one| one.severity() != Severity::Error)
}

/// Sites below which more is guaranteed than passes there, or than the site itself is guaranteed.
fn guarantees_above_site(policy: &NetworkPolicy) -> Vec<Diagnostic> {
    let promised = promised(policy);
    let mut findings = Vec::new();
    for (place, site) in policy.sites.sites.iter().enumerate() {
        let rates = site.rate.named().into_iter().zip(site.ceil.named());
        for (((way, rate), (_, ceil)), (_, sum)) in rates.zip(promised.sites[place].named()) {
            let most = if policy.class_tree.is_some() { "the ceiling" } else { "the most" };
            let least = rate.map(|rate| (rate, "the guarantee")).or(ceil.map(|ceil| (ceil, most)));
            let Some(way) = policy.way_name(way) else { continue };
            let Some((most, what)) = least.filter(|(most, _)| *sum > u128::from(most.0)) else { continue };
            let title = match policy.class_tree {
                Some(_) => format!(
                    "the guarantees below {} add up to {}, more than {what} of {most}",
                    excerpt(&site.name),
                    shown(*sum)
                ),
                None => format!(
                    "the subscribers of {} are promised {}{way}, more than its {most}",
                    excerpt(&site.name),
                    shown(*sum)
                ),
            };
            let mut finding = Diagnostic::new(severity(policy), Kind::RateSum, title);
            finding = finding.at(site.span.0.clone(), format!("{what} of all below it: {most}"));
            finding = policy.sites.source.iter().fold(finding, Diagnostic::of);
            if let Some(subscriber) = promised.one[place] {
                finding = finding.at(subscriber.span.0.clone(), "one of them").of(&policy.subscribers.source);
            }
            findings.push(finding.help(cure(policy)));
        }
    }
    findings
}

/// A warning about subscribers, with the place of the first.
fn about(
    policy: &NetworkPolicy,
    wrong: impl Fn(&Subscriber) -> bool,
    title: impl Fn(usize, &str) -> String,
) -> Option<Diagnostic> {
    let found: Vec<&Subscriber> = policy.subscribers.subscribers.iter().filter(|one| wrong(one)).collect();
    let first = found.first()?;
    let title = title(found.len(), &excerpt(&first.name));
    let label = if found.len() == 1 { "this one" } else { "the first of them" };
    let finding = Diagnostic::new(Severity::Warning, Kind::NoEffect, title).at(first.span.0.clone(), label);
    Some(finding.of(&policy.subscribers.source))
}

/// Subscribers that no packet belongs to.
fn without_addresses(policy: &NetworkPolicy) -> Option<Diagnostic> {
    if policy.class_tree.is_some() {
        return None;
    }
    let title = |many: usize, first: &str| match many {
        1 => format!("{first} has no address, so no packet is its own"),
        many => format!("{many} subscribers have no address, so no packet is theirs"),
    };
    let found = about(policy, |one| one.addresses.is_empty(), title)?;
    Some(found.help("add an address or a prefix, or remove the subscriber"))
}

/// Subscribers whose packets towards the internet may be nobody's: routers take the tag off.
fn by_vlan_alone(policy: &NetworkPolicy) -> Option<Diagnostic> {
    let is_vlan = |written: &WrittenAddress| matches!(written.address, Address::Vlan(_));
    let by_vlan = |one: &Subscriber| !one.addresses.is_empty() && one.addresses.iter().all(is_vlan);
    let title = |many: usize, first: &str| match many {
        1 => format!("{first} is known by VLAN alone, and its packets have no tag behind a router"),
        many => format!("{many} subscribers are known by VLAN alone, and their packets have no tag behind a router"),
    };
    let found = about(policy, by_vlan, title)?;
    Some(found.help("add addresses or a mark, unless this machine bridges the tags to the other side"))
}

/// Subscribers that may take all there is.
fn without_rates(policy: &NetworkPolicy) -> Option<Diagnostic> {
    let none = <(Rates, Rates)>::default();
    let unlimited = |one: &Subscriber| one.plan.is_none() && (one.rate, one.ceil) == none;
    let title = |many: usize, first: &str| match many {
        1 => format!("{first} has no plan and no rates, so nothing limits it"),
        many => format!("{many} subscribers have no plan and no rates, so nothing limits them"),
    };
    Some(about(policy, unlimited, title)?.help("name a plan"))
}

fn bursts_without_ceil(policy: &NetworkPolicy) -> Vec<Diagnostic> {
    let own_ceil = |place: usize| {
        let all = policy.subscribers.subscribers.iter().chain(policy.groups.iter().map(|group| &group.each));
        all.filter(|one| one.plan == Some(place)).any(|one| one.ceil != EachWay::default())
    };
    let unused = policy.plans.iter().enumerate().filter(|(_, plan)| {
        let both = [(plan.burst.down, plan.ceil.down), (plan.burst.up, plan.ceil.up)];
        both.iter().any(|(burst, ceil)| burst.is_some() && ceil.is_none()) && plan.burst != EachWay::default()
    });
    let unused = unused.filter(|&(place, _)| !own_ceil(place));
    let finding = |(_, plan): (usize, &super::Plan)| {
        let what = policy.word("plan");
        let title = format!("the burst of the {what} {} does nothing without a ceiling", excerpt(&plan.name));
        let finding = Diagnostic::new(Severity::Note, Kind::NoEffect, title);
        let finding = finding.at(plan.span.0.clone(), format!("of this {what}"));
        finding.help("add \"ceil\", or remove the burst")
    };
    unused.map(finding).collect()
}
