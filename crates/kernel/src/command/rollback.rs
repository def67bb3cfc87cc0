//! `sluice rollback`: goes back to a policy of the history.

use crate::command;
use crate::command::change::{RateOption, Request};
use crate::command::recover::recover;
use crate::engine::managed::managed;
use crate::record::history::{self, Entry};
use crate::record::origin::Origin;
use crate::record::policy::parse;
use crate::system::privilege::require_root;
use sluice_error::Result;
use sluice_policy::Rate;

/// The request that goes back to entry `number` of the history; without a number, to the last policy that differs from the
/// present one. Changes nothing.
pub fn rollback(interface: &str, number: Option<u32>) -> Result<(Request, Entry)> {
    require_root()?;
    recover()?;
    let record = managed(interface)?;
    let entry = match number {
        Some(number) => command::history::entry(interface, number)?,
        None => history::previous(&record)?,
    };
    let policy = parse(&entry.policy)?;
    let request = Request {
        interface: interface.to_owned(),
        source: entry.policy_source.clone(),
        rate: RateOption::Set(entry.rate_bps.map(Rate)),
        // A running interface cannot begin or stop queueing arrivals; an entry may be from before its last `up`.
        ingress_rate: match (entry.ingress_rate_bps, record.ingress_rate_bps) {
            (Some(bps), Some(_)) => RateOption::Set(Some(Rate(bps))),
            (None, Some(_)) if policy.link.ingress_rate.is_some() => RateOption::Set(None),
            _ => RateOption::AsBefore,
        },
        policy,
        confirm: None,
        message: None,
        what: Origin::Rollback,
        repeats: Some(entry.number),
        force: true,
    };
    Ok((request, entry))
}
