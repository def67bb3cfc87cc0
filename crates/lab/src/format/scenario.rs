//! A scenario: traffic over a network, and the measurements on it.

use serde::Deserialize;
use toml::Spanned;

use super::library::Source;
use super::model::{Model, PortLoad, Published};
use super::topology::{Direction, Topology};
use super::units::{Milliseconds, Rate, Tos};
use sluice_error::{Error, Result};

/// The first port of loads that name none.
const FIRST_PORT: u16 = 5201;
/// The port that the hops of a chain forward: its loads run one after the other, so one port is enough.
pub const CHAIN_PORT: u16 = FIRST_PORT;
/// The port of the probe for the harness's own noise.
pub const NOISE_PORT: u16 = 2112;

/// A checked scenario file.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The source file.
    pub source: Source,
    /// The title in headings.
    pub title: String,
    /// The question that the scenario asks.
    pub about: String,
    /// The network.
    pub topology: Topology,
    /// The directions of the topology that are shaped; none over a chain.
    pub shape: Vec<Direction>,
    /// The warm-up from the bulk traffic's begin to the window.
    pub warm_up: Milliseconds,
    /// The time of probes alone, before the bulk traffic.
    pub idle: Milliseconds,
    /// The window, if it differs from the plan's.
    pub measured: Option<Milliseconds>,
    /// Whether devices keep their segmentation offloads.
    pub offloads: bool,
    /// The traffic.
    pub loads: Vec<Load>,
    /// The change of the contender while traffic runs.
    pub event: Option<Event>,
    /// The packets before a modelled card, instead of a network and its traffic.
    pub model: Option<Model>,
    /// Published figures of the same model.
    pub published: Option<Published>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    about: String,
    topology: Option<String>,
    shape: Option<Vec<Direction>>,
    warm_up: Option<Milliseconds>,
    idle: Option<Milliseconds>,
    measured: Option<Milliseconds>,
    offloads: Option<bool>,
    #[serde(default)]
    load: Vec<Load>,
    event: Option<Event>,
    model: Option<Model>,
    published: Option<Published>,
    port: Option<PortLoad>,
}

/// A reconfiguration of the contender while it works.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// The interval from the window's begin on.
    pub reconfigure_every: Milliseconds,
}

/// The tool that makes the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// iperf3: as fast as TCP can, from `from` to `to`.
    Tcp,
    /// iperf3: datagrams at a rate, from `from` to `to`.
    Udp,
    /// irtt: small packets at a pace, answered; a game or a call. From `from` to `to` and back.
    Stream,
    /// ping from `from` to `to`.
    Ping,
    /// curl at `to` fetches pages from an HTTP server at `from`.
    Web,
    /// siege at `to` asks an HTTP server at `from` for a page a number of times, over a connection each. Over chains.
    Siege,
    /// wrk at `to` asks an HTTP server at `from` for pages as fast as it is answered. Over chains.
    Wrk,
    /// Live XDP frames from `from` to `to`, which observes them. At taps.
    Frames,
}

/// The direction of a stream through the bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OneWay {
    /// From `from` to `to`.
    There,
    /// The direction of the answers.
    Back,
}

/// A traffic source. Its possible keys depend on its kind.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// The load's name in tables and plots.
    pub name: Spanned<String>,
    /// The tool that makes the traffic.
    pub kind: Kind,
    /// The first of the two hosts.
    pub from: Spanned<String>,
    /// The second host.
    pub to: Spanned<String>,
    /// Whether the scenario is about the delays of this load.
    #[serde(default)]
    pub probe: bool,
    /// Port at `to` (web: at `from`).
    pub port: Option<u16>,
    /// DSCP of the packets that it sends.
    pub dscp: Option<Tos>,
    /// Connections at a time: tcp, udp, web, wrk.
    pub flows: Option<u32>,
    /// The congestion control of tcp.
    pub congestion: Option<String>,
    /// The rate of each flow of udp, or of all frames.
    pub rate: Option<Rate>,
    /// The payload of a packet of udp, stream and ping, the largest segment of tcp, the size of a page of web, siege and wrk, or of a frame,
    /// bytes.
    pub bytes: Option<u32>,
    /// The interval between packets of stream and ping, or pages of web. Web without it fetches one page after another.
    pub interval: Option<Milliseconds>,
    /// The direction of a stream that is also timed alone.
    pub one_way: Option<OneWay>,
    /// The number of requests of siege.
    pub requests: Option<u32>,
    /// Whether a connection of wrk carries many requests; yes, if absent.
    pub keep_alive: Option<bool>,
    /// The load's weight, where contenders share by weights.
    pub weight: Option<f64>,
}

