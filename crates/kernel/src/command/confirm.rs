//! Changes that are taken back unless they are confirmed, as `commit confirmed` of NETCONF (RFC 6241, 8.4) and Junos does.
//!
//! The deadline is on record before the change takes force. A process of its own waits for it, in a transient unit of systemd
//! where systemd runs: the process needs neither the command that began it, nor its service, nor a terminal. If the process is
//! killed, the next command finds the deadline overdue.

pub use crate::command::waiting::WAITING;

use crate::command::recover::{recover, recover_with};
use crate::engine::managed::managed;
use crate::fault;
use crate::record::Record;
use crate::record::history::{self, Outcome};
use crate::system::lock::{Lock, Patience};
use crate::system::privilege::require_root;
use crate::system::{clock, paths};
use jiff::SignedDuration;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use sluice_error::{Doing, Error, Result};
use std::os::fd::AsFd;
use std::time::Duration;

/// The times that options may give.
const TIMES: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
/// Number of the waiting process's attempts to revert, and the time between two of them.
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_secs(3);

/// Reads the time of `--confirm`.
pub fn time(text: &str) -> Result<Duration> {
    time_of("--confirm", text)
}

/// Reads the time of an option, which errors name.
pub fn time_of(option: &str, text: &str) -> Result<Duration> {
    let wrong = |what: &str| {
        Error::input(format!("{option} {text}: {what}"))
            .help("give a time from 1s to 24h with its unit, such as 60s or 5m")
    };
    let time = text.parse::<SignedDuration>().map_err(|_| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        wrong(if digits { "the unit is missing" } else { "this is not a time" })
    })?;
    let time = Duration::try_from(time).map_err(|_| wrong("a time cannot be negative"))?;
    if TIMES.contains(&time) { Ok(time) } else { Err(wrong("this is not between 1s and 24h")) }
}

/// Confirms the change that waits on an interface. Returns the record as it is now.
pub fn confirm(interface: &str) -> Result<Record> {
    require_root()?;
    recover()?;
    let _lock = Lock::take()?;
    let mut record = managed(interface)?;
    if record.unconfirmed.is_none() {
        return Err(Error::input(format!("{interface}: nothing waits to be confirmed"))
            .help(format!("`sluice apply {interface} POLICY --confirm 60s` makes a change that does; `sluice history {interface}` shows what was taken back")));
    }
    fault::point("confirm-found");
    record.unconfirmed = None;
    record.save()?;
    fault::point("confirm-recorded");
    history::settle(&record.key, Outcome::Applied);
    fault::point("confirm-noted");
    Ok(record)
}

/// Time until the unconfirmed change is taken back; none: no change waits.
pub fn left(interface: &str) -> Result<Option<Duration>> {
    Ok(managed(interface)?.unconfirmed.map(|unconfirmed| unconfirmed.left()))
}

/// Runs the waiting process: until the deadline, or until no change waits any more.
pub fn wait(key: &str, deadline_ms: u64) -> Result<()> {
    require_root()?;
    let directory = paths::run();
    let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).doing(|| "inotify".to_owned())?;
    inotify
        .add_watch(directory, AddWatchFlags::IN_MOVED_TO | AddWatchFlags::IN_DELETE)
        .doing(|| format!("watching {}", directory.display()))?;
    let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, TimerFlags::TFD_CLOEXEC).doing(|| "timerfd".to_owned())?;
    let deadline = TimeSpec::from_duration(Duration::from_millis(deadline_ms));
    timer
        .set(Expiration::OneShot(deadline), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
        .doing(|| "setting a timer".to_owned())?;
    let mut tries = 0;
    while is_awaited(key, deadline_ms) {
        if clock::since_boot() >= Duration::from_millis(deadline_ms) {
            // A process that holds the lock delays the revert, and must not prevent it.
            recover_with(Patience::Endless)?;
            tries += 1;
            if tries == TRIES || !is_awaited(key, deadline_ms) {
                break;
            }
            std::thread::sleep(BETWEEN_TRIES);
            continue;
        }
        let mut fds = [PollFd::new(inotify.as_fd(), PollFlags::POLLIN), PollFd::new(timer.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(Error::system(format!("waiting: {error}"))),
        }
        // The record, not the event, shows what has happened.
        let _ = inotify.read_events();
    }
    Ok(())
}

/// Whether the change of this deadline waits for confirmation, in force or not yet.
fn is_awaited(key: &str, deadline_ms: u64) -> bool {
    let waits =
        |record: &Record| record.unconfirmed.as_ref().is_some_and(|unconfirmed| unconfirmed.deadline_ms == deadline_ms);
    // While a later change is on its way, this change is in that record's `before`.
    matches!(Record::of_key(key), Ok(Some(record)) if waits(&record) || record.before.as_deref().is_some_and(waits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_bounds() {
        for (text, seconds) in [("60s", 60), ("5m", 300), ("1h", 3600), ("90 s", 90), ("1m 30s", 90), ("24h", 86_400)] {
            assert_eq!(time(text).map_err(|error| error.what), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for (text, what) in [
            ("60", "the unit is missing"),
            ("-1s", "negative"),
            ("1y", "not a time"),
            ("", "not a time"),
            ("soon", "not a time"),
            ("0s", "not between 1s and 24h"),
            ("500ms", "not between 1s and 24h"),
            ("25h", "not between 1s and 24h"),
            ("99999999999999999999s", "not a time"),
        ] {
            let error = time(text).expect_err(text);
            assert!(error.what.contains(what), "{text}: {}", error.what);
            assert_eq!(error.exit_code(), 2);
            assert!(error.cure.is_some());
        }
    }
}
