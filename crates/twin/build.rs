//! Compiles the core twice: for BPF, with every discipline and with each alone, and natively.

#[path = "../kernel/build/clang.rs"]
mod clang;

use std::{env, path::PathBuf};

/// The disciplines, as `enum sl_kind` has them and in its order.
const KINDS: [&str; 6] = [
    "SL_STRICT_PRIORITY",
    "SL_DEFICIT_ROUND_ROBIN",
    "SL_ROUND_ROBIN",
    "SL_WEIGHTED_FAIR_QUEUING",
    "SL_EEVDF",
    "SL_PIFO",
];

fn main() {
    clang::compile("bpf/twin.bpf.c", "twin", &[]);
    for (kind, name) in KINDS.iter().enumerate() {
        clang::compile("bpf/twin.bpf.c", &format!("twin{kind}"), &[&format!("-DSL_KIND_OF(s)={name}")]);
    }
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../..");
    println!("cargo:rerun-if-changed=src/native.c");
    cc::Build::new()
        .file("src/native.c")
        .include(root.join("sched"))
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .compile("sluice_twin");
}
