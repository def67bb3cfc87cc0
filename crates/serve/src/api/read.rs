//! Interfaces, their status, and their history.

use super::policy::record;
use super::{run_reading, value};
use crate::extract::Path;
use crate::problem::{Answer, Problem};
use crate::state::Shared;
use axum::extract::State;
use serde_json::{Value, json};
use sluice_kernel::history::Entry;
use sluice_kernel::{Phase, Record};

/// The managed interfaces of this network namespace.
pub async fn interfaces(State(state): State<Shared>) -> Answer {
    run_reading(state, |_| {
        let own = sluice_kernel::netns::inode()?;
        let records = Record::all()?.into_iter().filter(|record| record.netns == own);
        let shown = records.map(|record| {
            json!({
                "name": record.interface,
                "engine": record.engine,
                "policy": record.policy_name,
                "up": record.phase == Phase::Active,
            })
        });
        Ok(shown.collect())
    })
    .await
}

/// The status of an interface, as `sluice status --json` prints it.
pub async fn interface(State(state): State<Shared>, Path(name): Path<String>) -> Answer {
    run_reading(state, move |_| {
        record(&name)?;
        value(sluice_kernel::status_of(&name)?)
    })
    .await
}

/// The history of an interface, the oldest entry first, without the policies themselves.
pub async fn history(State(state): State<Shared>, Path(name): Path<String>) -> Answer {
    run_reading(state, move |_| {
        let entries = sluice_kernel::history_of(&name)?;
        entries.iter().map(|entry| shown(entry, false)).collect()
    })
    .await
}

/// An entry of the history, with the policy.
pub async fn entry(State(state): State<Shared>, Path((name, number)): Path<(String, u32)>) -> Answer {
    run_reading(state, move |_| shown(&sluice_kernel::history_entry(&name, number)?, true)).await
}

fn shown(entry: &Entry, with_policy: bool) -> Result<Value, Problem> {
    let mut shown = value(entry)?;
    shown["when"] = json!(entry.local_time());
    shown["what"] = json!(entry.what.name());
    shown["outcome"] = json!(entry.outcome.name());
    if let (false, Some(fields)) = (with_policy, shown.as_object_mut()) {
        fields.remove("policy");
    }
    Ok(shown)
}
