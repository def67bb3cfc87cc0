//! The blanks of commands, such as {dev}.

/// Fills the placeholders of a command; the error is an unknown one.
pub(super) fn fill(text: &str, mut value: impl FnMut(&str) -> Option<String>) -> std::result::Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled += before;
        // Rulesets of nft have braces of their own, with a space behind each.
        if after.starts_with(' ') {
            filled.push('{');
            rest = after;
            continue;
        }
        let (blank, behind) = after.split_once('}').ok_or_else(|| after.to_owned())?;
        filled += &value(blank).ok_or_else(|| blank.to_owned())?;
        rest = behind;
    }
    Ok(filled + rest)
}
