//! The keys of one class, published and native.

use super::object::{Field, Object, Reader};
use super::{ceiling, discipline, peak, queue};
use crate::bytes::Bytes;
use crate::class_id::ClassId;
use crate::diagnostic::{Diagnostic, Kind};
use crate::dscp;
use crate::limit::Limit;
use crate::policy::{
    Class, Exceed, LATENCY_BUDGETS_NS, MAX_CLASS_NAME_BYTES, MAX_CLASSES, MAX_QUEUED_PKTS, MAX_WEIGHT,
};
use crate::rank::Rank;
use crate::rate::Rate;
use crate::scheduler::Scheduler;
use jsonc_parser::ast::Value;

/// Every key of a class. `rate_limit_mbps` and `burst_size_kb` are the published names of `ceil` and `burst`.
pub(super) const KEYS: &[&str] = &[
    "id",
    "name",
    "parent",
    "scheduler",
    "rank",
    "priority",
    "weight",
    "quantum",
    "latency_budget",
    "rate",
    "ceil",
    "rate_limit_mbps",
    "burst",
    "burst_size_kb",
    "peak",
    "peak_burst",
    "limit",
    "queue",
    "hosts",
    "flow_quantum",
    "allowance",
    "aqm",
    "target",
    "interval",
    "police",
    "shape",
    "flow_ceil",
    "flow_burst",
    "shared_ceil",
    "dscp",
    "mark",
];

/// Reads a class; `None` if it has no readable id.
pub(super) fn read(reader: &mut Reader, field: &Field, discipline: Option<(Scheduler, Rank)>) -> Option<Class> {
    let object = reader.object(field.value, &field.path, "a class", KEYS)?;
    let id =
        reader.required(&object, "id", "number the classes from 0; rules name them by `class_id`").and_then(|field| {
            reader.integer(field, 0..=MAX_CLASSES as i64 - 1, "classes are numbered 0 to 63, gaps are fine")
        });
    let mut class = Class::new(ClassId(id.unwrap_or(0)));
    if let Some(name) = object.get("name").and_then(|field| reader.name(field, MAX_CLASS_NAME_BYTES)) {
        class.name = name;
    }
    if let Some(discipline) = discipline {
        let name = id.map_or("a class".into(), |_| format!("class {} \"{}\"", class.id, class.name));
        discipline::check_class(reader, &object, &name, discipline);
    }
    for key in ["scheduler", "rank"] {
        let Some(field) = object.get(key) else { continue };
        let finding = Diagnostic::error(Kind::Conflict, format!("\"{key}\" of a class has no effect"));
        let finding = finding.at(field.key_span.clone(), "no class names this one as its \"parent\"");
        reader.report(finding.help("let classes name this one as their \"parent\", or write it into the policy"));
    }
    if let Some(field) = object.get("priority") {
        let meaning = "0 is the most urgent; equal numbers share the link";
        class.priority = reader.integer(field, 0..=255, meaning).unwrap_or_default();
    }
    if let Some(field) = object.get("weight") {
        let meaning = "the class's share relative to other classes: 3 gets three times what 1 gets";
        class.weight = reader.integer(field, 1..=i64::from(MAX_WEIGHT), meaning).unwrap_or(1);
    }
    if let Some(field) = object.get("quantum") {
        let meaning = "bytes per round; 1514, the largest frame, or a multiple of it works best (under eevdf, any)";
        class.quantum_bytes = reader.integer(field, 1..=1 << 24, meaning).unwrap_or(1);
    }
    class.latency_budget_ns = object.get("latency_budget").and_then(|field| reader.time(field, &LATENCY_BUDGETS_NS));
    class.rate = object.get("rate").and_then(|field| reader.rate(field));
    class.ceil = ceil(reader, &object);
    class.burst = burst(reader, &object);
    class.peak = peak::read(reader, &object, &class);
    class.limit = object.get("limit").and_then(|field| limit(reader, field));
    (class.queue, class.codel) = queue::read(reader, &object, queue::Default::Fifo);
    class.exceed = exceed(reader, &object);
    class.flow_ceil = ceiling::read(reader, &object, "flow_ceil", "flow_burst");
    class.shared_ceil = object.get("shared_ceil").and_then(|field| ceiling::shared(reader, field));
    if let Some(field) = object.get("dscp") {
        let values = reader.list(field, "list DSCP names or values, as in [\"ef\", 40]");
        class.dscp = values.iter().filter_map(|value| self::dscp(reader, value)).collect();
    }
    if let Some(field) = object.get("mark") {
        let meaning = "a firewall mark is a number of 32 bits";
        let values = reader.list(field, "list firewall marks, as in [1, 2]");
        class.marks =
            values.iter().filter_map(|value| reader.integer(value, 0..=i64::from(u32::MAX), meaning)).collect();
    }
    rate_above_ceil(reader, &object, &class);
    id.map(|_| class)
}

