//! UDP streams that are counted packet by packet: each packet carries its number and send time, the kernel stamps its arrival.
//! Senders are paced in steps of a millisecond, since no sleep is finer.

use crate::command::await_that;
use crate::net::Ns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Bytes of Ethernet, IPv4 and UDP headers.
pub const HEADERS: usize = 42;
const STAMP: usize = 16;
const BUFFER: usize = 64 << 20;
const TICK: Duration = Duration::from_millis(1);

/// The load of a stream in bits of frames.
#[derive(Debug, Clone, Copy)]
enum Load {
    /// Bits per second.
    Even(u64),
    /// Bits at once, at an interval.
    Bursts(u64, Duration),
}

impl Load {
    fn due_bits(self, elapsed: Duration) -> u64 {
        match self {
            Load::Even(bps) => (u128::from(bps) * elapsed.as_nanos() / 1_000_000_000) as u64,
            Load::Bursts(bits, every) => (elapsed.as_nanos() / every.as_nanos() + 1) as u64 * bits,
        }
    }
}

/// A stream.
#[derive(Debug, Clone)]
pub struct Flow {
    pub port: u16,
    /// Lengths of its frames, in turn, Ethernet header included.
    pub frames: Vec<usize>,
    load: Load,
    pub tos: u8,
    pub mark: u32,
    pub priority: Option<u32>,
}

impl Flow {
    /// A steady load of frames of these lengths, in turn; bits per second of frames.
    pub fn new(port: u16, frames: &[usize], bps: u64) -> Flow {
        Flow { port, frames: frames.to_vec(), load: Load::Even(bps), tos: 0, mark: 0, priority: None }
    }

    /// So many frames at once, at an interval.
    pub fn bursts(port: u16, frame: usize, frames: u64, every: Duration) -> Flow {
        Flow { load: Load::Bursts(frames * frame as u64 * 8, every), ..Flow::new(port, &[frame], 0) }
    }

    pub fn tos(self, tos: u8) -> Flow {
        Flow { tos, ..self }
    }

    pub fn mark(self, mark: u32) -> Flow {
        Flow { mark, ..self }
    }

    pub fn priority(self, priority: u32) -> Flow {
        Flow { priority: Some(priority), ..self }
    }
}

/// A packet that arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub seq: u64,
    /// Length of the frame.
    pub bytes: usize,
    pub at_ns: u64,
    pub sent_ns: u64,
}

impl Arrival {
    /// The one-way delay.
    pub fn delay_ns(&self) -> u64 {
        self.at_ns.saturating_sub(self.sent_ns)
    }
}

/// The outcome of a stream.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub sent: u64,
    /// Time at which the sender ended.
    pub ended_ns: u64,
    pub arrivals: Vec<Arrival>,
}

impl Outcome {
    pub fn received(&self) -> u64 {
        self.arrivals.len() as u64
    }

    /// The bytes of all frames that arrived.
    pub fn bytes(&self) -> u64 {
        self.arrivals.iter().map(|arrival| arrival.bytes as u64).sum()
    }

    pub fn lost(&self) -> u64 {
        self.sent - self.received()
    }

    /// Rate of frames that arrived from `settle` after the first until the senders ended, bits per second. `extra` is the cost
    /// of each frame beyond its length.
    pub fn bps(&self, settle: Duration, extra: i64) -> f64 {
        let window = self.window(settle);
        let (Some(first), Some(last)) = (window.first(), window.last()) else { return 0.0 };
        let bytes: i64 = window[1..].iter().map(|arrival| arrival.bytes as i64 + extra).sum();
        bytes as f64 * 8e9 / (last.at_ns - first.at_ns).max(1) as f64
    }

    /// Arrivals from `settle` after the first until the senders ended.
    pub fn window(&self, settle: Duration) -> &[Arrival] {
        let Some(first) = self.arrivals.first() else { return &[] };
        let from = first.at_ns + settle.as_nanos() as u64;
        let start = self.arrivals.partition_point(|arrival| arrival.at_ns < from);
        let end = self.arrivals.partition_point(|arrival| arrival.at_ns <= self.ended_ns);
        &self.arrivals[start..end.max(start)]
    }