impl Scenario {
    /// Reads and checks a scenario.
    pub fn of(mut source: Source) -> Result<Scenario> {
        let mut file: File = source.parse()?;
        if let Some(port) = &file.port {
            if file.model.is_some() {
                return Err(source.bad(source.text("[port]"), "[port] beside [model]", "a port is real or modelled"));
            }
            port.check(&source)?;
            file.model = Some(port.model());
        }
        if file.model.is_some() {
            return Scenario::modelled(file, source);
        }
        if file.published.is_some() {
            let cure = "figures of a model, which has [model] instead of loads";
            return Err(source.bad(source.text("[published]"), "[published] beside [[load]]", cure));
        }
        let Some(topology) = &file.topology else {
            let cure = "lab/README.md explains the keys, and sluice lab show NAME prints a good file";
            return Err(source.bad(None, "the key \"topology\" is missing", cure));
        };
        let topology = Topology::named(topology, &mut source)?;
        let had: Vec<Direction> =
            topology.queue().iter().flat_map(|queue| &queue.shaped).map(|s| s.direction).collect();
        let shape = file.shape.clone().unwrap_or_else(|| had.clone());
        let unknown = shape.iter().any(|direction| !had.contains(direction));
        if topology.queue().is_some() && (shape.is_empty() || unknown) {
            let had: Vec<&str> = had.iter().map(|direction| direction.name()).collect();
            return Err(source.bad(
                source.key(0, "shape"),
                "shape names a direction that the topology does not have, or none",
                &format!("it has {}", had.join(", ")),
            ));
        }
        if topology.queue().is_none() && (file.shape.is_some() || file.idle.is_some() || file.event.is_some()) {
            return Err(source.bad(
                ["shape", "idle"].iter().find_map(|key| source.key(0, key)).or_else(|| source.text("[event]")),
                "shape, idle and [event] have no meaning over a chain and at a tap",
                "their loads run one after the other, and they have no queue",
            ));
        }
        if file.load.is_empty() {
            return Err(source.bad(None, "there is no load", "add a [[load]]"));
        }
        for (number, load) in file.load.iter().enumerate() {
            load.check(&source, &topology)?;
            if let Some(twin) = file.load[..number].iter().find(|other| other.name.get_ref() == load.name.get_ref()) {
                return Err(source.bad(
                    Some(load.name.span()),
                    &format!("two loads are called \"{}\"", twin.name.get_ref()),
                    "give each a name of its own",
                ));
            }
        }
        let times = [
            ("idle", file.idle, 0.0, 60_000.0),
            ("warm_up", file.warm_up, 0.0, 600_000.0),
            ("measured", file.measured, 1_000.0, 3_600_000.0),
        ];
        for (key, time, least, most) in times {
            if time.is_some_and(|time| !(least..=most).contains(&time.0)) {
                let what = format!("{key} is not between {} s and {} s", least / 1e3, most / 1e3);
                return Err(source.bad(source.key(0, key), &what, "choose another time"));
            }
        }
        ports(&file.load, &source, &topology)?;
        if file.event.is_some_and(|event| event.reconfigure_every.0 < 50.0) {
            let at = source.text("reconfigure_every");
            return Err(source.bad(at, "reconfigure_every is below 50ms", "a command takes longer than that"));
        }
        Ok(Scenario {
            title: file.title,
            about: file.about,
            topology,
            shape,
            warm_up: file.warm_up.unwrap_or(Milliseconds(2_000.0)),
            idle: file.idle.unwrap_or(Milliseconds(1_000.0)),
            measured: file.measured,
            offloads: file.offloads.unwrap_or(true),
            loads: file.load,
            event: file.event,
            model: None,
            published: None,
            source,
        })
    }

