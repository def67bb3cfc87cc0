//! The lock of the machine: one command at a time changes something.

use crate::system::{paths, private};
use nix::fcntl::{FcntlArg, FdFlag, Flock, FlockArg, fcntl};
use sluice_error::{Doing, Error, Result};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Time that a command waits for others. Commands take seconds; a slow emulated machine needs more.
const DEADLINE: Duration = Duration::from_secs(60);
/// Time between two attempts to lock.
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// Limit of the wait for the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// No wait: the command that holds the lock does or has done the same.
    None,
    /// A wait as long as commands take, then an error.
    Some,
    /// A wait without limit.
    Endless,
}

/// The lock that a command holds while it changes anything; other commands wait.
///
/// The tools that a command runs inherit the lock: if the command is killed, the next one waits until they have ended.
pub(crate) struct Lock(#[expect(dead_code, reason = "the lock is released when the file is closed")] Flock<File>);

impl Lock {
    /// Takes the lock, after waiting for other commands.
    pub(crate) fn take() -> Result<Lock> {
        Lock::wait(Patience::Some)?.ok_or_else(|| Error::system("the lock was not waited for"))
    }

    /// Waits for the lock as long as `patience` allows. None: another process holds it, and `patience` is `None`.
    pub(crate) fn wait(patience: Patience) -> Result<Option<Lock>> {
        private::directory(paths::run())?;
        let path = paths::run().join("lock");
        let limit = match patience {
            Patience::None => Some(Duration::ZERO),
            Patience::Some => Some(DEADLINE),
            Patience::Endless => None,
        };
        match lock(&path, limit)? {
            Some(lock) => Ok(Some(lock)),
            None if patience == Patience::None => Ok(None),
            None => Err(held(&path, DEADLINE)),
        }
    }
}

/// Locks a file. None: another process still holds it at the limit.
fn lock(path: &Path, limit: Option<Duration>) -> Result<Option<Lock>> {
    let mut file = private::file(path).doing(|| path.display().to_string())?;
    fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty())).doing(|| format!("keeping {} open", path.display()))?;
    let deadline = limit.map(|limit| Instant::now() + limit);
    loop {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(held) => return Ok(Some(Lock(held))),
            Err((file, nix::Error::EWOULDBLOCK)) => file,
            Err((_, error)) => return Err(Error::system(format!("locking {}: {error}", path.display()))),
        };
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Ok(None);
        }
        thread::sleep(BETWEEN_TRIES);
    }
}

/// The error of a lock that is held too long.
fn held(path: &Path, limit: Duration) -> Error {
    let what = |holder: &str| format!("{} has been held for {} s by {holder}", path.display(), limit.as_secs());
    match holder(path) {
        Some(Holder { pid, command }) => Error::system(what(&format!("process {pid}: {command}")))
            .help(format!("wait for its end, or end it: kill {pid}; the next command mends an interrupted change")),
        None => Error::system(what("a process that cannot be seen"))
            .help("it is in another PID namespace, such as a container's: look there, with `lslocks`"),
    }
}

/// A process that holds a lock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub pid: u32,
    pub command: String,
}

/// The process that holds the lock: the one that locked it, or one that has inherited it.
pub(crate) fn holder(path: &Path) -> Option<Holder> {
    let about = fs::metadata(path).ok()?;
    let inode = format!(":{}", about.ino());
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    // 1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF; a waiting process has -> behind the number.
    let locked = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).filter_map(|words| {
        let mine = words.get(1) == Some(&"FLOCK") && words.get(5).is_some_and(|file| file.ends_with(&inode));
        if mine { words.get(4)?.parse().ok() } else { None }
    });
    let opened = fs::read_dir("/proc").into_iter().flatten().flatten();
    let opened = opened.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).filter(|pid| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        *pid != std::process::id()
            && files.into_iter().any(|file| {
                fs::metadata(file.path()).is_ok_and(|open| (open.dev(), open.ino()) == (about.dev(), about.ino()))
            })
    });
    locked.chain(opened).find_map(|pid| Some(Holder { pid, command: command(pid)? }))
}

/// The command line of a process.
fn command(pid: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
    let text = String::from_utf8_lossy(&words.join(&b' ')).into_owned();
    Some(text.chars().filter(|c| !c.is_control()).take(200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::OpenOptionsExt;

    #[test]
    fn holder_of_a_lock_is_named() {
        let path = std::env::temp_dir().join(format!("sluice-lock-{}", std::process::id()));
        let short = Some(Duration::from_millis(50));
        let first = lock(&path, short).expect("a file").expect("a free lock");
        assert!(lock(&path, short).expect("a file").is_none(), "it is held");
        let error = held(&path, DEADLINE);
        let own = std::process::id();
        assert!(error.what.contains(&format!("for 60 s by process {own}: ")), "{}", error.what);
        assert!(error.cure.is_some_and(|cure| cure.contains(&format!("kill {own}"))));
        drop(first);
        // A tool that has inherited the lock holds it alone, once the command is gone.
        let inherited = fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(&path).expect("a file");
        let inherited =
            Flock::lock(inherited, FlockArg::LockExclusive).map_err(|(_, error)| error).expect("free again");
        assert!(lock(&path, short).expect("a file").is_none());
        drop(inherited);
        assert!(lock(&path, short).expect("a file").is_some());
        fs::remove_file(&path).expect("removing");
    }
}
