//! `sluice up --restore`: a kept policy instead of the named one.

use crate::args::RestoreArg;
use crate::assignment::Assignment;
use crate::failure::Failure;
use sluice_kernel::boot::{Restore, restored};
use sluice_policy::{Rate, Source};

/// The policy to bring up on the interface, and the rate that goes with it.
pub fn choose(assignment: Assignment, which: RestoreArg) -> Result<(Assignment, Option<Rate>), Failure> {
    let which = match which {
        RestoreArg::Configured => Restore::Configured,
        RestoreArg::Saved => Restore::Saved,
        RestoreArg::Last => Restore::Last,
    };
    let found = match restored(&assignment.interface, which) {
        Ok(found) => found,
        Err(error) => return Ok((warned(assignment, &error.what), None)),
    };
    let Some(saved) = found else { return Ok((assignment, None)) };
    match sluice_policy::parse(&Source::new(saved.name.as_str(), saved.policy.as_str())) {
        Ok(policy) => {
            outln!("{}: the policy {} is restored", assignment.interface, saved.name);
            Ok((Assignment { policy, source: saved.source, ..assignment }, saved.rate_bps.map(Rate)))
        }
        Err(_) => Ok((warned(assignment, &format!("the policy {} is none of this version", saved.name)), None)),
    }
}

/// Warns and falls back to the named policy: a machine must not start without any.
fn warned(assignment: Assignment, what: &str) -> Assignment {
    eprintln!("warning: {}: {what}; the configured policy is brought up", assignment.interface);
    assignment
}
