//! The terminal: taken over, drawn on, and given back whatever happens.

use super::app::{App, Then};
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

/// How long a signal may wait to be noticed.
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(200);

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
    pub fn until(&mut self, deadline: Instant, app: &mut App) -> Result<Then, Failure> {
        loop {
            self.terminal.draw(|frame| draw::draw(frame, app)).map_err(failed)?;
            loop {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(Then::Quit);
                }
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(Then::Draw);
                }
                if has_hung_up(left.min(LOOK_FOR_SIGNALS)) {
                    return Ok(Then::Quit);
                }
                if event::poll(Duration::ZERO).map_err(failed)? {
                    break;
                }
            }
            let Event::Key(key) = event::read().map_err(failed)? else { continue };
            let pane = app.pane;
            if key.kind != KeyEventKind::Release && app.key(key) == Then::Quit {
                return Ok(Then::Quit);
            }
            if app.pane != pane {
                return Ok(Then::Draw);
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