    /// The arrivals in a part of the time, as an outcome of their own.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> Outcome {
        let inside = |arrival: &&Arrival| (from_ns..to_ns).contains(&arrival.at_ns);
        let arrivals: Vec<Arrival> = self.arrivals.iter().filter(inside).copied().collect();
        Outcome { sent: arrivals.len() as u64, ended_ns: to_ns, arrivals }
    }

    /// A quantile of the one-way delay, milliseconds.
    pub fn delay_ms(&self, quantile: f64) -> f64 {
        let mut delays: Vec<u64> = self.arrivals.iter().map(Arrival::delay_ns).collect();
        delays.sort_unstable();
        let rank = (delays.len() as f64 * quantile).ceil() as usize;
        delays.get(rank.saturating_sub(1)).map_or(f64::NAN, |ns| *ns as f64 / 1e6)
    }

    /// Whether packets arrived in the order in which they were sent.
    pub fn in_order(&self) -> bool {
        self.arrivals.windows(2).all(|two| two[0].seq < two[1].seq)
    }
}

/// Running streams. Dropping ends them.
pub struct Streams {
    stop_sending: Arc<AtomicBool>,
    stop_receiving: Arc<AtomicBool>,
    sender: Option<JoinHandle<(Vec<u64>, u64)>>,
    receivers: Vec<JoinHandle<Vec<Arrival>>>,
    sent: Arc<AtomicU64>,
    received: Arc<AtomicU64>,
}

/// Starts streams between two namespaces; they run until `finish`.
pub fn start(from: &Ns, to: &Ns, address: &str, flows: &[Flow]) -> Streams {
    let stop_sending = Arc::new(AtomicBool::new(false));
    let stop_receiving = Arc::new(AtomicBool::new(false));
    let sent = Arc::new(AtomicU64::new(0));
    let received = Arc::new(AtomicU64::new(0));
    let receivers = flows
        .iter()
        .map(|flow| {
            let socket = to.inside(|| receiving_socket(flow.port));
            let (stop, received) = (Arc::clone(&stop_receiving), Arc::clone(&received));
            thread::spawn(move || receive(&socket, &stop, &received))
        })
        .collect();
    let sockets: Vec<UdpSocket> = from.inside(|| flows.iter().map(|flow| sending_socket(flow, address)).collect());
    let (flows, stop, count) = (flows.to_vec(), Arc::clone(&stop_sending), Arc::clone(&sent));
    let sender = Some(thread::spawn(move || send(&flows, &sockets, &stop, &count)));
    Streams { stop_sending, stop_receiving, sender, receivers, sent, received }
}

impl Streams {
    /// Packets of all streams that were sent and that arrived by now.
    pub fn so_far(&self) -> (u64, u64) {
        let received = self.received.load(Ordering::Relaxed);
        (self.sent.load(Ordering::Relaxed), received)
    }

    /// Stops sending.
    pub fn stop(&self) {
        self.stop_sending.store(true, Ordering::Relaxed);
    }

    /// Runs for a time, with any losses.
    pub fn stop_after(self, time: Duration) -> Vec<Outcome> {
        thread::sleep(time);
        self.finish_lossy()
    }

    /// Stops sending, waits until all packets but `lost` have arrived, and returns the outcome of each stream. Fails if the
    /// numbers do not come to agree.
    #[track_caller]
    pub fn finish(self, lost: impl FnMut() -> u64) -> Vec<Outcome> {
        self.end(lost, true)
    }

    /// Stops sending, and waits for a second without arrivals: for streams whose losses are not counted.
    pub fn finish_lossy(self) -> Vec<Outcome> {
        self.end(|| 0, false)
    }

    #[track_caller]
    fn end(mut self, mut lost: impl FnMut() -> u64, exact: bool) -> Vec<Outcome> {
        self.stop();
        let (sent, ended_ns) = self.sender.take().expect("it runs").join().expect("the sender");
        let total: u64 = sent.iter().sum();
        let mut deadline = Instant::now() + Duration::from_secs(if exact { 10 } else { 1 });
        let mut before = 0;
        loop {
            let received = self.received.load(Ordering::Relaxed);
            if received + lost() == total {
                break;
            }
            if !exact && received > before {
                deadline = Instant::now() + Duration::from_secs(1);
            }
            before = received;
            if Instant::now() > deadline {
                assert!(!exact, "{total} packets sent, {received} received, and {} said to be lost", lost());
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        self.stop_receiving.store(true, Ordering::Relaxed);
        let arrivals = self.receivers.drain(..).map(|one| one.join().expect("a receiver"));
        sent.iter().zip(arrivals).map(|(sent, arrivals)| Outcome { sent: *sent, ended_ns, arrivals }).collect()
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.stop();
        self.stop_receiving.store(true, Ordering::Relaxed);
        if let Some(sender) = self.sender.take() {
            let _ = sender.join();
        }
        for receiver in self.receivers.drain(..) {
            let _ = receiver.join();
        }
    }
}

/// Streams for a time.
#[track_caller]
pub fn run(
    from: &Ns,
    to: &Ns,
    address: &str,
    flows: &[Flow],
    time: Duration,
    lost: impl FnMut() -> u64,
) -> Vec<Outcome> {
    let streams = start(from, to, address, flows);
    thread::sleep(time);
    // On a busy machine the sender may not have had its turn.
    await_that("packets to be sent", Duration::from_secs(10), || streams.so_far().0 >= flows.len() as u64);
    streams.finish(lost)
}

/// The clock of the packets' timestamps.
pub fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

fn receiving_socket(port: u16) -> UdpSocket {
    let socket = UdpSocket::bind(("0.0.0.0", port)).expect("binding a receiver");
    setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).expect("SO_RCVBUFFORCE");
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true).expect("SO_TIMESTAMPNS");
    socket.set_read_timeout(Some(Duration::from_millis(20))).expect("SO_RCVTIMEO");
    socket
}

