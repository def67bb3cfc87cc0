//! Reads `weight`, `quantum`, `priority` or `latency_budget` of a class: whichever keys the scheduler of its parent uses; and that scheduler.

use super::discipline;
use super::object::{Object, Reader};
use crate::bytes::FRAME_BYTES;
use crate::diagnostic::{Diagnostic, Kind};
use crate::network::{CLASS_QUANTA_BYTES, MAX_NODE_WEIGHT, NodeScheduler, Order, ShareKey};
use crate::policy::LATENCY_BUDGETS_NS;

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
    /// Its weight, or its quantum in bytes where deficit round robin looks at that.
    pub weight: u32,
    /// 0 is the most urgent.
    pub priority: u8,
    /// The request below EEVDF, or the latency budget below a PIFO.
    pub order: Order,
}

/// Reads the keys that count. Another one of them is an error, and so is a lack of `priority` or `latency_budget` where that counts, and whatever a PIFO
/// above cannot give.
pub(super) fn read(reader: &mut Reader, object: &Object, place: &Place) -> Share {
    let counts = place.scheduler.keys();
    for key in ShareKey::ALL {
        let Some(field) = object.get(key.name()).filter(|_| !counts.contains(&key)) else { continue };
        let title = format!(
            "\"{}\" of {} has no effect: {} has the \"scheduler\" {}",
            key.name(),
            place.class,
            place.parent,
            place.scheduler.words()
        );
        let rank = key.scheduler().rank().map_or(String::new(), |rank| format!(", \"rank\": \"{rank}\""));
        let mut help =
            format!("remove it, or write `\"scheduler\": \"{}\"{rank}` into {}", key.scheduler().name(), place.above);
        if key == ShareKey::Priority && place.scheduler.rank().is_none() {
            help += "; or give a \"rate\", which goes first";
        }
        let finding = Diagnostic::error(Kind::Scheduler, title).at(field.key_span.clone(), "not looked at");
        reader.report(finding.help(help));
    }
    if let Some(rank) = place.scheduler.rank() {
        discipline::refuse_rate(reader, object, place.class, rank);
        discipline::refuse_queues(reader, object, place.class, "a PIFO ranks the first packet of each class");
    }
    let mut share = Share { weight: 1, priority: 0, order: Order::default() };
    for key in counts {
        let field = object.get(key.name());
        if field.is_none() && key.default_value().is_none() {
            let finding = Diagnostic::error(Kind::MissingKey, format!("{} has no \"{}\"", place.class, key.name()));
            let finding = finding.at(object.brace(), format!("\"{}\" is missing here", key.name()));
            let meaning = match key {
                ShareKey::LatencyBudget => "how long a packet may take, as \"5ms\"",
                _ => "0 is the most urgent",
            };
            let help = format!("{} has the \"scheduler\" {}; {meaning}", place.parent, place.scheduler.words());
            reader.report(finding.help(help));
        }
        match key {
            ShareKey::Priority => {
                let meaning = "0 is the most urgent; equal numbers take turns";
                let most = i64::from(place.most_priority);
                share.priority = field.and_then(|field| reader.integer(field, 0..=most, meaning)).unwrap_or_default();
            }
            ShareKey::Quantum => {
                let is_request = place.scheduler == NodeScheduler::Eevdf;
                let meaning = match is_request {
                    true => "the bytes of a request: a class with a small one waits less",
                    false => "the bytes of its turn: a class with twice as many gets twice as much",
                };
                let range = i64::from(*CLASS_QUANTA_BYTES.start())..=i64::from(*CLASS_QUANTA_BYTES.end());
                let quantum = field.and_then(|field| reader.integer(field, range, meaning)).unwrap_or(FRAME_BYTES);
                if is_request {
                    share.order.quantum_bytes = quantum;
                } else {
                    share.weight = quantum;
                }
            }
            ShareKey::LatencyBudget => {
                let budget = field.and_then(|field| reader.time(field, &LATENCY_BUDGETS_NS));
                share.order.latency_budget_ns = budget.unwrap_or(*LATENCY_BUDGETS_NS.start());
            }
            ShareKey::Weight => share.weight = weight(reader, object),
        }
    }
    share
}

/// Reads how a node serves the classes below it: `scheduler`, and `rank` of a PIFO.
pub(super) fn scheduler(reader: &mut Reader, object: &Object) -> NodeScheduler {
    let field = object.get("scheduler");
    let scheduler = field.and_then(|field| reader.choice(field, NodeScheduler::NAMES)).unwrap_or_default();
    let Some(field) = object.get("rank") else { return scheduler };
    if scheduler.rank().is_none() {
        discipline::report_rank_without_pifo(reader, object, field);
        return scheduler;
    }
    discipline::rank(reader, field).map_or(scheduler, NodeScheduler::Pifo)
}

/// Reads the weight of what always shares by weight.
pub(super) fn weight(reader: &mut Reader, object: &Object) -> u32 {
    let meaning = "the share beside others below the same parent: 3 gets three times what 1 gets";
    let field = object.get("weight");
    field.and_then(|field| reader.integer(field, 1..=i64::from(MAX_NODE_WEIGHT), meaning)).unwrap_or(1)
}
