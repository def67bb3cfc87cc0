//! The bytes of a packet on the link below, framing included.

use serde::Serialize;
use sluice_policy::Cells;

/// The framing of the link: how bytes of a packet become bytes on the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Framing {
    /// Bytes added to each packet; may be negative.
    pub extra_bytes: i32,
    /// The least that a packet takes, bytes.
    pub least_bytes: u32,
    /// Payload bytes in each cell, and bytes of the cell. None: no cells.
    pub cells: Option<(u32, u32)>,
}

impl Framing {
    pub(super) fn of(framing: &sluice_policy::Framing, header_bytes: u32) -> Framing {
        Framing {
            extra_bytes: framing.overhead_bytes - header_bytes as i32,
            least_bytes: framing.mpu_bytes,
            cells: match framing.cells {
                Cells::None => None,
                Cells::Atm => Some((48, 53)),
                Cells::Ptm => Some((64, 65)),
            },
        }
    }

    /// Bytes on the link of a packet of so many bytes, link-layer header included. With cells and a mean length, an estimate.
    pub fn wire_bytes(&self, bytes: f64) -> f64 {
        let framed = (bytes + f64::from(self.extra_bytes)).max(f64::from(self.least_bytes));
        match self.cells {
            None => framed,
            Some((48, cell)) => (framed / 48.0).ceil() * f64::from(cell),
            Some((payload, cell)) => framed * f64::from(cell) / f64::from(payload),
        }
    }
}
