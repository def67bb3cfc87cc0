//! Firewall marks (`fwmark`, `SO_MARK`): numbers of 32 bits, in texts also as `0x` and hexadecimal digits.

/// A mark in hexadecimal digits behind `0x`.
pub(crate) fn hexadecimal(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}
