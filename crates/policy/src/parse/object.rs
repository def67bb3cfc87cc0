//! Readers of values in the syntax tree: types, ranges, words and quantities. Every getter reports a wrong value and returns
//! `None`, so that reading goes on.

use crate::bytes::Bytes;
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::quantity::UnitError;
use crate::rate::Rate;
use crate::resolved::Context;
use crate::source::Span;
use crate::{suggest, sums, time};
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// The findings and places so far.
#[derive(Default)]
pub(super) struct Reader {
    /// The link and the engine, if they are known, for the check of sums.
    pub context: Option<Context>,
    pub findings: Vec<Diagnostic>,
    pub spans: HashMap<String, Span>,
    /// Places are not remembered now.
    pub forgets_places: bool,
}

/// An object with checked keys.
pub(super) struct Object<'t> {
    /// The object's kind, with its article: `a class`.
    what: &'static str,
    /// The place of the whole object.
    pub span: Span,
    fields: Vec<Field<'t>>,
}

/// A value with the name it goes by.
#[derive(Clone)]
pub(super) struct Field<'t> {
    pub key: &'t str,
    pub key_span: Span,
    /// JSON pointer.
    pub path: String,
    pub value: &'t Value<'t>,
}

impl Field<'_> {
    pub fn span(&self) -> Span {
        span_of(self.value)
    }

    /// Whether the value is this text.
    pub fn is_text(&self, text: &str) -> bool {
        matches!(self.value, Value::StringLit(own) if own.value == text)
    }
}

pub(super) fn span_of(value: &Value) -> Span {
    let range = value.range();
    range.start..range.end
}

impl<'t> Object<'t> {
    pub fn get(&self, key: &str) -> Option<&Field<'t>> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// This object with the fields of another in place of its own.
    pub fn with(&self, other: &Object<'t>) -> Object<'t> {
        let kept = self.fields.iter().filter(|field| other.get(field.key).is_none());
        Object { what: self.what, span: self.span.clone(), fields: kept.chain(&other.fields).cloned().collect() }
    }

    /// The opening brace: the place of findings about missing keys.
    pub fn brace(&self) -> Span {
        self.span.start..self.span.start + 1
    }
}

impl Reader {
    pub fn report(&mut self, finding: Diagnostic) {
        self.findings.push(finding);
    }

    /// Reports sums that are too large. `resolve` reports them for a policy without other errors.
    pub fn check_sums(&mut self, classes: &[sums::Placed<'_>], file_rate: Option<Rate>) {
        if let Some(context) = self.context {
            let found = sums::check(classes, file_rate, &context, |pointer| self.spans.get(pointer).cloned());
            self.findings.extend(found);
        }
    }

    /// Reads values whose places nobody asks for by their JSON pointers: of thousands, remembering them takes long.
    pub fn without_places<T>(&mut self, read: impl FnOnce(&mut Reader) -> T) -> T {
        let was = std::mem::replace(&mut self.forgets_places, true);
        let read = read(self);
        self.forgets_places = was;
        read
    }

    /// Remembers where a value is, by its JSON pointer.
    fn keep(&mut self, pointer: &str, span: Span) {
        if !self.forgets_places {
            self.spans.insert(pointer.into(), span);
        }
    }

    /// Opens an object with these possible keys; `what` names it with its article.
    pub fn object<'t>(
        &mut self,
        value: &'t Value<'t>,
        path: &str,
        what: &'static str,
        keys: &[&str],
    ) -> Option<Object<'t>> {
        let span = span_of(value);
        self.keep(path, span.clone());
        let Value::Object(object) = value else {
            let title = format!("{what} must be an object, not {}", kind_of(value));
            let help = "write `{ \"key\": value, ... }`";
            self.report(Diagnostic::error(Kind::WrongType, title).at(span, kind_of(value)).help(help));
            return None;
        };
        let mut fields: Vec<Field<'t>> = Vec::new();
        for property in &object.properties {
            let key = property.name.as_str();
            let range = property.name.range();
            let key_span = range.start..range.end;
            if !keys.contains(&key) {
                self.report(unknown_key(key, key_span, what, keys));
                continue;
            }
            if let Some(first) = fields.iter().find(|field| field.key == key) {
                let finding = Diagnostic::error(Kind::DuplicateKey, format!("{what} has \"{key}\" twice"))
                    .at(key_span, "the second time")
                    .at(first.key_span.clone(), "the first time")
                    .help("remove one of them");
                self.report(finding);
                continue;
            }
            let path = format!("{path}/{key}");
            self.keep(&path, span_of(&property.value));
            fields.push(Field { key, key_span, path, value: &property.value });
        }
        Some(Object { what, span, fields })
    }

    /// The field, or a finding that it is missing.
    pub fn required<'t, 'o>(&mut self, object: &'o Object<'t>, key: &str, cure: &str) -> Option<&'o Field<'t>> {
        let field = object.get(key);
        if field.is_none() {
            let finding = Diagnostic::error(Kind::MissingKey, format!("{} has no \"{key}\"", object.what))
                .at(object.brace(), format!("\"{key}\" is missing here"))
                .help(cure);
            self.report(finding);
        }
        field
    }

