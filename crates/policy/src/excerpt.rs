//! Excerpts of a policy's text for messages.

use std::borrow::Cow;

/// The longest excerpt, characters.
const MAX_CHARS: usize = 60;

/// The text on one line, cut with an ellipsis, control characters escaped.
pub(crate) fn excerpt(text: &str) -> Cow<'_, str> {
    let short = text.chars().nth(MAX_CHARS).is_none();
    if short && !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for c in text.chars().take(MAX_CHARS) {
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
    use super::excerpt;

    #[test]
    fn excerpts_are_one_line_and_truncated() {
        assert_eq!(excerpt("plain \"ä\""), "plain \"ä\"");
        assert_eq!(excerpt("a\nb\u{1b}"), "a\\nb\\u{1b}");
        let cut = excerpt(&"漢".repeat(5000)).into_owned();
        assert_eq!((cut.chars().count(), cut.ends_with('…')), (61, true));
        assert_eq!(excerpt(&"x".repeat(60)), "x".repeat(60));
    }
}
