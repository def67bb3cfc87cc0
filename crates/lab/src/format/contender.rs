//! A contender: its commands with placeholders, or the call of Sluice.

use serde::Deserialize;
use toml::Spanned;

use super::library::{Folder, Source};
use sluice_error::Result;

/// A checked contender file.
#[derive(Debug, Clone)]
pub struct Contender {
    /// The source file.
    pub source: Source,
    /// The title in tables and legends.
    pub title: String,
    /// A description of the contender.
    pub about: String,
    /// The start of the contender.
    pub start: Start,
    /// Commands that change its configuration while it works.
    pub change: Vec<String>,
    /// Whether this is a baseline and no rival; rivals are to be better than it.
    pub baseline: bool,
}

/// The start of a contender.
#[derive(Debug, Clone)]
pub enum Start {
    /// Commands in the owner's network namespace; for arrivals, on an ifb.
    Commands(Vec<String>),
    /// `sluice up`.
    Sluice(SluiceCall),
}

/// The values of `--engine`.
const ENGINES: [&str; 3] = ["auto", "qdisc", "tc"];

/// The arguments of a call of Sluice.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SluiceCall {
    /// A profile, or a policy file beside the contender's.
    pub policy: String,
    /// The value of `--engine`.
    pub engine: Option<String>,
    /// The policy that a reconfiguration applies, if it is another one.
    pub change: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    about: String,
    #[serde(default)]
    start: Vec<Spanned<String>>,
    #[serde(default)]
    change: Vec<Spanned<String>>,
    sluice: Option<SluiceCall>,
    #[serde(default)]
    baseline: bool,
}

/// The values of the placeholders.
#[derive(Debug, Clone, Copy)]
pub struct Fill<'a> {
    /// {dev}
    pub device: &'a str,
    /// {rate}, {burst}, {limit:TIME}: bits per second.
    pub rate_bps: u64,
}

impl Contender {
    /// Reads and checks a contender with the policies that it names.
    pub fn of(mut source: Source) -> Result<Contender> {
        let file: File = source.parse()?;
        let sample = Fill { device: "dev", rate_bps: 1_000_000 };
        for command in file.start.iter().chain(&file.change) {
            sample.command(command.get_ref()).map_err(|blank| {
                source.bad(
                    Some(command.span()),
                    &format!("nothing fills the blank {{{blank}}}"),
                    "there are {dev}, {rate}, {rate:30%}, {burst} and {limit:250ms}",
                )
            })?;
        }
        let texts =
            |commands: Vec<Spanned<String>>| commands.into_iter().map(Spanned::into_inner).collect::<Vec<String>>();
        let start = match file.sluice.clone() {
            Some(_) if !file.start.is_empty() || !file.change.is_empty() => {
                return Err(source.bad(None, "both commands and [sluice]", "a contender is one or the other"));
            }
            Some(call) => {
                let engine = call.engine.as_deref().unwrap_or("auto");
                if !ENGINES.contains(&engine) {
                    let what = format!("there is no engine \"{engine}\"");
                    return Err(source.bad(None, &what, &format!("engines are: {}", ENGINES.join(", "))));
                }
                for policy in [Some(&call.policy), call.change.as_ref()].into_iter().flatten() {
                    attach_policy(&mut source, policy)?;
                }
                Start::Sluice(call)
            }
            None => Start::Commands(texts(file.start.clone())),
        };
        let File { title, about, baseline, change, .. } = file;
        Ok(Contender { source, title, about, start, change: texts(change), baseline })
    }

    /// Whether the contender is Sluice.
    pub fn is_ours(&self) -> bool {
        matches!(self.start, Start::Sluice(_))
    }
}

