//! CSV and JSON lines: a row is a line, and an output that fails ends with a whole one.

use super::{Metadata, Writer};
use crate::address::{Address, AddressTexts};
use crate::column::{Record, Values};
use crate::labels::Labels;
use crate::output::Output;
use sluice_error::{Error, Result};
use std::io::Write;

/// Bytes that are gathered before they are written.
const CHUNK_BYTES: usize = 64 << 10;

/// A form of lines.
pub trait Form: Values {
    /// The form of these columns; its titles are the first lines, if it has any.
    fn of<R: Record>() -> Self;
    /// Ends a row.
    fn end_row(&mut self);
    /// The lines so far.
    fn lines(&mut self) -> &mut Vec<u8>;
}

/// A writer of lines.
pub struct Lines<F> {
    form: F,
    output: Output,
    /// Lines before the first row that were not written yet.
    titles: u64,
    rows: u64,
    failed: Option<Error>,
}

impl<F: Form> Lines<F> {
    /// Begins an output. Its titles are written with the first rows.
    pub fn begin<R: Record>(output: Output) -> Lines<F> {
        let mut form = F::of::<R>();
        let titles = u64::from(!form.lines().is_empty());
        Lines { form, output, titles, rows: 0, failed: None }
    }

    fn write_out(&mut self) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let lines = self.form.lines();
        let start = self.output.written();
        let result = self.output.write_all(lines);
        let written = (self.output.written() - start) as usize;
        let whole = lines[..written].iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let mut count = lines[..whole].iter().filter(|byte| **byte == b'\n').count() as u64;
        let titles = count.min(self.titles);
        self.titles -= titles;
        count -= titles;
        self.rows += count;
        lines.clear();
        let Err(cause) = result else { return Ok(()) };
        let error = self.output.error(&cause.to_string(), self.rows);
        if written > whole && self.output.is_regular() {
            // Where this fails too, the last line is not whole; the error is there in any case.
            _ = self.output.cut(start + whole as u64);
        }
        self.failed = Some(error.clone());
        Err(error)
    }
}

impl<R: Record, F: Form> Writer<R> for Lines<F> {
    fn write(&mut self, record: &R, labels: &Labels) -> Result<()> {
        record.give(labels, &mut self.form);
        self.form.end_row();
        if self.form.lines().len() >= CHUNK_BYTES { self.write_out() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.write_out()
    }

    fn finish(&mut self, _: Metadata) -> Result<()> {
        self.write_out()
    }

    fn rows(&self) -> u64 {
        self.rows
    }
}

/// Comma-separated values, RFC 4180 with newlines for line ends; no value is an empty one.
pub struct Csv {
    lines: Vec<u8>,
    is_first: bool,
    digits: itoa::Buffer,
    addresses: AddressTexts,
}

impl Csv {
    fn field(&mut self) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_first) {
            self.lines.push(b',');
        }
        &mut self.lines
    }
}

impl Form for Csv {
    fn of<R: Record>() -> Csv {
        let names: Vec<&str> = R::COLUMNS.iter().map(|column| column.name).collect();
        let lines = (names.join(",") + "\n").into_bytes();
        Csv { lines, is_first: true, digits: itoa::Buffer::new(), addresses: AddressTexts::default() }
    }

    fn end_row(&mut self) {
        self.lines.push(b'\n');
        self.is_first = true;
    }

    fn lines(&mut self) -> &mut Vec<u8> {
        &mut self.lines
    }
}

impl Values for Csv {
    #[inline]
    fn number(&mut self, value: Option<u64>) {
        self.field();
        if let Some(value) = value {
            self.lines.extend_from_slice(self.digits.format(value).as_bytes());
        }
    }

    fn float(&mut self, value: Option<f64>) {
        let field = self.field();
        if let Some(value) = value {
            // Writing to memory does not fail.
            _ = write!(field, "{value}");
        }
    }

    #[inline]
    fn text(&mut self, value: Option<&str>) {
        let field = self.field();
        let text = value.unwrap_or_default().as_bytes();
        if text.iter().any(|byte| matches!(byte, b'"' | b',' | b'\n' | b'\r')) {
            field.push(b'"');
            // A line of the file is a line of the table.
            for byte in text.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }) {
                field.extend(std::iter::repeat_n(byte, if byte == b'"' { 2 } else { 1 }));
            }
            field.push(b'"');
        } else {
            field.extend_from_slice(text);
        }
    }

    #[inline]
    fn address(&mut self, value: Option<Address>) {
        self.field();
        if let Some(value) = value {
            self.lines.extend_from_slice(self.addresses.of(value));
        }
    }

    fn truth(&mut self, value: bool) {
        self.field().extend_from_slice(if value { b"true" } else { b"false" });
    }
}

/// A JSON object a line; no value is null.
pub struct Json {
    lines: Vec<u8>,
    /// What stands before each value: the brace or comma and the name.
    names: Vec<String>,
    at: usize,
    digits: itoa::Buffer,
    addresses: AddressTexts,
}

impl Json {
    fn value(&mut self) -> &mut Vec<u8> {
        self.lines.extend_from_slice(self.names[self.at].as_bytes());
        self.at += 1;
        &mut self.lines
    }

    fn null(&mut self) {
        self.value().extend_from_slice(b"null");
    }
}

impl Form for Json {
    fn of<R: Record>() -> Json {
        let begin = |index| if index == 0 { '{' } else { ',' };
        let names =
            R::COLUMNS.iter().enumerate().map(|(index, column)| format!("{}\"{}\":", begin(index), column.name));
        let (digits, addresses) = (itoa::Buffer::new(), AddressTexts::default());
        Json { lines: Vec::new(), names: names.collect(), at: 0, digits, addresses }
    }

    fn end_row(&mut self) {
        self.lines.extend_from_slice(b"}\n");
        self.at = 0;
    }

    fn lines(&mut self) -> &mut Vec<u8> {
        &mut self.lines
    }
}

impl Values for Json {
    #[inline]
    fn number(&mut self, value: Option<u64>) {
        let Some(value) = value else { return self.null() };
        self.value();
        self.lines.extend_from_slice(self.digits.format(value).as_bytes());
    }

    fn float(&mut self, value: Option<f64>) {
        let Some(value) = value else { return self.null() };
        // Writing to memory does not fail.
        _ = serde_json::to_writer(self.value(), &value);
    }

    #[inline]
    fn text(&mut self, value: Option<&str>) {
        let Some(value) = value else { return self.null() };
        _ = serde_json::to_writer(self.value(), value);
    }

    #[inline]
    fn address(&mut self, value: Option<Address>) {
        let Some(value) = value else { return self.null() };
        self.value().push(b'"');
        self.lines.extend_from_slice(self.addresses.of(value));
        self.lines.push(b'"');
    }

    fn truth(&mut self, value: bool) {
        self.value().extend_from_slice(if value { b"true" } else { b"false" });
    }
}
