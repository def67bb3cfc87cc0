//! Colours, output, and the end of a command whose reader closes the pipe.

use crate::args::When;
use crate::failure::Failure;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sluice_policy::difference::{Line, Sign};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

/// Whether to print colours, by `--color`, the terminal and NO_COLOR (no-color.org).
pub fn colors(when: When) -> bool {
    match when {
        When::Always => true,
        When::Never => false,
        When::Auto => {
            std::env::var_os("NO_COLOR").is_none() && io::stdout().is_terminal() && io::stderr().is_terminal()
        }
    }
}

/// Restores SIGPIPE's default action, so that `sluice status | head` ends like any other tool instead of panicking.
pub fn restore_sigpipe() {
    // SAFETY: at the start of main no other thread runs, and the default action is always valid.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Ignores SIGPIPE: a server continues when a client closes its connection.
pub fn ignore_sigpipe() {
    // SAFETY: ignoring a signal is always valid. Programs that are started get the default action back from std.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Interval at which a command that seldom prints checks whether its output is still read.
pub const READER_POLL: Duration = Duration::from_secs(1);

/// Whether standard output is a pipe without a reader.
pub fn has_no_reader() -> bool {
    let stdout = io::stdout();
    let mut watched = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    poll(&mut watched, PollTimeout::ZERO).is_ok()
        && watched[0].revents().is_some_and(|what| what.contains(PollFlags::POLLERR))
}

/// The first error of writing to standard output.
static WRITE_ERROR: OnceLock<io::Error> = OnceLock::new();

/// Prints. A write error does not stop a change halfway; [`write_failure`] reports it at the end.
pub fn say(text: &str) {
    write(text.as_bytes());
}

/// Prints bytes and returns whether they were written.
pub fn write(bytes: &[u8]) -> bool {
    let written = io::stdout().write_all(bytes).and_then(|()| io::stdout().flush());
    written.map_err(|error| _ = WRITE_ERROR.set(error)).is_ok()
}

/// The failure of a command whose output could not be written, as on a full disk.
pub fn write_failure() -> Option<Failure> {
    let failure = |error| format!("the output cannot be written: {error}; changes that the command has made stay");
    WRITE_ERROR.get().map(|error| Failure::system(failure(error)))
}

/// `print!` without the panic on a write error.
macro_rules! out {
    ($($text:tt)*) => { $crate::terminal::say(&format!($($text)*)) };
}

/// `println!` without the panic on a write error.
macro_rules! outln {
    ($($text:tt)*) => { $crate::terminal::say(&(format!($($text)*) + "\n")) };
}

/// A line of a difference in green, red or yellow.
pub fn change(line: &Line, color: bool) -> String {
    let code = match line.sign {
        Sign::Added => "32",
        Sign::Removed => "31",
        Sign::Changed => "33",
    };
    if color { format!("\x1b[{code}m{line}\x1b[0m") } else { line.to_string() }
}

/// The local time of day of a Unix time in seconds.
pub fn time_of_day(at_s: f64) -> String {
    let at = jiff::Timestamp::from_millisecond((at_s * 1e3) as i64).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S%.3f").to_string()
}

/// A rate of at most four digits, with its unit.
pub fn rate(bps: u64) -> String {
    scaled(bps as f64, 1000.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

/// A size with its unit.
pub fn bytes(bytes: u64) -> String {
    scaled(bytes as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    if unit == 0 || value >= 100.0 || value.fract() == 0.0 {
        format!("{value:.0} {}", units[unit])
    } else {
        format!("{value:.1} {}", units[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        assert_eq!(rate(19_000_000), "19 Mbit/s");
        assert_eq!(rate(1_500_000), "1.5 Mbit/s");
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(1 << 20), "1 MiB");
    }
}
