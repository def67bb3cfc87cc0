//! The mistakes in groups of hosts: names and addresses that others have, guarantees, and places that there are not.

use super::{
    Address, GROUP_HOSTS, HostGroup, MAX_SITE_DEPTH, MAX_SITES, MAX_SUBSCRIBERS, NetworkPolicy, WrittenAddress,
    addresses,
};
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::source::Source;

/// The errors of all groups.
pub(super) fn errors(policy: &NetworkPolicy) -> Vec<Diagnostic> {
    let mut findings: Vec<Diagnostic> = policy.groups.iter().filter_map(|group| same_name(policy, group)).collect();
    findings.extend(policy.groups.iter().filter_map(|group| guarantee(policy, group)));
    findings.extend(policy.groups.iter().filter_map(|group| too_deep(policy, group)));
    findings.extend(policy.groups.iter().filter_map(|group| one_host(policy, group)));
    findings.extend(policy.groups.iter().filter_map(|group| without_hosts(policy, group)));
    findings.extend(overlapping(policy));
    findings.extend(too_many(policy));
    findings
}

/// A site of the group's name.
fn same_name(policy: &NetworkPolicy, group: &HostGroup) -> Option<Diagnostic> {
    let name = &group.each.name;
    let site = policy.sites.sites.iter().find(|site| site.name == *name)?;
    let title = format!("a site and a group of hosts are called \"{}\"", excerpt(name));
    let finding = at(policy, Diagnostic::error(Kind::DuplicateName, title), group, "the group");
    let finding = finding.at(site.span.0.clone(), "the site");
    let finding = policy.sites.source.iter().fold(finding, Diagnostic::of);
    Some(finding.help("a group is shown among the sites: give it another name"))
}

/// A guarantee by the plan of a group.
fn guarantee(policy: &NetworkPolicy, group: &HostGroup) -> Option<Diagnostic> {
    let plan = policy.plan(&group.each)?;
    let rate = [plan.rate.down, plan.rate.up].into_iter().flatten().max()?;
    let name = excerpt(&group.each.name);
    let title = format!("the plan of {name} guarantees {rate}, and nobody knows how many hosts there will be");
    let finding = at(policy, Diagnostic::error(Kind::Conflict, title), group, "of this group");
    let finding = finding.at(plan.span.0.clone(), "this plan");
    Some(finding.help("use a plan without \"rate\"; a site above the group can have one for all of its hosts"))
}

/// A site that is so deep that no group has room below it.
fn too_deep(policy: &NetworkPolicy, group: &HostGroup) -> Option<Diagnostic> {
    let above = std::iter::successors(group.each.parent, |&site| policy.sites.sites[site].parent).count();
    if above < MAX_SITE_DEPTH {
        return None;
    }
    let title = format!("the group {} has {above} sites above it", excerpt(&group.each.name));
    let finding = at(policy, Diagnostic::error(Kind::TooMany, title), group, "too deep");
    Some(finding.help(format!("a group counts as a site, of which {MAX_SITE_DEPTH} levels are the most")))
}

/// A prefix of IPv6 that is less than one host.
fn one_host(policy: &NetworkPolicy, group: &HostGroup) -> Option<Diagnostic> {
    let length = group.ipv6_length;
    let is_less = |written: &&WrittenAddress| {
        written.address.prefix().is_some_and(|own| own.addr().is_ipv6() && own.prefix_len() > length)
    };
    let written = group.each.addresses.iter().find(is_less)?;
    let title =
        format!("{} of {} is a part of one host, which has a /{length}", written.address, excerpt(&group.each.name));
    let finding = Diagnostic::error(Kind::Conflict, title).at(written.span.0.clone(), "less than a host");
    let finding = policy.origin.source().into_iter().fold(finding, Diagnostic::of);
    Some(finding.help("make \"ipv6_length\" longer, or write a shorter prefix"))
}

