//! The server: the checks before it starts, its paths, and its end.

use crate::connection_limit::{LimitedAcceptor, MAX_CONNECTIONS};
use crate::counted::{Counting, Counts};
use crate::options::{MAX_BODY_BYTES, Options, REQUEST_TIMEOUT};
use crate::request_limit::RequestLimits;
use crate::sampler::Sampler;
use crate::state::{Shared, State};
use crate::tls;
use crate::token::{Token, TokenFile};
use crate::{api, assets, guard, listen};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::{from_fn, from_fn_with_state};
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use hyper_util::rt::TokioTimer;
use sluice_kernel::{Error, Result};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tower_http::compression::CompressionLayer;
use tower_http::set_header::SetResponseHeaderLayer;

/// Time by which a request that is being answered may delay the end.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// Threads that answer requests. Long work has threads of its own.
const WORKERS: usize = 2;

const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                              manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The address of the server, for the person who started it.
#[derive(Debug)]
pub struct Endpoint {
    /// URL of the server.
    pub url: String,
    /// The URL with the secret behind its #, if the secret was made here. It is not for logs.
    pub with_token: Option<String>,
    /// The file that holds this secret, for root alone.
    pub token_file: Option<PathBuf>,
}

/// Serves until SIGTERM or SIGINT. `ready` gets the address.
pub fn run(options: &Options, ready: impl FnOnce(&Endpoint)) -> Result<()> {
    let address = listen::address(&options.listen)?;
    listen::refuse_exposure(address, options)?;
    let given = options.token_file.as_deref().map(Token::read).transpose()?;
    let tls = options.tls.as_ref().map(tls::config).transpose()?;
    options.counted.iter().try_for_each(Counting::check)?;
    sluice_kernel::require_root()?;
    let counts = Counts::start(options.counted.clone())?;
    let listener = listen::open(address)?;
    let address = listener.local_addr().map_err(|error| Error::system(format!("the socket's address: {error}")))?;
    let secret = if given.is_none() { Some(Token::random()?) } else { None };
    let url = format!("{}://{address}/", if tls.is_some() { "https" } else { "http" });
    let token_file = secret.as_ref().map(|token| TokenFile::write(token, address.port())).transpose()?;
    let endpoint = Endpoint {
        with_token: secret.as_ref().map(|token| format!("{url}#token={}", token.secret())),
        token_file: token_file.as_ref().map(|token_file| token_file.path().to_owned()),
        url,
    };
    let read_needs_token = given.is_some();
    let Some(token) = given.or(secret) else { return Err(Error::system("there is no token")) };
    let state: Shared = Arc::new(State {
        token,
        read_needs_token,
        loopback: address.ip().is_loopback(),
        tls: tls.is_some(),
        sampler: Sampler::start()?,
        counts,
        request_limits: RequestLimits::new(),
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(|error| Error::system(format!("starting threads: {error}")))?;
    let ended = runtime.block_on(serve(listener, tls, router(state), || ready(&endpoint)));
    // Work of a thread, such as a wait for another command, does not delay the end any longer.
    runtime.shutdown_timeout(SHUTDOWN_GRACE);
    ended
}

/// The routes of all paths.
fn router(state: Shared) -> Router {
    let fixed = |name: HeaderName, value: &'static str| {
        SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value))
    };
    let soon = || from_fn(guard::limit_body_time);
    let names = || from_fn(guard::names);
    let reading = api::reading().layer(soon()).layer(names()).layer(from_fn_with_state(state.clone(), guard::reads));
    let changing =
        api::changing().layer(soon()).layer(names()).layer(from_fn_with_state(state.clone(), guard::changes));
    Router::new()
        .merge(reading)
        .merge(changing)
        .merge(assets::router())
        .fallback(api::not_found)
        .method_not_allowed_fallback(api::wrong_method)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(state.clone(), guard::same_site))
        .layer(fixed(CACHE_CONTROL, "no-store"))
        .layer(fixed(CONTENT_SECURITY_POLICY, CONTENT_POLICY))
        .layer(fixed(X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(fixed(REFERRER_POLICY, "no-referrer"))
        .layer(CompressionLayer::new())
        .layer(from_fn(guard::read_to_end))
        .with_state(state)
}

async fn serve(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    router: Router,
    ready: impl FnOnce(),
) -> Result<()> {
    let failed = |error: std::io::Error| Error::system(format!("serving: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let handle = Handle::<SocketAddr>::new();
    let ending = handle.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        ending.graceful_shutdown(Some(SHUTDOWN_GRACE));
    });
    ready();
    let service = router.into_make_service();
    let ended = match tls {
        Some(config) => {
            let server = axum_server::from_tcp_rustls(listener, RustlsConfig::from_config(config)).map_err(failed)?;
            let mut server = server.map(|inner| LimitedAcceptor::new(inner, MAX_CONNECTIONS));
            server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT);
            server.handle(handle).serve(service).await
        }
        None => {
            let server = axum_server::from_tcp(listener).map_err(failed)?;
            let mut server = server.map(|inner| LimitedAcceptor::new(inner, MAX_CONNECTIONS));
            server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(REQUEST_TIMEOUT);
            server.handle(handle).serve(service).await
        }
    };
    ended.map_err(failed)
}
