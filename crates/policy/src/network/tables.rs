//! Files that a policy names: tables of sites and subscribers beside its own file.

use crate::source::Source;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The largest table, bytes: 500 for each of the most subscribers.
pub const MAX_TABLE_BYTES: u64 = 16 << 20;

/// The reader of a table by the path that the policy gives it.
pub type Tables<'a> = &'a dyn Fn(&str) -> Result<Source, Unreadable>;

/// The reason why a table cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The cause, as a clause: `customers.csv: no such file`.
    pub cause: String,
    /// The way out.
    pub cure: String,
}

/// The reader of a policy that has no place of its own, such as one that a client sends: there is nothing beside it.
pub fn no_tables(path: &str) -> Result<Source, Unreadable> {
    Err(Unreadable {
        cause: format!("there is no {path:?} beside a policy that is not read from a file"),
        cure: "write sites and subscribers into the policy itself".to_owned(),
    })
}

/// The reader of tables beside a policy's file. A path is relative to the directory of that file. Only regular files are read, and none above
/// [`MAX_TABLE_BYTES`].
pub(crate) fn beside(policy: &Path) -> impl Fn(&str) -> Result<Source, Unreadable> + use<> {
    let directory = policy.parent().map(Path::to_path_buf).unwrap_or_default();
    move |path| read(&directory.join(path))
}

fn read(path: &PathBuf) -> Result<Source, Unreadable> {
    let because =
        |what: String, cure: &str| Unreadable { cause: format!("{}: {what}", path.display()), cure: cure.to_owned() };
    let failed = |error: io::Error| because(error.to_string(), "check the path: it is relative to the policy's file");
    // A FIFO would be waited for without this flag.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(because("it is no regular file".to_owned(), "write the table to a file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_TABLE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_TABLE_BYTES {
        let what = format!("it is larger than {} MiB, so it is no table of this", MAX_TABLE_BYTES >> 20);
        return Err(because(what, "leave out what is no subscriber, or divide it among several links"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count() + 1;
        because(format!("it is not UTF-8 text (line {line}, byte {offset})"), "save it as UTF-8")
    })?;
    Ok(Source::new(path.display().to_string(), text.strip_prefix('\u{feff}').unwrap_or(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_regular_files_of_some_size_are_read() {
        let directory = std::env::temp_dir().join(format!("sluice-policy-tables-{}", std::process::id()));
        fs::create_dir_all(directory.join("folder")).unwrap();
        fs::write(directory.join("good.csv"), "\u{feff}name").unwrap();
        fs::write(directory.join("latin.csv"), b"a\n\xe4").unwrap();
        fs::File::create(directory.join("large.csv")).unwrap().set_len(MAX_TABLE_BYTES + 1).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(directory.join("pipe.csv")).status().unwrap().success());
        let tables = beside(&directory.join("policy.json"));
        let good = tables("good.csv").unwrap();
        assert_eq!((good.text(), good.name()), ("name", &*directory.join("good.csv").display().to_string()));
        for (path, says) in [
            ("missing.csv", "No such file"),
            ("folder", "no regular file"),
            ("pipe.csv", "no regular file"),
            ("/dev/zero", "no regular file"),
            ("large.csv", "larger than 16 MiB"),
            ("latin.csv", "not UTF-8 text (line 2, byte 2)"),
        ] {
            let error = tables(path).unwrap_err();
            assert!(error.cause.contains(says) && !error.cure.is_empty(), "{path}: {error:?}");
        }
        fs::remove_dir_all(directory).unwrap();
    }
}
