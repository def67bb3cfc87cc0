//! The rows of a table of comma-separated values (RFC 4180), with the place of each field.

use crate::source::Span;
use csv_core::{ReadFieldResult, ReaderBuilder};

/// A value and its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub text: String,
    pub span: Span,
}

/// A row with at least one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub fields: Vec<Field>,
}

impl Row {
    /// From the first field to the last one.
    pub fn span(&self) -> Span {
        let end = self.fields.last().map_or(0, |field| field.span.end);
        self.fields.first().map_or(0, |field| field.span.start)..end
    }
}

/// A column's name as it is compared: in lower case, with single spaces, without a unit.
pub(super) fn plain(name: &str) -> String {
    let words: Vec<String> = name.split_whitespace().map(str::to_lowercase).filter(|word| word != "mbps").collect();
    words.join(" ")
}

/// The rows of a text, without empty ones and those that begin with `#`. Values are trimmed.
pub(super) fn rows(text: &str) -> Vec<Row> {
    let mut reader = ReaderBuilder::new().comment(Some(b'#')).build();
    let bytes = text.as_bytes();
    let (mut rows, mut fields, mut value) = (Vec::new(), Vec::new(), Vec::new());
    // A mark of the byte order is no part of the first value.
    let mut at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut buffer = [0; 1024];
    let mut start = at;
    loop {
        let (result, read, written) = reader.read_field(&bytes[at..], &mut buffer);
        at += read;
        value.extend_from_slice(&buffer[..written]);
        match result {
            ReadFieldResult::Field { record_end } => {
                fields.push(field(text, start..at, &value));
                value.clear();
                start = at;
                if record_end && !fields.is_empty() {
                    rows.push(Row { fields: std::mem::take(&mut fields) });
                }
            }
            // The value goes on in the next piece; without more text, the reader ends it.
            ReadFieldResult::OutputFull | ReadFieldResult::InputEmpty => {}
            ReadFieldResult::End => return rows,
        }
    }
}

/// The value that was read from this place, with what separates it from others.
fn field(text: &str, read: Span, value: &[u8]) -> Field {
    let value = String::from_utf8_lossy(value);
    let value = value.trim();
    // Comments and empty lines before the first field of a row were read with it.
    let before = text[read.clone()].rfind(value).filter(|_| !value.is_empty());
    let span = match before {
        Some(before) => read.start + before..read.start + before + value.len(),
        // It has quotes inside, or is empty: the whole place, without the separator.
        None => {
            let own = text[read.clone()].trim_end_matches(['\n', '\r']).trim_end_matches(',');
            let line = own.rfind('\n').map_or(0, |end| if own.contains('"') { 0 } else { end + 1 });
            read.start + line..read.start + own.len()
        }
    };
    Field { text: value.to_owned(), span }
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn values_and_their_places() {
        let text = "\u{feff}# a comment, with a comma\n\nid,name ,\"a \"\"b\"\", c\"\n# another\n1,,\"x,\ny\"\r\n2,z";
        let found: Vec<Vec<(String, String)>> = rows(text)
            .into_iter()
            .map(|row| row.fields.into_iter().map(|field| (field.text, text[field.span].to_owned())).collect())
            .collect();
        let pairs = |row: &[(&str, &str)]| -> Vec<(String, String)> {
            row.iter().map(|(value, place)| ((*value).to_owned(), (*place).to_owned())).collect()
        };
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0][..2], pairs(&[("id", "id"), ("name", "name")]));
        assert_eq!(found[0][2].0, "a \"b\", c");
        assert_eq!(found[1], pairs(&[("1", "1"), ("", ""), ("x,\ny", "x,\ny")]));
        assert_eq!(found[2], pairs(&[("2", "2"), ("z", "z")]));
    }

    #[test]
    fn long_values_are_whole() {
        let long = "ä".repeat(5_000);
        let rows = rows(&format!("a,{long}\n"));
        assert_eq!(rows[0].fields[1].text, long);
        assert_eq!(rows[0].fields[1].span, 2..2 + long.len());
    }
}
