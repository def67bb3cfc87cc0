//! `ShapedDevices.csv` of LibreQoS: a row for each device of a subscriber ("circuit"), whose devices share its rates.

use super::checks::{too_many, too_many_mistakes};
use super::names::{Named, can_be_name, sites_by_name};
use super::rows::{Field, Row, plain};
use super::{EachWay, MAX_MISTAKES, MAX_NETWORK_NAME_BYTES, MAX_SUBSCRIBERS, Sites, Subscriber, addresses};
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::rate::Rate;
use crate::source::{Source, Where};
use crate::suggest;
use std::collections::HashMap;

/// A column that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Id,
    Name,
    Parent,
    Ipv4,
    Ipv6,
    DownMin,
    UpMin,
    DownMax,
    UpMax,
}

/// Their names, as LibreQoS has them since 1.3 without "Mbps"; before, those of rates had none.
pub(super) const COLUMNS: [&str; 9] = [
    "circuit id",
    "circuit name",
    "parent node",
    "ipv4",
    "ipv6",
    "download min",
    "upload min",
    "download max",
    "upload max",
];

impl Column {
    fn name(self) -> &'static str {
        COLUMNS[self as usize]
    }
}

/// Those without which a table is none of these.
const NEEDED: [Column; 4] = [Column::Id, Column::Parent, Column::DownMax, Column::UpMax];
/// The one whose text may have commas without quotes: the others are counted from both ends.
const COMMENT: &str = "comment";

/// Whether a table is one of these, by its header.
pub(super) fn is_header(header: &Row) -> bool {
    header.fields.iter().any(|field| plain(&field.text).starts_with("circuit"))
}

/// Reads the subscribers of a network with these sites; without them, names of sites are not looked up. Columns that only LibreQoS knows are
/// passed over, those of MAC addresses too: a frame carries its customer's only on the customer's own segment.
pub(super) fn read(
    source: &Source,
    (header, rows): (&Row, &[Row]),
    sites: Option<&Sites>,
    findings: &mut Vec<Diagnostic>,
) -> Vec<Subscriber> {
    match columns(header, findings) {
        Some(columns) => Reading::new(source, sites, &columns, findings).all(rows),
        None => Vec::new(),
    }
}

/// Where each column is, and how many there are.
struct Columns {
    at: [Option<usize>; COLUMNS.len()],
    comment: Option<usize>,
    many: usize,
}

impl Columns {
    /// A field of a row. Behind the comment, fields are counted from the row's end, for a comment may have commas.
    fn field<'r>(&self, row: &'r Row, column: Column) -> Option<&'r Field> {
        let at = self.at[column as usize]?;
        let surplus = row.fields.len().saturating_sub(self.many);
        let behind = self.comment.is_some_and(|comment| at > comment);
        row.fields.get(if behind { at + surplus } else { at })
    }
}

fn columns(header: &Row, findings: &mut Vec<Diagnostic>) -> Option<Columns> {
    let names: Vec<String> = header.fields.iter().map(|field| plain(&field.text)).collect();
    let find = |wanted: &str| names.iter().position(|name| name == wanted);
    let columns = Columns { at: COLUMNS.map(find), comment: find(COMMENT), many: names.len() };
    let mut good = true;
    for column in NEEDED.into_iter().filter(|&column| columns.at[column as usize].is_none()) {
        good = false;
        let title = format!("the table has no column \"{}\"", column.name());
        let mut finding = Diagnostic::error(Kind::MissingKey, title).at(header.span(), "the names of the columns");
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        finding = match suggest::nearest(column.name(), &known) {
            Some(near) => finding.help(format!("is \"{near}\" meant?")),
            None => finding.help(format!("the first row names the columns: {}, ...", COLUMNS.join(","))),
        };
        findings.push(finding);
    }
    for (place, name) in names.iter().enumerate() {
        let first = names[..place].iter().position(|other| other == name);
        if let Some(first) = first.filter(|_| COLUMNS.contains(&name.as_str())) {
            good = false;
            let finding =
                Diagnostic::error(Kind::DuplicateKey, format!("two columns are called \"{}\"", excerpt(name)))
                    .at(header.fields[place].span.clone(), "the second one")
                    .at(header.fields[first].span.clone(), "the first one");
            findings.push(finding.help("remove one of them"));
        }
    }
    good.then_some(columns)
}

struct Reading<'a> {
    source: &'a Source,
    /// The index of each site, if they are known.
    sites: Option<HashMap<&'a str, usize>>,
    columns: &'a Columns,
    findings: &'a mut Vec<Diagnostic>,
    subscribers: Vec<Subscriber>,
    /// The index of each subscriber.
    known: HashMap<String, usize>,
}

