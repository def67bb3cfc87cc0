//! A contender: its commands with placeholders, or the call of Sluice; over a chain, how each hop forwards a port; at a tap, how it observes.

use serde::Deserialize;
use toml::Spanned;

use super::blanks::fill;
use super::library::{Folder, Source};
use super::model::{CardUse, WireUse};
use super::observing::Observing;
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
    /// The forwarding of a port, at each hop of a chain.
    Forward(Forwarder),
    /// The observation of what arrives at a device.
    Observe(Observing),
    /// The use of a modelled card.
    Card(CardUse),
    /// A wire before a port.
    Wire(WireUse),
}

/// The way in which a hop of a chain forwards a port.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forwarder {
    /// Commands that end when the port is forwarded.
    #[serde(default)]
    pub start: Vec<String>,
    /// Commands that forward the port as long as they run.
    #[serde(default)]
    pub serve: Vec<String>,
    /// Sluice's policy, a file beside the contender's.
    pub policy: Option<String>,
    /// Whether nothing is forwarded: the client connects to the server, and the hops are plain routers.
    #[serde(default)]
    pub direct: bool,
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
    forward: Option<Forwarder>,
    observe: Option<Observing>,
    card: Option<CardUse>,
    wire: Option<WireUse>,
    #[serde(default)]
    baseline: bool,
}

