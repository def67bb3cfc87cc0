//! Compiles `telemetry/`, the same source that the kernel runs, for this machine.

use std::{env, path::PathBuf};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../..");
    for dir in ["abi", "sched/world.h", "telemetry"] {
        println!("cargo:rerun-if-changed={}", root.join(dir).display());
    }
    println!("cargo:rerun-if-changed=src/native.c");
    cc::Build::new()
        .file("src/native.c")
        .include(root.join("telemetry"))
        .warnings(true)
        .extra_warnings(true)
        .compile("sluice_telemetry");
}