impl<'a> Reading<'a> {
    fn new(
        source: &'a Source,
        sites: Option<&'a Sites>,
        columns: &'a Columns,
        findings: &'a mut Vec<Diagnostic>,
    ) -> Reading<'a> {
        let sites = sites.map(sites_by_name);
        Reading { source, sites, columns, findings, subscribers: Vec::new(), known: HashMap::new() }
    }

    fn all(mut self, rows: &[Row]) -> Vec<Subscriber> {
        for row in rows {
            self.row(row);
            if self.findings.len() > MAX_MISTAKES {
                self.findings.push(too_many_mistakes(row.span()));
                break;
            }
            if self.subscribers.len() > MAX_SUBSCRIBERS {
                self.findings.push(too_many(row.span()));
                break;
            }
        }
        self.subscribers
    }

    fn row(&mut self, row: &Row) {
        let (had, least) = (row.fields.len(), self.columns.many);
        if had < least && had <= self.columns.at.iter().flatten().copied().max().unwrap_or_default() {
            let title = format!("a row has {had} fields, and the table {least} columns");
            let finding = Diagnostic::error(Kind::MissingKey, title).at(row.span(), "ends too early");
            self.findings.push(finding.help("add the missing commas; quotes that are not closed swallow rows as well"));
            return;
        }
        let Some(id) = self.name(row, Column::Id) else { return };
        let parent = self.parent(row);
        let min = EachWay { down: self.rate(row, Column::DownMin), up: self.rate(row, Column::UpMin) };
        let max = EachWay { down: self.rate(row, Column::DownMax), up: self.rate(row, Column::UpMax) };
        let mut addresses = Vec::new();
        for column in [Column::Ipv4, Column::Ipv6] {
            if let Some(field) = self.columns.field(row, column) {
                addresses.extend(addresses::read(field, self.source.text(), self.findings));
            }
        }
        let (Ok(parent), Ok(rate), Ok(ceil)) = (parent, both(min), both(max)) else { return };
        // A circuit without a name is called by its key.
        let unnamed = self.columns.field(row, Column::Name).is_none_or(|name| name.text.is_empty());
        let name = if unnamed { Some(id.clone()) } else { self.name(row, Column::Name) };
        let Some(name) = name else { return };
        let span = Where(row.span());
        let own = Subscriber { id: id.clone(), name, parent, plan: None, rate, ceil, addresses, span };
        match self.known.get(&id) {
            None => {
                self.known.insert(id, self.subscribers.len());
                self.subscribers.push(own);
            }
            Some(&first) => self.device(first, own),
        }
    }

    /// Another device of a subscriber: its rates and its site are the same.
    fn device(&mut self, first: usize, other: Subscriber) {
        let known = &mut self.subscribers[first];
        let differs = [
            ("parent node", known.parent != other.parent),
            ("rates", (known.rate, known.ceil) != (other.rate, other.ceil)),
        ];
        if let Some((what, _)) = differs.iter().find(|(_, differs)| *differs) {
            let finding = Diagnostic::error(Kind::Conflict, format!("circuit {} has two {what}", excerpt(&known.id)))
                .at(other.span.0, "differs")
                .at(known.span.0.clone(), "the first device");
            self.findings.push(finding.help("devices of a circuit share them: write the same, or another circuit id"));
            return;
        }
        known.addresses.extend(other.addresses);
    }

    fn name(&mut self, row: &Row, column: Column) -> Option<String> {
        let field = self.columns.field(row, column)?;
        let bad = !can_be_name(&field.text);
        if bad {
            let title = format!("`{}` is no {}", excerpt(&field.text), column.name());
            let finding = Diagnostic::error(Kind::Name, title).at(row.span(), "in this row");
            self.findings
                .push(finding.help(format!("write 1 to {MAX_NETWORK_NAME_BYTES} bytes without control characters")));
        }
        (!bad).then(|| field.text.clone())
    }

    /// The site of a row; none: the link.
    fn parent(&mut self, row: &Row) -> Result<Option<usize>, ()> {
        let Some(field) = self.columns.field(row, Column::Parent).filter(|field| !field.text.is_empty()) else {
            return Ok(None);
        };
        let Some(sites) = &self.sites else { return Err(()) };
        Named::of("site", field).find(sites, self.findings).map(Some).ok_or(())
    }

    /// A rate in Mbit/s; an empty field or 0 is none.
    fn rate(&mut self, row: &Row, column: Column) -> Result<Option<Rate>, ()> {
        let Some(field) = self.columns.field(row, column).filter(|field| !field.text.is_empty()) else {
            return Ok(None);
        };
        let rate = match field.text.parse::<f64>() {
            Ok(0.0) => return Ok(None),
            Ok(mbps) if mbps.is_finite() => Rate::from_mbps(mbps).map_err(|error| (error.cause, error.cure)),
            _ => Err((
                format!("`{}` is no number", excerpt(&field.text)),
                "write Mbit/s as a number, as in 2.5; rows with commas inside a value need quotes".to_owned(),
            )),
        };
        rate.map(Some).map_err(|(cause, cure)| {
            let title = format!("{}: {cause}", column.name());
            self.findings
                .push(Diagnostic::error(Kind::Quantity, title).at(field.span.clone(), "cannot be used").help(cure));
        })
    }
}

fn both(each: EachWay<Result<Option<Rate>, ()>>) -> Result<EachWay<Option<Rate>>, ()> {
    Ok(EachWay { down: each.down?, up: each.up? })
}

#[cfg(test)]
mod tests;
