//! Checks of requests. A page of another site that makes a browser send requests here is recognized by headers that browsers set
//! and pages cannot. A site whose name points at this machine (DNS rebinding) is recognized by the name in Host.

use crate::options::{MAX_BODY_BYTES, REQUEST_TIMEOUT};
use crate::problem::Problem;
use crate::state::Shared;
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::header::{AUTHORIZATION, EXPECT, HOST, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use http_body::Frame;
use sluice_kernel::Error;
use sluice_kernel::interface::{can_be_named, no_such};
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::time::{Instant, timeout, timeout_at};

/// Refuses a request that a page of another site sends, and on loopback one whose Host is not this machine.
pub async fn same_site(State(state): State<Shared>, request: Request, next: Next) -> Result<Response, Problem> {
    let headers = request.headers();
    let host = text(headers, HOST.as_str()).or_else(|| request.uri().host()).unwrap_or_default();
    if state.loopback && !is_this_machine(host) {
        let what = format!("the name {host:?} is not one of this machine itself");
        let cure = "use http://127.0.0.1:PORT or http://localhost:PORT";
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, what, cure));
    }
    if let Some(origin) = text(headers, ORIGIN.as_str()) {
        let own = format!("{}://{host}", if state.tls { "https" } else { "http" });
        if !origin.eq_ignore_ascii_case(&own) {
            return Err(foreign());
        }
    }
    let from_elsewhere = text(headers, "sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none");
    let navigates = text(headers, "sec-fetch-mode") == Some("navigate") && request.method() == "GET";
    if from_elsewhere && !(navigates && request.uri().path() == "/") {
        return Err(foreign());
    }
    Ok(next.run(request).await)
}

/// Refuses a reading request without the token, if `--token-file` was given.
pub async fn reads(State(state): State<Shared>, request: Request, next: Next) -> Result<Response, Problem> {
    if state.read_needs_token {
        authorized(&state, request.headers())?;
    }
    Ok(next.run(request).await)
}

/// Refuses a changing request without the token.
pub async fn changes(State(state): State<Shared>, request: Request, next: Next) -> Result<Response, Problem> {
    authorized(&state, request.headers())?;
    Ok(next.run(request).await)
}

/// A body that two may read, one after the other: the handler of the request, and `read_to_end` once it has answered.
#[derive(Clone)]
struct SharedBody(Arc<Mutex<Body>>);

impl HttpBody for SharedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.0.lock() {
            Ok(mut body) => Pin::new(&mut *body).poll_frame(context),
            Err(_) => Poll::Ready(None),
        }
    }
}

/// Reads what an answered request has left of its body, and throws it away: a client that is refused while it still sends would find the
/// connection closed, and not see the answer. A body may be so long, and take so long, as one that is read; one that the client asks about
/// before it sends it (Expect) does not come.
pub async fn read_to_end(request: Request, next: Next) -> Response {
    let deadline = Instant::now() + REQUEST_TIMEOUT;
    let asks = request.headers().contains_key(EXPECT);
    let (head, body) = request.into_parts();
    if body.is_end_stream() {
        return next.run(Request::from_parts(head, body)).await;
    }
    let body = SharedBody(Arc::new(Mutex::new(body)));
    let response = next.run(Request::from_parts(head, Body::new(body.clone()))).await;
    if !asks {
        // A body that does not come in time keeps the answer no longer.
        let _ = timeout_at(deadline, discard(body)).await;
    }
    response
}

async fn discard(mut body: SharedBody) {
    let mut bytes = 0;
    while bytes < MAX_BODY_BYTES {
        match poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            Some(Ok(frame)) => bytes += frame.data_ref().map_or(0, Bytes::len),
            _ => return,
        }
    }
}

/// Refuses a path with a name that no interface can have. Handlers need not check it again.
pub async fn names(
    parameters: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    // A path whose name is not text has no handler either.
    let named = parameters.iter().flatten().find(|(key, _)| *key == "interface").map(|(_, name)| name);
    if let Some(name) = named.filter(|name| !can_be_named(name)) {
        let Error { what, cure, .. } = no_such(name);
        return Err(Problem::new(StatusCode::NOT_FOUND, what, cure.unwrap_or_default()));
    }
    Ok(next.run(request).await)
}

/// Refuses a body that does not come in time. A client that sends a byte now and then would keep a connection from others.
pub async fn limit_body_time(request: Request, next: Next) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let most = if head.method == Method::POST { MAX_BODY_BYTES } else { 0 };
    let late = |_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the body has not arrived in time", "send it at once");
    let long = |_| {
        let what = format!("the body is longer than {most} bytes, or its end is missing");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, what, "a policy is shorter")
    };
    let bytes = timeout(REQUEST_TIMEOUT, to_bytes(body, most)).await.map_err(late)?.map_err(long)?;
    Ok(next.run(Request::from_parts(head, Body::from(bytes))).await)
}

fn authorized(state: &Shared, headers: &HeaderMap) -> Result<(), Problem> {
    let cure = "send the header `Authorization: Bearer TOKEN`; the token is in the file that `sluice serve` has named when it started, or in its --token-file";
    let refuse = |what: &str| Err(Problem::new(StatusCode::UNAUTHORIZED, what, cure));
    let Some(value) = text(headers, AUTHORIZATION.as_str()) else { return refuse("this needs the token") };
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && state.token.is(token.trim()) => Ok(()),
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("bearer") => refuse("this is not the token of this server"),
        _ => refuse("this is not a bearer token"),
    }
}

fn foreign() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "a page of another site has sent this", "open the page of this server itself")
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    // A header that is not text never matches.
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// Whether `host`, with or without a port, is `localhost` or a loopback address.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine() {
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:80", "127.9.9.9:1", "[::1]", "[::1]:8080"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[fe80::1]:80",
            "0.0.0.0",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
