//! Files for tests, and mistakes in them.

use std::fmt::Debug;

use super::library::Source;
use sluice_error::Result;

/// A source without a path, like that of a built-in file.
pub fn source(name: &str, text: &str) -> Source {
    Source { name: name.to_owned(), text: text.to_owned(), path: None, attached: Vec::new() }
}

/// Checks that each mistake in a good file is refused as bad input.
///
/// A mistake replaces its first text by its second one; the message has the third one.
#[track_caller]
pub fn assert_refused<T: Debug>(of: impl Fn(&str) -> Result<T>, good: &str, mistakes: &[(&str, &str, &str)]) {
    for (from, to, says) in mistakes {
        let error = of(&good.replacen(from, to, 1)).expect_err(to);
        assert!(error.what.contains(says), "{}", error.what);
        assert_eq!(error.exit_code(), 2, "{}", error.what);
    }
}
