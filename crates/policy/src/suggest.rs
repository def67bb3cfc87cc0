//! Suggestions for mistyped words.

/// The nearest of `known`, if it is near enough to be suggested.
pub(crate) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let word = word.to_ascii_lowercase().replace('-', "_");
    let best = known.iter().map(|&k| (strsim::damerau_levenshtein(&word, k), k)).min()?;
    if best.0 <= (word.chars().count() / 3).max(1) {
        return Some(best.1);
    }
    // A shortened or lengthened form: "port_min" for "src_port_min", "bandwidth_rate" for "rate".
    let contains = |long: &str, short: &str| short.len() >= 4 && long.contains(short);
    known.iter().copied().filter(|k| contains(k, &word) || contains(&word, k)).min_by_key(|k| k.len())
}

/// Longer names are not compared with others: it takes time with the product of their lengths.
const LONGEST_COMPARED: usize = 64;

/// The nearest of the names that a user has given, if it is near enough; case counts.
pub(crate) fn nearest_name<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > LONGEST_COMPARED {
        return None;
    }
    let far = (word.chars().count() / 3).max(1);
    // Lengths that differ by more are as far apart at least. A character has up to four bytes.
    let known = known.filter(|name| name.len() <= 4 * (word.len() + far) && 4 * (name.len() + far) >= word.len());
    let (distance, name) = known.map(|name| (strsim::damerau_levenshtein(word, name), name)).min()?;
    (distance <= far).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn suggests_similar_words() {
        let known = ["scheduler", "classes", "rules", "rate", "src_port_min"];
        assert_eq!(nearest("shceduler", &known), Some("scheduler"));
        assert_eq!(nearest("Classes", &known), Some("classes"));
        assert_eq!(nearest("class", &known), Some("classes"));
        assert_eq!(nearest("rat", &known), Some("rate"));
        assert_eq!(nearest("src-port-min", &known), Some("src_port_min"));
        assert_eq!(nearest("src_port", &known), Some("src_port_min"));
        assert_eq!(nearest("banana", &known), None);
    }
}
