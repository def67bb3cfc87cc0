//! Which policy goes on which interface.

use crate::failure::Failure;
use sluice_kernel::history::What;
use sluice_kernel::{RateWish, Request};
use sluice_policy::{LoadError, Policy, PolicyFile};

/// A policy for an interface.
pub struct Chosen {
    pub interface: String,
    pub policy: Policy,
    /// Where it was read from.
    pub source: String,
}

impl From<Chosen> for Request {
    /// `apply` without any option.
    fn from(chosen: Chosen) -> Request {
        Request {
            interface: chosen.interface,
            policy: chosen.policy,
            source: chosen.source,
            rate: RateWish::AsBefore,
            confirm: None,
            message: None,
            what: What::Apply,
            repeats: None,
        }
    }
}

/// What a policy file or profile says for an interface, or for each of its set.
pub fn choose(file: &str, interface: Option<&str>) -> Result<Vec<Chosen>, Failure> {
    let (source, found) = sluice_policy::load(file)?;
    let policies = match (interface, found) {
        (Some(interface), found) => vec![(interface.to_owned(), found.of(interface).map_err(LoadError::Invalid)?)],
        (None, PolicyFile::Set(set)) => set.policies,
        (None, PolicyFile::One(_)) => {
            let what = format!("{file} is a policy for any one interface, so one has to be named");
            return Err(Failure::input(
                &what,
                "add its name, as in `sluice up eth0 --policy P` and `sluice apply eth0 P`",
            ));
        }
    };
    let source = source.name();
    Ok(policies
        .into_iter()
        .map(|(interface, policy)| Chosen { interface, policy, source: source.to_owned() })
        .collect())
}

/// `[INTERFACE] POLICY`, as some commands take it.
pub fn named(words: &[String]) -> (Option<&str>, &str) {
    match words {
        [interface, file] => (Some(interface), file),
        [file] => (None, file),
        _ => unreachable!("clap takes one or two"),
    }
}
