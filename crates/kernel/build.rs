//! Compiles the BPF programs.

use sha2::{Digest, Sha256};
use std::env;
use std::fs;
use std::path::PathBuf;

#[path = "build/clang.rs"]
mod clang;

fn main() {
    for name in
        ["belonging", "classifier", "early_leaf", "forward", "htb_tree", "qdisc", "steal", "steer", "telemetry", "tree"]
    {
        clang::compile(&format!("bpf/{name}.bpf.c"), name, &[]);
    }
    println!(
        "cargo:rustc-env=BPF_DIGEST={}",
        digest(&["classifier", "early_leaf", "forward", "htb_tree", "qdisc", "steer", "tree"])
    );
}

/// SHA-256 of these objects, in hexadecimal digits.
fn digest(objects: &[&str]) -> String {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut hash = Sha256::new();
    for name in objects {
        let path = out.join(format!("{name}.bpf.o"));
        hash.update(fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
