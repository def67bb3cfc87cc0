//! `/metrics`: the last sample, for Prometheus.

mod families;
mod family;
mod histogram;
mod subscribers;
mod text;

use crate::extract::Query;
use crate::problem::Problem;
use crate::search;
use crate::state::Shared;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::sync::Arc;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The query of a scrape.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Wanted {
    /// The subscribers that get series of their own: a text to search for, empty for all. None: none do.
    subscribers: Option<String>,
}

/// The counters of the last sample, as OpenMetrics if the reader takes that, else in Prometheus' older format.
pub async fn scrape(
    State(state): State<Shared>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let search = wanted.subscribers.as_deref().map(search::of).transpose()?;
    let (sample, failed) = {
        let live = state.sampler.live();
        (Arc::clone(&live.sample), live.failed.is_some())
    };
    let families = families::of(&sample, failed, &state.counts.series(), search.as_ref());
    let encoded = text::openmetrics(families)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string(), "its log has details"))?;
    let takes = |header: &axum::http::HeaderValue| header.to_str().is_ok_and(|text| text.contains("openmetrics-text"));
    Ok(if headers.get_all(ACCEPT).iter().any(takes) {
        ([(CONTENT_TYPE, OPENMETRICS)], encoded).into_response()
    } else {
        ([(CONTENT_TYPE, PROMETHEUS)], text::prometheus(&encoded)).into_response()
    })
}
