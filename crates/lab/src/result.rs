//! Measured values, their statistics, and the machine on which they were measured.

mod at_card;
pub mod environment;
pub mod results;
pub mod statistics;
