//! What was measured, as values, and the directory that keeps it.

pub mod environment;
pub mod results;
pub mod statistics;
