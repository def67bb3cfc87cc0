//! Bars and sparklines of one row, made of block elements.

use ratatui::symbols::bar::NINE_LEVELS;

const EIGHTHS: [&str; 9] = [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// A bar of `cells` cells, `part` (0 to 1) of it filled, to an eighth of a cell. A value above 0 fills at least an eighth.
pub fn bar(part: f64, cells: usize) -> (String, String) {
    let most = cells * 8;
    let eighths = match part {
        part if part.is_nan() || part <= 0.0 => 0,
        part => ((part * most as f64).round() as usize).clamp(1, most),
    };
    let mut filled = "█".repeat(eighths / 8);
    if eighths % 8 > 0 {
        filled += EIGHTHS[eighths % 8];
    }
    let rest = cells - eighths.div_ceil(8);
    (filled, "·".repeat(rest))
}

/// A sparkline of the last values in `cells` cells, oldest first. The greatest value reaches the top; an unknown value is a
/// blank.
pub fn line(values: &[Option<f32>], cells: usize) -> String {
    let shown = &values[values.len().saturating_sub(cells)..];
    let top = shown.iter().flatten().fold(0.0f32, |top, value| top.max(*value));
    let symbol = |value: &Option<f32>| match value {
        None => " ",
        Some(value) if *value <= 0.0 || top <= 0.0 => "▁",
        Some(value) => level(((value / top) * 8.0).ceil() as usize),
    };
    let line: String = shown.iter().map(symbol).collect();
    format!("{line:>cells$}")
}

fn level(eighths: usize) -> &'static str {
    match eighths {
        0 | 1 => NINE_LEVELS.one_eighth,
        2 => NINE_LEVELS.one_quarter,
        3 => NINE_LEVELS.three_eighths,
        4 => NINE_LEVELS.half,
        5 => NINE_LEVELS.five_eighths,
        6 => NINE_LEVELS.three_quarters,
        7 => NINE_LEVELS.seven_eighths,
        _ => NINE_LEVELS.full,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_its_width() {
        for part in [-1.0, 0.0, 0.001, 0.3, 0.5, 0.99, 1.0, 7.0, f64::NAN] {
            let (filled, rest) = bar(part, 5);
            assert_eq!(filled.chars().count() + rest.chars().count(), 5, "{part}");
        }
        assert_eq!(bar(0.5, 4), ("██".to_owned(), "··".to_owned()));
        assert_eq!(bar(0.001, 4).0, "▏", "little is more than nothing");
    }

    #[test]
    fn sparkline_has_its_width() {
        assert_eq!(line(&[], 4), "    ");
        assert_eq!(line(&[Some(8.0), None, Some(0.0), Some(4.0), Some(8.0)], 4), " ▁▄█");
        assert_eq!(line(&[Some(0.0)], 3), "  ▁");
    }
}