    /// Reports two keys of an object that exclude each other.
    pub fn exclude(&mut self, object: &Object, first: &str, second: &str, why: &str, cure: &str) {
        if let (Some(a), Some(b)) = (object.get(first), object.get(second)) {
            let title = format!("{} has both \"{first}\" and \"{second}\"", object.what);
            let finding = Diagnostic::error(Kind::Conflict, title)
                .at(b.key_span.clone(), why)
                .at(a.key_span.clone(), "the other one")
                .help(cure);
            self.report(finding);
        }
    }

    pub fn wrong_type(&mut self, field: &Field, expected: &str, cure: &str) {
        let found = kind_of(field.value);
        let title = format!("\"{}\" must be {expected}, not {found}", field.key);
        self.report(Diagnostic::error(Kind::WrongType, title).at(field.span(), found).help(cure));
    }

    pub fn string<'t>(&mut self, field: &Field<'t>, cure: &str) -> Option<&'t str> {
        match field.value {
            Value::StringLit(text) => Some(&text.value),
            _ => {
                self.wrong_type(field, "a text", cure);
                None
            }
        }
    }

    pub fn boolean(&mut self, field: &Field) -> Option<bool> {
        match field.value {
            Value::BooleanLit(literal) => Some(literal.value),
            _ => {
                self.wrong_type(field, "true or false", "write true or false, without quotes");
                None
            }
        }
    }

    /// An integer within `range`; `meaning` describes it and useful values.
    pub fn integer<T: TryFrom<i64>>(&mut self, field: &Field, range: RangeInclusive<i64>, meaning: &str) -> Option<T> {
        let Value::NumberLit(literal) = field.value else {
            let cure = match field.value {
                Value::StringLit(text) if text.value.trim().parse::<i64>().is_ok() => {
                    format!("write {}, without quotes", text.value.trim())
                }
                _ => meaning.to_string(),
            };
            self.wrong_type(field, "an integer", &cure);
            return None;
        };
        let Some(number) = integer_of(literal.value) else {
            self.wrong_type(field, "an integer", meaning);
            return None;
        };
        if !range.contains(&number) {
            let (low, high) = (range.start(), range.end());
            let title = format!("\"{}\" must be between {low} and {high}, not {}", field.key, excerpt(literal.value));
            self.report(Diagnostic::error(Kind::OutOfRange, title).at(field.span(), "out of range").help(meaning));
            return None;
        }
        T::try_from(number).ok()
    }

    /// A number of at least zero, with or without a fraction.
    pub fn number(&mut self, field: &Field, meaning: &str) -> Option<f64> {
        let Value::NumberLit(literal) = field.value else {
            self.wrong_type(field, "a number", meaning);
            return None;
        };
        let number: f64 = literal.value.parse().unwrap_or(f64::INFINITY);
        if !(0.0..1e15).contains(&number) {
            let problem = if number < 0.0 { "must not be negative" } else { "is far too large" };
            let title = format!("\"{}\" {problem}", field.key);
            self.report(Diagnostic::error(Kind::OutOfRange, title).at(field.span(), "out of range").help(meaning));
            return None;
        }
        Some(number)
    }

    /// A choice among a few words.
    pub fn choice<T: Copy>(&mut self, field: &Field, names: &[(&str, T)]) -> Option<T> {
        let known: Vec<&str> = names.iter().map(|&(name, _)| name).collect();
        let text = self.string(field, &format!("one of: {}", known.join(", ")))?;
        if let Some(&(_, value)) = names.iter().find(|(name, _)| *name == text) {
            return Some(value);
        }
        self.unknown_value(field, text, &known);
        None
    }

    pub fn unknown_value(&mut self, field: &Field, text: &str, known: &[&str]) {
        let title = format!("\"{}\" cannot be \"{}\"", field.key, excerpt(text));
        let mut finding = Diagnostic::error(Kind::UnknownValue, title).at(field.span(), "not known");
        if let Some(near) = suggest::nearest(text, known) {
            finding = finding.help(format!("did you mean \"{near}\"?"));
        }
        self.report(finding.help(format!("one of: {}", known.join(", "))));
    }

    pub fn quantity<T>(&mut self, field: &Field, read: Result<T, UnitError>) -> Option<T> {
        read.map_err(|error| {
            let cause = match field.value {
                Value::StringLit(text) if excerpt(&text.value) != text.value => {
                    format!("\"{}\" cannot be read", excerpt(&text.value))
                }
                _ => error.cause,
            };
            let title = format!("\"{}\": {cause}", field.key);
            self.report(Diagnostic::error(Kind::Quantity, title).at(field.span(), "cannot be used").help(error.cure));
        })
        .ok()
    }

    /// A rate as text with a unit.
    pub fn rate(&mut self, field: &Field) -> Option<Rate> {
        if let Value::NumberLit(literal) = field.value {
            let cure = format!("write it with its unit, as in \"{}mbit\" or \"{0}kbit\"", literal.value);
            self.wrong_type(field, "a rate with a unit", &cure);
            return None;
        }
        let text = self.string(field, "write a rate with its unit, as in \"20mbit\"")?;
        self.quantity(field, text.parse())
    }

    /// A time as text with a unit, ns.
    pub fn time(&mut self, field: &Field, range: &RangeInclusive<u64>) -> Option<u64> {
        if let Value::NumberLit(literal) = field.value {
            let cure = format!("write it with its unit, as in \"{}ms\" or \"{0}us\"", literal.value);
            self.wrong_type(field, "a time with a unit", &cure);
            return None;
        }
        let text = self.string(field, "write a time with its unit, as in \"5ms\"")?;
        self.quantity(field, time::read(text, range))
    }

    /// An amount of data: text with a unit, or a plain number of bytes.
    pub fn bytes(&mut self, field: &Field) -> Option<Bytes> {
        match field.value {
            Value::NumberLit(_) => {
                let max = Bytes::MAX.0 as i64;
                self.integer(field, 1..=max, "a plain number is bytes; leave it out for the default")
                    .map(|n: i64| Bytes(n as u64))
            }
            Value::StringLit(text) => self.quantity(field, text.value.parse()),
            _ => {
                self.wrong_type(field, "a size", "write bytes with a unit, as in \"100kb\", or as a plain number");
                None
            }
        }
    }

    /// A printable name of 1 to `max_bytes` bytes.
    pub fn name(&mut self, field: &Field, max_bytes: usize) -> Option<String> {
        let text = self.string(field, "write a name in double quotes")?;
        let (title, cure) = if text.is_empty() {
            (format!("\"{}\" is empty", field.key), "write one character at least".to_string())
        } else if text.len() > max_bytes {
            let excess = text.len() - max_bytes;
            let plural = if excess == 1 { "" } else { "s" };
            (
                format!("\"{}\" is longer than {max_bytes} bytes", field.key),
                format!("shorten it by {excess} byte{plural}"),
            )
        } else if text.chars().any(char::is_control) {
            let cure = "use letters, digits, spaces and signs only".to_string();
            (format!("\"{}\" has control characters", field.key), cure)
        } else {
            return Some(text.to_string());
        };
        self.report(Diagnostic::error(Kind::Name, title).at(field.span(), "cannot be used as a name").help(cure));
        None
    }

    /// The values of an object whose keys are names; each field has its own key.
    pub fn entries<'t>(&mut self, field: &Field<'t>, cure: &str) -> Vec<Field<'t>> {
        let Value::Object(object) = field.value else {
            self.wrong_type(field, "an object", cure);
            return Vec::new();
        };
        let mut first: HashMap<&str, Span> = HashMap::new();
        let mut entries = Vec::new();
        for property in &object.properties {
            let key = property.name.as_str();
            let range = property.name.range();
            let key_span = range.start..range.end;
            if let Some(earlier) = first.insert(key, key_span.clone()) {
                let title = format!("\"{}\" has \"{}\" twice", field.key, excerpt(key));
                let finding = Diagnostic::error(Kind::DuplicateKey, title)
                    .at(key_span, "the second time")
                    .at(earlier, "the first time")
                    .help("give each a name of its own, or make them one");
                self.report(finding);
                continue;
            }
            let path = format!("{}/{key}", field.path);
            self.keep(&path, key_span.clone());
            entries.push(Field { key, key_span, path, value: &property.value });
        }
        entries
    }

    /// The elements of a list; each field has the list's key.
    pub fn list<'t>(&mut self, field: &Field<'t>, cure: &str) -> Vec<Field<'t>> {
        let Value::Array(array) = field.value else {
            self.wrong_type(field, "a list", cure);
            return Vec::new();
        };
        let mut elements = Vec::new();
        for (i, value) in array.elements.iter().enumerate() {
            let path = format!("{}/{i}", field.path);
            self.keep(&path, span_of(value));
            elements.push(Field { key: field.key, key_span: field.key_span.clone(), path, value });
        }
        elements
    }
}

fn unknown_key(key: &str, span: Span, what: &str, keys: &[&str]) -> Diagnostic {
    let finding =
        Diagnostic::error(Kind::UnknownKey, format!("{what} has no key \"{}\"", excerpt(key))).at(span, "unknown key");
    match suggest::nearest(key, keys) {
        Some(near) => finding.help(format!("did you mean \"{near}\"?")),
        None => finding.help(format!("known keys here: {}", keys.join(", "))),
    }
}

/// The value's type, with its article.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::StringLit(_) => "a text",
        Value::NumberLit(literal) if integer_of(literal.value).is_some() => "an integer",
        Value::NumberLit(_) => "a fraction",
        Value::BooleanLit(literal) => {
            if literal.value {
                "true"
            } else {
                "false"
            }
        }
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        Value::NullKeyword(_) => "null",
    }
}

/// The value of a number without a fraction, also if written as 1.0 or 1e3. Beyond 64 bits it is cut to their range, which is
/// far outside every caller's range.
fn integer_of(literal: &str) -> Option<i64> {
    if let Ok(number) = literal.parse() {
        return Some(number);
    }
    let number: f64 = literal.parse().ok()?;
    (number.fract() == 0.0).then_some(number as i64)
}
