//! Waits for a file to change, or for a signal to end.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use sluice_error::{Doing, Error, Result};
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time without events after which the file is looked at: editors write in several steps.
const QUIET: Duration = Duration::from_millis(200);

/// An event of a watched file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The file was written, or another has taken its place.
    Changed,
    /// No event within the limit.
    Nothing,
    /// SIGINT or SIGTERM has arrived.
    Stopped,
}

/// A file that is watched by its directory, so that another which takes its place is seen.
pub struct Watch {
    inotify: Inotify,
    signals: SignalFd,
    directories: Vec<PathBuf>,
    names: Vec<OsString>,
}

impl Watch {
    /// Begins to watch. From now on SIGINT and SIGTERM do not end the process, but become events.
    pub fn new(path: &Path) -> Result<Watch> {
        let gone = |error: std::io::Error| {
            Error::input(format!("cannot watch {}: {error}", path.display())).help("give the path of a policy file")
        };
        let whole = path.canonicalize().map_err(gone)?;
        if !whole.is_file() {
            return Err(Error::input(format!("cannot watch {}: it is not a file", path.display()))
                .help("give the path of a policy file"));
        }
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).doing(|| "inotify".to_owned())?;
        let (mut directories, mut names) = (Vec::new(), Vec::new());
        // Where the path is a link, either end may change.
        for end in [std::path::absolute(path).map_err(gone)?, whole] {
            if let (Some(directory), Some(name)) = (end.parent(), end.file_name()) {
                directories.push(directory.to_owned());
                names.push(name.to_owned());
            }
        }
        let flags = AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF;
        for directory in &directories {
            inotify.add_watch(directory, flags).doing(|| format!("watching {}", directory.display()))?;
        }
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
        signals.thread_block().doing(|| "blocking signals".to_owned())?;
        let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC).doing(|| "signalfd".to_owned())?;
        Ok(Watch { inotify, signals, directories, names })
    }

    /// Waits for the next event, no longer than `limit`.
    pub fn next(&mut self, limit: Option<Duration>) -> Result<Event> {
        let mut changed = false;
        loop {
            let limit = if changed { Some(QUIET) } else { limit };
            match self.poll(limit)? {
                Event::Stopped => return Ok(Event::Stopped),
                Event::Nothing if changed => return Ok(Event::Changed),
                Event::Nothing if limit.is_some() => return Ok(Event::Nothing),
                Event::Nothing => {}
                Event::Changed => changed |= self.concerns_the_file()?,
            }
        }
    }

    fn poll(&self, limit: Option<Duration>) -> Result<Event> {
        let timeout = limit.map_or(Ok(PollTimeout::NONE), PollTimeout::try_from).unwrap_or(PollTimeout::MAX);
        let mut fds = [
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.inotify.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut fds, timeout) {
            Ok(0) | Err(nix::Error::EINTR) => Ok(Event::Nothing),
            Ok(_) if fds[0].any() == Some(true) => Ok(Event::Stopped),
            Ok(_) => Ok(Event::Changed),
            Err(error) => Err(Error::system(format!("waiting: {error}"))),
        }
    }

    fn concerns_the_file(&self) -> Result<bool> {
        let events = self.inotify.read_events().doing(|| "reading which files have changed".to_owned())?;
        let gone = AddWatchFlags::IN_DELETE_SELF | AddWatchFlags::IN_MOVE_SELF;
        if events.iter().any(|event| event.mask.intersects(gone)) {
            let names: Vec<String> = self.directories.iter().map(|directory| directory.display().to_string()).collect();
            return Err(Error::system(format!("the watched directory has gone: {}", names.join(" or "))));
        }
        // An overflow may have lost an event of the file.
        let lost = |event: &nix::sys::inotify::InotifyEvent| event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW);
        Ok(events.iter().any(|event| lost(event) || event.name.as_ref().is_some_and(|name| self.names.contains(name))))
    }
}
