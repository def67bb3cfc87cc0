//! Numbers in few characters, for tables.

/// A number of at most four characters, with a prefix of thousands: `950`, `1.6k`, `19M`.
pub fn number(value: f64) -> String {
    scaled(value, 1000.0, &["", "k", "M", "G", "T", "P"])
}

/// A size in steps of 1,024: `512B`, `45K`, `1.5M`.
pub fn bytes(value: f64) -> String {
    scaled(value, 1024.0, &["B", "K", "M", "G", "T", "P"])
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= step * 0.9995 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let plain = if unit == 0 { value > 0.0 && value < 1.0 } else { value < 9.95 };
    let text = if plain { format!("{value:.1}") } else { format!("{value:.0}") };
    text.strip_suffix(".0").unwrap_or(&text).to_owned() + units[unit]
}

/// A time: `85us`, `4.2ms`, `120ms`, `1.5s`.
pub fn wait_us(us: f64) -> String {
    let (value, unit) = match us {
        us if us < 999.5 => return format!("{us:.0}us"),
        us if us < 999_500.0 => (us / 1e3, "ms"),
        us => (us / 1e6, "s"),
    };
    if value < 99.95 { format!("{value:.1}{unit}") } else { format!("{value:.0}{unit}") }
}

/// A time in milliseconds, as [`wait_us`] writes it, if it is known.
pub fn wait_ms(ms: Option<f64>) -> String {
    ms.map_or("-".to_owned(), |ms| wait_us(ms * 1e3))
}

/// A fraction of 1 in percent.
pub fn percent(part: f64) -> String {
    format!("{:.0}%", part * 100.0)
}

/// A duration: `5s`, `3m20s`, `2h05m`, `3d04h`.
pub fn span_s(seconds: f64) -> String {
    let s = seconds.max(0.0) as u64;
    match s {
        0..60 => format!("{s}s"),
        60..3600 => format!("{}m{:02}s", s / 60, s % 60),
        3600..86_400 => format!("{}h{:02}m", s / 3600, s / 60 % 60),
        _ => format!("{}d{:02}h", s / 86_400, s / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_at_most_four_characters() {
        let shown = [0.0, 0.4, 7.0, 950.0, 999.6, 1580.0, 18_900_000.0, 999_960_000.0].map(number);
        assert_eq!(shown, ["0", "0.4", "7", "950", "1k", "1.6k", "19M", "1G"]);
        assert_eq!([512.0, 46_080.0, 1_572_864.0].map(bytes), ["512B", "45K", "1.5M"]);
        assert_eq!([85.0, 4200.0, 120_000.0, 1_500_000.0].map(wait_us), ["85us", "4.2ms", "120ms", "1.5s"]);
        assert_eq!([5.0, 200.0, 7500.0, 273_600.0].map(span_s), ["5s", "3m20s", "2h05m", "3d04h"]);
    }
}
