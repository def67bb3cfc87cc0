//! How a contender observes or limits what arrives at a device: its commands, and the words by which it tells what it saw or dropped.

use serde::Deserialize;

use super::blanks::fill;
use super::library::{Folder, Source};
use sluice_error::Result;

/// The stand-in for a number in a pattern.
const NUMBER: &str = "{}";

/// The way in which a contender observes what arrives at a device, or limits it.
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
    /// Where a number stands that says how many packets the contender has dropped. A contender with it does not observe, but limits what
    /// arrives to the trial's rate.
    pub dropped: Option<String>,
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
    /// {rate}, and {bytes} a second: what a contender limits arrivals to, bits per second.
    pub rate_bps: u64,
}

impl Observing {
    /// Checks placeholders and patterns.
    pub(super) fn check(&self, source: &mut Source) -> Result<()> {
        self.check_keys(source)?;
        let mut files = Vec::new();
        for command in self.start.iter().chain(&self.run).chain(&self.after) {
            let named = Monitor::sample().command(command, |file| {
                files.push(file.to_owned());
                file.to_owned()
            });
            if let Err(blank) = named {
                let what = format!("nothing fills the blank {{{blank}}}");
                let cure = "there are {dev}, {netns}, {sluice}, {out}, {rate}, {bytes} and {file:NAME}";
                return Err(source.bad(source.text(&format!("{{{blank}}}")), &what, cure));
            }
        }
        for file in files {
            let Some(text) = source.sibling(Folder::Contenders, &file) else {
                let what = format!("cannot read {file} next to it");
                return Err(source.bad(source.text(&file), &what, "a file in the same directory"));
            };
            source.attach(&file, text);
        }
        Ok(())
    }

    fn check_keys(&self, source: &Source) -> Result<()> {
        let bad = |what: &str, cure: &str| Err(source.bad(source.text("[observe]"), what, cure));
        if self.run.is_some() != self.ready.is_some() {
            return bad("[observe] has run without ready, or ready without run", "ready is a text that run prints");
        }
        if self.run.is_none() && self.after.is_none() && self.delivered.is_some() {
            return bad("nothing prints what was delivered", "give run, or after");
        }
        if self.seen.is_some() && self.delivered.is_none() {
            return bad("[observe] has seen without delivered", "a sample has records: delivered counts them");
        }
        let observes = self.delivered.is_some() || self.missed.is_some();
        if self.dropped.is_some() && (observes || self.run.is_none() && self.after.is_none()) {
            return bad(
                "[observe] has dropped beside delivered or missed, or nothing prints it",
                "a limit has dropped, and run or after",
            );
        }
        for pattern in self.delivered.iter().chain(&self.missed).chain(&self.seen).chain(&self.dropped) {
            if pattern.matches(NUMBER).count() != 1 || pattern.trim() == NUMBER {
                return bad(&format!("\"{pattern}\" has no place for one number"), "such as \"{} packets captured\"");
            }
        }
        Ok(())
    }

    /// Whether it is Sluice: its command is called.
    pub fn is_ours(&self) -> bool {
        let calls = |command: &String| command.starts_with("{sluice} ") && !command.contains(" lab ");
        self.start.iter().chain(&self.run).any(calls)
    }

    /// Whether it limits what arrives to a rate, instead of observing it.
    pub fn limits(&self) -> bool {
        self.dropped.is_some()
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
        let (device, namespace, sluice, out) = (text("dev"), text("ns"), text("sluice"), text("out"));
        Monitor { device, namespace, sluice, out, rate_bps: 1_000_000 }
    }

    /// Fills the placeholders of a command; `file` gives the path of a file that it names. The error is an unknown placeholder.
    pub fn command(&self, text: &str, mut file: impl FnMut(&str) -> String) -> std::result::Result<String, String> {
        fill(text, |blank| match (blank, blank.strip_prefix("file:")) {
            (_, Some(name)) => Some(file(name)),
            ("dev", _) => Some(self.device.clone()),
            ("netns", _) => Some(self.namespace.clone()),
            ("sluice", _) => Some(self.sluice.clone()),
            ("out", _) => Some(self.out.clone()),
            ("rate", _) => Some(format!("{}kbit", self.rate_bps / 1_000)),
            ("bytes", _) => Some((self.rate_bps / 8).to_string()),
            _ => None,
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
