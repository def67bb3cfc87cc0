//! Packets and bytes, as programs count them.

use serde::{Deserialize, Serialize};
use sluice_abi as abi;

/// Packets and their bytes. A super-packet counts as its segments where hooks count, as one where qdiscs do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Packets.
    pub pkts: u64,
    /// Bytes, link-layer header included.
    pub bytes: u64,
}

impl From<abi::sl_count> for Count {
    fn from(count: abi::sl_count) -> Count {
        Count { pkts: count.pkts, bytes: count.bytes }
    }
}

impl Count {
    pub(crate) fn add(&mut self, other: Count) {
        self.pkts += other.pkts;
        self.bytes += other.bytes;
    }

    pub(crate) fn take(&mut self, other: Count) {
        self.pkts = self.pkts.saturating_sub(other.pkts);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }

    pub(crate) fn plus(mut self, other: Count) -> Count {
        self.add(other);
        self
    }
}
