//! The findings of a trial of a model at its card, beside the delays of packets.

use serde::{Deserialize, Serialize};

/// The packets at a modelled card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AtCard {
    /// Jain's index of the packets of pipes that were sent.
    pub jain: f64,
    /// The rate at which the link was used in the window, Mbit/s, with what it adds to each packet.
    pub wire_mbit: f64,
    /// Packets that receive rings had no room for, percent of all that came.
    pub lost_on_arrival_percent: f64,
    /// Packets whose fate was not known when the run ended.
    pub waiting: u64,
}
