//! Tables of subscribers: our own, with the columns `name`, `addresses`, `plan` and `site`, and that of LibreQoS. The header tells which.

use super::names::{Named, can_be_name, no_name, sites_by_name};
use super::rows::{Row, plain, rows};
use super::{
    EachWay, MAX_COLUMNS, MAX_MISTAKES, MAX_SUBSCRIBERS, Plan, Sites, Subscriber, Subscribers, addresses, checks,
    shaped_devices,
};
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::source::{Source, Where};
use crate::suggest;
use std::collections::HashMap;

/// The columns of our own table; a table may lack the last one.
const COLUMNS: [&str; 4] = ["name", "addresses", "plan", "site"];
const NEEDED: usize = 3;
const HELP: &str =
    "the first row names the columns: name,addresses,plan,site; or those of ShapedDevices.csv: Circuit ID,...";

/// Reads the subscribers of a network with these sites and plans; names are not looked up in what is `None`. Whether the table is of LibreQoS is
/// returned as well. Mistakes are reported.
pub(crate) fn read(
    source: &Source,
    sites: Option<&Sites>,
    plans: Option<&[Plan]>,
    findings: &mut Vec<Diagnostic>,
) -> (Subscribers, bool) {
    let rows = rows(source.text());
    let mut found = Vec::new();
    let (subscribers, libreqos) = match rows.split_first() {
        Some((header, _)) if header.fields.len() > MAX_COLUMNS => {
            let title = format!("the table has {} columns, and at most {MAX_COLUMNS} are read", header.fields.len());
            let place = header.fields[0].span.clone();
            found.push(Diagnostic::error(Kind::TooMany, title).at(place, "the first one").help(HELP));
            (Vec::new(), false)
        }
        None => {
            let end = source.text().len();
            let finding = Diagnostic::error(Kind::Empty, "the table of subscribers is empty").at(end..end, "ends here");
            found.push(finding.help(HELP));
            (Vec::new(), false)
        }
        Some((header, rows)) if shaped_devices::is_header(header) => {
            (shaped_devices::read(source, (header, rows), sites, &mut found), true)
        }
        Some((header, rows)) => (own(source, (header, rows), sites, plans, &mut found), false),
    };
    findings.extend(found.into_iter().map(|finding| finding.of(source)));
    (Subscribers { subscribers, source: source.clone() }, libreqos)
}

/// Our own table.
fn own(
    source: &Source,
    (header, rows): (&Row, &[Row]),
    sites: Option<&Sites>,
    plans: Option<&[Plan]>,
    findings: &mut Vec<Diagnostic>,
) -> Vec<Subscriber> {
    let Some(at) = columns(header, findings) else { return Vec::new() };
    let sites = sites.map(sites_by_name);
    let plans: Option<HashMap<&str, usize>> =
        plans.map(|plans| plans.iter().enumerate().map(|(index, plan)| (plan.name.as_str(), index)).collect());
    let mut subscribers = Vec::new();
    for row in rows {
        if findings.len() > MAX_MISTAKES {
            findings.push(checks::too_many_mistakes(row.span()));
            break;
        }
        let many = header.fields.len();
        if row.fields.len() != many {
            let title = format!("a row has {} fields, and the table {many} columns", row.fields.len());
            let finding = Diagnostic::error(Kind::MissingKey, title).at(row.span(), "in this row");
            findings.push(finding.help("put a value with commas, such as several addresses, in double quotes"));
            continue;
        }
        let field = |column: usize| at[column].map(|at| &row.fields[at]);
        let present = |column: usize| field(column).filter(|field| !field.text.is_empty());
        let name = field(0).map(|field| field.text.clone()).unwrap_or_default();
        if !can_be_name(&name) {
            findings.push(no_name("subscriber", &name, row.span()));
            continue;
        }
        let addresses = field(1).map_or_else(Vec::new, |field| addresses::read(field, source.text(), findings));
        let plan = match (present(2), &plans) {
            (Some(field), Some(known)) => Named::of("plan", field).find(known, findings),
            _ => None,
        };
        let parent = match (present(3), &sites) {
            (Some(field), Some(known)) => Named::of("site", field).find(known, findings),
            _ => None,
        };
        let (rate, ceil) = (EachWay::default(), EachWay::default());
        let span = Where(row.span());
        subscribers.push(Subscriber { id: name.clone(), name, parent, plan, rate, ceil, addresses, span });
        if subscribers.len() > MAX_SUBSCRIBERS {
            findings.push(checks::too_many(row.span()));
            break;
        }
    }
    subscribers
}

/// The place of each column in a row.
fn columns(header: &Row, findings: &mut Vec<Diagnostic>) -> Option<[Option<usize>; COLUMNS.len()]> {
    let names: Vec<String> = header.fields.iter().map(|field| plain(&field.text)).collect();
    let at = COLUMNS.map(|column| names.iter().position(|name| name == column));
    let before = findings.len();
    for (column, _) in COLUMNS.iter().zip(at).take(NEEDED).filter(|(_, at)| at.is_none()) {
        let title = format!("the table has no column \"{column}\"");
        let finding = Diagnostic::error(Kind::MissingKey, title).at(header.span(), "the names of the columns");
        findings.push(finding.help(HELP));
    }
    for (place, name) in names.iter().enumerate() {
        let span = header.fields[place].span.clone();
        if !COLUMNS.contains(&name.as_str()) {
            let title = format!("a table of subscribers has no column \"{}\"", excerpt(name));
            let finding = Diagnostic::error(Kind::UnknownKey, title).at(span, "unknown column");
            findings.push(match suggest::nearest(name, &COLUMNS) {
                Some(near) => finding.help(format!("did you mean \"{near}\"?")),
                None => finding.help(format!("known columns: {}", COLUMNS.join(", "))),
            });
        } else if let Some(first) = names[..place].iter().position(|other| other == name) {
            let title = format!("two columns are called \"{}\"", excerpt(name));
            let finding = Diagnostic::error(Kind::DuplicateKey, title)
                .at(span, "the second one")
                .at(header.fields[first].span.clone(), "the first one");
            findings.push(finding.help("remove one of them"));
        }
    }
    (findings.len() == before).then_some(at)
}

#[cfg(test)]
mod tests;
