//! The content of a policy file: one policy, or a set with one for each of several interfaces.

use crate::diagnostic::{Diagnostic, Diagnostics, Kind};
use crate::policy::Policy;
use crate::source::{Source, Span};
use crate::suggest;

/// The content of a policy file.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicyFile {
    /// A policy for any interface.
    One(Box<Policy>),
    /// A policy for each of some interfaces.
    Set(PolicySet),
}

/// A policy for each of some interfaces.
#[derive(Debug, Clone)]
pub struct PolicySet {
    /// Names of interfaces with their policies, in the order of the file. At least one.
    pub policies: Vec<(String, Policy)>,
    pub(crate) source: Source,
    /// The place of the key `interfaces`.
    pub(crate) key: Span,
}

impl PartialEq for PolicySet {
    fn eq(&self, other: &PolicySet) -> bool {
        self.policies == other.policies
    }
}

impl PolicyFile {
    /// Every policy of the file, with its interface in a set.
    pub fn policies(self) -> Vec<(Option<String>, Policy)> {
        match self {
            PolicyFile::One(policy) => vec![(None, *policy)],
            PolicyFile::Set(set) => set.policies.into_iter().map(|(name, policy)| (Some(name), policy)).collect(),
        }
    }

    /// The policy of a file without a set.
    pub fn one(self) -> Result<Policy, Diagnostics> {
        match self {
            PolicyFile::One(policy) => Ok(*policy),
            PolicyFile::Set(set) => Err(set.refusal("this is a policy for each of several interfaces", None)),
        }
    }

    /// The policy for an interface: its own of a set, otherwise the only one.
    pub fn of(self, interface: &str) -> Result<Policy, Diagnostics> {
        match self {
            PolicyFile::One(policy) => Ok(*policy),
            PolicyFile::Set(mut set) => match set.policies.iter().position(|(name, _)| name == interface) {
                Some(place) => Ok(set.policies.swap_remove(place).1),
                None => Err(set.refusal(&format!("there is no policy for {interface} in it"), Some(interface))),
            },
        }
    }
}

impl PolicySet {
    fn refusal(&self, title: &str, wanted: Option<&str>) -> Diagnostics {
        let names: Vec<&str> = self.policies.iter().map(|(name, _)| name.as_str()).collect();
        let mut finding = Diagnostic::error(Kind::Interface, title).at(self.key.clone(), "named here");
        if let Some(near) = wanted.and_then(|wanted| suggest::nearest(wanted, &names)) {
            finding = finding.help(format!("did you mean {near}?"));
        }
        Diagnostics::new(Some(self.source.clone()), vec![finding.help(format!("choose from: {}", names.join(", ")))])
    }
}
