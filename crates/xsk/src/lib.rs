//! AF_XDP (Documentation/networking/af_xdp.rst): packets between a queue of an interface and memory of this process, without the stack.
//!
//! The rings are our own: xsk-rs pins another libbpf-sys than this workspace has and needs libxdp, which attaches by freplace programs that
//! not every kernel loads; xdpilone is under the EUPL, which no program under MIT can be linked with here (deny.toml). So this crate maps
//! the four rings itself, and keeps their acquire and release order.
//!
//! - [`Umem`]: the memory, in frames of one size; sockets of several queues share it, each with frames of its own.
//! - `ring`: a ring that one side produces and the other consumes.
//! - [`Socket`]: a socket that is bound to a queue and receives. An XDP program sends packets to it through an XSKMAP.
//! - [`Port`]: a socket that receives and sends, of a pair that share their frames, so that what arrives at one leaves by the other in the same frame.
//! - [`Statistics`]: the packets that the kernel could not hand over, and why.

mod port;
mod ring;
mod socket;
mod umem;

pub use port::{Frame, Kick, Pool, Port};
pub use socket::{Binding, Copying, Socket, Statistics, is_supported};
pub use umem::{FrameBytes, Umem};

use std::fmt;
use std::io;

/// The step at which the kernel refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Making a socket: EAFNOSUPPORT where the kernel has no AF_XDP.
    Socket,
    /// Mapping the memory, or handing it to the kernel: ENOBUFS where RLIMIT_MEMLOCK is too low.
    Memory,
    /// Making or mapping a ring.
    Rings,
    /// Binding to the queue: EBUSY where another socket has it, EOPNOTSUPP where it cannot be bound as asked.
    Bind,
    /// Reading what the kernel says of the socket.
    Ask,
    /// Asking for busy polling: ENOPROTOOPT where the kernel is without CONFIG_NET_RX_BUSY_POLL.
    BusyPoll,
}

/// A refusal of the kernel.
#[derive(Debug)]
pub struct Refusal {
    /// The step.
    pub step: Step,
    /// The kernel's error.
    pub error: io::Error,
}

impl Refusal {
    fn last(step: Step) -> Refusal {
        Refusal { step, error: io::Error::last_os_error() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doing = match self.step {
            Step::Socket => "making an AF_XDP socket",
            Step::Memory => "registering its memory",
            Step::Rings => "making its rings",
            Step::Bind => "binding it to the queue",
            Step::Ask => "asking for its state",
            Step::BusyPoll => "asking for busy polling (SO_PREFER_BUSY_POLL)",
        };
        write!(f, "{doing}: {}", self.error)
    }
}

impl std::error::Error for Refusal {}
