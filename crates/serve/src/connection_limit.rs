//! Limit of connections at a time. A connection beyond it is closed at once, so that files and memory are left for the others.

use axum_server::accept::Accept;
use std::future::{Future, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_http::add_extension::AddExtension;

/// Most connections at a time. Pages, scripts and Prometheus together need a tenth of them.
pub const MAX_CONNECTIONS: usize = 256;

/// The permit of a connection, held as long as its service.
type Permit = Arc<OwnedSemaphorePermit>;

/// Accepts connections as `inner` does, while there are permits.
#[derive(Debug, Clone)]
pub struct LimitedAcceptor<A> {
    inner: A,
    permits: Arc<Semaphore>,
}

impl<A> LimitedAcceptor<A> {
    /// An acceptor for this many connections.
    pub fn new(inner: A, permits: usize) -> LimitedAcceptor<A> {
        LimitedAcceptor { inner, permits: Arc::new(Semaphore::new(permits)) }
    }
}

impl<A, I, S> Accept<I, S> for LimitedAcceptor<A>
where
    A: Accept<I, AddExtension<S, Permit>>,
    A::Future: Send + 'static,
    A::Stream: Send + 'static,
    A::Service: Send + 'static,
{
    type Stream = A::Stream;
    type Service = A::Service;
    type Future = Pin<Box<dyn Future<Output = io::Result<(A::Stream, A::Service)>> + Send>>;

    fn accept(&self, stream: I, service: S) -> Self::Future {
        match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => Box::pin(self.inner.accept(stream, AddExtension::new(service, Arc::new(permit)))),
            Err(_) => Box::pin(ready(Err(io::Error::other("there are too many connections")))),
        }
    }
}
