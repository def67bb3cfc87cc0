//! The present rates of interfaces, and those of the last hour.

use super::policy::record;
use super::{run_reading, value};
use crate::extract::{Path, Query};
use crate::problem::{Answer, Problem};
use crate::state::Shared;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use sluice_observe::Rates;
use sluice_observe::history::Columns;
use std::sync::Arc;

/// Points of an answer unless the request names a number: five minutes.
const POINTS: usize = 300;

/// The query for a part of the past.
#[derive(Debug, Deserialize)]
pub struct SeriesQuery {
    /// Number of the last points, one a second.
    points: Option<usize>,
}

/// The rates of the second before the last sample.
pub async fn rates(State(state): State<Shared>, Path(name): Path<String>) -> Answer {
    let rates = latest(&state, &name).await?;
    let Some(interface) = rates.interface(&name) else { return Err(soon()) };
    let mut shown = value(interface)?;
    shown["at_ms"] = json!(rates.at_ms);
    shown["span_s"] = json!(rates.span_s);
    Ok(Json(shown))
}

/// The rates of the last seconds, a point for each, by direction and class.
pub async fn series(
    State(state): State<Shared>,
    Path(name): Path<String>,
    Query(past): Query<SeriesQuery>,
) -> Answer<Json<Columns>> {
    if !is_read(&state, &name) {
        return Err(absent(state, name).await);
    }
    let live = state.sampler.live();
    // The columns are written as they are: a tree of values of an hour is many times larger.
    Ok(Json(live.history.columns(past.points.unwrap_or(POINTS), |series| series.interface == name)))
}

/// The flows that send most, the classes of flows, and the anomalies.
pub async fn flows(State(state): State<Shared>, Path(name): Path<String>) -> Answer {
    if !is_read(&state, &name) {
        return Err(absent(state, name).await);
    }
    let mut live = state.sampler.live();
    let Some(flows) = live.request_flows() else { return Err(soon()) };
    drop(live);
    let (top, classes, anomalies) = (flows.top.iter(), flows.classes.iter(), flows.anomalies.iter());
    Ok(Json(json!({
        "span_s": flows.span_s,
        "kept": !flows.without_flows.contains(&name),
        "top": value(top.filter(|one| one.interface == name).collect::<Vec<_>>())?,
        "classes": value(classes.filter(|one| one.interface == name).collect::<Vec<_>>())?,
        "anomalies": value(anomalies.filter(|one| one.interface == name).collect::<Vec<_>>())?,
    })))
}

/// The rates of the last second, of which the interface may be one.
pub(super) async fn latest(state: &Shared, name: &str) -> Result<Arc<Rates>, Problem> {
    let failed = state.sampler.live().failed.clone();
    if let Some(error) = failed {
        return Err(error.into());
    }
    if !is_read(state, name) {
        return Err(absent(Arc::clone(state), name.to_owned()).await);
    }
    state.sampler.live().rates.clone().ok_or_else(soon)
}

/// Whether the last sample has the interface.
fn is_read(state: &Shared, name: &str) -> bool {
    state.sampler.live().sample.interfaces.iter().any(|one| one.interface == name)
}

/// The reason why an interface has no rates: it is not managed, or cannot be read, or has come since the last sample.
async fn absent(state: Shared, name: String) -> Problem {
    let why = run_reading(state, move |_| {
        record(&name)?;
        sluice_kernel::status_of(&name)?;
        Err(soon())
    });
    why.await.err().unwrap_or_else(soon)
}

pub(super) fn soon() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "nothing was measured yet", "ask again in a second")
}
