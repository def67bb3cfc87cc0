//! The error of commands: its description, the way out, and the exit code that it means.

use std::fmt;

/// The kind of a failure, which decides the command's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The caller's input, or the state of an interface, does not allow the command: exit code 2.
    Input,
    /// This kernel or machine cannot run the command, or lacks a tool: exit code 3.
    Unsupported,
    /// Root is needed: exit code 4.
    Privilege,
    /// The system or a tool failed: exit code 1.
    System,
    /// A person stopped the command: exit code 130, as in shells.
    Interrupted,
}

/// A failure that a person can act on.
#[derive(Debug, Clone)]
pub struct Error {
    /// Kind of the failure.
    pub kind: Kind,
    /// Description of the failure, which names the object.
    pub what: String,
    /// The way out, if one is known.
    pub cure: Option<String>,
}

/// The result of an operation that can fail with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of this kind.
    pub fn new(kind: Kind, what: impl Into<String>) -> Error {
        Error { kind, what: what.into(), cure: None }
    }

    /// An error of the caller's input.
    pub fn input(what: impl Into<String>) -> Error {
        Error::new(Kind::Input, what)
    }

    /// An error of what this kernel or machine lacks.
    pub fn unsupported(what: impl Into<String>) -> Error {
        Error::new(Kind::Unsupported, what)
    }

    /// An error of the system or of a tool.
    pub fn system(what: impl Into<String>) -> Error {
        Error::new(Kind::System, what)
    }

    /// The error with a way out.
    pub fn help(mut self, cure: impl Into<String>) -> Error {
        self.cure = Some(cure.into());
        self
    }

    /// The error with the name of its interface, if several were asked for and the error does not name it yet.
    pub fn of_several(mut self, interface: &str, count: usize) -> Error {
        if count > 1 && !self.what.contains(interface) {
            self.what = format!("{}\n  on {interface}", self.what.trim_end());
        }
        self
    }

    /// The exit code of a command that fails with this error.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            Kind::System => 1,
            Kind::Input => 2,
            Kind::Unsupported => 3,
            Kind::Privilege => 4,
            Kind::Interrupted => 130,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.cure {
            Some(cure) => write!(f, "\n  help: {cure}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

/// Adds the attempt to an error of the system.
pub trait Doing<T> {
    /// `what`: the attempt, named before the error.
    ///
    /// # Errors
    ///
    /// The error, as one of the system.
    fn doing(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: fmt::Display> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::system(format!("{}: {error}", what())))
    }
}
