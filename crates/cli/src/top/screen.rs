//! The terminal: taken over, drawn on, and given back whatever happens.

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

/// The longest time until a signal is noticed.
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(200);

/// Time-out of a poll for an event that is there already; with 0 crossterm does not look.
const READ_EVENT: Duration = Duration::from_millis(1);

/// A terminal that is ours until this is dropped, or the process panics.
pub struct Screen {
    terminal: DefaultTerminal,
    stop: Arc<AtomicBool>,
}

impl Screen {
    /// Takes the terminal over.
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
        // A terminal that hangs up (SIGHUP) is not given back: that ends the process by itself.
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(failed)?;
        }
        // It also has panics give the terminal back before they are told.
        let terminal = ratatui::try_init().map_err(failed)?;
        Ok(Screen { terminal, stop })
    }

    /// Draws, and does what keys say, until the time comes for another look at the interfaces, or another pane is wanted. Whether to
    /// end.
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
                if has_hung_up(left.min(LOOK_FOR_SIGNALS)) {
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

/// Waits for keys, a signal (as when the size changes), or so long. Whether the terminal has gone: reading from it then would not end
/// in the library that reads keys.
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
    use nix::sys::termios::tcgetattr;
    use std::fs::File;
    use std::io::Read;
    use std::num::NonZeroU16;
    use std::process::{Command, Stdio};

    const ROWS: NonZeroU16 = NonZeroU16::new(24).unwrap();
    const COLUMNS: NonZeroU16 = NonZeroU16::new(80).unwrap();

    /// Run by the test below, in a terminal and a process of its own: a panic changes the terminal of the whole process.
    #[test]
    #[ignore = "it panics: the test below runs it"]
    fn panics_with_the_screen() {
        let _screen = Screen::take().unwrap_or_else(|failure| panic!("{}", failure.render(false)));
        panic!("as it was told to");
    }

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_told() {
        let size = Winsize { ws_row: ROWS.get(), ws_col: COLUMNS.get(), ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).expect("a pty");
        let before = tcgetattr(&pty.slave).expect("the terminal's state");
        let side = || Stdio::from(pty.slave.try_clone().expect("the terminal once more"));
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "top::screen::tests::panics_with_the_screen", "--ignored", "--nocapture"]);
        let mut child = command
            .env("TERM", "xterm")
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .expect("starting this program");
        let mut terminal = File::from(pty.master);
        let reader = std::thread::spawn(move || {
            let mut written = Vec::new();
            // It ends with an error once nobody has the other side open.
            let _ = terminal.read_to_end(&mut written);
            written
        });
        assert_eq!(child.wait().expect("its end").code(), Some(101), "a test that has panicked");
        assert_eq!(tcgetattr(&pty.slave).expect("the terminal's state"), before);
        drop((command, pty.slave));
        let written = reader.join().expect("reading");
        let text = String::from_utf8_lossy(&written);
        let mut shown = vt100::Parser::new(ROWS, COLUMNS, 0);
        shown.process(&written);
        assert!(text.contains("\x1b[?1049h"), "it was taken over: {text:?}");
        assert!(!shown.screen().alternate_screen() && !shown.screen().hide_cursor(), "{text:?}");
        assert!(shown.screen().contents().contains("as it was told to"), "the panic is seen: {text:?}");
    }
}
