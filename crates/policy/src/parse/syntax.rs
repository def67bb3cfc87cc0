//! The syntax tree of JSON with comments and trailing commas, and explanations of syntax errors.

use super::tokens;
use crate::diagnostic::{Diagnostic, Kind};
use crate::source::Span;
use jsonc_parser::ast::Value;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, parse_to_ast};

/// The tree, and the syntax errors. A text with small errors (a missing comma or quote) has both, so that errors of its content
/// are reported as well.
pub(crate) fn tree(text: &str) -> (Option<Value<'_>>, Vec<Diagnostic>) {
    let tokens::Checked { mut findings, readable } = tokens::check(text);
    if !readable {
        return (None, findings);
    }
    // Loose keys have been reported.
    let options =
        ParseOptions { allow_comments: true, allow_loose_object_property_names: true, allow_trailing_commas: true };
    match parse_to_ast(text, &CollectOptions::default(), &options) {
        Ok(parsed) if parsed.value.is_some() => (parsed.value, findings),
        Ok(_) => {
            findings.push(empty(text));
            (None, findings)
        }
        Err(error) => {
            // Otherwise the error may be a consequence of the reported ones.
            if findings.is_empty() {
                findings.push(explain(text, &error));
            }
            (None, findings)
        }
    }
}

fn empty(text: &str) -> Diagnostic {
    let end = text.trim_end().len();
    Diagnostic::error(Kind::Syntax, "the file is empty")
        .at(end..end, "expected an object here")
        .help("a policy is at least `{ \"scheduler\": \"deficit_round_robin\", \"classes\": [{ \"id\": 0 }] }`")
}

fn explain(text: &str, error: &ParseError) -> Diagnostic {
    use ParseErrorKind::*;
    let start = error.range().start.min(text.len());
    let mut span = token(text, start);
    let behind = &text[start..];
    let (title, label, help) = match error.kind() {
        String(kind) => {
            if matches!(kind, ParseStringErrorKind::UnterminatedStringLiteral) {
                span = start..start + behind.lines().next().unwrap_or_default().trim_end().len();
            }
            explain_string(kind)
        }
        UnterminatedArray => ("a list is not closed", "this `[` has no `]`", "add the missing `]`"),
        UnterminatedObject => ("an object is not closed", "this `{` has no `}`", "add the missing `}`"),
        UnterminatedCommentBlock => {
            span = start..start + 2;
            ("a comment is not closed", "this `/*` has no `*/`", "add the missing `*/`")
        }
        UnexpectedTokenInObject if behind.starts_with(']') => {
            ("an object is not closed", "expected a key or `}` here", "add the missing `}`")
        }
        UnexpectedCloseBrace | UnexpectedCloseBracket | UnexpectedComma if text[..start].trim_end().ends_with(':') => {
            ("a value is missing", "expected a value here", "write `\"key\": value`")
        }
        UnexpectedTokenInObject if behind.starts_with(',') => {
            ("there is a comma too many", "expected a key here", "remove the comma")
        }
        UnexpectedCloseBrace if text[..start].contains('[') => {
            ("a list is not closed", "expected a value or `]` here", "add the missing `]`")
        }
        UnexpectedCloseBrace => ("there is a `}` too many", "closes nothing", "remove it, or add the missing `{`"),
        UnexpectedCloseBracket => ("there is a `]` too many", "closes nothing", "remove it, or add the missing `[`"),
        ExpectedObjectValue => ("a value is missing", "the key has no value", "write `\"key\": value`"),
        UnexpectedComma => ("there is a comma too many", "expected a value here", "remove the comma"),
        UnexpectedColon => ("there is a colon too many", "expected a value here", "write `\"key\": value`"),
        MultipleRootJsonValues => (
            "there is text after the end of the policy",
            "the policy ended before this",
            "remove it; a file holds one policy, from the first `{` to its `}`",
        ),
        ExpectedDigit | ExpectedDigitFollowingNegativeSign | ExpectedPlusMinusOrDigitInNumberLiteral => (
            "a number is not complete",
            "expected a digit here",
            "write digits after the sign and on both sides of the point, as in -0.5",
        ),
        _ if behind.starts_with(char::is_alphabetic) => (
            "a word is not in quotes",
            "not a JSON value",
            "put text in double quotes; only true, false and null go without",
        ),
        _ => ("this is not JSON", "unexpected here", "a policy is JSON, with comments and trailing commas allowed"),
    };
    Diagnostic::error(Kind::Syntax, title).at(span, label).help(help)
}

/// The title, label and help of an error in a text.
fn explain_string(kind: &ParseStringErrorKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        ParseStringErrorKind::UnterminatedStringLiteral => {
            ("a text is not closed", "no closing `\"` on this line", "add the missing `\"`")
        }
        ParseStringErrorKind::InvalidUnicodeEscapeSequence(_) => (
            "a text has a \\u escape that is no character",
            "half of a pair",
            "write the character itself: pairs of \\u escapes are not read",
        ),
        _ => (
            "a text has an escape that JSON does not know",
            "not known",
            "known are \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\u with four hexadecimal digits",
        ),
    }
}

/// The word, text or single character at this place: the parser's own ranges reach too far.
fn token(text: &str, start: usize) -> Span {
    let behind = &text[start..];
    let first = behind.chars().next().map_or(0, char::len_utf8);
    let length = match behind.chars().next() {
        Some('"') => behind[1..].find(['"', '\n']).map_or(behind.len(), |end| end + 2),
        Some('\\') => first + behind[first..].chars().next().map_or(0, char::len_utf8),
        _ => behind.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(behind.len()).max(first),
    };
    start..start + length
}
