//! The fuzzed functions, which take any bytes and panic where a property does not hold. `targets/` runs them under
//! libFuzzer, `tests/replay.rs` on the files in `corpus/` and `findings/`.

pub mod capture;
pub mod packet;
pub mod policy;
pub mod words;
