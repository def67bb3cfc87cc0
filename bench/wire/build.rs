//! Compiles the XDP program of the bare forwarder.

#[path = "../../crates/kernel/build/clang.rs"]
mod clang;

fn main() {
    clang::compile("bench/wire/bare.bpf.c", "bare", &[]);
}
