//! Compiles the programs that are timed.

#[path = "../../crates/kernel/build/clang.rs"]
mod clang;

fn main() {
    clang::compile("bench/stages/stages.bpf.c", "stages", &[]);
}
