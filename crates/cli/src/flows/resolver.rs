//! Host names, asked on a separate thread so that drawing never waits for a name server.

use lru::LruCache;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Number of cached answers.
const CACHED: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// Most questions that wait; further ones are dropped and asked again later.
const MAX_PENDING: usize = 256;

#[derive(Debug, Clone)]
enum Answer {
    /// The name was asked for.
    Pending,
    Name(String),
    None,
}

/// Asks for names and caches the answers.
pub struct Resolver {
    ask: SyncSender<IpAddr>,
    known: Arc<Mutex<LruCache<IpAddr, Answer>>>,
}

impl Resolver {
    /// Starts the asking thread, in the network namespace of the caller.
    pub fn start() -> Resolver {
        Resolver::with(|address| dns_lookup::lookup_addr(address).ok())
    }

    fn with(look_up: impl Fn(&IpAddr) -> Option<String> + Send + 'static) -> Resolver {
        let (ask, questions) = sync_channel::<IpAddr>(MAX_PENDING);
        let known = Arc::new(Mutex::new(LruCache::new(CACHED)));
        let answers = Arc::clone(&known);
        // The thread ends when the sender is dropped, and does not keep the process alive.
        thread::spawn(move || {
            for address in questions {
                let answer = look_up(&address).map_or(Answer::None, |name| Answer::Name(printable(&name)));
                lock(&answers).put(address, answer);
            }
        });
        Resolver { ask, known }
    }

    /// The name of a host if it is known; otherwise the thread is asked for it.
    pub fn name(&self, address: IpAddr) -> Option<String> {
        let mut known = lock(&self.known);
        match known.get(&address) {
            Some(Answer::Name(name)) => Some(name.clone()),
            Some(Answer::Pending | Answer::None) => None,
            None => {
                if self.ask.try_send(address).is_ok() {
                    known.put(address, Answer::Pending);
                }
                None
            }
        }
    }

    /// Waits until every question is answered, at most for this time.
    pub fn wait(&self, most: Duration) {
        let deadline = Instant::now() + most;
        let pending = || lock(&self.known).iter().any(|(_, answer)| matches!(answer, Answer::Pending));
        while pending() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Escapes a name: an answer of a name server is untrusted, and goes to a terminal.
fn printable(name: &str) -> String {
    name.chars().take(253).map(|letter| if letter.is_ascii_graphic() { letter } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn names_arrive_later_and_are_escaped() {
        let resolver = Resolver::with(|address| address.is_ipv4().then(|| "host\x1b[2J.example".to_owned()));
        let (known, unknown) = (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(std::net::Ipv6Addr::LOCALHOST));
        assert_eq!(resolver.name(known), None, "the caller does not wait");
        assert_eq!(resolver.name(unknown), None);
        resolver.wait(Duration::from_secs(10));
        assert_eq!(resolver.name(known).as_deref(), Some("host?[2J.example"));
        assert_eq!(resolver.name(unknown), None);
    }

    #[test]
    fn a_flood_of_addresses_is_bounded() {
        let resolver = Resolver::with(|_| None);
        for n in 0..20_000u32 {
            resolver.name(Ipv4Addr::from(n).into());
        }
        assert!(lock(&resolver.known).len() <= CACHED.get());
    }
}
