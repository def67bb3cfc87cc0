//! Rebuilds the program when the built-in files of `lab/` change.

fn main() {
    println!("cargo::rerun-if-changed=../../lab");
}
