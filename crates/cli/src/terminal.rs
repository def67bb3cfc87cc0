//! Colours, and ending without a word when the reader of a pipe has gone.

use crate::args::When;
use crate::failure::Failure;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sluice_policy::difference::{Line, Sign};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

/// Whether to colour, by the option, the terminal, and the wish in NO_COLOR (no-color.org).
pub fn colors(when: When) -> bool {
    match when {
        When::Always => true,
        When::Never => false,
        When::Auto => {
            std::env::var_os("NO_COLOR").is_none() && io::stdout().is_terminal() && io::stderr().is_terminal()
        }
    }
}

/// `sluice status | head` ends like any other tool: by SIGPIPE, not by a panic.
pub fn end_quietly_when_nobody_reads() {
    // SAFETY: at the start of main no other thread runs, and the default action is always valid.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// A server goes on when a reader of one of its connections has gone.
pub fn survive_readers_that_go() {
    // SAFETY: ignoring a signal is always valid. Programs that are started get the default action back from std.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// How long a command that seldom prints may take to notice that nobody reads.
pub const LOOK_FOR_READERS: Duration = Duration::from_secs(1);

/// Whether our output is a pipe that nobody reads any more.
pub fn has_no_reader() -> bool {
    let stdout = io::stdout();
    let mut watched = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    poll(&mut watched, PollTimeout::ZERO).is_ok()
        && watched[0].revents().is_some_and(|what| what.contains(PollFlags::POLLERR))
}

/// The first error of writing to standard output.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints. An error is told at the end, by [`lost`]: it must not stop a change halfway.
pub fn say(text: &str) {
    write(text.as_bytes());
}

/// Prints bytes. Returns whether they are written.
pub fn write(bytes: &[u8]) -> bool {
    let written = io::stdout().write_all(bytes).and_then(|()| io::stdout().flush());
    written.map_err(|error| _ = LOST.set(error)).is_ok()
}

/// The failure of a command whose output is lost, as on a full disk.
pub fn lost() -> Option<Failure> {
    let told = |error| format!("the output cannot be written: {error}; changes that the command has made stay");
    LOST.get().map(|error| Failure::system(told(error)))
}

/// As `print!`, but without a panic where the output cannot be written.
macro_rules! out {
    ($($text:tt)*) => { $crate::terminal::say(&format!($($text)*)) };
}

/// As `println!`, but without a panic where the output cannot be written.
macro_rules! outln {
    ($($text:tt)*) => { $crate::terminal::say(&(format!($($text)*) + "\n")) };
}

/// A line of a difference: green, red or yellow.
pub fn change(line: &Line, color: bool) -> String {
    let code = match line.sign {
        Sign::Added => "32",
        Sign::Removed => "31",
        Sign::Changed => "33",
    };
    if color { format!("\x1b[{code}m{line}\x1b[0m") } else { line.to_string() }
}

/// The time of day here, of seconds since 1970.
pub fn time_of_day(at_s: f64) -> String {
    let at = jiff::Timestamp::from_millisecond((at_s * 1e3) as i64).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S%.3f").to_string()
}

/// A rate for people: at most four digits, with its unit.
pub fn rate(bps: u64) -> String {
    scaled(bps as f64, 1000.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

/// A size for people.
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
