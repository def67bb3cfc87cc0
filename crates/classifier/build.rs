//! Compiles the parser and the rules of `bpf/lib/` for this machine.

use std::{env, path::PathBuf};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../..");
    for dir in ["abi", "bpf/lib", "sched"] {
        println!("cargo:rerun-if-changed={}", root.join(dir).display());
    }
    println!("cargo:rerun-if-changed=src/native.c");
    println!("cargo:rerun-if-env-changed=CLANG");
    let mut build = cc::Build::new();
    // The compiler of the BPF programs; others know other pragmas.
    build.compiler(env::var_os("CLANG").unwrap_or_else(|| "clang-19".into()));
    build.file("src/native.c").warnings(true).extra_warnings(true).compile("sluice_classifier");
}
