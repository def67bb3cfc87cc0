//! Assignments of policies to interfaces by the command line.

use crate::failure::Failure;
use sluice_kernel::history::Origin;
use sluice_kernel::{RateOption, Request};
use sluice_policy::{Context, LoadError, Policy, PolicyFile};

/// A policy and the interface that it is for.
pub struct Assignment {
    pub interface: String,
    pub policy: Policy,
    /// Source of the policy.
    pub source: String,
}

impl From<Assignment> for Request {
    /// The request of an `apply` without options.
    fn from(assignment: Assignment) -> Request {
        Request {
            interface: assignment.interface,
            policy: assignment.policy,
            source: assignment.source,
            rate: RateOption::AsBefore,
            ingress_rate: RateOption::AsBefore,
            confirm: None,
            message: None,
            what: Origin::Apply,
            repeats: None,
            force: false,
        }
    }
}

/// Reads a file or profile: the policy for one interface, or one for each interface of its set.
pub fn choose(file: &str, interface: Option<&str>, context: &Context) -> Result<Vec<Assignment>, Failure> {
    let (source, found) = sluice_policy::load_for(file, context)?;
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
        .map(|(interface, policy)| Assignment { interface, policy, source: source.to_owned() })
        .collect())
}

/// Splits `[INTERFACE] POLICY`. An interface without a policy is refused.
pub fn named<'a>(command: &str, words: &'a [String]) -> Result<(Option<&'a str>, &'a str), Failure> {
    match words {
        [interface, file] => Ok((Some(interface), file)),
        [word] if is_interface(word) => Err(Failure::input(
            &format!("{word} is an interface, and no policy is named for it"),
            &format!("add a policy file or a profile, as in `sluice {command} {word} ./my.json`"),
        )),
        [file] => Ok((None, file)),
        _ => unreachable!("clap takes one or two"),
    }
}

/// Whether a word that could name a profile names an interface instead.
fn is_interface(word: &str) -> bool {
    let is_file = word.contains('/') || word.ends_with(".json");
    !is_file
        && !sluice_policy::profiles().iter().any(|profile| profile == word)
        && nix::net::if_::if_nametoindex(word).is_ok()
}
