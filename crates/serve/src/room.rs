//! The most connections at a time. One more is closed at once, so that files and memory are left for those that there are.

use axum_server::accept::Accept;
use std::future::{Future, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_http::add_extension::AddExtension;

/// Pages, scripts and Prometheus together need a tenth of it.
pub const MOST_CONNECTIONS: usize = 256;

/// Held as long as the connection's service.
type Place = Arc<OwnedSemaphorePermit>;

/// Takes connections as another does, while there is room.
#[derive(Debug, Clone)]
pub struct Room<A> {
    inner: A,
    places: Arc<Semaphore>,
}

impl<A> Room<A> {
    /// For this many connections.
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
