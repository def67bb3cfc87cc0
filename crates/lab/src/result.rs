//! Measured values, their statistics, and the machine on which they were measured.

pub mod environment;
pub mod results;
pub mod statistics;
