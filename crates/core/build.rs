//! Compiles `sched/`, the same source that the kernel runs, for this machine.

use std::{env, path::PathBuf};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../..");
    for dir in ["abi", "sched"] {
        println!("cargo:rerun-if-changed={}", root.join(dir).display());
    }
    let sources = [
        "src/addresses.c",
        "src/backpressure.c",
        "src/each_host.c",
        "src/hierarchy.c",
        "src/level_backpressure.c",
        "src/native.c",
        "src/pipes.c",
        "src/police.c",
        "src/port_limit.c",
        "src/shared_credit.c",
    ];
    sources.iter().for_each(|source| println!("cargo:rerun-if-changed={source}"));
    cc::Build::new()
        .files(sources)
        .include(root.join("sched"))
        .warnings(true)
        .extra_warnings(true)
        .compile("sluice_core");
}
