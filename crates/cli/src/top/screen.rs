//! The terminal in raw mode, restored on every way out.

use super::app::{Action, App};
use super::draw;
use crate::failure::Failure;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longest time until a signal is noticed.
const SIGNAL_POLL: Duration = Duration::from_millis(200);

/// Time-out of a poll for an event that has arrived; with 0 crossterm does not look.
const READ_EVENT: Duration = Duration::from_millis(1);

/// A terminal in raw mode, restored when this is dropped or the process panics.
pub struct Screen {
    terminal: DefaultTerminal,
    stop: Arc<AtomicBool>,
}

impl Screen {
    /// Puts the terminal into raw mode.
    pub fn take() -> Result<Screen, Failure> {
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            return Err(Failure::input(
                "a live view needs a terminal, and standard input or output is none",
                "--once prints a table, --json an object a line",
            ));
        }
        if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
            return Err(Failure::input(
                "TERM=dumb: this terminal can print, but not be drawn on",
                "--once prints a table, --json an object a line; TERM=xterm if it can after all",
            ));
        }
        let stop = Arc::new(AtomicBool::new(false));
        // A hang-up (SIGHUP) ends the process without restoring the terminal.
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(failed)?;
        }
        // This also makes a panic restore the terminal before its message is printed.
        let terminal = ratatui::try_init().map_err(failed)?;
        Ok(Screen { terminal, stop })
    }

    /// Draws and handles keys until the next sample is due or another pane needs one. Returns whether to end.
    pub fn until(&mut self, deadline: Instant, app: &mut App) -> Result<Action, Failure> {
        loop {
            self.terminal.draw(|frame| draw::draw(frame, app)).map_err(failed)?;
            loop {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(Action::Quit);
                }
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(Action::Draw);
                }
                if has_hung_up(left.min(SIGNAL_POLL)) {
                    return Ok(Action::Quit);
                }
                if event::poll(READ_EVENT).map_err(failed)? {
                    break;
                }
            }
            let Event::Key(key) = event::read().map_err(failed)? else { continue };
            let pane = app.pane;
            if key.kind != KeyEventKind::Release && app.key(key) == Action::Quit {
                return Ok(Action::Quit);
            }
            if app.pane != pane {
                return Ok(Action::Draw);
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Waits for keys, a signal (as at a change of size) or the time-out. Returns whether the terminal has gone: then reading would
/// not end in the library that reads keys.
fn has_hung_up(most: Duration) -> bool {
    let stdin = io::stdin();
    let mut watched = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(most).unwrap_or(PollTimeout::ZERO);
    let heard = poll(&mut watched, timeout).is_ok();
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    heard && watched[0].revents().is_some_and(|what| what.intersects(gone))
}

fn failed(error: io::Error) -> Failure {
    Failure::system(format!("the terminal: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::pty::{Winsize, openpty};
    use nix::sys::signal::{Signal, raise};
    use nix::sys::termios::{Termios, tcgetattr};
    use std::fs::File;
    use std::io::{Read, Write};
    use std::num::NonZeroU16;
    use std::os::fd::OwnedFd;
    use std::process::{Child, Command, Stdio};

    const ROWS: NonZeroU16 = NonZeroU16::new(24).unwrap();
    const COLUMNS: NonZeroU16 = NonZeroU16::new(80).unwrap();
    /// Time that suffices for every step of these tests.
    const LONG: Duration = Duration::from_secs(10);

    /// The test below runs this in a terminal and a process of its own: a panic changes the terminal of the whole process.
    #[test]
    #[ignore = "it panics: the test below runs it"]
    fn panics_with_the_screen() {
        let _screen = Screen::take().unwrap_or_else(|failure| panic!("{}", failure.render(false)));
        panic!("as it was told to");
    }

    /// The test below runs this in a terminal of its own: a change of size arrives, and a key before it is read.
    #[test]
    #[ignore = "it needs a terminal: the test below runs it"]
    fn reads_a_size_and_a_key() {
        let _screen = Screen::take().unwrap_or_else(|failure| panic!("{}", failure.render(false)));
        assert!(!event::poll(READ_EVENT).expect("events"), "nothing has happened yet");
        raise(Signal::SIGWINCH).expect("another size");
        println!("press");
        assert!(!has_hung_up(LONG), "a key comes");
        let (mut size, mut key) = (false, false);
        while !(size && key) && event::poll(LONG).expect("events") {
            match event::read().expect("an event") {
                Event::Resize(..) => size = true,
                Event::Key(_) => key = true,
                _ => {}
            }
        }
        assert!(size && key, "size {size}, key {key}");
    }

    #[test]
    fn key_after_a_resize_is_read() {
        let mut own = OwnTerminal::start("reads_a_size_and_a_key");
        own.read_until("press");
        own.terminal.write_all(b"q").expect("pressing a key");
        let (code, _, written) = own.end();
        assert_eq!(code, Some(0), "{}", String::from_utf8_lossy(&written));
    }

    #[test]
    fn panic_restores_the_terminal_before_its_message() {
        let own = OwnTerminal::start("panics_with_the_screen");
        let before = own.before.clone();
        let (code, after, written) = own.end();
        assert_eq!(code, Some(101), "a test that has panicked");
        assert_eq!(after, before);
        let text = String::from_utf8_lossy(&written);
        let mut shown = vt100::Parser::new(ROWS, COLUMNS, 0);
        shown.process(&written);
        assert!(text.contains("\x1b[?1049h"), "it was taken over: {text:?}");
        assert!(!shown.screen().alternate_screen() && !shown.screen().hide_cursor(), "{text:?}");
        assert!(shown.screen().contents().contains("as it was told to"), "the panic is seen: {text:?}");
    }

    /// An ignored test of this file, run in a process and a terminal of its own.
    struct OwnTerminal {
        child: Child,
        terminal: File,
        line: OwnedFd,
        before: Termios,
        written: Vec<u8>,
    }

    impl OwnTerminal {
        fn start(test: &str) -> OwnTerminal {
            let size = Winsize { ws_row: ROWS.get(), ws_col: COLUMNS.get(), ws_xpixel: 0, ws_ypixel: 0 };
            let pty = openpty(&size, None).expect("a pty");
            let before = tcgetattr(&pty.slave).expect("the terminal's state");
            let side = || Stdio::from(pty.slave.try_clone().expect("the terminal once more"));
            let mut command = Command::new(std::env::current_exe().expect("this program"));
            command.args(["--exact", &format!("top::screen::tests::{test}"), "--ignored", "--nocapture"]);
            // A backtrace would push the panic's message off the terminal.
            command.env("TERM", "xterm").env("RUST_BACKTRACE", "0");
            let child = command.stdin(side()).stdout(side()).stderr(side()).spawn();
            let child = child.expect("starting this program");
            OwnTerminal { child, terminal: File::from(pty.master), line: pty.slave, before, written: Vec::new() }
        }

        /// Reads the output until it contains this text.
        fn read_until(&mut self, text: &str) {
            let mut bytes = [0; 256];
            while !String::from_utf8_lossy(&self.written).contains(text) {
                let count = self.terminal.read(&mut bytes).expect("reading");
                self.written.extend_from_slice(&bytes[..count]);
            }
        }

        /// Waits for the end: the exit code, the terminal's state then, and all output.
        fn end(self) -> (Option<i32>, Termios, Vec<u8>) {
            let OwnTerminal { mut child, mut terminal, line, mut written, .. } = self;
            let reader = std::thread::spawn(move || {
                // Reading fails once no process has the other side open.
                let _ = terminal.read_to_end(&mut written);
                written
            });
            let code = child.wait().expect("its end").code();
            let after = tcgetattr(&line).expect("the terminal's state");
            drop(line);
            (code, after, reader.join().expect("reading"))
        }
    }
}
