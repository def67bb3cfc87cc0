//! Colours by state. Only those of the terminal's own sixteen that are read on light and on dark ground, and never a colour
//! alone: what is bold, dim or marked by a letter is so without colours too.

use ratatui::style::{Color, Modifier, Style};

/// How something is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Nothing goes on.
    Idle,
    /// As it should be.
    Good,
    /// Worth a look: marks, waits above the target, a bucket or queue near its end.
    Strained,
    /// Packets are dropped, or queues are not in place.
    Bad,
}

/// Styles of text and bars.
#[derive(Debug, Clone, Copy)]
pub struct Palette {
    color: bool,
}

impl Palette {
    /// With colours or without.
    pub fn new(color: bool) -> Palette {
        Palette { color }
    }

    fn colored(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    /// Text about something in this state.
    pub fn state(self, state: State) -> Style {
        match state {
            State::Idle => self.dim(),
            State::Good => Style::new(),
            State::Strained => self.colored(Color::Magenta),
            State::Bad => self.colored(Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    /// Bars and lines about something in this state.
    pub fn bar(self, state: State) -> Style {
        match state {
            State::Idle => self.dim(),
            State::Good => self.colored(Color::Green),
            State::Strained | State::Bad => self.state(state),
        }
    }

    /// Text that gives order, not news.
    pub fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Names and headings.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Titles of columns.
    pub fn title(self) -> Style {
        self.dim().add_modifier(Modifier::UNDERLINED)
    }

    /// The chosen row.
    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Keys that can be pressed.
    pub fn key(self) -> Style {
        self.colored(Color::Cyan).add_modifier(Modifier::BOLD)
    }
}
