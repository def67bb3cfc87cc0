//! Compiles the core twice: for BPF, with every discipline, with each alone, the tree of classes, and the address table; and natively.

#[path = "../kernel/build/clang.rs"]
mod clang;

use std::{env, fs, path::PathBuf};

fn main() {
    clang::compile("bpf/twin.bpf.c", "twin", &[]);
    clang::compile("bpf/tree_twin.bpf.c", "tree_twin", &[]);
    clang::compile("bpf/tree.bpf.c", "tree", &[]);
    clang::compile("bpf/addresses_twin.bpf.c", "addresses_twin", &[]);
    let mut alone = String::from("[");
    for kind in 0..sluice_abi::SL_KINDS {
        clang::compile("bpf/twin.bpf.c", &format!("twin{kind}"), &[&format!("-DSL_KIND_OF(s)={kind}")]);
        alone += &format!("object!(\"twin{kind}\"), ");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    fs::write(out.join("alone.rs"), alone + "]").expect("writing alone.rs");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../..");
    let sources = ["src/native.c", "src/tree.c"];
    sources.iter().for_each(|source| println!("cargo:rerun-if-changed={source}"));
    cc::Build::new()
        .files(sources)
        .include(root.join("sched"))
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .compile("sluice_twin");
}
