//! The peak of a class: a second bucket, which limits how fast the burst of the ceiling passes.

use super::ceiling;
use super::object::{Object, Reader};
use crate::bytes::{Bytes, FRAME_BYTES};
use crate::ceiling::{Ceiling, default_burst};
use crate::diagnostic::{Diagnostic, Kind};
use crate::policy::Class;
use crate::source::Span;

/// Reads `peak` and `peak_burst` of a class whose ceiling has been read.
pub(super) fn read(reader: &mut Reader, object: &Object, class: &Class) -> Option<Ceiling> {
    let peak = ceiling::read(reader, object, "peak", "peak_burst")?;
    let place = object.get("peak").map(|field| field.span());
    let ceil_place = object.get("ceil").or(object.get("rate_limit_mbps")).map(|field| field.span());
    let Some(ceil) = class.ceil else {
        // A ceiling that cannot be read is reported already; 0 in the published format is none.
        let unreadable = ceil_place.is_some() && !is_zero(object);
        if !unreadable {
            let key = object.get("peak").map(|field| field.key_span.clone());
            let finding = Diagnostic::error(Kind::MissingKey, "\"peak\" without \"ceil\"")
                .at(key, "limits how fast the burst of a ceiling passes, and there is no ceiling")
                .help("add the average, as in `\"ceil\": \"10mbit\"`; if there is none, write the peak as \"ceil\"");
            reader.report(finding);
        }
        return None;
    };
    if peak.rate < ceil {
        let title = format!(
            "class {} \"{}\" has a peak of {}, less than its ceiling of {ceil}",
            class.id, class.name, peak.rate
        );
        let finding = Diagnostic::error(Kind::PeakBelowCeil, title)
            .at(place, "the peak: the most in a short time")
            .at(ceil_place, "the ceiling: the average over a long time")
            .help("raise the peak or lower the ceiling; equal ones are fine");
        reader.report(finding);
    }
    let burst_place = object.get("burst").or(object.get("burst_size_kb")).map(|field| field.span());
    let peak_burst_place = object.get("peak_burst").map(|field| field.span());
    below_a_frame(reader, "the ceiling", class.burst, burst_place.clone());
    below_a_frame(reader, "the peak", peak.burst, peak_burst_place.clone());
    let burst = class.burst.unwrap_or_else(|| default_burst(ceil));
    if let Some(peak_burst) = peak.burst.filter(|own| own.0 >= u64::from(FRAME_BYTES) && *own >= burst) {
        let title = format!(
            "the peak of class {} \"{}\" limits nothing: its burst of {peak_burst} is not below the ceiling's {burst}",
            class.id, class.name
        );
        let mut finding = Diagnostic::error(Kind::Conflict, title).at(peak_burst_place, "passes at once");
        finding = finding.at(burst_place, "passes at once, and is used up at the peak");
        reader.report(finding.help("leave \"peak_burst\" out for a small one, or raise \"burst\""));
    }
    Some(peak)
}

/// Reports a burst in which no full frame fits: the two buckets of a class with a peak are there for bursts of packets.
fn below_a_frame(reader: &mut Reader, whose: &str, burst: Option<Bytes>, place: Option<Span>) {
    let Some(burst) = burst.filter(|burst| burst.0 < u64::from(FRAME_BYTES)) else { return };
    let title = format!("the burst of {whose} is {burst}, less than a full frame, {FRAME_BYTES} bytes");
    let finding = Diagnostic::error(Kind::Quantity, title)
        .at(place, "no packet fits")
        .help(format!("write {FRAME_BYTES} or more, or leave it out for the default"));
    reader.report(finding);
}

fn is_zero(object: &Object) -> bool {
    let zero = |value: &jsonc_parser::ast::Value| match value {
        jsonc_parser::ast::Value::NumberLit(number) => number.value.parse() == Ok(0.0),
        _ => false,
    };
    object.get("rate_limit_mbps").is_some_and(|field| zero(field.value))
}
