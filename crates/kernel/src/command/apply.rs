//! `sluice apply`: changes the policies of managed interfaces, of all that are named or of none.

use crate::command::change::{Change, Done, Request};
use crate::command::recover::recover;
use crate::engine::managed::managed;
use crate::record::{Record, history};
use crate::system::lock::Lock;
use crate::system::privilege::require_rights;
use sluice_error::{Error, Result};
use sluice_policy::Difference;
use sluice_policy::difference::difference;

/// The changes that `apply` would make on an interface.
#[derive(Debug, Clone)]
pub struct Preview {
    /// Name of the interface.
    pub interface: String,
    /// Name of the policy in force.
    pub old: String,
    /// Name of the requested policy.
    pub new: String,
    /// Difference between the two policies.
    pub difference: Difference,
    /// Remarks on the new policy, for its author.
    pub remarks: sluice_policy::Diagnostics,
}

/// The changes that `apply` would make on each interface, or the reason why it would refuse. Changes nothing.
pub fn preview(requests: &[Request]) -> Result<Vec<Preview>> {
    require_rights()?;
    let previews = prepare(requests)?.into_iter().map(|change| Preview {
        interface: change.was.interface,
        old: change.was.policy_name,
        new: change.now.name.clone(),
        difference: difference(&change.before, &change.now),
        remarks: change.now.remarks,
    });
    Ok(previews.collect())
}

/// Replaces the policies of managed interfaces. No packet is lost or classified by a mixture of two policies. If anything
/// fails, the former policies are in force again, on all of them.
pub fn apply(requests: &[Request]) -> Result<Vec<Done>> {
    require_rights()?;
    recover()?;
    let _lock = Lock::take()?;
    let mut done = Vec::new();
    let mut former = Vec::new();
    for (change, request) in prepare(requests)?.into_iter().zip(requests) {
        let was = change.was.clone();
        match change.perform(request) {
            Ok(one) => done.push(one),
            Err(error) => {
                let error = error.of_several(&request.interface, requests.len());
                return Err(undo(&done, &former, requests, error));
            }
        }
        former.push(was);
    }
    Ok(done)
}

/// Checks all requests. Returns their changes, of which none is performed yet.
fn prepare(requests: &[Request]) -> Result<Vec<Change>> {
    let changes = requests.iter().map(|request| {
        let change = managed(&request.interface).and_then(|record| Change::prepare(record, request, requests));
        change.map_err(|error| error.of_several(&request.interface, requests.len()))
    });
    changes.collect()
}

/// Takes back the changes that are done, after a later change of the same command has failed.
fn undo(done: &[Done], former: &[Record], requests: &[Request], mut error: Error) -> Error {
    for (was, done) in former.iter().zip(done).rev() {
        history::note_undone(&done.record, &error.what);
        let undone =
            Request::to(was, "the change of another interface by the same command has failed").and_then(|request| {
                let mut change = Change::prepare(managed(&was.interface)?, &request, requests)?;
                change.record.unconfirmed.clone_from(&was.unconfirmed);
                change.perform(&request)
            });
        error.what += &match undone {
            Ok(_) => format!("\n  {} has its former policy, {}, again", was.interface, was.policy_name),
            Err(rest) => format!("\n  and bringing back the former policy of {} failed: {}", was.interface, rest.what),
        };
    }
    error
}