    /// The length of the window; `plan` is the plan's.
    pub fn measured_ms(&self, plan: Milliseconds) -> f64 {
        self.measured.unwrap_or(plan).0
    }
}

impl Load {
    /// The load's name.
    pub fn name(&self) -> &str {
        self.name.get_ref()
    }

    /// Whether the load runs from the very begin, and so measures the idle network.
    pub fn is_probe(&self) -> bool {
        match self.kind {
            Kind::Stream | Kind::Ping => true,
            Kind::Web => self.interval.is_some(),
            Kind::Tcp | Kind::Udp | Kind::Siege | Kind::Wrk | Kind::Frames => false,
        }
    }

    /// A description of the load.
    pub fn about(&self) -> String {
        let flows = self.flows.unwrap_or(1);
        let many = |what: &str| if flows == 1 { format!("1 {what}") } else { format!("{flows} {what}s") };
        let bytes = self.bytes.unwrap_or_default();
        let every = self.interval.map(|interval| format!("every {} ms", interval.0)).unwrap_or_default();
        let text = match self.kind {
            Kind::Tcp => {
                let segments = self.bytes.map(|bytes| format!(", segments of {bytes} B")).unwrap_or_default();
                format!("{}, {}{segments}", many("TCP flow"), self.congestion.as_deref().unwrap_or_default())
            }
            Kind::Udp => {
                let rate = match self.rate {
                    Some(Rate::Bps(bps)) => format!("{} Mbit/s", bps as f64 / 1e6),
                    Some(Rate::Percent(percent)) => format!("{percent} % of the rate"),
                    Some(Rate::Max) | None => "as fast as it can".to_owned(),
                };
                format!("{} of {bytes} B, {rate}", many("UDP flow"))
            }
            Kind::Frames => {
                let rate = match self.rate {
                    Some(Rate::Bps(bps)) => format!("{:.0} a second", bps as f64 / 8.0 / f64::from(bytes.max(1))),
                    _ => "as fast as they go".to_owned(),
                };
                format!("frames of {bytes} B, {rate}, {}", many("flow"))
            }
            Kind::Stream => format!("{bytes} B {every}, UDP port {}", self.port.unwrap_or_default()),
            Kind::Ping => format!("ping of {} B {every}", self.bytes.unwrap_or(56)),
            Kind::Web => format!(
                "pages of {} KB {}",
                bytes / 1_000,
                if every.is_empty() { format!("one after the other, {}", many("connection")) } else { every }
            ),
            Kind::Siege => {
                format!("a page of {bytes} B, {} times, a connection each", self.requests.unwrap_or_default())
            }
            Kind::Wrk => format!(
                "a page of {bytes} B, {} at a time, {}",
                many("request"),
                if self.keeps_alive() { "keep-alive" } else { "a connection each" }
            ),
        };
        format!("{text}, {} to {}", self.from.get_ref(), self.to.get_ref())
    }

    /// Whether a connection of wrk carries many requests.
    pub fn keeps_alive(&self) -> bool {
        self.keep_alive.unwrap_or(true)
    }

    /// The host that listens, the transport, and the port; `number` is the load's index among all loads.
    pub fn listens(&self, number: u16) -> Option<(&str, &'static str, u16)> {
        let port = self.port.unwrap_or(FIRST_PORT + number);
        match self.kind {
            Kind::Ping | Kind::Frames => None,
            Kind::Stream => Some((self.to.get_ref(), "udp", port)),
            // iperf3 also opens the TCP port for UDP tests.
            Kind::Udp => Some((self.to.get_ref(), "tcp", port)),
            Kind::Tcp | Kind::Web => Some((self.from.get_ref(), "tcp", port)),
            Kind::Siege | Kind::Wrk => Some((self.from.get_ref(), "tcp", CHAIN_PORT)),
        }
    }

    fn check(&self, source: &Source, topology: &Topology) -> Result<()> {
        self.check_names(source, topology)?;
        self.check_place(source, topology)?;
        self.check_keys(source)?;
        self.check_ranges(source)
    }

