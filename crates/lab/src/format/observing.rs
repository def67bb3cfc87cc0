//! How a contender observes packets: its commands, and the words by which it tells what it saw.

use serde::Deserialize;

use super::blanks::fill;
use super::library::Source;
use sluice_error::Result;

/// The stand-in for a number in a pattern.
const NUMBER: &str = "{}";

/// The way in which a contender observes what arrives at a device.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observing {
    /// Commands that end before the frames come.
    #[serde(default)]
    pub start: Vec<String>,
    /// The command that observes until SIGINT ends it.
    pub run: Option<String>,
    /// The text by which it says that it observes.
    pub ready: Option<String>,
    /// The command whose output tells what was seen, instead of that of `run`.
    pub after: Option<String>,
    /// Where a number stands that says how many packets came to userspace: a text with `{}`. Without it, all that arrived.
    pub delivered: Option<String>,
    /// Where a number stands that says how many did not, by the contender's own account.
    pub missed: Option<String>,
    /// Where a number stands that says of how many packets a sampling contender has drawn its records. `delivered` are the records then.
    pub seen: Option<String>,
}

/// The values of an observer's placeholders.
#[derive(Debug, Clone)]
pub struct Monitor {
    /// {dev}: the device where frames arrive.
    pub device: String,
    /// {netns}: the namespace of the monitor.
    pub namespace: String,
    /// {sluice}: the Sluice binary.
    pub sluice: String,
    /// {out}: a file for what was observed, in a directory of its own, in memory where there is one.
    pub out: String,
}

impl Observing {
    /// Checks placeholders and patterns.
    pub(super) fn check(&self, source: &Source) -> Result<()> {
        let bad = |what: &str, cure: &str| Err(source.bad(None, what, cure));
        if self.run.is_some() != self.ready.is_some() {
            return bad("[observe] has run without ready, or ready without run", "ready is a text that run prints");
        }
        if self.run.is_none() && self.after.is_none() && self.delivered.is_some() {
            return bad("nothing prints what was delivered", "give run, or after");
        }
        if self.seen.is_some() && self.delivered.is_none() {
            return bad("[observe] has seen without delivered", "a sample has records: delivered counts them");
        }
        for command in self.start.iter().chain(&self.run).chain(&self.after) {
            if let Err(blank) = Monitor::sample().command(command) {
                let what = format!("nothing fills the blank {{{blank}}}");
                return bad(&what, "there are {dev}, {netns}, {sluice} and {out}");
            }
        }
        for pattern in self.delivered.iter().chain(&self.missed).chain(&self.seen) {
            if pattern.matches(NUMBER).count() != 1 || pattern.trim() == NUMBER {
                return bad(&format!("\"{pattern}\" has no place for one number"), "such as \"{} packets captured\"");
            }
        }
        Ok(())
    }

    /// Whether it is Sluice: its command is called.
    pub fn is_ours(&self) -> bool {
        self.run.as_deref().is_some_and(|run| run.starts_with("{sluice} ") && !run.contains(" lab "))
    }
}

/// The last number in a text at the place of `{}` in a pattern.
pub fn number_at(pattern: &str, text: &str) -> Option<u64> {
    let (before, after) = pattern.split_once(NUMBER)?;
    let is_digit = |c: char| c.is_ascii_digit();
    let mut found = text.char_indices().filter_map(|(at, c)| {
        let starts = is_digit(c) && !text[..at].ends_with(is_digit) && text[..at].ends_with(before);
        let digits = &text[at..at + text[at..].find(|c| !is_digit(c)).unwrap_or(text.len() - at)];
        (starts && text[at + digits.len()..].starts_with(after)).then(|| digits.parse().ok())?
    });
    found.next_back()
}

impl Monitor {
    fn sample() -> Monitor {
        let text = str::to_owned;
        Monitor { device: text("dev"), namespace: text("ns"), sluice: text("sluice"), out: text("out") }
    }

    /// Fills the placeholders of a command; the error is an unknown placeholder.
    pub fn command(&self, text: &str) -> std::result::Result<String, String> {
        fill(text, |blank| {
            let value = match blank {
                "dev" => &self.device,
                "netns" => &self.namespace,
                "sluice" => &self.sluice,
                "out" => &self.out,
                _ => return None,
            };
            Some(value.clone())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_their_words() {
        let text = "12 packets captured\n340 packets captured\n5 packets dropped by kernel {\"pkts\":77}";
        assert_eq!(number_at("{} packets captured", text), Some(340));
        assert_eq!(number_at("{} packets dropped", text), Some(5));
        assert_eq!(number_at("\"pkts\":{}", text), Some(77));
        assert_eq!(number_at("{} packets lost", text), None);
    }
}
