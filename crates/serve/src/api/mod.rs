//! The JSON interface: what can be read, and what can be changed.

mod change;
mod findings;
mod live;
mod policy;
mod read;

use crate::metrics;
use crate::problem::{Answer, Problem};
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
        .route("/api/interfaces/{name}", get(read::interface))
        .route("/api/interfaces/{name}/rates", get(live::rates))
        .route("/api/interfaces/{name}/series", get(live::series))
        .route("/api/interfaces/{name}/flows", get(live::flows))
        .route("/api/interfaces/{name}/history", get(read::history))
        .route("/api/interfaces/{name}/history/{number}", get(read::entry))
        .route("/api/interfaces/{name}/policy", get(policy::text))
        .route("/api/interfaces/{name}/check", post(policy::check))
        .route("/api/profiles", get(policy::profiles))
        .route("/api/profiles/{name}", get(policy::profile))
        .route("/api/{*rest}", any(nothing))
}

/// Paths that change the policy of an interface.
pub fn changing() -> Router<Shared> {
    Router::new()
        .route("/api/interfaces/{name}/apply", post(change::apply))
        .route("/api/interfaces/{name}/confirm", post(change::confirm))
        .route("/api/interfaces/{name}/revert", post(change::revert))
        .route("/api/interfaces/{name}/rollback", post(change::rollback))
}

/// A path that is not there.
pub async fn nothing() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is nothing at this path", "docs/serve.md lists every path")
}

/// A path that is there, and does not do what it is asked for.
pub async fn wrong_method(method: Method) -> Problem {
    let what = format!("this path does not take {method}");
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        what,
        "the header Allow names what it takes; docs/serve.md lists every path",
    )
}

/// Asks the kernel side, one request after the other, on a thread where waiting harms nobody.
async fn ask(state: Shared, work: impl FnOnce(&Shared) -> Result<Value, Problem> + Send + 'static) -> Answer {
    let work = move || {
        // Whoever panicked while holding it has changed nothing in memory.
        let _turn = state.turn.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        work(&state)
    };
    let broken = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the server failed at this", "its log says more");
    tokio::task::spawn_blocking(work).await.map_err(broken)?.map(Json)
}

/// As JSON, which all that is asked for can become.
fn value(of: impl serde::Serialize) -> Result<Value, Problem> {
    serde_json::to_value(of).map_err(|error| sluice_kernel::Error::system(error.to_string()).into())
}
