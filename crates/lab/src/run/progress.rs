//! The progress of a run and the remaining time, on standard error: a live line on a terminal, plain lines in a log.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of all phases.
pub struct Progress {
    bar: ProgressBar,
    total: Duration,
    /// Nominal time of the finished phases.
    done: Duration,
    phase: Duration,
    phase_began: Instant,
    live: bool,
}

impl Progress {
    /// Starts the progress; `total` is the nominal time of all phases.
    pub fn new(total: Duration, color: bool) -> Progress {
        let live = stderr().is_terminal();
        let target = if live { ProgressDrawTarget::stderr_with_hz(5) } else { ProgressDrawTarget::hidden() };
        let template =
            if color { "{wide_msg} {bar:24.cyan/dim} {prefix:>9}" } else { "{wide_msg} {bar:24} {prefix:>9}" };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(millis(total)), target).with_style(style.progress_chars("━╸─"));
        Progress { bar, total, done: Duration::ZERO, phase: Duration::ZERO, phase_began: Instant::now(), live }
    }

    /// Begins a phase of this nominal time.
    pub fn phase(&mut self, what: &str, nominal: Duration) {
        self.done += self.phase;
        self.phase = nominal;
        self.phase_began = Instant::now();
        if self.live {
            self.bar.set_message(what.to_owned());
        } else {
            // A closed standard error is no reason to fail.
            let _ = writeln!(stderr(), "{what} ({} s left)", (self.total.saturating_sub(self.done)).as_secs());
        }
        self.tick();
    }

    /// Updates the display.
    pub fn tick(&self) {
        let position = self.done + self.phase_began.elapsed().min(self.phase);
        let left = self.total.saturating_sub(position);
        self.bar.set_position(millis(position));
        self.bar.set_prefix(format!("{:.0} s left", left.as_secs_f64().ceil()));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
