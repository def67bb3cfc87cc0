//! Flows: packets with the same addresses, ports and protocol, both ways, become one record when the flow ends.

mod moments;
mod order;
mod table;

use crate::address::Address;
use crate::column::{Column, Record, Type, Values};
use crate::labels::Labels;
use crate::packet::Direction;

pub use moments::Moments;
pub use table::{Flows, Limits};

/// How a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// Both sides have closed the connection.
    Fin,
    /// One side has reset it.
    Rst,
    /// No packet came for the idle time.
    Idle,
    /// The table was full, and no flow had been silent for longer.
    Evicted,
    /// The stream of records ended.
    End,
}

impl Ended {
    /// The name of the end.
    pub fn name(self) -> &'static str {
        match self {
            Ended::Fin => "fin",
            Ended::Rst => "rst",
            Ended::Idle => "idle",
            Ended::Evicted => "evicted",
            Ended::End => "end",
        }
    }
}

/// What one side of a flow has sent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Side {
    /// Records of packets.
    pub records: u64,
    /// Packets; a super-packet counts as its segments. An estimate where packets are sampled.
    pub packets: u64,
    /// Bytes with link headers. An estimate where packets are sampled.
    pub bytes: u64,
    /// Sizes of packets in bytes.
    pub sizes: Moments,
    /// Times between records in µs.
    pub gaps: Moments,
    /// All flags of TCP that were set.
    pub flags: u8,
    pub(crate) last_ns: u64,
}

/// What the two ends of a flow and its packets have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Number of the interface.
    pub interface: u16,
    /// Direction of the first packet.
    pub direction: Direction,
    /// Sender of the first packet.
    pub src: Option<Address>,
    /// Receiver of the first packet.
    pub dst: Option<Address>,
    /// Its source port.
    pub sport: Option<u16>,
    /// Its destination port.
    pub dport: Option<u16>,
    /// `enum sl_proto_index`.
    pub protocol: u16,
    /// VLAN id.
    pub vlan: Option<u16>,
    /// Class of the first packet.
    pub class: Option<u8>,
}

/// A flow that has ended, or the end of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    /// Ends and class; none: this is the last row.
    pub identity: Option<Identity>,
    /// Time of the first packet, nanoseconds since 1970.
    pub start_ns: u64,
    /// Time of the last packet.
    pub end_ns: u64,
    /// What the sender of the first packet has sent.
    pub forward: Side,
    /// What the other one has sent.
    pub reverse: Side,
    /// How it ended.
    pub ended: Ended,
    /// Flows that it stands for.
    pub weight: u32,
    /// Whether packets were sampled, so that sums are estimates.
    pub sampled: bool,
    /// Records of packets that found no room since the last flow was written; whose packets they were is not known.
    pub missed: u64,
}

impl Flow {
    /// The last row of a stream.
    pub fn end(time_ns: u64, missed: u64) -> Flow {
        let (forward, reverse) = (Side::default(), Side::default());
        let (start_ns, end_ns, ended) = (time_ns, time_ns, Ended::End);
        Flow { identity: None, start_ns, end_ns, forward, reverse, ended, weight: 0, sampled: false, missed }
    }
}

impl Record for Flow {
    const WHAT: &'static str = "flows";
    const COLUMNS: &'static [Column] = &[
        Column::of("kind", Type::Text),
        Column::of("start_ns", Type::Time),
        Column::of("end_ns", Type::Time),
        Column::of("duration_ns", Type::U64),
        Column::maybe("interface", Type::Text),
        Column::maybe("direction", Type::Text),
        Column::maybe("src", Type::Address),
        Column::maybe("dst", Type::Address),
        Column::maybe("sport", Type::U16),
        Column::maybe("dport", Type::U16),
        Column::maybe("protocol", Type::U16),
        Column::maybe("vlan", Type::U16),
        Column::maybe("class", Type::U8),
        Column::maybe("class_name", Type::Text),
        Column::of("weight", Type::U32),
        Column::of("sampled", Type::Bool),
        Column::of("missed", Type::U64),
        Column::of("ended", Type::Text),
        Column::of("forward_records", Type::U64),
        Column::of("forward_packets", Type::U64),
        Column::of("forward_bytes", Type::U64),
        Column::maybe("forward_size_mean_bytes", Type::Float),
        Column::maybe("forward_size_std_bytes", Type::Float),
        Column::maybe("forward_size_min_bytes", Type::Float),
        Column::maybe("forward_size_max_bytes", Type::Float),
        Column::maybe("forward_gap_mean_us", Type::Float),
        Column::maybe("forward_gap_std_us", Type::Float),
        Column::maybe("forward_gap_min_us", Type::Float),
        Column::maybe("forward_gap_max_us", Type::Float),
        Column::of("forward_tcp_flags", Type::U8),
        Column::of("reverse_records", Type::U64),
        Column::of("reverse_packets", Type::U64),
        Column::of("reverse_bytes", Type::U64),
        Column::maybe("reverse_size_mean_bytes", Type::Float),
        Column::maybe("reverse_size_std_bytes", Type::Float),
        Column::maybe("reverse_size_min_bytes", Type::Float),
        Column::maybe("reverse_size_max_bytes", Type::Float),
        Column::maybe("reverse_gap_mean_us", Type::Float),
        Column::maybe("reverse_gap_std_us", Type::Float),
        Column::maybe("reverse_gap_min_us", Type::Float),
        Column::maybe("reverse_gap_max_us", Type::Float),
        Column::of("reverse_tcp_flags", Type::U8),
    ];

    fn give(&self, labels: &Labels, to: &mut impl Values) {
        let identity = self.identity.as_ref();
        to.text(Some(if identity.is_some() { "flow" } else { "end" }));
        to.number(Some(self.start_ns));
        to.number(Some(self.end_ns));
        to.number(Some(self.end_ns.saturating_sub(self.start_ns)));
        to.text(identity.and_then(|identity| labels.interface(identity.interface)));
        to.text(identity.map(|identity| identity.direction.name()));
        to.address(identity.and_then(|identity| identity.src));
        to.address(identity.and_then(|identity| identity.dst));
        to.number(identity.and_then(|identity| identity.sport).map(Into::into));
        to.number(identity.and_then(|identity| identity.dport).map(Into::into));
        to.number(identity.map(|identity| identity.protocol.into()));
        to.number(identity.and_then(|identity| identity.vlan).map(Into::into));
        to.number(identity.and_then(|identity| identity.class).map(Into::into));
        to.text(identity.and_then(|identity| labels.class(identity.interface, identity.class)));
        to.number(Some(self.weight.into()));
        to.truth(self.sampled);
        to.number(Some(self.missed));
        to.text(Some(self.ended.name()));
        for side in [&self.forward, &self.reverse] {
            to.number(Some(side.records));
            to.number(Some(side.packets));
            to.number(Some(side.bytes));
            for moments in [&side.sizes, &side.gaps] {
                to.float(moments.mean());
                to.float(moments.deviation());
                to.float(moments.min());
                to.float(moments.max());
            }
            to.number(Some(side.flags.into()));
        }
    }
}
