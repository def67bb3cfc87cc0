//! The NEON way of the search, on another processor: compiled if a compiler for aarch64 is installed, and run if an emulator is.

use crate::{builds::Edit, edits};
use std::{io, process::Command};

const COMPILER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";

/// What the program for aarch64 says: whether NEON finds what the plain way finds. None if there is no compiler or no emulator.
fn neon_equals_the_plain_way(edits: &[Edit]) -> Option<bool> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let headers = edits::copied(&crate::builds::SOURCES, edits, dir.path());
    let program = dir.path().join("neon");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pipes/neon.c");
    let mut compiler = Command::new(COMPILER);
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-static", "-I"]).arg(headers);
    let compiled = output(compiler.arg("-o").args([program.as_os_str(), source.as_ref()]))?;
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Some(output(Command::new(EMULATOR).arg(program))?.status.success())
}

/// The output of a command; none if it is not installed.
fn output(command: &mut Command) -> Option<std::process::Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            println!("{} is not installed", command.get_program().to_string_lossy());
            None
        }
        Err(error) => panic!("{command:?}: {error}"),
    }
}

#[test]
fn neon_finds_what_the_plain_way_finds() {
    let equal = neon_equals_the_plain_way(&[]);
    assert_ne!(equal, Some(false));
    let edit = Edit {
        header: "pipe_vectors.h",
        line: "vpaddq_u8(vpaddq_u8(part[0], part[1]), vpaddq_u8(part[2], part[3]))",
        instead: "vpaddq_u8(vpaddq_u8(part[1], part[0]), vpaddq_u8(part[2], part[3]))",
    };
    assert_ne!(neon_equals_the_plain_way(&[edit]), Some(true), "the comparison finds out that the order is wrong");
}
