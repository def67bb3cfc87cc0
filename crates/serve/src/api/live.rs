//! What interfaces do now, and did in the last hour.

use super::value;
use crate::problem::{Answer, Problem};
use crate::sampler::Live;
use crate::state::Shared;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;

/// Points that are given unless others are asked for: five minutes.
const POINTS: usize = 300;

/// Which part of the past.
#[derive(Debug, Deserialize)]
pub struct Past {
    /// The last so many seconds.
    points: Option<usize>,
}

/// What happened in the second before the last sample.
pub async fn rates(State(state): State<Shared>, Path(name): Path<String>) -> Answer {
    let live = state.sampler.live();
    if let Some(error) = &live.failed {
        return Err(error.clone().into());
    }
    if !live.sample.interfaces.iter().any(|one| one.interface == name) {
        return Err(absent(&name));
    }
    let Some(rates) = live.rates.clone() else { return Err(soon()) };
    drop(live);
    let Some(interface) = rates.interface(&name) else { return Err(soon()) };
    let mut shown = value(interface)?;
    shown["at_ms"] = json!(rates.at_ms);
    shown["span_s"] = json!(rates.span_s);
    Ok(Json(shown))
}

/// What happened in each second before it, class by class.
pub async fn series(State(state): State<Shared>, Path(name): Path<String>, Query(past): Query<Past>) -> Answer {
    let live: &Live = &state.sampler.live();
    if !live.sample.interfaces.iter().any(|one| one.interface == name) {
        return Err(absent(&name));
    }
    value(live.history.columns(past.points.unwrap_or(POINTS), |series| series.interface == name)).map(Json)
}

/// The flows that send most, what classes they are of, and what is strange about some.
pub async fn flows(State(state): State<Shared>, Path(name): Path<String>) -> Answer {
    let mut live = state.sampler.live();
    if !live.sample.interfaces.iter().any(|one| one.interface == name) {
        return Err(absent(&name));
    }
    let Some(flows) = live.look_at_flows() else { return Err(soon()) };
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

fn absent(name: &str) -> Problem {
    let what = format!("{name} is not managed by sluice");
    Problem::new(StatusCode::NOT_FOUND, what, format!("`sluice up {name} --policy P` does it"))
}

fn soon() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "nothing was measured yet", "ask again in a second")
}
