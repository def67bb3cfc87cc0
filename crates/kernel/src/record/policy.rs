//! Parses, resolves and compiles the policy of a record.

use crate::record::recorded_text::RecordedText;
use crate::record::{Engine, Record};
use crate::system::interface::Interface;
use sluice_abi as abi;
use sluice_error::{Error, Result};
use sluice_policy::{Context, Policy, Rate, Resolved};
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

/// Rates that options give instead of the policy's.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rates {
    /// `--rate`.
    pub departures: Option<Rate>,
    /// `--ingress-rate`.
    pub arrivals: Option<Rate>,
}

/// Resolves a policy for an engine.
pub(crate) fn resolve(policy: &Policy, rates: Rates, engine: Engine) -> Result<Resolved> {
    sluice_policy::resolve(policy, &Context { link_rate: rates.departures, ingress_rate: rates.arrivals, engine })
        .map_err(|found| Error::input(found.render(false)))
}

/// The rates that options gave last.
pub(crate) fn rates(record: &Record) -> Rates {
    let given = record.ingress_rate_bps.filter(|_| !record.ingress_rate_of_policy);
    Rates { departures: record.rate_bps.map(Rate), arrivals: given.map(Rate) }
}

/// A policy as it holds for the departures of a managed interface.
pub(crate) fn departing(policy: Resolved, record: &Record) -> Resolved {
    match record.way {
        Some(way) => policy.departing(way),
        None => policy,
    }
}

/// The policy of a record, for its engine and rate.
pub(crate) fn resolved(record: &Record) -> Result<Resolved> {
    Ok(departing(resolve(&parse(&record.policy)?, rates(record), record.engine)?, record))
}

/// A recorded policy without comments, spaces and the order of keys, which do not change its meaning.
pub(crate) fn canonical(text: &str) -> String {
    parse(text).map_or_else(|_| text.to_owned(), |policy| sluice_policy::print(&policy))
}

/// The recorded policies that were parsed last. A command asks for the same few again and again, and large networks take long.
static PARSED: Mutex<VecDeque<(String, Policy)>> = Mutex::new(VecDeque::new());
/// How many are kept.
const PARSED_MOST: usize = 4;

/// Parses a recorded policy.
pub(crate) fn parse(text: &str) -> Result<Policy> {
    let mut parsed = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, policy)) = parsed.iter().find(|(known, _)| known == text) {
        return Ok(policy.clone());
    }
    let policy = sluice_policy::parse(&sluice_policy::Source::new("the recorded policy", text))
        .map_err(|found| Error::system(found.render(false)))?;
    remember(&mut parsed, text, &policy);
    Ok(policy)
}

fn remember(parsed: &mut VecDeque<(String, Policy)>, text: &str, policy: &Policy) {
    parsed.truncate(PARSED_MOST - 1);
    parsed.push_front((text.to_owned(), policy.clone()));
}

/// The text of a policy, to be recorded. What it says is known then, without parsing it.
pub(crate) fn written(policy: &Policy) -> RecordedText {
    let text = sluice_policy::written(policy);
    let mut parsed = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    if !parsed.iter().any(|(known, _)| *known == text) {
        remember(&mut parsed, &text, policy);
    }
    text.into()
}

/// The compiled policy, as this buffer of the maps holds it.
pub(crate) fn compile(
    policy: &Resolved,
    record: &Record,
    interface: &Interface,
    buffer: u32,
) -> Result<sluice_tables::Compiled> {
    let mut interfaces = crate::system::interface::indices()?;
    for name in &policy.arrivals_of {
        // One of a group may have another name now, or not be there: no packet arrives then, and no interface has this number.
        if !interfaces.iter().any(|(known, _)| known == name) {
            let member = record.members.iter().flatten().find(|member| member.interface == *name);
            let there = member.filter(|member| member.name().is_some());
            interfaces.push((name.clone(), there.map_or(u32::MAX, |member| member.ifindex)));
        }
    }
    let context = sluice_tables::Context {
        generation: record.generation,
        tag: record.tag,
        buffer,
        egress_rate: policy.link_rate,
        ingress_rate: record.ingress_rate_bps.map(Rate),
        virtual_queues: record.ingress_rate_bps.is_some() && record.engine == Engine::Tc,
        queues: record.queues,
        queues_of: match record.engine {
            Engine::Xsk => sluice_tables::Queues::Receive,
            _ => sluice_tables::Queues::Transmit,
        },
        header_bytes: interface.header_bytes(),
        mtu_bytes: interface.mtu_bytes,
        interfaces: &interfaces,
    };
    sluice_tables::compile(policy, &context).map_err(|error| Error::input(error.to_string()))
}

/// Chooses a policy's tag. Equal policies have equal tags, so a class travels between their interfaces; different ones never share
/// a tag. The search starts at a random tag, so a tag is not soon used again for another policy, and cannot be foreseen.
pub(crate) fn choose_tag(record: &Record) -> Result<u16> {
    let others: Vec<Record> = Record::all()?
        .into_iter()
        .filter(|other| other.ifindex != record.ifindex || other.netns != record.netns)
        .collect();
    if let Some(equal) = others.iter().find(|other| other.policy == record.policy) {
        return Ok(equal.tag);
    }
    let tags = abi::SL_TAGS as u16 - 1;
    // A hasher of the standard library has random keys.
    let start = (RandomState::new().hash_one(&*record.policy) % u64::from(tags)) as u16;
    let own = Record::find(&record.interface)?.map(|own| own.tag);
    (0..tags)
        .map(|n| (start + n) % tags + 1)
        .find(|tag| Some(*tag) != own && others.iter().all(|other| other.tag != *tag))
        .ok_or_else(|| Error::system("more than 510 different policies are in force"))
}