/// The values of a forwarder's placeholders, in its commands and in its files.
#[derive(Debug, Clone)]
pub struct Hop {
    /// {dev}, towards the client.
    pub device: String,
    /// {out}, towards the server.
    pub out: String,
    /// {listen}: the hop's own address, to which the client or the hop before it connects.
    pub listen: String,
    /// {target}: the address of the next hop or of the server.
    pub target: String,
    /// {port}: the same at all hops and at the server.
    pub port: u16,
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
        let alone = file.start.is_empty() && file.change.is_empty() && file.sluice.is_none();
        if file.card.is_some() && (!alone || file.forward.is_some() || file.observe.is_some()) {
            let cure = "a contender uses a modelled card, forwards, queues or observes";
            return Err(source.bad(
                source.text("[card]"),
                "[card] beside start, change, [sluice], [forward] or [observe]",
                cure,
            ));
        }
        if file.wire.is_some() && (!alone || file.forward.is_some() || file.observe.is_some() || file.card.is_some()) {
            let cure = "a contender is a wire before a port, uses a modelled card, forwards, queues or observes";
            return Err(source.bad(
                source.text("[wire]"),
                "[wire] beside start, change, [sluice], [forward], [observe] or [card]",
                cure,
            ));
        }
        let start = match file.sluice.clone() {
            None if file.wire.is_some() => {
                let wire = file.wire.clone();
                wire.iter().try_for_each(|wire| wire.check(&source))?;
                wire.map_or_else(|| Start::Commands(Vec::new()), Start::Wire)
            }
            None if file.card.is_some() => {
                let card = file.card.clone();
                card.iter().try_for_each(|card| card.check(&source))?;
                card.map_or_else(|| Start::Commands(Vec::new()), Start::Card)
            }
            _ if file.forward.is_some() && (!alone || file.observe.is_some()) => {
                return Err(source.bad(
                    None,
                    "[forward] beside start, change, [sluice] or [observe]",
                    "a contender forwards, queues or observes",
                ));
            }
            _ if file.observe.is_some() && !alone => {
                return Err(source.bad(
                    None,
                    "[observe] beside start, change or [sluice]",
                    "a contender forwards, queues or observes",
                ));
            }
            None if file.observe.is_some() => {
                let observing = file.observe.clone().unwrap_or_default();
                observing.check(&mut source)?;
                Start::Observe(observing)
            }
            None if file.forward.is_some() => {
                let forwarder = file.forward.clone().unwrap_or_default();
                forwarder.check(&mut source)?;
                Start::Forward(forwarder)
            }
            Some(_) if !file.start.is_empty() || !file.change.is_empty() => {
                return Err(source.bad(
                    source.text("[sluice]"),
                    "both commands and [sluice]",
                    "a contender is one or the other",
                ));
            }
            Some(call) => {
                let engine = call.engine.as_deref().unwrap_or("auto");
                if !ENGINES.contains(&engine) {
                    let what = format!("there is no engine \"{engine}\"");
                    return Err(source.bad(
                        source.text(engine),
                        &what,
                        &format!("engines are: {}", ENGINES.join(", ")),
                    ));
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
        match &self.start {
            Start::Commands(_) => false,
            Start::Sluice(_) => true,
            Start::Forward(forwarder) => forwarder.policy.is_some(),
            Start::Observe(observing) => observing.is_ours(),
            Start::Card(card) => card.has_backpressure(),
            Start::Wire(wire) => wire.has_backpressure(),
        }
    }

    /// How it forwards a port, if it is made for chains.
    pub fn forwarder(&self) -> Option<&Forwarder> {
        match &self.start {
            Start::Forward(forwarder) => Some(forwarder),
            Start::Commands(_) | Start::Sluice(_) | Start::Observe(_) | Start::Card(_) | Start::Wire(_) => None,
        }
    }

    /// How it observes packets, if it is made for taps.
    pub fn observing(&self) -> Option<&Observing> {
        match &self.start {
            Start::Observe(observing) => Some(observing),
            Start::Commands(_) | Start::Sluice(_) | Start::Forward(_) | Start::Card(_) | Start::Wire(_) => None,
        }
    }

    /// Its use of a modelled card, if it is made for one.
    pub fn card(&self) -> Option<&CardUse> {
        match &self.start {
            Start::Card(card) => Some(card),
            Start::Commands(_) | Start::Sluice(_) | Start::Forward(_) | Start::Observe(_) | Start::Wire(_) => None,
        }
    }

    /// How it is a wire, if it is made for ports.
    pub fn wire(&self) -> Option<&WireUse> {
        match &self.start {
            Start::Wire(wire) => Some(wire),
            Start::Commands(_) | Start::Sluice(_) | Start::Forward(_) | Start::Observe(_) | Start::Card(_) => None,
        }
    }
}

impl Forwarder {
    /// Checks the commands' placeholders, and adds the files that they and Sluice read to the source.
    fn check(&self, source: &mut Source) -> Result<()> {
        let ways = [!self.start.is_empty() || !self.serve.is_empty(), self.policy.is_some(), self.direct];
        if ways.into_iter().filter(|way| *way).count() != 1 {
            return Err(source.bad(
                source.text("[forward]"),
                "[forward] is commands, a policy or direct",
                "give one of the three",
            ));
        }
        let sample = Hop::sample();
        let mut files = Vec::new();
        for command in self.start.iter().chain(&self.serve) {
            let named = sample.command(command, |file| {
                files.push(file.to_owned());
                file.to_owned()
            });
            named.map_err(|blank| {
                source.bad(
                    None,
                    &format!("nothing fills the blank {{{blank}}}"),
                    "there are {dev}, {out}, {listen}, {target}, {port} and {file:NAME}",
                )
            })?;
        }
        for file in files.iter().chain(&self.policy) {
            let Some(text) = source.sibling(Folder::Contenders, file) else {
                return Err(source.bad(
                    None,
                    &format!("cannot read {file} next to it"),
                    "a file in the same directory",
                ));
            };
            source.attach(file, text);
        }
        match &self.policy {
            Some(policy) => check_policy(source, policy, |text| sample.text(text)),
            None => Ok(()),
        }
    }
}

impl Hop {
    /// A hop whose values are valid, to check files with.
    fn sample() -> Hop {
        let texts = ["to-client", "to-server", "192.0.2.1", "192.0.2.2"].map(str::to_owned);
        let [device, out, listen, target] = texts;
        Hop { device, out, listen, target, port: super::CHAIN_PORT }
    }

    fn blanks(&self) -> [(&'static str, String); 5] {
        [
            ("dev", self.device.clone()),
            ("out", self.out.clone()),
            ("listen", self.listen.clone()),
            ("target", self.target.clone()),
            ("port", self.port.to_string()),
        ]
    }

    /// Fills the placeholders of a command; `file` gives the path of a file that it names. The error is an unknown placeholder.
    pub fn command(&self, text: &str, mut file: impl FnMut(&str) -> String) -> std::result::Result<String, String> {
        let known = self.blanks();
        fill(text, |blank| match blank.strip_prefix("file:") {
            Some(name) => Some(file(name)),
            None => known.iter().find(|(name, _)| *name == blank).map(|(_, value)| value.clone()),
        })
    }

    /// Fills the placeholders of a file. Other braces stay, since rulesets and policies have many.
    pub fn text(&self, text: &str) -> String {
        let filled = |text: String, (name, value): (&str, String)| text.replace(&format!("{{{name}}}"), &value);
        self.blanks().into_iter().fold(text.to_owned(), filled)
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
        return Err(source.bad(source.text(policy), &format!("there is no profile \"{policy}\""), &cure));
    }
    let Some(text) = source.sibling(Folder::Contenders, policy) else {
        return Err(source.bad(
            source.text(policy),
            &format!("cannot read the policy {policy} next to it"),
            "a file in the same directory, or the name of a profile",
        ));
    };
    source.attach(policy, text);
    check_policy(source, policy, str::to_owned)
}

/// Checks the text of an attached policy, once its placeholders are filled.
fn check_policy(source: &Source, policy: &str, fill: impl Fn(&str) -> String) -> Result<()> {
    let text = source.attached.iter().find(|(name, _)| name == policy).map(|(_, text)| fill(text)).unwrap_or_default();
    let Err(found) = sluice_policy::parse(&sluice_policy::Source::new(policy, text.as_str())) else { return Ok(()) };
    let what = format!("its policy {policy} has errors\n{}", found.render(false).trim_end());
    Err(source.bad(source.text(policy), &what, "sluice check shows them and what the policy means"))
}

impl Fill<'_> {
    /// Fills the placeholders of a command; the error is an unknown placeholder.
    pub fn command(&self, text: &str) -> std::result::Result<String, String> {
        fill(text, |blank| self.blank(blank))
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
    use crate::format::fixture;

    fn of(text: &str) -> Result<Contender> {
        Contender::of(fixture::source("mine", text))
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
    fn a_hop_fills_commands_and_files() {
        let hop = Hop::sample();
        let command = hop.command("socat TCP-LISTEN:{port},bind={listen} TCP:{target}:{port} # {file:a.cfg}", |file| {
            format!("/tmp/{file}")
        });
        assert_eq!(command.unwrap(), "socat TCP-LISTEN:5201,bind=192.0.2.1 TCP:192.0.2.2:5201 # /tmp/a.cfg");
        assert_eq!(hop.command("x {rate}", str::to_owned).unwrap_err(), "rate");
        assert_eq!(
            hop.text("chain a { dnat to {target}; } # {dev} {out}"),
            "chain a { dnat to 192.0.2.2; } # to-client to-server"
        );
    }

    #[test]
    fn forwarders_are_checked() {
        let head = "title = \"t\"\nabout = \"a\"\n[forward]\n";
        let good = of(&format!("{head}policy = \"forward-sluice.json.in\"\n")).unwrap();
        assert!(good.is_ours() && good.forwarder().is_some() && good.source.attached.len() == 1);
        assert!(!of(&format!("{head}direct = true\n")).unwrap().is_ours());
        for (text, says) in [
            ("", "commands, a policy or direct"),
            ("direct = true\nserve = [\"socat\"]\n", "commands, a policy or direct"),
            ("serve = [\"socat {prot}\"]\n", "nothing fills the blank {prot}"),
            ("start = [\"nft -f {file:none.nft}\"]\n", "cannot read none.nft"),
            ("policy = \"none.json\"\n", "cannot read none.json"),
        ] {
            let error = of(&format!("{head}{text}")).expect_err(text);
            assert!(error.what.contains(says), "{}", error.what);
        }
        let both = "title = \"t\"\nabout = \"a\"\nstart = [\"x\"]\n[forward]\ndirect = true\n";
        assert!(of(both).unwrap_err().what.contains("[forward] beside start"));
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
            ("[sluice]\npolice = \"gaming\"\n", "there is no key \"police\""),
        ] {
            let error = of(&format!("{head}{text}")).expect_err(text);
            assert!(error.what.contains(says), "{}", error.what);
        }
        assert!(of(&format!("{head}[sluice]\npolicy = \"gaming\"\n")).unwrap().is_ours());
    }
}
