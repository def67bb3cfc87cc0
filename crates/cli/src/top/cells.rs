//! Rows of cells of fixed width; longer text ends in an ellipsis.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// A row that grows from the left.
#[derive(Default)]
pub struct Cells {
    spans: Vec<Span<'static>>,
}

impl Cells {
    /// Appends text, aligned left.
    pub fn left(&mut self, text: &str, width: usize, style: Style) -> &mut Cells {
        let text = cut(text, width);
        let blank = width - Span::raw(text.as_str()).width();
        self.spans.push(Span::styled(text, style));
        self.blank(blank + 1)
    }

    /// Appends text, aligned right.
    pub fn right(&mut self, text: &str, width: usize, style: Style) -> &mut Cells {
        let text = cut(text, width);
        let blank = width - Span::raw(text.as_str()).width();
        self.blank(blank);
        self.spans.push(Span::styled(text, style));
        self.blank(1)
    }

    /// Appends text as it is, without a gap after it.
    pub fn text(&mut self, text: impl Into<String>, style: Style) -> &mut Cells {
        self.spans.push(Span::styled(text.into(), style));
        self
    }

    fn blank(&mut self, width: usize) -> &mut Cells {
        self.spans.push(Span::raw(" ".repeat(width)));
        self
    }

    /// The finished row.
    pub fn line(&mut self) -> Line<'static> {
        Line::from(std::mem::take(&mut self.spans))
    }
}

/// The first `width` columns of a text.
pub fn cut(text: &str, width: usize) -> String {
    if Span::raw(text).width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        if Span::raw(format!("{kept}{letter}")).width() + 1 > width {
            break;
        }
        kept.push(letter);
    }
    if width > 0 { kept + "…" } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_their_width() {
        let line = |text: &str, width| Cells::default().left(text, width, Style::new()).line().width();
        for text in ["", "a", "abcdef", "日本語の名前"] {
            assert_eq!(line(text, 5), 6, "{text}");
        }
        assert_eq!(cut("interactive", 6), "inter…");
    }
}
