//! Numbers of bytes, as options have them.

use crate::failure::Failure;

/// A number of bytes, with K, M or G for powers of 1024.
pub fn bytes(option: &str, text: &str) -> Result<u64, Failure> {
    let (number, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| {
        Failure::input(&format!("{option}: \"{text}\" is no number of bytes"), "write one such as 4096, 512K or 16M")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("--ring", "16M").ok(), Some(16 << 20));
        assert_eq!(bytes("--ring", "4096").ok(), Some(4096));
        for text in ["", "M", "16X", "-1", "é", "99999999999G"] {
            assert!(bytes("--ring", text).is_err(), "{text}");
        }
    }
}
