//! Records of packets and of flows, as `sluice features` writes them: their columns, how packets become flows, estimates from samples, and
//! writers for CSV, JSON lines, Arrow and Parquet.
//!
//! All of it is pure but [`output`], which opens files and sockets. Nothing here needs root or the kernel's programs: what they send is a
//! `struct sl_packet_record` (`abi/telemetry.h`), which [`Packet::read`] validates.

pub mod address;
pub mod column;
pub mod estimate;
pub mod flow;
pub mod labels;
pub mod output;
pub mod packet;
pub mod sequence;
pub mod verdict;
pub mod writer;

pub use address::{Address, AddressKey};
pub use column::{Column, Record, Values};
pub use flow::{Flow, Flows};
pub use labels::Labels;
pub use output::Destination;
pub use packet::{Packet, Reader};
pub use sequence::Sequence;
pub use verdict::Verdict;
pub use writer::{Format, Writer};

/// The version of the columns of packets and flows; files have it in their metadata. It rises when a column changes its meaning or goes
/// away. New columns come last and leave it as it is.
pub const SCHEMA_VERSION: u32 = 1;

/// How packets were chosen for records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// Each packet, by chance: its weight says how many it stands for. 1 in 1 is every packet.
    Packets,
    /// Every packet of some flows: the weight says how many flows each of them stands for.
    Flows,
}