/// A VLAN or a mark, in which hosts cannot be told apart.
fn without_hosts(policy: &NetworkPolicy, group: &HostGroup) -> Option<Diagnostic> {
    let written = group.each.addresses.iter().find(|written| written.address.prefix().is_none())?;
    let title = format!("{} of {} is no prefix of addresses", written.address, excerpt(&group.each.name));
    let finding = Diagnostic::error(Kind::Conflict, title).at(written.span.0.clone(), "has no hosts");
    let finding = policy.origin.source().into_iter().fold(finding, Diagnostic::of);
    Some(finding.help("a host is an address: list prefixes here, and give a VLAN or a mark to a subscriber"))
}

/// Prefixes that two groups have in common, and those of subscribers that do not lie within a group's.
fn overlapping(policy: &NetworkPolicy) -> Vec<Diagnostic> {
    struct Owned<'a> {
        written: &'a WrittenAddress,
        /// Its group; none: it is a subscriber's.
        group: Option<usize>,
        name: &'a str,
        source: Option<&'a Source>,
    }
    let own = policy.origin.source();
    let groups = policy.groups.iter().enumerate().flat_map(|(place, group)| {
        let owned = move |written| Owned { written, group: Some(place), name: group.each.name.as_str(), source: own };
        group.each.addresses.iter().map(owned)
    });
    if policy.groups.is_empty() {
        return Vec::new();
    }
    let subscribers = policy.subscribers.subscribers.iter().flat_map(|one| {
        let source = Some(&policy.subscribers.source);
        one.addresses.iter().map(move |written| Owned { written, group: None, name: &one.name, source })
    });
    let all: Vec<Owned<'_>> = groups.chain(subscribers).collect();
    let addresses: Vec<Address> = all.iter().map(|owned| owned.written.address).collect();
    let mut findings = Vec::new();
    for (narrow, wide) in addresses::overlaps(&addresses) {
        let (narrow, wide) = (&all[narrow], &all[wide]);
        let same = narrow.written.address == wide.written.address;
        // A subscriber within a group is told apart by the longer prefix; two subscribers are told elsewhere.
        if narrow.group == wide.group || (narrow.group.is_none() && !same) {
            continue;
        }
        let (inner, outer) = (excerpt(narrow.name), excerpt(wide.name));
        let title = format!("{} of {inner} is {} of {outer} too", narrow.written.address, wide.written.address);
        let mut finding = Diagnostic::error(Kind::Conflict, title);
        for (owned, name) in [(narrow, inner), (wide, outer)] {
            finding = finding.at(owned.written.span.0.clone(), format!("of {name}"));
            finding = owned.source.into_iter().fold(finding, Diagnostic::of);
        }
        findings.push(finding.help("groups have no address in common; a subscriber may have some of a group's"));
    }
    findings
}

/// More leaves, places or inner nodes than there are.
fn too_many(policy: &NetworkPolicy) -> Vec<Diagnostic> {
    let Some(last) = policy.groups.last() else { return Vec::new() };
    let hosts: u64 = policy.groups.iter().map(|group| u64::from(group.places())).sum();
    let leaves = policy.subscribers.subscribers.len() as u64 + hosts + policy.groups.len() as u64;
    let most = u64::from(*GROUP_HOSTS.end());
    let mut findings = Vec::new();
    let mut say = |title: String, help: &str| {
        findings.push(at(policy, Diagnostic::error(Kind::TooMany, title), last, "the last of them").help(help));
    };
    if hosts > most {
        let title =
            format!("the groups have {hosts} hosts at once, each rounded up to a power of two, more than {most}");
        say(title, "lower \"hosts\" of some of them; without it, a group has 1024");
    } else if leaves > MAX_SUBSCRIBERS as u64 {
        let title = format!("subscribers and hosts at once are {leaves}, more than {MAX_SUBSCRIBERS}");
        say(title, "lower \"hosts\" of some groups");
    }
    let inner = policy.sites.sites.len() + policy.groups.len();
    if inner > MAX_SITES {
        say(format!("sites and groups of hosts are {inner}, more than {MAX_SITES}"), "leave some out");
    }
    findings
}

fn at(policy: &NetworkPolicy, finding: Diagnostic, group: &HostGroup, label: &str) -> Diagnostic {
    let finding = finding.at(group.each.span.0.clone(), label);
    policy.origin.source().into_iter().fold(finding, Diagnostic::of)
}
