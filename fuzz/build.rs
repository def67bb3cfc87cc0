//! Compiles the packet parser of `bpf/lib/` for this machine: with traps where behaviour is undefined, and for fuzzing with
//! AddressSanitizer, reports and coverage.

use std::{env, path::PathBuf};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("..");
    for dir in ["abi", "bpf/lib", "sched"] {
        println!("cargo:rerun-if-changed={}", root.join(dir).display());
    }
    println!("cargo:rerun-if-changed=src/packet.c");
    println!("cargo:rerun-if-env-changed=CLANG");
    let sanitizers: &[&str] = if env::var_os("CARGO_FEATURE_LIBFUZZER").is_some() {
        &["-fsanitize=address,undefined,fuzzer-no-link", "-fno-sanitize-recover=all"]
    } else {
        &["-fsanitize=undefined", "-fsanitize-trap=undefined"]
    };
    let mut build = cc::Build::new();
    // The compiler of the BPF programs; others spell the options otherwise.
    build.compiler(env::var_os("CLANG").unwrap_or_else(|| "clang-19".into()));
    for option in sanitizers {
        build.flag(option);
    }
    build.file("src/packet.c").debug(true).warnings(true).extra_warnings(true).compile("sluice_fuzz_packet");
}
