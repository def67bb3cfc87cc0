//! Compiles the programs that send and observe frames.

#[path = "../kernel/build/clang.rs"]
mod clang;

fn main() {
    clang::compile("bpf/frames.bpf.c", "frames", &[]);
}
