//! Policies: the text in force, profiles, and the findings in a draft.

use super::{findings, run_as, run_reading, size, value};
use crate::extract::Path;
use crate::problem::{Answer, Problem};
use crate::request_limit::RequestKind;
use crate::state::Shared;
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use sluice_kernel::history::Origin;
use sluice_kernel::{Preview, RateOption, Record, Request};
use sluice_policy::difference::Sign;
use sluice_policy::{Context, Diagnostics, Difference, LoadError, Policy, Rate, Source};

/// A policy that is being written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// Text of the policy, as in a policy file.
    pub text: String,
}

/// The policy in force, as it is recorded.
pub async fn text(State(state): State<Shared>, Path(name): Path<String>) -> Answer {
    run_reading(state, move |_| {
        let status = sluice_kernel::status_of(&name)?;
        let record = record(&name)?;
        Ok(json!({
            "text": record.policy,
            "name": status.policy.name,
            "source": status.policy.source,
            "generation": status.policy.generation,
        }))
    })
    .await
}

/// The names of all profiles.
pub async fn profiles() -> Json<Value> {
    Json(json!(sluice_policy::profiles()))
}

/// The text of a profile.
pub async fn profile(Path(name): Path<String>) -> Answer {
    // A path is not a profile's name: it would read any file.
    if name.contains('/') || name.ends_with(".json") {
        return Err(unknown_profile(&name));
    }
    match sluice_policy::load(&name) {
        Ok((source, _)) => Ok(Json(json!({ "name": name, "text": source.text() }))),
        Err(LoadError::UnknownProfile { .. }) => Err(unknown_profile(&name)),
        Err(error) => Err(sluice_kernel::Error::system(error.to_string()).into()),
    }
}

fn unknown_profile(name: &str) -> Problem {
    let known = sluice_policy::profiles().join(", ");
    Problem::new(StatusCode::NOT_FOUND, format!("there is no profile {name:?}"), format!("profiles are: {known}"))
}

/// The findings of `sluice check` in a text, and the changes that `sluice apply --dry-run` would report.
pub async fn check(
    State(state): State<Shared>,
    Path(name): Path<String>,
    draft: Result<Json<Draft>, JsonRejection>,
) -> Answer {
    let Json(draft) = draft?;
    run_as(RequestKind::Checking, state, move |_| {
        size::check_length(&draft.text)?;
        let record = record(&name)?;
        let policy = match read(&draft.text, &record) {
            Ok((policy, _)) => policy,
            Err(found) => {
                return Ok(json!({
                    "valid": false,
                    "findings": findings::list(&found),
                    "findings_left_out": findings::left_out(&found),
                }));
            }
        };
        let request = request(&record, policy, Origin::Apply);
        match sluice_kernel::preview(&[request]) {
            Ok(previews) => previews.first().map_or_else(|| value(()), preview),
            Err(refused) => Ok(json!({
                "valid": true,
                "findings": [],
                "refused": { "error": refused.what, "cure": refused.cure },
            })),
        }
    })
    .await
}

fn preview(preview: &Preview) -> Result<Value, Problem> {
    Ok(json!({
        "valid": true,
        "findings": findings::list(&preview.remarks),
        "old": preview.old,
        "new": preview.new,
        "changes": !preview.difference.is_empty(),
        "lines": lines(&preview.difference),
        "difference": value(&preview.difference)?,
    }))
}

/// A line for each change, as `sluice apply` prints them.
pub fn lines(difference: &Difference) -> Vec<Value> {
    let word = |sign| match sign {
        Sign::Added => "added",
        Sign::Removed => "removed",
        Sign::Changed => "changed",
    };
    difference.lines().into_iter().map(|line| json!({ "sign": word(line.sign), "text": line.text })).collect()
}

/// Parses a text for a managed interface. Returns the policy and the remarks for its author; or the errors.
pub fn read(text: &str, record: &Record) -> Result<(Policy, Diagnostics), Diagnostics> {
    let engine = record.engine;
    let context = Context { link_rate: record.rate_bps.map(Rate), engine, ..Context::default() };
    let source = Source::new(record.policy_name.as_str(), text);
    let policy = sluice_policy::parse_file_for(&source, &context)?.of(&record.interface)?;
    let remarks = sluice_policy::resolve(&policy, &context)?.remarks;
    Ok((policy, remarks))
}

/// A request for another policy on a managed interface, everything else as it is.
pub fn request(record: &Record, policy: Policy, what: Origin) -> Request {
    Request {
        interface: record.interface.clone(),
        policy,
        source: "browser".to_owned(),
        rate: RateOption::AsBefore,
        ingress_rate: RateOption::AsBefore,
        confirm: None,
        message: None,
        what,
        repeats: None,
        force: false,
    }
}

/// The record of a managed interface.
pub fn record(name: &str) -> Result<Record, Problem> {
    let missing = || Problem::from(sluice_kernel::absent(name)).with_status(StatusCode::NOT_FOUND);
    Record::find(name)?.ok_or_else(missing)
}
