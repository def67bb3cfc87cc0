//! A link: it sends one packet after the other at its rate, and each arrives a delay later.

/// A link.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// Its rate.
    pub bits_per_second: u64,
    /// The time from the end of a packet's sending to its arrival.
    pub delay_ns: u64,
}

impl Link {
    /// How long it sends a packet of so many bytes.
    pub fn sending_ns(&self, bytes: u32) -> u64 {
        (u64::from(bytes) * 8_000_000_000).div_ceil(self.bits_per_second)
    }
}
