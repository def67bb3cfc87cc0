//! The values that sites, plans, subscribers and groups of hosts have in common: rates of each direction, addresses, and the names of others.

use super::object::{Field, Object, Reader};
use crate::diagnostic::{Diagnostic, Kind};
use crate::network::{self, EachWay, Plan, Sites, WrittenAddress, names};
use crate::rate::Rate;
use jsonc_parser::ast::Value;
use std::collections::HashMap;

/// Every key of a value for each direction.
pub(super) const WAYS: &[&str] = &["down", "up"];
/// Values of both directions: one for both, or an object.
pub(super) fn each_way<T: Copy>(
    reader: &mut Reader,
    field: &Field,
    read: impl Fn(&mut Reader, &Field) -> Option<T>,
) -> EachWay<Option<T>> {
    let Value::Object(_) = field.value else { return EachWay::both(read(reader, field)) };
    let Some(object) = reader.object(field.value, &field.path, "a value for each direction", WAYS) else {
        return EachWay::default();
    };
    if let Value::Object(written) = field.value {
        if written.properties.is_empty() {
            let finding = Diagnostic::error(Kind::Empty, format!("\"{}\" names no direction", field.key));
            let help = "write a value for \"down\", \"up\" or both, or leave it out";
            reader.report(finding.at(field.span(), "nothing in here").help(help));
        }
    }
    EachWay {
        down: object.get("down").and_then(|field| read(reader, field)),
        up: object.get("up").and_then(|field| read(reader, field)),
    }
}

pub(super) fn rates(reader: &mut Reader, object: &Object, key: &str) -> EachWay<Option<Rate>> {
    object.get(key).map_or(EachWay::default(), |field| each_way(reader, field, |reader, field| reader.rate(field)))
}

/// The indices of sites and plans by their names; none: they are not known as a whole.
pub(super) struct Known {
    sites: Option<HashMap<String, usize>>,
    plans: Option<HashMap<String, usize>>,
}

impl Known {
    pub fn of(sites: Option<&Sites>, plans: Option<&[Plan]>) -> Known {
        let by_name = |names: &mut dyn Iterator<Item = &'_ str>| -> HashMap<String, usize> {
            names.enumerate().map(|(index, name)| (name.to_owned(), index)).collect()
        };
        Known {
            sites: sites.map(|sites| by_name(&mut sites.sites.iter().map(|site| site.name.as_str()))),
            plans: plans.map(|plans| by_name(&mut plans.iter().map(|plan| plan.name.as_str()))),
        }
    }

    /// The index of the site that an object names.
    pub fn site(&self, reader: &mut Reader, object: &Object) -> Option<usize> {
        named(reader, object, "site", self.sites.as_ref())
    }

    /// The index of the plan that an object names.
    pub fn plan(&self, reader: &mut Reader, object: &Object) -> Option<usize> {
        named(reader, object, "plan", self.plans.as_ref())
    }
}

pub(super) fn addresses(reader: &mut Reader, field: &Field) -> Vec<WrittenAddress> {
    let help = "list addresses and prefixes, as [\"192.0.2.1\", \"2001:db8::/56\"]";
    let mut addresses = Vec::new();
    for element in reader.list(field, help) {
        let Some(text) = reader.string(&element, help) else { continue };
        match network::read_address(text.trim(), element.span()) {
            Ok(address) => addresses.push(address),
            Err(finding) => reader.report(finding),
        }
    }
    addresses
}

/// The index of what a key names. A name that is not known is reported, if the names are known at all.
fn named(
    reader: &mut Reader,
    object: &Object,
    key: &'static str,
    known: Option<&HashMap<String, usize>>,
) -> Option<usize> {
    let field = object.get(key)?;
    let text = reader.string(field, "write its name in double quotes")?;
    names::Named { what: key, text, place: field.span() }.find(known?, &mut reader.findings)
}
