//! Reads `weight`, `quantum` or `priority` of a class: whichever key the scheduler of its parent uses.

use super::object::{Object, Reader};
use crate::diagnostic::{Diagnostic, Kind};
use crate::network::{CLASS_QUANTA_BYTES, MAX_NODE_WEIGHT, NodeScheduler, ShareKey};

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
    for key in ShareKey::ALL {
        let Some(field) = object.get(key.name()).filter(|_| counts != Some(key)) else { continue };
        let title = format!(
            "\"{}\" of {} has no effect: {} has the \"scheduler\" {}",
            key.name(),
            place.class,
            place.parent,
            place.scheduler.name()
        );
        let mut help =
            format!("remove it, or write `\"scheduler\": \"{}\"` into {}", key.scheduler().name(), place.above);
        if key == ShareKey::Priority {
            help += "; or give a \"rate\", which goes first";
        }
        let finding = Diagnostic::error(Kind::Scheduler, title).at(field.key_span.clone(), "not looked at");
        reader.report(finding.help(help));
    }
    let default = counts.and_then(ShareKey::default_value).unwrap_or(1);
    let mut share = Share { weight: default, priority: 0 };
    let Some(key) = counts else { return share };
    let field = object.get(key.name());
    match key {
        ShareKey::Priority => {
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
        ShareKey::Quantum => {
            let meaning = "the bytes of its turn: a class with twice as many gets twice as much";
            let range = i64::from(*CLASS_QUANTA_BYTES.start())..=i64::from(*CLASS_QUANTA_BYTES.end());
            share.weight = field.and_then(|field| reader.integer(field, range, meaning)).unwrap_or(default);
        }
        ShareKey::Weight => share.weight = weight(reader, object),
    }
    share
}

/// Reads the weight of what always shares by weight.
pub(super) fn weight(reader: &mut Reader, object: &Object) -> u32 {
    let meaning = "the share beside others below the same parent: 3 gets three times what 1 gets";
    let field = object.get("weight");
    field.and_then(|field| reader.integer(field, 1..=i64::from(MAX_NODE_WEIGHT), meaning)).unwrap_or(1)
}
