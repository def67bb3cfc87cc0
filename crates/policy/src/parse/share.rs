//! Reads `weight`, `quantum` or `priority` of a class: whichever key the scheduler of its parent uses.

use super::object::{Object, Reader};
use crate::bytes::FRAME_BYTES;
use crate::diagnostic::{Diagnostic, Kind};
use crate::network::{CLASS_QUANTA_BYTES, MAX_NODE_WEIGHT, NodeScheduler};

/// The surroundings of a class: the scheduler of its parent, and names for messages.
pub(super) struct Place<'a> {
    /// The scheduler of what is above it.
    pub scheduler: NodeScheduler,
    /// The least urgent priority there.
    pub most_priority: u32,
    /// The class.
    pub class: &'a str,
    /// The words for its parent, as "its plan".
    pub parent: &'static str,
    /// The place where the scheduler is written, as "the plan".
    pub above: &'static str,
}

/// The share of a class.
pub(super) struct Share {
    /// Its weight, or its quantum in bytes where the scheduler looks at that.
    pub weight: u32,
    /// 0 is the most urgent.
    pub priority: u8,
}

/// Reads the key that counts. Another one of the three is an error, and so is a lack of `priority` where that counts.
pub(super) fn read(reader: &mut Reader, object: &Object, place: &Place) -> Share {
    let counts = place.scheduler.key();
    for key in ["weight", "quantum", "priority"] {
        let Some(field) = object.get(key).filter(|_| counts != Some(key)) else { continue };
        let title = format!(
            "\"{key}\" of {} has no effect: {} has the \"scheduler\" {}",
            place.class,
            place.parent,
            place.scheduler.name()
        );
        let other = match key {
            "priority" => NodeScheduler::StrictPriority,
            "quantum" => NodeScheduler::DeficitRoundRobin,
            _ => NodeScheduler::ElasticRoundRobin,
        };
        let mut help = format!("remove it, or write `\"scheduler\": \"{}\"` into {}", other.name(), place.above);
        if key == "priority" {
            help += "; or give a \"rate\", which goes first";
        }
        let finding = Diagnostic::error(Kind::Scheduler, title).at(field.key_span.clone(), "not looked at");
        reader.report(finding.help(help));
    }
    let field = counts.and_then(|key| object.get(key));
    let mut share = Share { weight: 1, priority: 0 };
    match counts {
        Some("priority") => {
            if field.is_none() {
                let title = format!("{} has no \"priority\"", place.class);
                let finding = Diagnostic::error(Kind::MissingKey, title);
                let finding = finding.at(object.brace(), "\"priority\" is missing here");
                let help = format!("{} has the \"scheduler\" strict_priority; 0 is the most urgent", place.parent);
                reader.report(finding.help(help));
            }
            let meaning = "0 is the most urgent; equal numbers take turns";
            let most = i64::from(place.most_priority);
            share.priority = field.and_then(|field| reader.integer(field, 0..=most, meaning)).unwrap_or_default();
        }
        Some("quantum") => {
            let meaning = "the bytes of its turn: a class with twice as many gets twice as much";
            let range = i64::from(*CLASS_QUANTA_BYTES.start())..=i64::from(*CLASS_QUANTA_BYTES.end());
            share.weight = field.and_then(|field| reader.integer(field, range, meaning)).unwrap_or(FRAME_BYTES);
        }
        Some(_) => share.weight = weight(reader, object),
        None => {}
    }
    share
}

/// Reads the weight of what always shares by weight.
pub(super) fn weight(reader: &mut Reader, object: &Object) -> u32 {
    let meaning = "the share beside others below the same parent: 3 gets three times what 1 gets";
    let field = object.get("weight");
    field.and_then(|field| reader.integer(field, 1..=i64::from(MAX_NODE_WEIGHT), meaning)).unwrap_or(1)
}
