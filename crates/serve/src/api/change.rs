//! Changes: as `sluice apply --confirm`, `confirm` and `rollback` make them.

use super::policy::{lines, read, record, request};
use super::{findings, run_as, size};
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
use sluice_kernel::unconfirmed::FormerIngress;
use sluice_kernel::{Done, RateOption, Record, Request, confirm};
use sluice_policy::{Rate, Source};
use std::time::Duration;

/// The longest message, bytes, as for `--message`.
const MAX_MESSAGE_BYTES: usize = 200;

pub(super) type Body<T> = Result<Json<T>, JsonRejection>;

/// The body of a request to apply a policy.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Apply {
    /// Text of the policy, as in a policy file.
    text: String,
    /// Time within which the policy must be confirmed, or is taken back, seconds. None: it stays.
    confirm_s: Option<u64>,
    /// Reason of the change, for the history.
    message: Option<String>,
    /// Generation in force when the author looked. If another one is in force now, nothing is done.
    generation: Option<u32>,
}

/// The body of a request to go back to a policy.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rollback {
    /// Number of the history entry; none: the last policy that differs from the present one.
    number: Option<u32>,
    /// Time within which the policy must be confirmed, as for [`Apply`].
    confirm_s: Option<u64>,
}

/// Puts a policy into force.
pub async fn apply(State(state): State<Shared>, Path(name): Path<String>, body: Body<Apply>) -> Answer {
    let Json(body) = body?;
    run_as(RequestKind::Changing, state, move |_| {
        size::check_length(&body.text)?;
        let record = record(&name)?;
        let confirm = time(body.confirm_s)?;
        let message = body.message.map(|text| message(&text)).transpose()?.flatten();
        let (policy, _) = read(&body.text, &record).map_err(|found| Problem::policy(findings::list(&found)))?;
        let generation = sluice_kernel::status_of(&name)?.policy.generation;
        if body.generation.is_some_and(|seen| seen != generation) {
            let what = format!("the policy of {name} has changed meanwhile: generation {generation} is in force");
            return Err(Problem::new(StatusCode::CONFLICT, what, "check the difference again, then apply"));
        }
        perform(Request { confirm, message, ..request(&record, policy, Origin::Apply) })
    })
    .await
}

/// Confirms the change that waits on an interface.
pub async fn confirm(State(state): State<Shared>, Path(name): Path<String>) -> Answer {
    run_as(RequestKind::Changing, state, move |_| {
        let record = confirm::confirm(&name)?;
        Ok(json!({ "policy": record.policy_name, "generation": record.generation }))
    })
    .await
}

/// Takes back at once the change that waits to be confirmed.
pub async fn revert(State(state): State<Shared>, Path(name): Path<String>) -> Answer {
    run_as(RequestKind::Changing, state, move |_| {
        confirm::left(&name)?;
        let record = record(&name)?;
        let Some(unconfirmed) = &record.unconfirmed else {
            let what = format!("{name}: nothing waits to be confirmed");
            return Err(Problem::new(
                StatusCode::CONFLICT,
                what,
                "to go back further, roll back to an entry of the history",
            ));
        };
        let former = &unconfirmed.former;
        let policy = sluice_policy::parse(&Source::new("the recorded policy", former.policy.as_str()))
            .map_err(|found| sluice_kernel::Error::system(found.render(false)))?;
        let source = former.source.clone();
        let rate = RateOption::Set(former.rate_bps.map(Rate));
        let given = |ingress: FormerIngress| ingress.rate_bps.filter(|_| !ingress.of_policy).map(Rate);
        let ingress_rate = former.ingress.map_or(RateOption::AsBefore, |ingress| RateOption::Set(given(ingress)));
        let message = Some("taken back by hand".to_owned());
        perform(Request { source, rate, ingress_rate, message, ..request(&record, policy, Origin::Revert) })
    })
    .await
}

/// Goes back to a policy of the history.
pub async fn rollback(State(state): State<Shared>, Path(name): Path<String>, body: Body<Rollback>) -> Answer {
    let Json(body) = body?;
    run_as(RequestKind::Changing, state, move |_| {
        record(&name)?;
        let confirm = time(body.confirm_s)?;
        let (request, _) = sluice_kernel::rollback(&name, body.number)?;
        perform(Request { confirm, ..request })
    })
    .await
}

fn perform(request: Request) -> Result<Value, Problem> {
    let done = sluice_kernel::apply(&[request])?;
    done.into_iter().next().map(shown_with_boot).ok_or_else(|| sluice_kernel::Error::system("nothing was done").into())
}

/// The answer to a change that was made, with what holds at the next boot.
pub(super) fn shown_with_boot(mut done: Done) -> Value {
    done.notes.extend(sluice_kernel::boot::note(&done.record));
    shown(&done)
}

pub(super) fn shown(done: &Done) -> Value {
    let Record { policy_name, generation, unconfirmed, .. } = &done.record;
    json!({
        "policy": policy_name,
        "generation": generation,
        "lines": done.difference.as_ref().map(lines),
        "findings": findings::list(&done.remarks),
        "notes": done.notes,
        "unconfirmed": unconfirmed.as_ref().map(|unconfirmed| json!({
            "left_s": unconfirmed.left().as_secs(),
            "former": unconfirmed.former.name,
        })),
    })
}

pub(super) fn time(seconds: Option<u64>) -> Result<Option<Duration>, Problem> {
    let time = |seconds| confirm::time_of("confirm_s", &format!("{seconds}s")).map_err(Problem::from);
    seconds.map(time).transpose().map_err(|problem| problem.with_status(StatusCode::UNPROCESSABLE_ENTITY))
}

pub(super) fn message(text: &str) -> Result<Option<String>, Problem> {
    let text = text.trim();
    if text.len() > MAX_MESSAGE_BYTES || text.chars().any(char::is_control) {
        let what = format!("the message is longer than {MAX_MESSAGE_BYTES} bytes, or not one line of text");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, what, "shorten it"));
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}
