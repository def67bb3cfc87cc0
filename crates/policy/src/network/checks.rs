//! What can be wrong with a network whose files can be read: addresses that two subscribers have, and guarantees that do not fit.

use super::{EachWay, Sites, Subscriber, Subscribers, addresses};
use crate::diagnostic::{Diagnostic, Diagnostics, Kind, Severity};
use crate::excerpt::excerpt;
use crate::rate::Rate;
use ipnet::IpNet;

/// Checks subscribers against each other and against their sites. Without errors, the result has warnings at most.
pub fn check(sites: &Sites, subscribers: &Subscribers) -> Diagnostics {
    let mut findings = overlapping(subscribers);
    findings.extend(subscribers.subscribers.iter().flat_map(guarantee_above_ceiling));
    findings.extend(guarantees_above_site(sites, subscribers));
    findings.extend(without_addresses(subscribers));
    Diagnostics::new(Some(subscribers.source.clone()), findings)
}

/// Prefixes of two subscribers of which one holds the other. Those of one subscriber may.
fn overlapping(subscribers: &Subscribers) -> Vec<Diagnostic> {
    let all: Vec<(usize, &super::Address)> = subscribers
        .subscribers
        .iter()
        .enumerate()
        .flat_map(|(place, subscriber)| subscriber.addresses.iter().map(move |address| (place, address)))
        .collect();
    let prefixes: Vec<&IpNet> = all.iter().map(|(_, address)| &address.prefix).collect();
    let name = |place: usize| excerpt(&subscribers.subscribers[place].name);
    let pairs = addresses::overlaps(&prefixes).into_iter().filter(|&(narrow, wide)| all[narrow].0 != all[wide].0);
    let finding = |(narrow, wide): (usize, usize)| {
        let ((narrow, own), (wide, other)) = (all[narrow], all[wide]);
        let title = format!("{} of {} is {} of {} too", own.prefix, name(narrow), other.prefix, name(wide));
        Diagnostic::error(Kind::Conflict, title)
            .at(own.span.clone(), format!("of {}", name(narrow)))
            .at(other.span.clone(), format!("of {}", name(wide)))
            .help("a packet belongs to one subscriber: remove the address from one of the two")
    };
    pairs.map(finding).collect()
}

fn guarantee_above_ceiling(subscriber: &Subscriber) -> Option<Diagnostic> {
    let ways = subscriber.rate.named().into_iter().zip(subscriber.ceil.named());
    let (way, rate, ceil) = ways
        .filter_map(|((way, rate), (_, ceil))| Some((way, (*rate)?, (*ceil)?)))
        .find(|(_, rate, ceil)| rate > ceil)?;
    let title = format!("{} gets at least {rate} {way}, and at most {ceil}", excerpt(&subscriber.name));
    let finding = Diagnostic::error(Kind::RateAboveCeil, title).at(subscriber.span.clone(), "min above max");
    Some(finding.help("lower the least rate, or raise the most"))
}

/// Sites whose subscribers are promised more than passes there: a warning, for providers sell more than they have.
fn guarantees_above_site(sites: &Sites, subscribers: &Subscribers) -> Vec<Diagnostic> {
    let mut sums = vec![EachWay { down: 0u128, up: 0u128 }; sites.sites.len()];
    let mut first: Vec<Option<&Subscriber>> = vec![None; sites.sites.len()];
    for subscriber in &subscribers.subscribers {
        if let Some(site) = subscriber.parent {
            sums[site].down += u128::from(subscriber.rate.down.map_or(0, |rate| rate.0));
            sums[site].up += u128::from(subscriber.rate.up.map_or(0, |rate| rate.0));
            first[site].get_or_insert(subscriber);
        }
    }
    // Each site comes behind its parent.
    for site in (0..sites.sites.len()).rev() {
        if let Some(parent) = sites.sites[site].parent {
            let own = sums[site];
            sums[parent].down += own.down;
            sums[parent].up += own.up;
            first[parent] = first[parent].or(first[site]);
        }
    }
    let mut findings = Vec::new();
    for (place, site) in sites.sites.iter().enumerate() {
        for ((way, ceil), (_, sum)) in site.ceil.named().into_iter().zip(sums[place].named()) {
            let Some(ceil) = ceil.filter(|ceil| *sum > u128::from(ceil.0)) else { continue };
            let sum = Rate(u64::try_from(*sum).unwrap_or(u64::MAX));
            let title =
                format!("the subscribers of {} are promised {sum} {way}, more than its {ceil}", excerpt(&site.name));
            let mut finding = Diagnostic::new(Severity::Warning, Kind::RateSum, title);
            if let Some(subscriber) = first[place] {
                finding = finding.at(subscriber.span.clone(), "one of them");
            }
            findings.push(finding.help("when all of them send, none has a guarantee: lower the least rates"));
        }
    }
    findings
}

/// Subscribers that no packet belongs to.
fn without_addresses(subscribers: &Subscribers) -> Option<Diagnostic> {
    let without: Vec<&Subscriber> =
        subscribers.subscribers.iter().filter(|subscriber| subscriber.addresses.is_empty()).collect();
    let first = without.first()?;
    let title = match without.len() {
        1 => format!("{} has no address, so no packet is its own", excerpt(&first.name)),
        many => format!("{many} subscribers have no address, so no packet is theirs"),
    };
    let finding = Diagnostic::new(Severity::Warning, Kind::NoEffect, title).at(first.span.clone(), "the first of them");
    Some(finding.help("add an address or a prefix, or remove the row"))
}
