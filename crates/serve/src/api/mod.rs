//! The JSON interface: paths that read, and paths that change.

mod change;
mod findings;
mod live;
mod policy;
mod read;
mod size;
mod subscribers;
mod tree;

use crate::metrics;
use crate::problem::{Answer, Problem};
use crate::request_limit::RequestKind;
use crate::state::Shared;
use axum::http::{Method, StatusCode};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use serde_json::Value;

/// Paths that change nothing.
pub fn reading() -> Router<Shared> {
    Router::new()
        .route("/metrics", get(metrics::scrape))
        .route("/api/interfaces", get(read::interfaces))
        .route("/api/interfaces/{interface}", get(read::interface))
        .route("/api/interfaces/{interface}/rates", get(live::rates))
        .route("/api/interfaces/{interface}/series", get(live::series))
        .route("/api/interfaces/{interface}/flows", get(live::flows))
        .route("/api/interfaces/{interface}/subscribers", get(tree::subscribers))
        .route("/api/interfaces/{interface}/subscriber", get(tree::subscriber))
        .route("/api/interfaces/{interface}/history", get(read::history))
        .route("/api/interfaces/{interface}/history/{number}", get(read::entry))
        .route("/api/interfaces/{interface}/policy", get(policy::text))
        .route("/api/subscribers", get(subscribers::list))
        .route("/api/profiles", get(policy::profiles))
        .route("/api/profiles/{name}", get(policy::profile))
        .route("/api/{*rest}", any(not_found))
}

/// Paths that change the policy of an interface, or cost much work.
pub fn changing() -> Router<Shared> {
    Router::new()
        .route("/api/interfaces/{interface}/check", post(policy::check))
        .route("/api/interfaces/{interface}/apply", post(change::apply))
        .route("/api/interfaces/{interface}/confirm", post(change::confirm))
        .route("/api/interfaces/{interface}/revert", post(change::revert))
        .route("/api/interfaces/{interface}/rollback", post(change::rollback))
        .route("/api/subscribers/change", post(subscribers::change))
}

/// The answer for an unknown path.
pub async fn not_found() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is nothing at this path", "docs/serve.md lists every path")
}

/// The answer for a method that a path does not take.
pub async fn wrong_method(method: Method) -> Problem {
    let what = format!("this path does not take {method}");
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        what,
        "the header Allow names the possible methods; docs/serve.md lists every path",
    )
}

/// Reads from the kernel side, one request after the other, on a thread that may block.
async fn run_reading(state: Shared, work: impl FnOnce(&Shared) -> Result<Value, Problem> + Send + 'static) -> Answer {
    run_as(RequestKind::Reading, state, work).await
}

/// Works on the kernel side once the request has a permit of its kind.
async fn run_as(
    kind: RequestKind,
    state: Shared,
    work: impl FnOnce(&Shared) -> Result<Value, Problem> + Send + 'static,
) -> Answer {
    let taken = state.request_limits.acquire(kind).await?;
    let work = move || {
        // The permit is released after the work, even if the client has gone.
        let _taken = taken;
        work(&state)
    };
    let broken =
        |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the server failed at this", "its log has details");
    tokio::task::spawn_blocking(work).await.map_err(broken)?.map(Json)
}

/// A value as JSON.
fn value(of: impl serde::Serialize) -> Result<Value, Problem> {
    serde_json::to_value(of).map_err(|error| sluice_kernel::Error::system(error.to_string()).into())
}
