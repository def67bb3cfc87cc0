//! Rates above which packets are dropped before they are queued: of a flow, of an interface, and of several interfaces together.

use crate::bytes::{Bytes, FRAME_BYTES};
use crate::rate::Rate;

/// The default burst of a ceiling: this time at the rate, ns, and at least two full frames.
const BURST_TIME_NS: u64 = 10_000_000;
const MIN_BURST_BYTES: u64 = 3028;

/// The default burst of a ceiling.
pub(crate) fn default_burst(rate: Rate) -> Bytes {
    Bytes(rate.bytes_in_ns(BURST_TIME_NS).max(MIN_BURST_BYTES))
}

/// The default burst of a peak: this time at the peak, ns, at least a full frame, and at most half of the ceiling's burst, so
/// that there is something left for the peak to limit.
const PEAK_BURST_TIME_NS: u64 = 250_000;

/// The default burst of a peak above a ceiling with this burst.
pub(crate) fn default_peak_burst(peak: Rate, burst: Bytes) -> Bytes {
    let frame = u64::from(FRAME_BYTES);
    Bytes(peak.bytes_in_ns(PEAK_BURST_TIME_NS).clamp(frame, frame.max(burst.0 / 2)))
}

/// A rate with its burst, the amount that may pass at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceiling {
    /// Bits per second.
    pub rate: Rate,
    /// The burst; `None` stands for 10 ms at the rate, and at least two full frames.
    pub burst: Option<Bytes>,
}

impl Ceiling {
    /// The burst, or its default.
    pub fn burst(&self) -> Bytes {
        self.burst.unwrap_or_else(|| default_burst(self.rate))
    }

    pub(crate) fn resolved(self) -> Ceiling {
        Ceiling { burst: Some(self.burst()), ..self }
    }
}

/// A ceiling that classes of several interfaces share by its name, in each direction on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCeiling {
    /// 1 to 31 letters, digits, `-` and `_`.
    pub name: String,
    /// The ceiling that the classes keep to together.
    pub ceiling: Ceiling,
}

impl SharedCeiling {
    /// The longest name, bytes.
    pub const MAX_NAME_BYTES: usize = 31;

    pub(crate) fn resolved(&self) -> SharedCeiling {
        SharedCeiling { name: self.name.clone(), ceiling: self.ceiling.resolved() }
    }
}

/// The ceilings of an interface, whatever the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// The ceiling of arriving packets.
    pub ingress: Option<Ceiling>,
    /// The ceiling of departing packets.
    pub egress: Option<Ceiling>,
}

impl Limits {
    pub(crate) fn resolved(self) -> Limits {
        Limits { ingress: self.ingress.map(Ceiling::resolved), egress: self.egress.map(Ceiling::resolved) }
    }
}
