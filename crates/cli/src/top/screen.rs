//! The terminal: taken over, drawn on, and given back whatever happens.

use super::app::{App, Then};
use super::draw;
use crate::failure::Failure;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, IsTerminal};
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
        for signal in [SIGTERM, SIGINT, SIGHUP] {
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
                if event::poll(left.min(LOOK_FOR_SIGNALS)).map_err(failed)? {
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

fn failed(error: io::Error) -> Failure {
    Failure::system(format!("the terminal: {error}"))
}