/// Checks a policy that a contender names, a profile or a file next to it, and adds the file to the source.
fn attach_policy(source: &mut Source, policy: &str) -> Result<()> {
    if !policy.ends_with(".json") {
        let profiles = sluice_policy::profiles();
        if profiles.iter().any(|profile| profile == policy) {
            return Ok(());
        }
        let cure = format!("a policy file next to it (its name ends in .json), or a profile: {}", profiles.join(", "));
        return Err(source.bad(None, &format!("there is no profile \"{policy}\""), &cure));
    }
    let Some(text) = source.sibling(Folder::Contenders, policy) else {
        return Err(source.bad(
            None,
            &format!("cannot read the policy {policy} next to it"),
            "a file in the same directory, or the name of a profile",
        ));
    };
    if let Err(found) = sluice_policy::parse(&sluice_policy::Source::new(policy, text.as_str())) {
        let what = format!("its policy {policy} has errors\n{}", found.render(false).trim_end());
        return Err(source.bad(None, &what, "sluice check shows them and what the policy means"));
    }
    source.attach(policy, text);
    Ok(())
}

impl Fill<'_> {
    /// Fills the placeholders of a command; the error is an unknown placeholder.
    pub fn command(&self, text: &str) -> std::result::Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (blank, behind) = after.split_once('}').ok_or_else(|| after.to_owned())?;
            filled += before;
            filled += &self.blank(blank).ok_or_else(|| blank.to_owned())?;
            rest = behind;
        }
        Ok(filled + rest)
    }

    fn blank(&self, blank: &str) -> Option<String> {
        let kbit = |bps: f64| format!("{:.0}kbit", (bps / 1e3).max(1.0));
        let rate = self.rate_bps as f64;
        match blank.split_once(':') {
            None if blank == "dev" => Some(self.device.to_owned()),
            None if blank == "rate" => Some(kbit(rate)),
            // One frame and a little; at high rates a quarter of a millisecond, since timers are no finer.
            None if blank == "burst" => Some((self.rate_bps / 8 / 4_000).max(2_000).to_string()),
            Some(("rate", share)) => {
                let percent: f64 = share.strip_suffix('%')?.parse().ok()?;
                (percent > 0.0 && percent <= 1_000.0).then_some(())?;
                Some(kbit(rate * percent / 100.0))
            }
            Some(("limit", time)) => {
                let ms = super::Milliseconds::try_from(time.to_owned()).ok()?;
                Some(format!("{:.0}", (rate / 8.0 * ms.seconds()).max(3_028.0)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Contender> {
        Contender::of(Source { name: "mine".into(), text: text.into(), path: None, attached: Vec::new() })
    }

    #[test]
    fn placeholders_are_filled() {
        let fill = Fill { device: "to-modem", rate_bps: 20_000_000 };
        let command =
            fill.command("tc qdisc add dev {dev} root tbf rate {rate} burst {burst} limit {limit:250ms} # {rate:5%}");
        assert_eq!(
            command.unwrap(),
            "tc qdisc add dev to-modem root tbf rate 20000kbit burst 2000 limit 625000 # 1000kbit"
        );
        assert_eq!(Fill { device: "x", rate_bps: 1_000_000_000 }.command("{burst}").unwrap(), "31250");
    }

    #[test]
    fn errors_name_the_line() {
        let head = "title = \"t\"\nabout = \"a\"\n";
        for (text, says) in [
            ("start = [\n  \"tc qdisc add dev {devv}\",\n]\n", ":4: nothing fills the blank {devv}"),
            ("start = [\"tc {rate:5}\"]\n", "nothing fills the blank {rate:5}"),
            ("start = [\"x\"]\n[sluice]\npolicy = \"gaming\"\n", "both commands and [sluice]"),
            ("[sluice]\npolicy = \"none.json\"\n", "cannot read the policy none.json"),
            ("[sluice]\npolicy = \"gaming\"\nengine = \"qdsic\"\n", "there is no engine \"qdsic\""),
            ("[sluice]\npolicy = \"gamming\"\n", "there is no profile \"gamming\""),
            ("[sluice]\npolicy = \"gaming\"\nchange = \"x\"\n", "there is no profile \"x\""),
            ("[sluice]\npolice = \"gaming\"\n", "unknown field `police`"),
        ] {
            let error = of(&format!("{head}{text}")).expect_err(text);
            assert!(error.what.contains(says), "{}", error.what);
        }
        assert!(of(&format!("{head}[sluice]\npolicy = \"gaming\"\n")).unwrap().is_ours());
    }
}
