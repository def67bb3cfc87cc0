//! Engine `xsk`: a process between two interfaces. What arrives at one is queued by the scheduler core and sent out of the other one. It has a worker for
//! each receive queue; several share one rate. Frames stay where
//! the kernel has put them (AF_XDP), and the schedulers' states are in the maps of the interfaces, where other commands read them.
//!
//! The arrival hook (`bpf/lib/wire.h`) has found the class of each packet, counted it and policed it. It hands packets over only while the worker of their
//! receive queue is seen to run. One that was away for a while drops what it holds, since later packets have passed it by.

mod addresses;
mod handed;
mod process;
mod processors;
mod queue;
mod under_way;
mod way;
mod worker;

pub use process::{Ended, Noticed, Wire};
pub use under_way::Most;
pub use worker::PLACES;

use sluice_error::Error;
use sluice_xsk::{Refusal, Step};

/// The error of a socket that could not be had.
fn refused(interface: &str, refusal: &Refusal) -> Error {
    let error = Error::system(format!("{interface}: {refusal}"));
    match (refusal.step, refusal.error.raw_os_error()) {
        (Step::Bind, Some(libc::EBUSY)) => error.help("another program has an AF_XDP socket there: stop it first"),
        (Step::Memory, Some(libc::ENOBUFS)) => {
            error.help("raise the limit of locked memory (`ulimit -l`, or LimitMEMLOCK= of the unit)")
        }
        (Step::BusyPoll, Some(libc::ENOPROTOOPT)) => {
            error.help("leave --busy-poll away, or use a kernel with CONFIG_NET_RX_BUSY_POLL")
        }
        (Step::BusyPoll, _) => error.help("leave --busy-poll away, or run it with CAP_NET_ADMIN"),
        _ => error,
    }
}
