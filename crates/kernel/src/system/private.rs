//! Directories and files that belong to root alone: other users who can write where they stand must not choose their content,
//! have another file read instead, or hold a lock.

use sluice_error::{Doing, Error, Result};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Rights of directories.
const DIRECTORY_MODE: u32 = 0o700;
/// Rights of files.
const FILE_MODE: u32 = 0o600;
/// Attempts to make a directory while another process makes one too.
const ATTEMPTS: u32 = 100;
/// The longest file that is read, bytes.
const LONGEST: u64 = 64 << 20;

/// Makes a directory for this user alone, and those above it. A directory of this user that is there loses the rights of others; a
/// directory of another user, or a file that is no directory, is removed first.
pub fn directory(path: &Path) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).doing(|| format!("creating {}", parent.display()))?;
    }
    for _ in 0..ATTEMPTS {
        match own_directory(path) {
            Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {}
            done => return done.doing(|| format!("creating {}", path.display())),
        }
    }
    Err(Error::system(format!("creating {}: another process creates it again and again", path.display()))
        .help("find the process that writes there, and end it"))
}

/// One attempt to make a directory. `AlreadyExists` or `NotFound`: another process was faster.
fn own_directory(path: &Path) -> io::Result<()> {
    let there = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return DirBuilder::new().mode(DIRECTORY_MODE).create(path);
        }
        there => there?,
    };
    if there.is_dir() && there.uid() == nix::unistd::geteuid().as_raw() {
        if there.mode() & 0o7777 != DIRECTORY_MODE {
            fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE))?;
        }
        return Ok(());
    }
    if there.is_dir() {
        fs::remove_dir_all(path)?
    } else {
        fs::remove_file(path)?
    }
    DirBuilder::new().mode(DIRECTORY_MODE).create(path)
}

/// Opens a file to write to, which only this user can open.
pub fn file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    let file = options.mode(FILE_MODE).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    only_regular(&file)?;
    if file.metadata()?.mode() & 0o7777 != FILE_MODE {
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    }
    Ok(file)
}

/// Writes a file that only this user can read, in place of its former content.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let written = || -> io::Result<()> {
        let mut file = file(path)?;
        file.set_len(0)?;
        file.write_all(text.as_bytes())
    };
    written().doing(|| format!("writing {}", path.display()))
}

/// Opens a file of this user that is there, to read and to write. A link is not followed.
pub fn file_that_is_there(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    only_regular(&file)?;
    Ok(file)
}

/// Opens a regular file to read. A link is not followed, and a FIFO is not waited for.
pub fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    only_regular(&file)?;
    Ok(file)
}

/// The text of a regular file. A link is not followed, and a file that could block its reader, such as a FIFO, is not read.
pub fn read(path: &Path) -> io::Result<String> {
    read_with_metadata(path).map(|(text, _)| text)
}

/// As [`read`], with what the file was when it was opened.
pub fn read_with_metadata(path: &Path) -> io::Result<(String, Metadata)> {
    let file = open(path)?;
    let about = file.metadata()?;
    let mut text = String::new();
    let bytes = file.take(LONGEST + 1).read_to_string(&mut text)?;
    if bytes as u64 > LONGEST {
        return Err(io::Error::other(format!("it is longer than {LONGEST} bytes")));
    }
    Ok((text, about))
}

fn only_regular(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() { Ok(()) } else { Err(io::Error::other("it is not a regular file")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    /// An empty directory that goes with the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("sluice-private-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).expect("creating");
            Scratch(path)
        }

        fn has(&self, name: &str, mode: u32) -> bool {
            fs::symlink_metadata(self.0.join(name)).is_ok_and(|about| about.is_dir() && about.mode() & 0o7777 == mode)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn directory_belongs_to_its_owner_alone() {
        let scratch = Scratch::new("directories");
        let path = scratch.0.join("new");
        directory(&path).expect("a new one");
        assert!(scratch.has("new", DIRECTORY_MODE));
        fs::set_permissions(&path, Permissions::from_mode(0o1777)).expect("chmod");
        fs::write(path.join("kept"), "").expect("writing");
        directory(&path).expect("one that others could write to");
        assert!(scratch.has("new", DIRECTORY_MODE) && path.join("kept").exists());
        symlink("/etc", scratch.0.join("link")).expect("a link");
        directory(&scratch.0.join("link")).expect("in place of a link");
        assert!(scratch.has("link", DIRECTORY_MODE) && Path::new("/etc/passwd").exists());
        fs::write(scratch.0.join("file"), "").expect("writing");
        directory(&scratch.0.join("file")).expect("in place of a file");
        assert!(scratch.has("file", DIRECTORY_MODE));
        if nix::unistd::geteuid().is_root() {
            let foreign = scratch.0.join("foreign");
            fs::create_dir_all(foreign.join("below")).expect("creating");
            std::os::unix::fs::chown(&foreign, Some(65_534), Some(65_534)).expect("chown");
            directory(&foreign).expect("in place of another user's");
            let about = fs::symlink_metadata(&foreign).expect("there");
            assert_eq!((about.uid(), about.mode() & 0o7777), (0, DIRECTORY_MODE));
            assert!(!foreign.join("below").exists());
        }
    }

    #[test]
    fn only_regular_files_are_read_and_nothing_is_waited_for() {
        let scratch = Scratch::new("files");
        let at = |name: &str| scratch.0.join(name);
        fs::write(at("file"), "text").expect("writing");
        assert_eq!(read(&at("file")).expect("a file"), "text");
        symlink(at("file"), at("link")).expect("a link");
        nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
        for name in ["link", "fifo", "."] {
            assert!(read(&at(name)).is_err(), "{name}");
            assert!(file(&at(name)).is_err(), "{name}");
        }
        assert_eq!(read(&at("missing")).expect_err("nothing").kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_file_that_others_could_open_is_closed_to_them() {
        let scratch = Scratch::new("modes");
        let path = scratch.0.join("lock");
        fs::write(&path, "").expect("writing");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("chmod");
        assert_eq!(file(&path).expect("opened").metadata().expect("metadata").mode() & 0o7777, FILE_MODE);
    }
}
