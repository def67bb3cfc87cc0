//! What of the `sluice` command reads input of any kind, where fuzzing can reach it.

pub mod capture;
pub mod failure;
pub mod packet;
