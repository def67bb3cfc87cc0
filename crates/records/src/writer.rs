//! Writers of records: one trait, and a file of its own for each format.

#[cfg(feature = "columnar")]
mod arrow;
#[cfg(feature = "columnar")]
mod batch;
mod lines;
#[cfg(feature = "columnar")]
mod parquet;

use crate::column::Record;
use crate::labels::Labels;
use crate::output::{Destination, Output};
use sluice_error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The form of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values (RFC 4180) with a line of titles.
    Csv,
    /// A JSON object a line.
    JsonLines,
    /// An Arrow IPC file, or the stream where the output is a pipe or a socket.
    Arrow,
    /// An Arrow IPC stream.
    ArrowStream,
    /// Parquet.
    Parquet,
}

impl Format {
    /// The format that was asked for, or that of the extension of a file's name.
    ///
    /// # Errors
    ///
    /// None was asked for and the name does not tell it; or the output cannot hold it.
    pub fn of(destination: &Destination, asked: Option<Format>) -> Result<Format> {
        let format = asked.or_else(|| by_extension(destination)).ok_or_else(|| {
            Error::input(format!("the format of {} is not known", destination.name()))
                .help("say --format csv, jsonl, arrow, arrow-stream or parquet, or end the name with one of them")
        })?;
        match (format, destination.is_regular()) {
            (Format::Parquet, false) => {
                Err(Error::input(format!("{} is not a file, and Parquet needs one", destination.name()))
                    .help("write Parquet to a file; pipes and sockets take csv, jsonl and arrow-stream"))
            }
            (Format::Arrow, false) => Ok(Format::ArrowStream),
            (format, _) => Ok(format),
        }
    }

    /// The format's name as `--format` has it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::JsonLines => "jsonl",
            Format::Arrow => "arrow",
            Format::ArrowStream => "arrow-stream",
            Format::Parquet => "parquet",
        }
    }
}

fn by_extension(destination: &Destination) -> Option<Format> {
    let Destination::File(path) = destination else { return None };
    Some(match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "csv" => Format::Csv,
        "jsonl" | "ndjson" | "json" => Format::JsonLines,
        "arrow" | "feather" => Format::Arrow,
        "arrows" => Format::ArrowStream,
        "parquet" | "pq" => Format::Parquet,
        _ => return None,
    })
}

/// What a file says of itself, by names. Arrow and Parquet have room for it.
pub type Metadata = Vec<(String, String)>;

/// A writer of records.
pub trait Writer<R> {
    /// Writes a record, at once or with later ones.
    ///
    /// # Errors
    ///
    /// The output has failed. What was written before is readable; nothing more can be written.
    fn write(&mut self, record: &R, labels: &Labels) -> Result<()>;

    /// Lets readers have what was written so far, where the format allows that.
    ///
    /// # Errors
    ///
    /// As for `write`.
    fn flush(&mut self) -> Result<()>;

    /// Ends the output; `last` is added to what a file says of itself.
    ///
    /// # Errors
    ///
    /// As for `write`.
    fn finish(&mut self, last: Metadata) -> Result<()>;

    /// Rows that the output holds.
    fn rows(&self) -> u64;
}

/// Opens an output and begins a format in it.
///
/// # Errors
///
/// The output cannot be opened or written, or this build does not have the format.
pub fn open<R: Record + 'static>(
    destination: &Destination,
    format: Format,
    replaces: bool,
    first: Metadata,
    stop: Arc<AtomicBool>,
) -> Result<Box<dyn Writer<R>>> {
    has_format(format)?;
    let output = destination.open(replaces, stop)?;
    begin(output, format, first)
}

/// Begins a format in an open output.
///
/// # Errors
///
/// The output cannot be written, or this build does not have the format.
pub fn begin<R: Record + 'static>(output: Output, format: Format, first: Metadata) -> Result<Box<dyn Writer<R>>> {
    has_format(format)?;
    let mut metadata = vec![
        ("sluice.schema".to_owned(), R::WHAT.to_owned()),
        ("sluice.schema_version".to_owned(), crate::SCHEMA_VERSION.to_string()),
    ];
    metadata.extend(first);
    match format {
        Format::Csv => Ok(Box::new(lines::Lines::<lines::Csv>::begin::<R>(output))),
        Format::JsonLines => Ok(Box::new(lines::Lines::<lines::Json>::begin::<R>(output))),
        #[cfg(feature = "columnar")]
        Format::Arrow => Ok(Box::new(arrow::Arrow::begin::<R>(output, true, metadata)?)),
        #[cfg(feature = "columnar")]
        Format::ArrowStream => Ok(Box::new(arrow::Arrow::begin::<R>(output, false, metadata)?)),
        #[cfg(feature = "columnar")]
        Format::Parquet => Ok(Box::new(parquet::Parquet::begin::<R>(output, metadata)?)),
        #[cfg(not(feature = "columnar"))]
        other => Err(absent(other)),
    }
}

#[cfg(feature = "columnar")]
fn has_format(_: Format) -> Result<()> {
    Ok(())
}

#[cfg(not(feature = "columnar"))]
fn has_format(format: Format) -> Result<()> {
    if matches!(format, Format::Csv | Format::JsonLines) { Ok(()) } else { Err(absent(format)) }
}

#[cfg(not(feature = "columnar"))]
fn absent(format: Format) -> Error {
    Error::unsupported(format!("this sluice was built without {}", format.name()))
        .help("write csv or jsonl, or build it with the Cargo feature columnar")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_name_or_option() {
        let of = |text: &str, asked| Format::of(&Destination::parse(text).expect("good"), asked);
        let file = |name: &str| of(&format!("/nowhere/{name}"), None);
        assert_eq!(file("a.csv").expect("known"), Format::Csv);
        assert_eq!(file("a.b.PARQUET").expect("known"), Format::Parquet);
        assert_eq!(file("a.jsonl").expect("known"), Format::JsonLines);
        assert_eq!(file("a.arrow").expect("known"), Format::Arrow);
        assert_eq!(of("/nowhere/a.csv", Some(Format::Parquet)).expect("known"), Format::Parquet);
        assert_eq!(of("-", Some(Format::Arrow)).expect("known"), Format::ArrowStream);
        for (text, asked, wanted) in [
            ("a.txt", None, "is not known"),
            ("a", None, "is not known"),
            ("-", None, "is not known"),
            ("-", Some(Format::Parquet), "Parquet needs one"),
            ("/dev/null", Some(Format::Parquet), "Parquet needs one"),
            ("tcp:localhost:9", Some(Format::Parquet), "Parquet needs one"),
        ] {
            let error = of(text, asked).expect_err("refused");
            assert!(error.what.contains(wanted), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
    }
}
