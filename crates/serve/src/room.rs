//! Limit of connections at a time. A connection beyond it is closed at once, so that files and memory are left for the others.

use axum_server::accept::Accept;
use std::future::{Future, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_http::add_extension::AddExtension;

/// Most connections at a time. Pages, scripts and Prometheus together need a tenth of them.
pub const MOST_CONNECTIONS: usize = 256;

/// The permit of a connection, held as long as its service.
type Place = Arc<OwnedSemaphorePermit>;

/// Accepts connections as `inner` does, while there are permits.
#[derive(Debug, Clone)]
pub struct Room<A> {
    inner: A,
    places: Arc<Semaphore>,
}

impl<A> Room<A> {
    /// An acceptor for this many connections.
    pub fn new(inner: A, places: usize) -> Room<A> {
        Room { inner, places: Arc::new(Semaphore::new(places)) }
    }
}

impl<A, I, S> Accept<I, S> for Room<A>
where
    A: Accept<I, AddExtension<S, Place>>,
    A::Future: Send + 'static,
    A::Stream: Send + 'static,
    A::Service: Send + 'static,
{
    type Stream = A::Stream;
    type Service = A::Service;
    type Future = Pin<Box<dyn Future<Output = io::Result<(A::Stream, A::Service)>> + Send>>;

    fn accept(&self, stream: I, service: S) -> Self::Future {
        match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => Box::pin(self.inner.accept(stream, AddExtension::new(service, Arc::new(place)))),
            Err(_) => Box::pin(ready(Err(io::Error::other("there are too many connections")))),
        }
    }
}
