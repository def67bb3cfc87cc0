//! Networks in a box: network namespaces joined by veths, programs in them as children, and iperf3 between them.
//!
//! Everything here removes itself: namespaces when they are dropped or, after a kill, when the next run begins; processes when they are
//! dropped or their parent dies. The lab measures with it and the system tests test with it.

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
