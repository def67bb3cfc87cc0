//! Subscribers of all interfaces: what each has sent, and changes of them, as `sluice subscriber` makes them.

use super::change::{Body, message, shown_with_boot, time};
use super::{run_as, run_reading, value};
use crate::extract::Query;
use crate::problem::{Answer, Problem};
use crate::request_limit::RequestKind;
use crate::state::Shared;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value};
use sluice_kernel::SubscriberEdits;
use sluice_kernel::status::SubscriberSearch;
use sluice_policy::edit::SubscriberChange;

/// The most subscribers that an answer has of each interface.
const MOST_LISTED: usize = 1000;
/// The most changes of a request.
const MOST_CHANGES: usize = 10_000;

/// The query of a list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// A text that key, name, site or plan has, or an address.
    #[serde(default)]
    search: String,
    /// The most of each interface, up to [`MOST_LISTED`].
    limit: Option<usize>,
}

/// The body of a request to change subscribers.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Changes {
    /// The changes: all of them take force, or none.
    changes: Vec<SubscriberChange>,
    /// The interfaces whose policies are changed. None: all that have subscribers.
    interfaces: Vec<String>,
    /// Time within which they must be confirmed, or are taken back, seconds. None: they stay.
    confirm_s: Option<u64>,
    /// Reason, for the history.
    message: Option<String>,
}

/// The subscribers of each interface that has some.
pub async fn list(State(state): State<Shared>, Query(query): Query<Listed>) -> Answer {
    run_reading(state, move |_| {
        let search = SubscriberSearch::new(&query.search);
        let mut all = Map::new();
        for interface in sluice_kernel::with_subscribers()? {
            let mut found = sluice_kernel::subscribers_of(&interface, |one| search.finds_subscriber(one))?;
            found.truncate(query.limit.unwrap_or(MOST_LISTED).min(MOST_LISTED));
            all.insert(interface, value(found)?);
        }
        Ok(Value::Object(all))
    })
    .await
}

/// Changes subscribers on all interfaces that have some.
pub async fn change(State(state): State<Shared>, body: Body<Changes>) -> Answer {
    let Json(body) = body?;
    run_as(RequestKind::Changing, state, move |_| {
        let many = body.changes.len();
        if many == 0 || many > MOST_CHANGES {
            let what = format!("{many} changes");
            let cure = format!(
                "send 1 to {MOST_CHANGES}, as {{ \"changes\": [ {{ \"remove\": {{ \"name\": \"C-1\" }} }} ] }}"
            );
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, what, cure));
        }
        let confirm = time(body.confirm_s)?;
        let message = body.message.map(|text| message(&text)).transpose()?.flatten();
        let message = message.unwrap_or_else(|| match many {
            1 => "1 change of a subscriber".to_owned(),
            _ => format!("{many} changes of subscribers"),
        });
        let edits = SubscriberEdits { changes: body.changes, interfaces: body.interfaces, confirm, message };
        let all = edits.apply()?.into_iter().map(|done| (done.record.interface.clone(), shown_with_boot(done)));
        Ok(Value::Object(all.collect()))
    })
    .await
}
