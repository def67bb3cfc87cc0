//! Engine `xsk`: a process between two interfaces. What arrives at one is queued by the scheduler core and sent out of the other one. Frames stay where
//! the kernel has put them (AF_XDP), and the schedulers' states are in the maps of the interfaces, where other commands read them.
//!
//! The arrival hook (`bpf/lib/wire.h`) has found the class of each packet, counted it and policed it. It hands packets over only while the process is
//! seen to run. One that was away for a while drops what it holds, since later packets have passed it by.

mod addresses;
mod congestion;
mod handed;
mod queue;
mod way;
mod wire;

pub use wire::{Ended, Wire};
