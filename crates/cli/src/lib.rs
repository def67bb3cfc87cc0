//! The parts of the `sluice` command that read arbitrary input, as a library for fuzzing.

pub mod capture;
pub mod failure;
pub mod packet;
