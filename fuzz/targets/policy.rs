//! `sluice_fuzz::policy` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sluice_fuzz::policy::run(bytes));
