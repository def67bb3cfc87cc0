//! The style of a contender or a load: a class, and for `plotters` a colour that stands for it.

use plotters::style::RGBColor;

/// Number of rivals' styles, colours times dashes.
const RIVAL_STYLES: usize = 20;
/// Number of Sluice's styles: one colour with several dashes.
const SLUICE_STYLES: usize = 4;
/// Number of loads' styles, by fill.
const LOAD_STYLES: usize = 8;

/// A class of the style sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// The nth Sluice, from 0.
    Ours(usize),
    /// The nth other contender, from 0.
    Rival(usize),
    /// A contender in the background.
    Faint,
    /// The nth load, from 0.
    Load(usize),
    /// A single curve or mark.
    Ink,
    /// Text.
    Label,
    /// Secondary text.
    Quiet,
    /// Grid lines.
    Grid,
    /// Lines of the frame.
    Axis,
    /// The time outside the window.
    Shade,
    /// Marks of lost packets and of the scenario's events.
    Alarm,
}

/// The first two bytes of the colour that stands for a class; the third is the class's number.
const PLACEHOLDER: (u8, u8) = (0xa7, 0x51);

impl Style {
    /// The style of each contender; `ours` tells the Sluices.
    pub fn of_contenders(ours: impl IntoIterator<Item = bool>) -> Vec<Style> {
        let (mut own, mut rivals) = (0, 0);
        let mut next = |ours: bool| {
            let (kind, n): (fn(usize) -> Style, &mut usize) =
                if ours { (Style::Ours, &mut own) } else { (Style::Rival, &mut rivals) };
            *n += 1;
            kind(*n - 1)
        };
        ours.into_iter().map(&mut next).collect()
    }

    /// The class's name in the style sheet.
    pub fn class(self) -> String {
        let name = match self {
            Style::Ours(n) => return format!("o{}", n % SLUICE_STYLES),
            Style::Rival(n) => return format!("r{}", n % RIVAL_STYLES),
            Style::Load(n) => return format!("l{}", n % LOAD_STYLES),
            Style::Faint => "sf",
            Style::Ink => "si",
            Style::Label => "tl",
            Style::Quiet => "tq",
            Style::Grid => "sg",
            Style::Axis => "sx",
            Style::Shade => "sw",
            Style::Alarm => "sa",
        };
        name.to_owned()
    }

    /// The colour that stands for the class while `plotters` draws.
    pub fn color(self) -> RGBColor {
        RGBColor(PLACEHOLDER.0, PLACEHOLDER.1, self.number())
    }

    /// `color` as SVG has it.
    pub fn hex(self) -> String {
        format!("#{:02X}{:02X}{:02X}", PLACEHOLDER.0, PLACEHOLDER.1, self.number())
    }

    fn number(self) -> u8 {
        let number = match self {
            Style::Ours(n) => n % SLUICE_STYLES,
            Style::Rival(n) => 0x10 + n % RIVAL_STYLES,
            Style::Load(n) => 0x40 + n % LOAD_STYLES,
            Style::Faint => 0x80,
            Style::Ink => 0x81,
            Style::Label => 0x82,
            Style::Quiet => 0x83,
            Style::Grid => 0x84,
            Style::Axis => 0x85,
            Style::Shade => 0x86,
            Style::Alarm => 0x87,
        };
        number as u8
    }

    /// All styles.
    pub fn all() -> Vec<Style> {
        let plain = [Style::Faint, Style::Ink, Style::Label, Style::Quiet, Style::Grid, Style::Axis, Style::Shade];
        (0..SLUICE_STYLES)
            .map(Style::Ours)
            .chain((0..RIVAL_STYLES).map(Style::Rival))
            .chain((0..LOAD_STYLES).map(Style::Load))
            .chain(plain)
            .chain([Style::Alarm])
            .collect()
    }
}
