//! `sluice up --restore`: a kept policy instead of the named one.

use crate::args::RestoreArg;
use crate::chosen::Chosen;
use crate::failure::Failure;
use sluice_kernel::boot::{Restore, restored};
use sluice_policy::{Rate, Source};

/// The policy to bring up on the interface, and the rate that goes with it.
pub fn choose(chosen: Chosen, which: RestoreArg) -> Result<(Chosen, Option<Rate>), Failure> {
    let which = match which {
        RestoreArg::Configured => Restore::Configured,
        RestoreArg::Saved => Restore::Saved,
        RestoreArg::Last => Restore::Last,
    };
    let found = match restored(&chosen.interface, which) {
        Ok(found) => found,
        Err(error) => return Ok((warned(chosen, &error.what), None)),
    };
    let Some(saved) = found else { return Ok((chosen, None)) };
    match sluice_policy::parse(&Source::new(saved.name.as_str(), saved.policy.as_str())) {
        Ok(policy) => {
            outln!("{}: the policy {} is restored", chosen.interface, saved.name);
            Ok((Chosen { policy, source: saved.source, ..chosen }, saved.rate_bps.map(Rate)))
        }
        Err(_) => Ok((warned(chosen, &format!("the policy {} is none of this version", saved.name)), None)),
    }
}

/// Warns and falls back to the named policy: a machine must not start without any.
fn warned(chosen: Chosen, what: &str) -> Chosen {
    eprintln!("warning: {}: {what}; the configured policy is brought up", chosen.interface);
    chosen
}
