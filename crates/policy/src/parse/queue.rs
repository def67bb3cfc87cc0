//! The keys `queue` and `aqm` of a class, and the keys that depend on them.

use super::object::{Field, Object, Reader};
use crate::bytes::Bytes;
use crate::diagnostic::{Diagnostic, Kind};
use crate::queue::{Codel, Flows, Hosts, Queue};
use crate::time;
use jsonc_parser::ast::Value;

/// The keys that say how packets are queued.
pub(super) const KEYS: [&str; 7] = ["queue", "hosts", "flow_quantum", "allowance", "aqm", "target", "interval"];

/// The value of `queue` or `aqm`: by flow or not, CoDel or not.
#[derive(Clone, Copy)]
enum Choice {
    Yes,
    No,
}

const QUEUES: &[(&str, Choice)] = &[("fifo", Choice::No), ("flows", Choice::Yes)];
const AQMS: &[(&str, Choice)] = &[("codel", Choice::Yes), ("none", Choice::No)];

/// Names of queues in other programs, with the words of this format.
const FOREIGN_NAMES: &[(&str, &str)] = &[
    ("codel", "for one line with CoDel, write `\"aqm\": \"codel\"` instead"),
    ("fq_codel", BY_FLOW),
    ("fq", BY_FLOW),
    ("sfq", BY_FLOW),
    ("cake", BY_FLOW),
    ("pfifo", ONE_LINE),
    ("bfifo", ONE_LINE),
];
const BY_FLOW: &str = "write \"flows\": a line for each flow, with CoDel in each";
const ONE_LINE: &str = "write \"fifo\", and how much it may hold as \"limit\"";

/// The queue of an object that names none.
#[derive(Clone, Copy)]
pub(super) enum Default {
    Fifo,
    Flows,
}

/// Reads both keys; without any of [`KEYS`], it is the other queue.
pub(super) fn read_or(
    reader: &mut Reader,
    object: &Object,
    other: (Queue, Option<Codel>),
    default: Default,
) -> (Queue, Option<Codel>) {
    if KEYS.iter().any(|key| object.get(key).is_some()) { read(reader, object, default) } else { other }
}

/// Reads both keys. If one of them cannot be read, keys that depend on it are not checked.
pub(super) fn read(reader: &mut Reader, object: &Object, default: Default) -> (Queue, Option<Codel>) {
    let by_flow = match object.get("queue") {
        Some(field) => by_flow(reader, field),
        None => Some(if let Default::Flows = default { Choice::Yes } else { Choice::No }),
    };
    let flows = flows(reader, object);
    if let Some(Choice::No) = by_flow {
        let cure = |key| format!("add `\"queue\": \"flows\"`, or remove \"{key}\"");
        for key in ["hosts", "flow_quantum", "allowance"] {
            without(reader, object, key, ["queue", "flows"], "sets how flows share", cure(key));
        }
    }
    let queue = if let Some(Choice::Yes) = by_flow { Queue::Flows(flows) } else { Queue::Fifo };
    let acts = match object.get("aqm") {
        Some(field) => reader.choice(field, AQMS),
        None => by_flow,
    };
    let codel = codel(reader, object);
    if let Some(Choice::No) = acts {
        for key in ["target", "interval"] {
            let cure = format!("add `\"aqm\": \"codel\"`, or remove \"{key}\"");
            without(reader, object, key, ["aqm", "codel"], "sets when CoDel acts", cure);
        }
    }
    (queue, if let Some(Choice::Yes) = acts { Some(codel) } else { None })
}

fn by_flow(reader: &mut Reader, field: &Field) -> Option<Choice> {
    let Some((name, cure)) = FOREIGN_NAMES.iter().find(|(name, _)| field.is_text(name)) else {
        return reader.choice(field, QUEUES);
    };
    let title = format!("\"queue\" cannot be \"{name}\"");
    reader.report(Diagnostic::error(Kind::UnknownValue, title).at(field.span(), "not known").help(*cure));
    None
}

