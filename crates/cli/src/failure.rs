//! The message and the exit code of a command that fails.

use sluice_policy::{Diagnostics, LoadError, Severity};

/// A failed command.
pub struct Failure {
    /// The exit code of the process.
    pub exit_code: u8,
    plain: String,
    colored: String,
}

impl Failure {
    /// Bad input.
    pub fn input(what: &str, cure: &str) -> Failure {
        sluice_kernel::Error::input(what).help(cure).into()
    }

    /// The system refused.
    pub fn system(what: impl Into<String>) -> Failure {
        sluice_kernel::Error::system(what).into()
    }

    /// A policy with errors.
    pub fn policy(found: &Diagnostics) -> Failure {
        Failure::policies(std::slice::from_ref(found))
    }

    /// Several policies with errors.
    pub fn policies(found: &[Diagnostics]) -> Failure {
        let errors: usize = found.iter().map(|found| found.count(Severity::Error)).sum();
        let sum = format!("{errors} error{}; nothing was changed\n", if errors == 1 { "" } else { "s" });
        let render = |color| found.iter().map(|found| found.render(color)).collect::<Vec<_>>().join("\n") + &sum;
        Failure { exit_code: 2, plain: render(false), colored: render(true) }
    }

    /// The message as text, with ANSI colours if `color`.
    pub fn render(&self, color: bool) -> &str {
        if color { &self.colored } else { &self.plain }
    }
}

impl From<sluice_kernel::Error> for Failure {
    fn from(error: sluice_kernel::Error) -> Failure {
        let (plain, colored) = if error.what.starts_with("error") {
            (error.to_string(), error.to_string())
        } else {
            (format!("error: {error}"), format!("\x1b[1;31merror\x1b[0m: {error}"))
        };
        let end = |text: String| if text.ends_with('\n') { text } else { text + "\n" };
        Failure { exit_code: error.exit_code(), plain: end(plain), colored: end(colored) }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Failure {
        match error {
            LoadError::Invalid(found) => Failure::policy(&found),
            other => {
                let text = other.to_string();
                Failure { exit_code: 2, plain: text.clone(), colored: text }
            }
        }
    }
}
