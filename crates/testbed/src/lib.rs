//! Test networks: network namespaces joined by veths, programs in them as children, and iperf3 between them.
//!
//! Everything here removes itself: namespaces when they are dropped or, after a kill, when the next run begins; processes when
//! they are dropped or their parent dies. The lab and the system tests use this crate.

pub mod interrupt;
pub mod iperf3;
pub mod namespace;
mod priority;
pub mod process;
pub mod tool;
pub mod veth;

pub use interrupt::Interrupt;
pub use namespace::Namespace;
pub use process::Process;
