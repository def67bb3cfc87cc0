//! Builds of the core from changed sources.

use sluice_core::Core;
use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// A line of `sched/` and what takes its place.
#[derive(Clone, Copy, Debug)]
pub struct Edit {
    pub header: &'static str,
    pub line: &'static str,
    pub instead: &'static str,
}

/// The core, compiled from the sources as they are, by the same compiler and with the same options as edited ones.
pub fn unchanged() -> &'static Core {
    static CORE: OnceLock<&'static Core> = OnceLock::new();
    CORE.get_or_init(|| build(&[]))
}

/// The core, compiled with these edits. The text of each must occur once.
pub fn build(edits: &[Edit]) -> &'static Core {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for part in ["abi", "sched"] {
        copy_headers(&root.join(part), &dir.path().join(part)).expect("copying headers");
    }
    for edit in edits {
        let header = dir.path().join("sched").join(edit.header);
        let text = fs::read_to_string(&header).unwrap_or_else(|error| panic!("{}: {error}", edit.header));
        let count = text.matches(edit.line).count();
        assert_eq!(count, 1, "{} holds {count} times: {}", edit.header, edit.line);
        fs::write(&header, text.replace(edit.line, edit.instead)).expect("writing a header");
    }
    let object = dir.path().join("core.so");
    compile(&root.join("crates/core/src/native.c"), &dir.path().join("sched"), &object);
    load(&object)
}

fn copy_headers(from: &Path, to: &PathBuf) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "h") {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn compile(source: &Path, include: &Path, object: &Path) {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let output = Command::new(&compiler)
        .args(["-shared", "-fPIC", "-O0", "-w", "-I"])
        .args([include, Path::new("-o"), object, source])
        .output()
        .unwrap_or_else(|error| panic!("{compiler:?}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn load(object: &Path) -> &'static Core {
    // SAFETY: the object is the core, which runs nothing when it is loaded, and its table is a `Core`: the compiler saw
    // the same `native.c`. Edits are of arithmetic; a core indexes by `sl_at`, which stays within its arrays. The library
    // is never unloaded, so what is borrowed of it lives as long as the program.
    let core = unsafe {
        let library = Box::leak(Box::new(libloading::Library::new(object).expect("loading the core")));
        let table: libloading::Symbol<*const Core> =
            library.get(Core::SYMBOL.as_bytes()).expect("the table of the core");
        &**table
    };
    assert!(core.fits(), "the sources have changed since this program was compiled");
    core
}
