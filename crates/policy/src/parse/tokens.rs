//! Errors of a policy text token by token: commas, colons and quotes that are missing, texts that are not closed. The
//! parser of the tree forgives most of them, so that the content can be checked at the same time.

use crate::diagnostic::{Diagnostic, Kind};
use crate::source::Span;
use jsonc_parser::Scanner;
use jsonc_parser::tokens::Token;

/// The deepest nesting that is read; a policy needs four levels.
const MAX_DEPTH: usize = 64;

/// All findings up to the first text that is not a token; `readable` is false if parsing makes no sense.
pub(super) struct Checked {
    pub findings: Vec<Diagnostic>,
    pub readable: bool,
}

/// The token before, as far as the check of the next one depends on it.
#[derive(Clone, Copy, PartialEq)]
enum Previous {
    Nothing,
    Key,
    Value,
    Number,
}

struct Checker<'a> {
    text: &'a str,
    findings: Vec<Diagnostic>,
    /// For each open bracket, whether it opens an object.
    open: Vec<bool>,
    before: Previous,
    before_span: Span,
    key_next: bool,
}

pub(super) fn check(text: &str) -> Checked {
    let mut scanner = Scanner::new(text);
    let (findings, open, before) = (Vec::new(), Vec::new(), Previous::Nothing);
    let mut checker = Checker { text, findings, open, before, before_span: 0..0, key_next: false };
    let mut readable = true;
    // A token that stops the scanner stops the parser as well, which reports it.
    while let (true, Ok(Some(token))) = (readable, scanner.scan()) {
        let span = scanner.token_start()..scanner.token_end();
        readable = checker.token(&token, span);
    }
    Checked { findings: checker.findings, readable }
}

impl Checker<'_> {
    /// Checks the next token; false if going on makes no sense.
    fn token(&mut self, token: &Token, span: Span) -> bool {
        match token {
            Token::CommentLine(_) | Token::CommentBlock(_) => return true,
            Token::Comma => {
                self.key_next = self.open.last() == Some(&true);
                self.before = Previous::Nothing;
            }
            Token::Colon => self.before = Previous::Nothing,
            Token::CloseBrace | Token::CloseBracket => {
                self.open.pop();
                self.key_next = false;
                self.before = Previous::Value;
            }
            _ if self.before == Previous::Number
                && matches!(token, Token::Word(_))
                && span.start == self.before_span.end =>
            {
                let whole = self.before_span.start..span.end;
                self.report(
                    "a number cannot be read",
                    whole,
                    "not a decimal number",
                    "write it in decimal, as in 16 or 0.5",
                );
                // Continue as if the missing token had been there.
                self.before = Previous::Value;
            }
            _ => return self.value_or_key(token, span),
        }
        self.before_span = span;
        true
    }

    fn value_or_key(&mut self, token: &Token, span: Span) -> bool {
        match self.before {
            Previous::Value | Previous::Number => {
                let end = self.last_char(self.before_span.end);
                self.report("a comma is missing", end, "expected `,` after this", "separate values by commas");
                self.key_next = self.open.last() == Some(&true);
            }
            Previous::Key => {
                let key = self.before_span.clone();
                self.report("a colon is missing", key, "expected `:` after this key", "write `\"key\": value`");
            }
            Previous::Nothing => {}
        }
        if !self.quotes(token, span.clone()) {
            return false;
        }
        let is_key = self.key_next && matches!(token, Token::String(_) | Token::Word(_) | Token::Number(_));
        if is_key && !matches!(token, Token::String(_)) {
            self.report(
                "a key is not in quotes",
                span.clone(),
                "expected double quotes",
                "put the key in double quotes",
            );
        }
        self.key_next = *token == Token::OpenBrace;
        self.before = match token {
            _ if is_key => Previous::Key,
            Token::OpenBrace | Token::OpenBracket => Previous::Nothing,
            Token::Number(_) => Previous::Number,
            _ => Previous::Value,
        };
        if matches!(token, Token::OpenBrace | Token::OpenBracket) {
            self.open.push(*token == Token::OpenBrace);
            if self.open.len() > MAX_DEPTH {
                self.report("the nesting is too deep", span, "one too many", "a policy nests four levels");
                return false;
            }
        }
        self.before_span = span;
        true
    }

    /// Checks the quotes of a text; false if its end cannot be trusted.
    fn quotes(&mut self, token: &Token, span: Span) -> bool {
        let raw = &self.text[span.clone()];
        if !matches!(token, Token::String(_)) {
            return true;
        }
        if let Some(line_end) = raw.find(['\n', '\r']) {
            let line = span.start..span.start + raw[..line_end].trim_end().len();
            self.report("a text is not closed", line, "no closing `\"` on this line", "add the missing `\"`");
            return false;
        }
        if raw.starts_with('\'') {
            self.report("a text is in single quotes", span, "expected double quotes", "put it in double quotes");
        }
        true
    }

    fn last_char(&self, end: usize) -> Span {
        let start = self.text[..end].char_indices().next_back().map_or(end, |(start, _)| start);
        start..end
    }

    fn report(&mut self, title: &str, span: Span, label: &str, cure: &str) {
        self.findings.push(Diagnostic::error(Kind::Syntax, title).at(span, label).help(cure));
    }
}
