//! `sluice apply`: changes the policies of managed interfaces, of all that are named or of none.

use crate::command::change::{Change, Done, RateOption, Request};
use crate::command::recover::recover;
use crate::engine::managed::managed;
use crate::record::origin::Origin;
use crate::record::{Record, history};
use crate::system::lock::Lock;
use crate::system::privilege::require_rights;
use sluice_error::{Error, Result};
use sluice_policy::difference::difference;
use sluice_policy::{Difference, Policy};
use std::time::Duration;

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
    let _lock = ready_to_change()?;
    apply_locked(requests)
}

/// Edits the policies in force of several interfaces, of all of them or of none, while no other command changes them.
pub fn apply_edits(edits: &[Edit<'_>]) -> Result<Vec<Done>> {
    let _lock = ready_to_change()?;
    apply_edits_locked(edits)
}

/// Puts right what broken-off commands have left, and keeps others from changing anything.
pub(super) fn ready_to_change() -> Result<Lock> {
    require_rights()?;
    recover()?;
    Lock::take()
}

/// The same as [`apply_edits`], for who holds the lock.
pub(super) fn apply_edits_locked(edits: &[Edit<'_>]) -> Result<Vec<Done>> {
    apply_locked(&requests(edits)?)
}

/// The changes that the edits would make. Changes nothing.
pub fn preview_edits(edits: &[Edit<'_>]) -> Result<Vec<Preview>> {
    require_rights()?;
    preview(&requests(edits)?)
}

fn requests(edits: &[Edit<'_>]) -> Result<Vec<Request>> {
    let request = |edit: &Edit<'_>| edit.request().map_err(|error| error.of_several(edit.interface, edits.len()));
    edits.iter().map(request).collect()
}

fn apply_locked(requests: &[Request]) -> Result<Vec<Done>> {
    let (mut done, mut former) = (Vec::new(), Vec::new());
    let mut changes = prepare(requests)?;
    let mut failed = changes.iter_mut().try_for_each(Change::let_members_go).err();
    let mut changes = changes.into_iter().zip(requests);
    while failed.is_none()
        && let Some((change, request)) = changes.next()
    {
        let was = change.was.clone();
        match change.perform(request) {
            Ok(one) => {
                done.push(one);
                former.push(was);
            }
            Err(error) => failed = Some(error.of_several(&request.interface, requests.len())),
        }
    }
    let Some(error) = failed else { return Ok(done) };
    let mut error = undo(&done, &former, error);
    for (change, _) in changes {
        if let Err(rest) = change.take_members_back() {
            error.what += &format!("\n  and taking interfaces back into a group failed: {}", rest.what);
        }
    }
    Err(error)
}

/// The changes of one interface that an edit makes to the text of its policy in force. The edit gets the text, and returns the new policy.
pub struct Edit<'a> {
    /// Name of the interface.
    pub interface: &'a str,
    /// The new policy, from the text of the one in force.
    pub edit: &'a dyn Fn(&str) -> Result<Policy>,
    /// `--confirm`: time that the policy stays in force unless it is confirmed.
    pub confirm: Option<Duration>,
    /// `--message`: reason of the change, for the history.
    pub message: Option<String>,
    /// `--force`: a new forward may take what others have.
    pub force: bool,
}

impl Edit<'_> {
    fn request(&self) -> Result<Request> {
        let record = managed(self.interface)?;
        Ok(Request {
            interface: record.interface.clone(),
            policy: (self.edit)(&record.policy)?,
            source: record.policy_source.clone(),
            rate: RateOption::AsBefore,
            ingress_rate: RateOption::AsBefore,
            confirm: self.confirm,
            message: self.message.clone(),
            what: Origin::Apply,
            repeats: None,
            force: self.force,
        })
    }
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
fn undo(done: &[Done], former: &[Record], mut error: Error) -> Error {
    let why = "the change of another interface by the same command has failed";
    let back: Vec<Request> = former.iter().filter_map(|was| Request::to(was, why).ok()).collect();
    for (was, done) in former.iter().zip(done).rev() {
        history::note_undone(&done.record, &error.what);
        let undone = Request::to(was, why).and_then(|request| {
            let mut change = Change::prepare(managed(&was.interface)?, &request, &back)?;
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
