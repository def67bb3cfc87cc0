//! The keys of `link`.

use super::object::{Field, Object, Reader};
use crate::link::{Cells, Framing, Link, LinkQueues, SplitGso};
use jsonc_parser::ast::Value;

/// Every key of `link`.
pub(super) const KEYS: &[&str] = &["rate", "ingress_rate", "overhead", "mpu", "cells", "burst", "split_gso", "queues"];

pub(super) fn read(reader: &mut Reader, field: &Field) -> Option<Link> {
    let object = reader.object(field.value, &field.path, "the link", KEYS)?;
    Some(Link {
        rate: object.get("rate").and_then(|field| reader.rate(field)),
        ingress_rate: object.get("ingress_rate").and_then(|field| reader.rate(field)),
        queues: queues(reader, &object),
        ..rest(reader, &object)
    })
}

/// Which tx queues are used.
pub(super) fn queues(reader: &mut Reader, object: &Object) -> LinkQueues {
    object.get("queues").and_then(|field| reader.choice(field, LinkQueues::NAMES)).unwrap_or_default()
}

/// The link but for its rates and tx queues.
pub(super) fn rest(reader: &mut Reader, object: &Object) -> Link {
    Link {
        framing: framing(reader, object),
        burst: object.get("burst").and_then(|field| reader.bytes(field)),
        split_gso: object.get("split_gso").and_then(|field| reader.choice(field, SplitGso::NAMES)).unwrap_or_default(),
        ..Link::default()
    }
}

fn framing(reader: &mut Reader, object: &Object) -> Framing {
    let mut framing = Framing::default();
    if let Some(field) = object.get("overhead") {
        if let Value::StringLit(_) = field.value {
            framing = reader.choice(field, Framing::PRESETS).unwrap_or_default();
        } else {
            let meaning = "bytes beyond the IP packet, or the name of a line: \"ethernet\", \"docsis\", \"pppoe\", \"ptm\", \"atm\" ...";
            framing.overhead_bytes = reader.integer(field, -64..=256, meaning).unwrap_or_default();
        }
    }
    if let Some(field) = object.get("mpu") {
        let meaning = "the shortest length in bytes that a packet is counted as; 0 is none, 64 is usual for Ethernet";
        framing.mpu_bytes = reader.integer(field, 0..=256, meaning).unwrap_or_default();
    }
    if let Some(field) = object.get("cells") {
        framing.cells = reader.choice(field, Cells::NAMES).unwrap_or_default();
    }
    framing
}
