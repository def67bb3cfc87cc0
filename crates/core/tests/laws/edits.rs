//! Shared objects of the C sources, some of whose lines are changed. The laws of `crates/forward` include this file too.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

/// A line of a header and what takes its place.
#[derive(Clone, Copy, Debug)]
pub struct Edit {
    pub header: &'static str,
    pub line: &'static str,
    pub instead: &'static str,
}

/// The sources of a shared object, by their paths in the repository.
pub struct Sources {
    /// The file that is compiled.
    pub native: &'static str,
    /// The directory of headers that it includes, and that are edited.
    pub headers: &'static str,
    /// Directories of headers that those include.
    pub others: &'static [&'static str],
}

/// The table of functions of the sources, compiled with these edits and loaded: the object has it by this name. The text of each edit must occur once.
///
/// # Safety
/// The sources run nothing when they are loaded, and what has the name is a `T`.
pub unsafe fn table<T>(sources: &Sources, edits: &[Edit], name: &str) -> &'static T {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let headers = copied(sources, edits, dir.path());
    let object = dir.path().join("edited.so");
    compile(&root().join(sources.native), &headers, &object);
    // SAFETY: as the caller has promised. The library is never unloaded, so what is borrowed of it lives as long as the program.
    let library = unsafe { libloading::Library::new(object) };
    let library = Box::leak(Box::new(library.expect("loading the object")));
    // SAFETY: likewise.
    unsafe {
        let table: libloading::Symbol<'static, *const T> = library.get(name.as_bytes()).expect("the table");
        &**table
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Copies the headers into a directory, with these edits: where those are that were edited.
pub fn copied(sources: &Sources, edits: &[Edit], into: &Path) -> PathBuf {
    let headers = into.join(sources.headers);
    for part in [sources.headers].iter().chain(sources.others) {
        copy_headers(&root().join(part), &into.join(part)).expect("copying headers");
    }
    for edit in edits {
        let header = headers.join(edit.header);
        let text = fs::read_to_string(&header).unwrap_or_else(|error| panic!("{}: {error}", edit.header));
        let count = text.matches(edit.line).count();
        assert_eq!(count, 1, "{} holds {count} times: {}", edit.header, edit.line);
        fs::write(&header, text.replace(edit.line, edit.instead)).expect("writing a header");
    }
    headers
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
