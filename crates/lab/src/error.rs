//! The lab's one error: what happened, the way out, and the exit code that it means.

use std::fmt;

/// What kind of failure it is; the command's exit code follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The caller asked for something impossible: exit code 2.
    Input,
    /// A tool or a feature is missing on this machine: exit code 3.
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

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of this kind.
    pub fn new(kind: Kind, what: impl Into<String>) -> Error {
        Error { kind, what: what.into(), cure: None }
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
