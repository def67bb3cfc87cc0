//! Names of sites, plans and subscribers.

use super::rows::Field;
use super::{MAX_NETWORK_NAME_BYTES, Sites};
use crate::diagnostic::{Diagnostic, Kind, MAX_SHOWN};
use crate::excerpt::excerpt;
use crate::source::Span;
use crate::suggest;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// The index of each site.
pub(super) fn sites_by_name(sites: &Sites) -> HashMap<&str, usize> {
    sites.sites.iter().enumerate().map(|(index, site)| (site.name.as_str(), index)).collect()
}

/// A text that names a site, a plan or an inner class, and its place.
pub(crate) struct Named<'a> {
    /// `site`, `plan` or `class`.
    pub what: &'static str,
    pub text: &'a str,
    pub place: Span,
}

impl<'a> Named<'a> {
    /// The site or plan that a field names.
    pub(super) fn of(what: &'static str, field: &'a Field) -> Named<'a> {
        Named { what, text: &field.text, place: field.span.clone() }
    }

    /// Its index among those that are known. One that is not is reported.
    pub(crate) fn find<K>(self, known: &HashMap<K, usize>, findings: &mut Vec<Diagnostic>) -> Option<usize>
    where
        K: Borrow<str> + Hash + Eq,
    {
        if let Some(&index) = known.get(self.text) {
            return Some(index);
        }
        // A suggestion compares with every name: not for each of thousands of rows.
        let names = || known.keys().map(|name| name.borrow());
        let near = (findings.len() < MAX_SHOWN).then(|| suggest::nearest_name(self.text, names())).flatten();
        findings.push(unknown(self, near));
        None
    }
}

/// The error of a name that nothing of its kind has.
fn unknown(named: Named<'_>, near: Option<&str>) -> Diagnostic {
    let Named { what, text: name, place } = named;
    let finding = Diagnostic::error(Kind::UnknownValue, format!("there is no {what} \"{}\"", excerpt(name)));
    let finding = finding.at(
        place,
        match what {
            "site" => "not in the tree of sites",
            "class" => "not among the classes",
            _ => "not among the plans",
        },
    );
    let without = "a subscriber without a site is right below the link";
    match (near, what) {
        (Some(near), "site") => finding.help(format!("is \"{near}\" meant? And {without}")),
        (Some(near), _) => finding.help(format!("is \"{near}\" meant?")),
        (None, "site") => finding.help(format!("add the site; {without}")),
        (None, "class") => finding.help("write the \"name\" of a class of this list"),
        (None, _) => finding.help("add it to \"plans\", or name another one"),
    }
}

/// Whether a text can name a site, a plan or a subscriber.
pub(crate) fn can_be_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NETWORK_NAME_BYTES && !text.contains(char::is_control)
}

/// The error of a text that can name nothing.
pub(crate) fn no_name(what: &str, text: &str, place: Span) -> Diagnostic {
    let title = format!("\"{}\" cannot be the name of a {what}", excerpt(text));
    let finding = Diagnostic::error(Kind::Name, title).at(place, "empty, too long or not to be shown");
    finding.help(format!("write 1 to {MAX_NETWORK_NAME_BYTES} bytes without control characters"))
}
