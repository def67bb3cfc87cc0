//! Colours by state. Only those of the terminal's sixteen colours are used that are readable on light and on dark ground. Bold,
//! dim or a letter repeats the meaning of each colour.

use ratatui::style::{Color, Modifier, Style};

/// The state of a class or bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Idle.
    Idle,
    /// Normal.
    Good,
    /// Noteworthy: marks, waits above the target, a bucket or queue near its end.
    Strained,
    /// Bad: packets are dropped, or queues are not in place.
    Bad,
}

impl State {
    /// The sign in front of a row.
    pub fn sign(self) -> char {
        match self {
            State::Bad => '!',
            State::Strained => '~',
            State::Good => '>',
            State::Idle => ' ',
        }
    }
}

/// Styles of text and bars.
#[derive(Debug, Clone, Copy)]
pub struct Palette {
    color: bool,
}

impl Palette {
    /// A palette with or without colours.
    pub fn new(color: bool) -> Palette {
        Palette { color }
    }

    fn colored(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    /// The style of text in this state.
    pub fn state(self, state: State) -> Style {
        match state {
            State::Idle => self.dim(),
            State::Good => Style::new(),
            State::Strained => self.colored(Color::Magenta),
            State::Bad => self.colored(Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    /// The style of bars and lines in this state.
    pub fn bar(self, state: State) -> Style {
        match state {
            State::Idle => self.dim(),
            State::Good => self.colored(Color::Green),
            State::Strained | State::Bad => self.state(state),
        }
    }

    /// The style of structure, such as separators.
    pub fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// The style of names and headings.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The style of column titles.
    pub fn title(self) -> Style {
        self.dim().add_modifier(Modifier::UNDERLINED)
    }

    /// The style of the chosen row.
    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The style of keys that can be pressed.
    pub fn key(self) -> Style {
        self.colored(Color::Cyan).add_modifier(Modifier::BOLD)
    }
}
