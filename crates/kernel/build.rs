//! Compiles the BPF programs.

#[path = "build/clang.rs"]
mod clang;

fn main() {
    for name in ["belonging", "classifier", "forward", "qdisc", "steal", "telemetry", "tree"] {
        clang::compile(&format!("bpf/{name}.bpf.c"), name, &[]);
    }
}