/// A socket of a sender, connected.
pub fn sending_socket(flow: &Flow, address: &str) -> UdpSocket {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("binding a sender");
    // A small socket buffer would hold the sender back, and nothing would ever be dropped.
    setsockopt(&socket, sockopt::SndBufForce, &BUFFER).expect("SO_SNDBUFFORCE");
    setsockopt(&socket, sockopt::Ipv4Tos, &i32::from(flow.tos)).expect("IP_TOS");
    setsockopt(&socket, sockopt::Mark, &flow.mark).expect("SO_MARK");
    if let Some(priority) = flow.priority {
        setsockopt(&socket, sockopt::Priority, &(priority as i32)).expect("SO_PRIORITY");
    }
    socket.connect((address, flow.port)).expect("connecting a sender");
    socket
}

fn send(flows: &[Flow], sockets: &[UdpSocket], stop: &AtomicBool, count: &AtomicU64) -> (Vec<u64>, u64) {
    let begin = Instant::now();
    let mut sent = vec![0u64; flows.len()];
    let mut bits = vec![0u64; flows.len()];
    let mut buffer = vec![0u8; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let elapsed = begin.elapsed();
        // The senders take turns packet by packet, so that streams mix finely.
        loop {
            let mut idle = true;
            for (n, flow) in flows.iter().enumerate() {
                let frame = flow.frames[sent[n] as usize % flow.frames.len()];
                if bits[n] + frame as u64 * 8 > flow.load.due_bits(elapsed) {
                    continue;
                }
                buffer[..8].copy_from_slice(&sent[n].to_ne_bytes());
                buffer[8..STAMP].copy_from_slice(&now_ns().to_ne_bytes());
                let payload = frame.saturating_sub(HEADERS).max(STAMP);
                // A packet that the queue drops is no error here; one that the kernel refuses (link down) was not sent.
                if sockets[n].send(&buffer[..payload]).is_ok() {
                    sent[n] += 1;
                    count.fetch_add(1, Ordering::Relaxed);
                }
                bits[n] += frame as u64 * 8;
                idle = false;
            }
            if idle {
                break;
            }
        }
        thread::sleep(TICK);
    }
    (sent, now_ns())
}

fn receive(socket: &UdpSocket, stop: &AtomicBool, count: &AtomicU64) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    let mut bytes = vec![0u8; 65_536];
    let mut control = nix::cmsg_space!(TimeSpec);
    loop {
        let mut into = [IoSliceMut::new(&mut bytes)];
        let got = recvmsg::<SockaddrIn>(socket.as_raw_fd(), &mut into, Some(&mut control), MsgFlags::empty());
        let (length, at_ns) = match got {
            Ok(message) => {
                let stamp = message.cmsgs().ok().and_then(|mut all| {
                    all.find_map(|one| match one {
                        ControlMessageOwned::ScmTimestampns(at) => Some(at),
                        _ => None,
                    })
                });
                let stamp = stamp.expect("the kernel stamps what arrives");
                (message.bytes, stamp.tv_sec() as u64 * 1_000_000_000 + stamp.tv_nsec() as u64)
            }
            Err(_) if stop.load(Ordering::Relaxed) => return arrivals,
            Err(_) => continue,
        };
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        arrivals.push(Arrival { seq: word(0), bytes: length + HEADERS, at_ns, sent_ns: word(8) });
        count.fetch_add(1, Ordering::Relaxed);
    }
}
