//! The parts of the `sluice` command that read input of any kind, where fuzzing can reach them.

pub mod capture;
pub mod failure;
pub mod packet;
