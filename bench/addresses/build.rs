//! Compiles the programs that are timed.

#[path = "../../crates/kernel/build/clang.rs"]
mod clang;

fn main() {
    clang::compile("bench/addresses/addresses.bpf.c", "addresses", &[]);
}
