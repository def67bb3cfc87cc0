//! The error of commands: what happened, the way out, and the exit code that it means.

use std::fmt;

/// What kind of failure it is; the command's exit code follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The caller's input, or the state of an interface, does not allow it: exit code 2.
    Input,
    /// This kernel or machine cannot do it, or lacks a tool: exit code 3.
    Unsupported,
    /// Root is needed: exit code 4.
    Privilege,
    /// The system or a tool failed: exit code 1.
    System,
    /// A person stopped it: exit code 130, as shells say it.
    Interrupted,
}

/// A failure that a person can act on.
#[derive(Debug, Clone)]
pub struct Error {
    /// What kind.
    pub kind: Kind,
    /// What happened, naming the object.
    pub what: String,
    /// The way out, if one is known.
    pub cure: Option<String>,
}

/// The result of what can fail so.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of this kind.
    pub fn new(kind: Kind, what: impl Into<String>) -> Error {
        Error { kind, what: what.into(), cure: None }
    }

    /// The caller's input does not allow it.
    pub fn input(what: impl Into<String>) -> Error {
        Error::new(Kind::Input, what)
    }

    /// This kernel cannot do it.
    pub fn unsupported(what: impl Into<String>) -> Error {
        Error::new(Kind::Unsupported, what)
    }

    /// The system or a tool failed.
    pub fn system(what: impl Into<String>) -> Error {
        Error::new(Kind::System, what)
    }

    /// With the way out.
    pub fn help(mut self, cure: impl Into<String>) -> Error {
        self.cure = Some(cure.into());
        self
    }

    /// Where it happened, if several interfaces were asked for and it is not said yet.
    pub fn of_several(mut self, interface: &str, count: usize) -> Error {
        if count > 1 && !self.what.contains(interface) {
            self.what = format!("{}\n  on {interface}", self.what.trim_end());
        }
        self
    }

    /// The exit code of a command that fails with it.
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
