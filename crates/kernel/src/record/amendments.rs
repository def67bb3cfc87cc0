//! Amendments: changes of single subscribers since a file was written that has a policy's text, a line each in a file beside it. Such a change writes
//! what it changes, however large the network is. Whoever writes the file anew writes the amended text, and the lines count no more.

use crate::system::private;
use serde::{Deserialize, Serialize};
use sluice_error::{Doing, Error, Result};
use sluice_policy::edit::SubscriberChange;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The longest first line.
const LONGEST_HEAD: usize = 256;

/// A file as it was written once: each time that it is written anew, it is another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileId {
    pub inode: u64,
    pub modified_ns: u64,
    pub length_bytes: u64,
}

impl FileId {
    pub fn of(about: &Metadata) -> FileId {
        let modified_ns = (about.mtime() as u64).wrapping_mul(1_000_000_000).wrapping_add(about.mtime_nsec() as u64);
        FileId { inode: about.ino(), modified_ns, length_bytes: about.len() }
    }

    /// The file that stands at a path now.
    pub fn at(path: &Path) -> io::Result<FileId> {
        fs::symlink_metadata(path).map(|about| FileId::of(&about))
    }
}

/// One change of subscribers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Amendment {
    /// Number of the configuration before it.
    pub after: u32,
    /// Number of the configuration that it makes.
    pub generation: u32,
    /// Time of the change, seconds since 1970.
    pub applied_s: u64,
    /// Reason of the change, in the words of its author.
    pub message: Option<String>,
    /// The changes, in order.
    pub changes: Vec<SubscriberChange>,
}

/// The first line: the file that is amended.
#[derive(Serialize, Deserialize)]
struct Head {
    amends: FileId,
}

/// The amendments of a file.
pub(crate) struct Amendments {
    path: PathBuf,
    of: FileId,
}

impl Amendments {
    /// Those of the file at `path`, as long as it is this one.
    pub fn of(path: &Path, of: FileId) -> Amendments {
        Amendments { path: path.with_extension("amendments"), of }
    }

    /// All of them, the oldest first. A line that was broken off is none.
    pub fn read(&self) -> Result<Vec<Amendment>> {
        let text = match private::read(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            text => text.doing(|| format!("reading {}", self.path.display()))?,
        };
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let (head, lines) = whole.split_once('\n').unwrap_or((whole, ""));
        if !self.is_of_this(head) {
            return Ok(Vec::new());
        }
        let line = |(nth, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| {
                Error::system(format!("{}:{}: not a change of subscribers: {error}", self.path.display(), nth + 2))
                    .help("the file is damaged: `sluice down` and `sluice up` begin anew")
            })
        };
        lines.lines().enumerate().map(line).collect()
    }

    fn is_of_this(&self, head: &str) -> bool {
        serde_json::from_str(head).is_ok_and(|head: Head| head.amends == self.of)
    }

    /// Its length in bytes; 0: there are none.
    pub fn length_bytes(&self) -> u64 {
        let length = || -> io::Result<u64> {
            let file = private::open(&self.path)?;
            Ok(if self.heads(&file)? { file.metadata()?.len() } else { 0 })
        };
        length().unwrap_or(0)
    }

    fn heads(&self, file: &File) -> io::Result<bool> {
        let mut head = [0; LONGEST_HEAD];
        let bytes = file.read_at(&mut head, 0)?;
        let line = head[..bytes].split(|byte| *byte == b'\n').next().unwrap_or_default();
        Ok(std::str::from_utf8(line).is_ok_and(|line| self.is_of_this(line)))
    }

    /// Adds one. Returns the length before, for [`Amendments::cut`]. `durable`: it outlives a failure of the machine.
    pub fn append(&self, amendment: &Amendment, durable: bool) -> Result<u64> {
        let append = || -> io::Result<u64> {
            let mut file = private::file(&self.path)?;
            if !self.heads(&file)? {
                file.set_len(0)?;
                file.write_all(format!("{}\n", serde_json::to_string(&Head { amends: self.of })?).as_bytes())?;
            }
            let length = file.metadata()?.len();
            let line = format!("{}\n", serde_json::to_string(amendment)?);
            let written = file.write_all_at(line.as_bytes(), length);
            let written = written.and_then(|()| if durable { file.sync_data() } else { Ok(()) });
            if written.is_err() {
                // A part of a line counts for nothing, but the next one would be joined to it.
                let _ = file.set_len(length);
            }
            written.map(|()| length)
        };
        append().doing(|| format!("writing {}", self.path.display()))
    }

    /// Removes what was appended behind this length.
    pub fn cut(&self, length_bytes: u64) -> Result<()> {
        private::file(&self.path)
            .and_then(|file| file.set_len(length_bytes))
            .doing(|| format!("writing {}", self.path.display()))
    }

    /// Removes the file, whichever it amends.
    pub fn remove(path: &Path) {
        // One that stays amends a file that is no more.
        let _ = fs::remove_file(path.with_extension("amendments"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amendment(generation: u32) -> Amendment {
        let change = SubscriberChange::Remove { name: "a\nb".to_owned() };
        Amendment { after: generation - 1, generation, applied_s: 1, message: None, changes: vec![change] }
    }

    #[test]
    fn they_are_of_one_file_and_whole() {
        let directory = std::env::temp_dir().join(format!("sluice-amendments-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("creating");
        let path = directory.join("eth0.json");
        fs::write(&path, "one").expect("writing");
        let own = Amendments::of(&path, FileId::at(&path).expect("there"));
        assert_eq!((own.read().expect("none"), own.length_bytes()), (Vec::new(), 0));
        own.append(&amendment(2), true).expect("appended");
        let length = own.append(&amendment(3), false).expect("appended");
        assert_eq!(own.read().expect("two"), [amendment(2), amendment(3)]);
        own.cut(length).expect("cut");
        assert_eq!((own.read().expect("one"), own.length_bytes()), (vec![amendment(2)], length));
        let file = private::file(&own.path).expect("opened");
        file.write_all_at(b"{\"generation\": 4", length).expect("broken off");
        assert_eq!(own.read().expect("one"), [amendment(2)]);
        file.write_all_at(b"\n", file.metadata().expect("there").len()).expect("damaged");
        assert!(own.read().is_err());
        fs::remove_file(&path).and_then(|()| fs::write(&path, "another one")).expect("written anew");
        let other = Amendments::of(&path, FileId::at(&path).expect("there"));
        assert_eq!((other.read().expect("none"), other.length_bytes()), (Vec::new(), 0));
        other.append(&amendment(9), false).expect("appended");
        assert_eq!(other.read().expect("one"), [amendment(9)]);
        assert_eq!(own.read().expect("none of the former"), []);
        fs::remove_file(&other.path).expect("removed");
        nix::unistd::mkfifo(&other.path, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
        assert!(other.read().is_err() && other.append(&amendment(9), false).is_err(), "it is not waited for");
        assert_eq!(other.length_bytes(), 0);
        fs::remove_dir_all(&directory).expect("removed");
    }
}
