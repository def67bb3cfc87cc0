//! The NEON way of the search: compiled for aarch64, and run by an emulator, which `scripts/setup test` installs.

use crate::{builds::Edit, edits};
use std::process::{Command, Output};

/// Whether NEON finds what the plain way finds, in sources with these edits.
fn neon_equals_the_plain_way(edits: &[Edit]) -> bool {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let headers = edits::copied(&crate::builds::SOURCES, edits, dir.path());
    let program = dir.path().join("neon");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pipes/neon.c");
    let mut compiler = Command::new("aarch64-linux-gnu-gcc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-static", "-I"]).arg(headers);
    let compiled = output(compiler.arg("-o").args([program.as_os_str(), source.as_ref()]));
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    output(Command::new("qemu-aarch64").arg(program)).status.success()
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; scripts/setup test installs it"))
}

#[test]
fn neon_finds_what_the_plain_way_finds() {
    assert!(neon_equals_the_plain_way(&[]));
    let edit = Edit {
        header: "pipe_vectors.h",
        line: "vpaddq_u8(vpaddq_u8(part[0], part[1]), vpaddq_u8(part[2], part[3]))",
        instead: "vpaddq_u8(vpaddq_u8(part[1], part[0]), vpaddq_u8(part[2], part[3]))",
    };
    assert!(!neon_equals_the_plain_way(&[edit]), "the comparison finds out that the order is wrong");
}