/// Reads a DSCP by name or number, of a class or a rule.
pub(super) fn dscp(reader: &mut Reader, field: &Field) -> Option<u8> {
    let Value::StringLit(text) = field.value else {
        let meaning = "a DSCP is a name, as \"ef\" or \"af41\", or a number of six bits (not the whole TOS byte)";
        return reader.integer(field, 0..=i64::from(dscp::MAX), meaning);
    };
    let value = dscp::value(&text.value);
    if value.is_none() {
        reader.unknown_value(field, &text.value, &dscp::names().collect::<Vec<_>>());
    }
    value
}

pub(super) fn ceil(reader: &mut Reader, object: &Object) -> Option<Rate> {
    let (why, cure) = ("both are the class's ceiling", "keep one; \"rate_limit_mbps\" is the ceiling in Mbit/s");
    reader.exclude(object, "ceil", "rate_limit_mbps", why, cure);
    if let Some(field) = object.get("ceil") {
        return reader.rate(field);
    }
    let field = object.get("rate_limit_mbps")?;
    let mbps = reader.number(field, "a number of Mbit/s; 0 is no limit")?;
    // In the published format zero means no ceiling.
    if mbps == 0.0 {
        return None;
    }
    reader.quantity(field, Rate::from_mbps(mbps))
}

pub(super) fn burst(reader: &mut Reader, object: &Object) -> Option<Bytes> {
    let (why, cure) = ("both are the ceiling's burst", "keep one; \"burst_size_kb\" counts in 1024 bytes");
    reader.exclude(object, "burst", "burst_size_kb", why, cure);
    if let Some(field) = object.get("burst") {
        return reader.bytes(field);
    }
    let field = object.get("burst_size_kb")?;
    let kb = reader.number(field, "a number of 1024 bytes; 0 is the default")?;
    if kb == 0.0 {
        return None;
    }
    reader.quantity(field, Bytes::checked(kb * 1024.0, &format!("{kb} kB")))
}

/// The limit of a queue, of a class or a plan.
pub(super) fn limit(reader: &mut Reader, field: &Field) -> Option<Limit> {
    match field.value {
        Value::NumberLit(_) => {
            let meaning = "packets that the class may queue; write bytes as \"64kb\" and time as \"50ms\"";
            reader.integer(field, 1..=i64::from(MAX_QUEUED_PKTS), meaning).map(Limit::Pkts)
        }
        Value::StringLit(text) => reader.quantity(field, text.value.parse()),
        _ => {
            let cure =
                "write packets as a plain number (1000), bytes as \"64kb\", or time at the class's rate as \"50ms\"";
            reader.wrong_type(field, "a number or a text", cure);
            None
        }
    }
}

fn exceed(reader: &mut Reader, object: &Object) -> Exceed {
    let police = object.get("police").and_then(|field| reader.boolean(field));
    let shape = object.get("shape").and_then(|field| reader.boolean(field));
    match (police, shape) {
        (Some(true), Some(true)) => {
            let (why, cure) = ("shaping delays packets above the ceiling", "keep one: policing drops, shaping delays");
            reader.exclude(object, "police", "shape", why, cure);
        }
        (police, Some(false)) if police != Some(true) => {
            let field = object.get("shape").map(|field| field.span());
            let finding = Diagnostic::error(Kind::Conflict, "\"shape\" is false, and \"police\" is not true")
                .at(field, "nothing is left to do above the ceiling")
                .help("write `\"police\": true` to drop above the ceiling, or leave \"shape\" out to delay");
            reader.report(finding);
        }
        _ => {}
    }
    if police != Some(true) {
        return Exceed::Shape;
    }
    let unlimited = object
        .get("rate_limit_mbps")
        .is_some_and(|field| matches!(field.value, Value::NumberLit(n) if n.value.parse() == Ok(0.0)));
    if object.get("ceil").is_none() && (object.get("rate_limit_mbps").is_none() || unlimited) {
        let place = object.get("police").map(|field| field.key_span.clone());
        let finding = Diagnostic::error(Kind::PoliceWithoutCeil, "a class is policed but has no ceiling")
            .at(place, "drops packets above the ceiling")
            .help("add the rate to police to, as in `\"ceil\": \"10mbit\"`");
        reader.report(finding);
    }
    Exceed::Police
}

fn rate_above_ceil(reader: &mut Reader, object: &Object, class: &Class) {
    let (Some(rate), Some(ceil)) = (class.rate, class.ceil) else { return };
    if rate > ceil {
        let ceil_field = object.get("ceil").or(object.get("rate_limit_mbps")).map(|field| field.span());
        let title =
            format!("class {} \"{}\" is guaranteed {rate}, more than its ceiling of {ceil}", class.id, class.name);
        let finding = Diagnostic::error(Kind::RateAboveCeil, title)
            .at(object.get("rate").map(|field| field.span()), "the guarantee")
            .at(ceil_field, "the ceiling")
            .help("raise the ceiling or lower the guarantee");
        reader.report(finding);
    }
}
