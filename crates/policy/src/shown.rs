//! Excerpts of a policy's text for messages.

use std::borrow::Cow;

/// The longest excerpt, characters.
const MOST_CHARS: usize = 60;

/// The text on one line, cut with an ellipsis, control characters escaped.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let short = text.chars().nth(MOST_CHARS).is_none();
    if short && !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for c in text.chars().take(MOST_CHARS) {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    if !short {
        out.push('…');
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn long_texts_are_cut_and_lines_are_one() {
        assert_eq!(shown("plain \"ä\""), "plain \"ä\"");
        assert_eq!(shown("a\nb\u{1b}"), "a\\nb\\u{1b}");
        let cut = shown(&"漢".repeat(5000)).into_owned();
        assert_eq!((cut.chars().count(), cut.ends_with('…')), (61, true));
        assert_eq!(shown(&"x".repeat(60)), "x".repeat(60));
    }
}