/// Reports a key that needs another value of another key.
fn without(reader: &mut Reader, object: &Object, key: &str, [other, value]: [&str; 2], why: &str, cure: String) {
    let Some(field) = object.get(key) else { return };
    let title = format!("\"{key}\" without `\"{other}\": \"{value}\"`");
    let finding = match object.get(other) {
        Some(written) => Diagnostic::error(Kind::Conflict, title)
            .at(field.key_span.clone(), why.to_owned())
            .at(written.span(), "says otherwise")
            .help(cure.replace("add", "write")),
        None => Diagnostic::error(Kind::MissingKey, title).at(field.key_span.clone(), why.to_owned()).help(cure),
    };
    reader.report(finding);
}

fn flows(reader: &mut Reader, object: &Object) -> Flows {
    let hosts = object.get("hosts").and_then(|field| reader.choice(field, Hosts::NAMES));
    let quantum = object.get("flow_quantum").and_then(|field| {
        let range = i64::from(*Flows::QUANTA_BYTES.start())..=i64::from(*Flows::QUANTA_BYTES.end());
        reader.integer(field, range, "bytes of a bulk flow's turn; 1514, the largest frame, suits most")
    });
    let quantum_bytes = quantum.unwrap_or(Flows::default().quantum_bytes);
    let allowance = object.get("allowance").and_then(|field| allowance(reader, field));
    if let (Some(allowance), Some(field)) = (allowance, object.get("allowance")) {
        if allowance.0 < quantum_bytes.into() {
            let title = format!("the allowance of {allowance} is less than the quantum of {quantum_bytes} bytes");
            let finding = Diagnostic::error(Kind::OutOfRange, title)
                .at(field.span(), "the bytes that a flow may send before it counts as bulk")
                .at(object.get("flow_quantum").map(Field::span), "the bytes that it may send in each turn then")
                .help(format!("write {quantum_bytes} or more, or leave it out for the default"));
            reader.report(finding);
        }
    }
    Flows {
        hosts: hosts.unwrap_or_default(),
        quantum_bytes,
        allowance: allowance.unwrap_or_else(|| Flows::default_allowance(quantum_bytes)),
    }
}

fn allowance(reader: &mut Reader, field: &Field) -> Option<Bytes> {
    let (least, most) = (Bytes((*Flows::QUANTA_BYTES.start()).into()), Flows::MAX_ALLOWANCE);
    let meaning = "bytes that a flow may send before it counts as bulk; \"48kb\" are 32 frames";
    if let Value::NumberLit(_) = field.value {
        return reader.integer(field, least.0 as i64..=most.0 as i64, meaning).map(|n: i64| Bytes(n as u64));
    }
    let bytes = reader.bytes(field)?;
    if !(least..=most).contains(&bytes) {
        let title = format!("\"allowance\" must be between {least} and {most}, not {bytes}");
        reader.report(Diagnostic::error(Kind::OutOfRange, title).at(field.span(), "out of range").help(meaning));
        return None;
    }
    Some(bytes)
}

fn codel(reader: &mut Reader, object: &Object) -> Codel {
    let target_ns = object.get("target").and_then(|field| reader.time(field, &Codel::TARGETS_NS));
    let interval_ns = object.get("interval").and_then(|field| reader.time(field, &Codel::INTERVALS_NS));
    let target_ns = target_ns.unwrap_or(Codel::default().target_ns);
    if let (Some(interval_ns), Some(field)) = (interval_ns, object.get("interval")) {
        if interval_ns < target_ns {
            let (interval, target) = (time::format(interval_ns), time::format(target_ns));
            let title = format!("the interval of {interval} is shorter than the target of {target}");
            let finding = Diagnostic::error(Kind::OutOfRange, title)
                .at(field.span(), "how long the wait must be above the target")
                .at(object.get("target").map(Field::span), "the wait that is no cause for action")
                .help("write an interval of some round trips, as \"100ms\", and a target of a twentieth of it");
            reader.report(finding);
        }
    }
    Codel { target_ns, interval_ns: interval_ns.unwrap_or_else(|| Codel::default_interval_ns(target_ns)) }
}
