//! The text of a policy, and the places of its values.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// A half-open range of byte offsets in a [`Source`].
pub(crate) type Span = Range<usize>;

/// The place of a value in its file, which is no part of its meaning: any two are equal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Where(pub Span);

impl PartialEq for Where {
    fn eq(&self, _: &Where) -> bool {
        true
    }
}

impl Eq for Where {}

/// A policy's text and its name in messages. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Source {
    name: Arc<str>,
    text: Arc<str>,
    /// The start of each line but the first.
    lines: Arc<[usize]>,
    /// The number of characters before each block of [`BLOCK`] bytes, and in all: it bounds the cost of a column on a line of
    /// megabytes.
    characters: Arc<[usize]>,
}

const BLOCK: usize = 4_096;

/// Whether a character of UTF-8 starts with this byte.
fn starts_character(byte: &u8) -> bool {
    byte & 0xc0 != 0x80
}

impl Source {
    /// A text with its name, usually a path, in messages.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Source {
        let text = text.into();
        let lines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at + 1).collect();
        let count = |block: &[u8]| block.iter().filter(|byte| starts_character(byte)).count();
        let mut characters = vec![0];
        for block in text.as_bytes().chunks(BLOCK) {
            characters.push(characters[characters.len() - 1] + count(block));
        }
        Source { name: name.into(), text, lines, characters: characters.into() }
    }

    /// The text's name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether this is the same text, and not one that is equal.
    pub(crate) fn is(&self, other: &Source) -> bool {
        Arc::ptr_eq(&self.text, &other.text)
    }

    /// The whole lines from the first to the last of these places.
    pub(crate) fn lines_around<'s>(&self, spans: impl Iterator<Item = &'s Span> + Clone) -> Span {
        let first = spans.clone().map(|span| span.start).min().unwrap_or(0);
        let last = spans.map(|span| span.end).max().unwrap_or(0).min(self.text.len());
        let start = match self.line(first) {
            1 => 0,
            line => self.lines[line as usize - 2],
        };
        let end = self.lines.get(self.line(last) as usize - 1).copied();
        start..end.unwrap_or(self.text.len())
    }

    /// The last part of the name, without `.json`: the default name of a policy.
    pub fn stem(&self) -> &str {
        let file = self.name.rsplit('/').next().unwrap_or_default();
        file.strip_suffix(".json").unwrap_or(file)
    }

    /// Line and column of a byte offset, both from 1; the column counts characters.
    pub fn line_column(&self, offset: usize) -> (u32, u32) {
        let mut end = offset.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let line = self.line(end);
        let line_start = if line == 1 { 0 } else { self.lines[line as usize - 2] };
        let column = self.characters_before(end) - self.characters_before(line_start) + 1;
        (line, column as u32)
    }

    /// Line of a byte offset, from 1.
    pub fn line(&self, offset: usize) -> u32 {
        self.lines.partition_point(|&start| start <= offset) as u32 + 1
    }

    /// The number of characters that start before a byte of the text, or before its end.
    fn characters_before(&self, offset: usize) -> usize {
        let block = offset / BLOCK;
        let in_block = &self.text.as_bytes()[block * BLOCK..offset];
        self.characters[block] + in_block.iter().filter(|byte| starts_character(byte)).count()
    }
}

/// The place in its file of each value of a policy, by JSON pointer (`/classes/2/rate`); empty for a policy that was made in
/// memory. It is not part of a policy's meaning: any two are equal. The indices are those of the file, so code that reorders a
/// policy's classes or rules should clear it.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    pub(crate) source: Option<Source>,
    pub(crate) spans: Arc<HashMap<String, Span>>,
}

impl Origin {
    /// The text, if there is one.
    pub fn source(&self) -> Option<&Source> {
        self.source.as_ref()
    }

    /// Line and column, both from 1, of the value at a JSON pointer.
    pub fn line_column(&self, pointer: &str) -> Option<(u32, u32)> {
        let span = self.spans.get(pointer)?;
        self.source.as_ref().map(|source| source.line_column(span.start))
    }

    pub(crate) fn span(&self, pointer: &str) -> Option<Span> {
        self.spans.get(pointer).cloned()
    }
}

impl PartialEq for Origin {
    fn eq(&self, _: &Origin) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lines_and_columns() {
        let source = Source::new("a/b.json", "ä1\nzw\n");
        assert_eq!(source.stem(), "b");
        assert_eq!(source.line_column(0), (1, 1));
        assert_eq!(source.line_column(1), (1, 1), "inside a character");
        assert_eq!(source.line_column(2), (1, 2));
        assert_eq!(source.line_column(4), (2, 1));
        assert_eq!(source.line_column(99), (3, 1));
        assert_eq!(Source::new("empty", "").line_column(0), (1, 1));
    }

    #[test]
    fn long_lines_have_columns() {
        for letter in ["a", "ä", "€"] {
            for count in [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK] {
                let text = format!("ö\n{}\n", letter.repeat(count));
                let source = Source::new("long.json", text.as_str());
                let end = 3 + letter.len() * count;
                assert_eq!(source.line_column(end), (2, count as u32 + 1), "{count} of {letter}");
                assert_eq!(source.line_column(end - letter.len()), (2, count as u32), "{count} of {letter}");
                assert_eq!(source.line_column(text.len()), (3, 1), "{count} of {letter}");
            }
        }
    }
}