    /// Checks the load's own name and the names of hosts and of the congestion control.
    fn check_names(&self, source: &Source, topology: &Topology) -> Result<()> {
        if self.from.get_ref() == self.to.get_ref() {
            return Err(source.bad(
                Some(self.to.span()),
                "a load that stays on its host passes no link",
                "name two hosts",
            ));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if self.congestion.as_ref().is_some_and(|name| name.is_empty() || !name.chars().all(plain)) {
            return Err(source.bad(
                Some(self.name.span()),
                "that names no congestion control",
                "congestion = \"cubic\"",
            ));
        }
        if self.name().is_empty() || self.name().chars().count() > 40 || self.name().chars().any(char::is_control) {
            return Err(source.bad(Some(self.name.span()), "a load's name has 1 to 40 characters", "choose another"));
        }
        for host in [&self.from, &self.to] {
            if !topology.nodes().any(|known| known == host.get_ref()) {
                let known: Vec<&str> = topology.nodes().map(String::as_str).collect();
                return Err(source.bad(
                    Some(host.span()),
                    &format!("there is no host \"{}\"", host.get_ref()),
                    &format!("the topology has {}", known.join(", ")),
                ));
            }
        }
        Ok(())
    }

    /// Checks that the load's kind suits the topology, and that a chain's loads go from its server to its client.
    fn check_place(&self, source: &Source, topology: &Topology) -> Result<()> {
        let bad = |what: String, cure: &str| Err(source.bad(Some(self.name.span()), &what, cure));
        if let Some(tap) = topology.tap() {
            if self.kind != Kind::Frames || *self.from.get_ref() != tap.source || *self.to.get_ref() != tap.monitor {
                let cure = format!("kind = \"frames\", from = \"{}\", to = \"{}\"", tap.source, tap.monitor);
                return bad(format!("load \"{}\" is not observed at the tap", self.name()), &cure);
            }
            return Ok(());
        }
        if self.kind == Kind::Frames {
            return bad(format!("load \"{}\" needs a tap", self.name()), "topology = \"tap\", or another kind");
        }
        let Some(chain) = topology.chain() else {
            return match self.kind {
                Kind::Siege | Kind::Wrk => {
                    bad(format!("load \"{}\" needs a chain", self.name()), "topology = \"chain-2\", or another kind")
                }
                _ => Ok(()),
            };
        };
        if !matches!(self.kind, Kind::Tcp | Kind::Siege | Kind::Wrk) || self.port.is_some() {
            let what = format!("load \"{}\": a chain forwards TCP port {CHAIN_PORT}", self.name());
            return bad(what, "its loads are tcp, siege and wrk, without a port");
        }
        if *self.from.get_ref() != chain.server || *self.to.get_ref() != chain.client {
            let cure = format!("from = \"{}\", to = \"{}\"", chain.server, chain.client);
            return bad(format!("load \"{}\" does not pass the whole chain", self.name()), &cure);
        }
        Ok(())
    }

    /// Refuses keys that have no meaning for the load's kind, and asks for those that the kind needs.
    fn check_keys(&self, source: &Source) -> Result<()> {
        let at = Some(self.name.span());
        let allowed: &[&str] = match self.kind {
            Kind::Tcp => &["flows", "congestion", "bytes", "port", "dscp"],
            Kind::Udp => &["flows", "rate", "bytes", "port", "dscp"],
            Kind::Stream => &["bytes", "interval", "port", "dscp", "one_way"],
            Kind::Ping => &["bytes", "interval", "dscp"],
            Kind::Web => &["bytes", "interval", "flows", "port"],
            Kind::Siege => &["bytes", "requests"],
            Kind::Wrk => &["bytes", "flows", "keep_alive"],
            Kind::Frames => &["bytes", "rate", "flows"],
        };
        let present = [
            ("flows", self.flows.is_some()),
            ("congestion", self.congestion.is_some()),
            ("rate", self.rate.is_some()),
            ("bytes", self.bytes.is_some()),
            ("interval", self.interval.is_some()),
            ("port", self.port.is_some()),
            ("dscp", self.dscp.is_some()),
            ("one_way", self.one_way.is_some()),
            ("requests", self.requests.is_some()),
            ("keep_alive", self.keep_alive.is_some()),
        ];
        if let Some((key, _)) = present.iter().find(|(key, is)| *is && !allowed.contains(key)) {
            return Err(source.bad(
                source.key(self.name.span().start, key).or(at),
                &format!("load \"{}\": {key} has no meaning for this kind", self.name()),
                &format!("it may have {}", allowed.join(", ")),
            ));
        }
        let needed: &[(&str, &str)] = match self.kind {
            Kind::Tcp => &[("congestion", "congestion = \"cubic\"")],
            Kind::Udp => &[("rate", "rate = \"10mbit\""), ("bytes", "bytes = 1200")],
            Kind::Stream => &[("interval", "interval = \"20ms\""), ("bytes", "bytes = 172"), ("port", "port = 5004")],
            Kind::Ping => &[("interval", "interval = \"200ms\"")],
            Kind::Web => &[("bytes", "bytes = 30000")],
            Kind::Siege => &[("bytes", "bytes = 30000"), ("requests", "requests = 100")],
            Kind::Wrk => &[("bytes", "bytes = 3000"), ("flows", "flows = 16")],
            Kind::Frames => &[("bytes", "bytes = 64"), ("rate", "rate = \"max\"")],
        };
        if let Some((key, cure)) = needed.iter().find(|(key, _)| present.contains(&(key, false))) {
            return Err(source.bad(at, &format!("load \"{}\" lacks {key}", self.name()), cure));
        }
        Ok(())
    }

    fn check_ranges(&self, source: &Source) -> Result<()> {
        let inside = self.name.span();
        let range =
            |key: &str, unit: &str, value: Option<f64>, low: f64, high: f64| -> std::result::Result<(), Error> {
                match value {
                    Some(value) if !(low..=high).contains(&value) => Err(source.bad(
                        source.key(inside.start, key).or(Some(inside.clone())),
                        &format!("load \"{}\": {key} {value}{unit} is not between {low} and {high}{unit}", self.name()),
                        "choose another",
                    )),
                    _ => Ok(()),
                }
            };
        let most_flows = if self.kind == Kind::Frames { 65_536.0 } else { 128.0 };
        range("flows", "", self.flows.map(f64::from), 1.0, most_flows)?;
        let (least, most) = match self.kind {
            Kind::Udp => (16.0, 65_507.0),
            Kind::Stream => (60.0, 1_400.0),
            Kind::Ping => (16.0, 1_400.0),
            Kind::Frames => (64.0, 1_514.0),
            // What Linux takes for TCP_MAXSEG.
            Kind::Tcp => (88.0, 1_460.0),
            Kind::Web | Kind::Siege | Kind::Wrk => (1.0, 1e8),
        };
        range("bytes", "", self.bytes.map(f64::from), least, most)?;
        range("requests", "", self.requests.map(f64::from), 1.0, 1e6)?;
        range("interval", " ms", self.interval.map(|interval| interval.0), 1.0, 60_000.0)?;
        range("weight", "", self.weight, 0.001, 1e6)
    }
}

/// Refuses two loads that listen at one port of a host.
fn ports(loads: &[Load], source: &Source, topology: &Topology) -> Result<()> {
    // Over a chain one load listens at a time.
    let Some(queue) = topology.queue() else { return Ok(()) };
    let mut taken = vec![(queue.noise.get_ref().1.as_str(), "udp", NOISE_PORT)];
    for (load, number) in loads.iter().zip(0..) {
        let Some(place) = load.listens(number) else { continue };
        let both = |other: &(&str, &str, u16)| {
            other.0 == place.0 && other.2 == place.2 && (other.1 == place.1 || load.kind == Kind::Udp)
        };
        if taken.iter().any(both) {
            let what = format!("load \"{}\": port {} of {} is taken by another", load.name(), place.2, place.0);
            return Err(source.bad(Some(load.name.span()), &what, "give it a port of its own"));
        }
        taken.push(place);
    }
    Ok(())
}

mod modelled;
#[cfg(test)]
mod tests;
