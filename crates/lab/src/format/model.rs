//! Packets of pipes that come to schedulers before a port: a modelled card, in simulated time and without a network, or a real port behind a wire; and how a
//! contender uses such a card or port.

use serde::{Deserialize, Serialize};

use super::library::Source;
use super::units::{Milliseconds, Rate};
use sluice_error::Result;

/// The name of all packets, as of a load.
pub const ALL: &str = "all packets";
/// The name of the packets of all classes but the last.
pub const EARLY: &str = "all but the last class";
/// The warm-up, where a scenario has none.
pub const WARM_UP: Milliseconds = Milliseconds(50.0);
/// The windows that are possible, ms.
pub const MEASURED_MS: (f64, f64) = (10.0, 10_000.0);
/// The rates of ports that are possible, bits per second.
pub const RATES: std::ops::RangeInclusive<u64> = 1_000_000_000..=400_000_000_000;

/// The packets, and the processors that schedule them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Pipes (customers) of all instances.
    pub pipes: u32,
    /// Classes that have packets, each as many.
    pub classes: u32,
    /// Instances of the scheduler, each with its share of the pipes, that share the card.
    pub instances: u32,
    /// The length of packets.
    pub bytes: u32,
    /// The offered load, percent of the rate of the port.
    #[serde(with = "percent")]
    pub load: f64,
    /// The time of an instance for a packet, half of it before the scheduler and half after it, ns; of a real port, 0: it takes as long as it takes.
    pub packet_ns: u64,
    /// Whether the port is a real one, behind a wire (engine xsk): nothing is modelled then, and a pipe is a flow.
    #[serde(default)]
    pub real: bool,
}

/// The packets before a real port.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortLoad {
    /// Flows, which have packets in turn.
    pub flows: u32,
    /// Classes that have packets, each as many.
    pub classes: u32,
    /// The length of frames.
    pub bytes: u32,
    /// The offered load, percent of the rate of the port.
    #[serde(with = "percent")]
    pub load: f64,
}

/// The way in which a contender is a wire.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireUse {
    /// The value of `--port-limit`: a number of packets, or auto.
    pub port_limit: String,
}

/// Published figures of the same case, for comparison: least, mean and greatest latency, us.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// With backpressure.
    pub with: [f64; 3],
    /// Without.
    pub without: [f64; 3],
}

/// The use that a contender makes of a modelled card.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardUse {
    /// Descriptors of one ring for all classes; the contender does not know what it refuses.
    pub ring: Option<u32>,
    /// Descriptors of a queue for each class, by strict priority; what they refuse holds the class back.
    pub queues: Option<u32>,
    /// Packets of a class that an instance keeps for the card.
    pub pending: Option<u32>,
}

/// Percent as text, as other rates are written.
mod percent {
    use super::Rate;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{value}%"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        match Rate::deserialize(from)? {
            Rate::Percent(percent) => Ok(percent),
            Rate::Bps(_) | Rate::Max => Err(D::Error::custom("a load is a share of the port's rate, such as \"110%\"")),
        }
    }
}

impl Model {
    /// Checks that all values can be simulated.
    pub(super) fn check(&self, source: &Source) -> Result<()> {
        let inside = source.text("[model]").map_or(0, |at| at.start);
        let most_pipes = 32_768.0 * f64::from(self.instances);
        let ranges = [
            ("instances", f64::from(self.instances), 1.0, 64.0),
            ("pipes", f64::from(self.pipes), f64::from(self.instances), most_pipes),
            ("classes", f64::from(self.classes), 1.0, 12.0),
            ("bytes", f64::from(self.bytes), 60.0, 9_000.0),
            ("load", self.load, 1.0, 1_000.0),
            ("packet_ns", self.packet_ns as f64, 2.0, 100_000.0),
        ];
        for (key, value, least, most) in ranges.into_iter().filter(|_| !self.real) {
            if !(least..=most).contains(&value) {
                let what = format!("{key} {value} is not between {least} and {most}");
                return Err(source.bad(source.key(inside, key), &what, "choose another; instances share the pipes"));
            }
        }
        Ok(())
    }

    /// The names of its classes, as of loads.
    pub fn class_names(&self) -> Vec<String> {
        (1..=self.classes).map(|class| format!("class {class}")).collect()
    }

    /// The model in words.
    pub fn about(&self) -> String {
        let many = |n: u32, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
        let classes = if self.classes == 1 { "1 class".to_owned() } else { format!("{} classes", self.classes) };
        if self.real {
            let flows = many(self.pipes, "flow");
            return format!("{flows} with {classes}, frames of {} B, {} % of the port's rate", self.bytes, self.load);
        }
        format!(
            "{} with {classes}, {}, packets of {} B, {} % of the port's rate, {} ns of a processor for a packet",
            many(self.pipes, "pipe"),
            many(self.instances, "instance"),
            self.bytes,
            self.load,
            self.packet_ns,
        )
    }
}

impl PortLoad {
    /// Checks that it can be sent.
    pub(super) fn check(&self, source: &Source) -> Result<()> {
        let inside = source.text("[port]").map_or(0, |at| at.start);
        let ranges = [
            ("flows", f64::from(self.flows), 1.0, 1_000.0),
            ("classes", f64::from(self.classes), 1.0, 12.0),
            ("bytes", f64::from(self.bytes), 64.0, 1_514.0),
            ("load", self.load, 1.0, 1_000.0),
        ];
        for (key, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                let what = format!("{key} {value} is not between {least} and {most}");
                return Err(source.bad(source.key(inside, key), &what, "choose another"));
            }
        }
        Ok(())
    }

    /// The same as a model: its flows are pipes, and the wire is the only instance.
    pub(super) fn model(&self) -> Model {
        let PortLoad { flows, classes, bytes, load } = *self;
        Model { pipes: flows, classes, instances: 1, bytes, load, packet_ns: 0, real: true }
    }
}

impl WireUse {
    /// Checks the limit.
    pub(super) fn check(&self, source: &Source) -> Result<()> {
        let is_number = self.port_limit.parse().is_ok_and(|number: u32| (1..=2048).contains(&number));
        if self.port_limit == "auto" || is_number {
            return Ok(());
        }
        let inside = source.text("[wire]").map_or(0, |at| at.start);
        let what = format!("port_limit \"{}\" is neither auto nor a number of packets", self.port_limit);
        Err(source.bad(source.key(inside, "port_limit"), &what, "port_limit = \"auto\", or \"256\", up to 2048"))
    }

    /// Whether the port holds back what it has enough of.
    pub fn has_backpressure(&self) -> bool {
        self.port_limit == "auto"
    }
}

impl CardUse {
    /// Checks that it is a ring, or queues with lists.
    pub(super) fn check(&self, source: &Source) -> Result<()> {
        let inside = source.text("[card]").map_or(0, |at| at.start);
        let bad = |key: &str, what: String, cure: &str| Err(source.bad(source.key(inside, key), &what, cure));
        if self.ring.is_some() == self.queues.is_some() || self.queues.is_some() != self.pending.is_some() {
            let cure = "ring = 4096, or queues = 64 and pending = 32";
            return bad("ring", "[card] is one ring, or queues with packets pending before them".to_owned(), cure);
        }
        for (key, value, most) in
            [("ring", self.ring, 65_536), ("queues", self.queues, 65_536), ("pending", self.pending, 64)]
        {
            if value.is_some_and(|value| !(1..=most).contains(&value)) {
                let what = format!("{key} {} is not between 1 and {most}", value.unwrap_or_default());
                return bad(key, what, "choose another");
            }
        }
        Ok(())
    }

    /// Whether the card's refusals hold classes back.
    pub fn has_backpressure(&self) -> bool {
        self.queues.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{assert_refused, source};
    use super::super::{Contender, Scenario};

    const OVERLOAD: &str = r#"
title = "Overload"
about = "Overload."
measured = "40ms"
[model]
pipes = 200
classes = 8
instances = 2
bytes = 1376
load = "110%"
packet_ns = 250
[published]
with = [33.9, 248.42, 4544.16]
without = [32.76, 2807.39, 35420.29]
"#;
    const QUEUES: &str = "title = \"t\"\nabout = \"a\"\n[card]\nqueues = 64\npending = 32\n";

    #[test]
    fn models_are_checked() {
        let scenario = Scenario::of(source("overload", OVERLOAD)).unwrap();
        let model = scenario.model.unwrap();
        assert_eq!((model.load, model.class_names().len(), scenario.loads.len()), (110.0, 8, 0));
        assert!(model.about().starts_with("200 pipes with 8 classes, 2 instances"), "{}", model.about());
        let mistakes = [
            ("pipes = 200", "pipes = 1", "overload.toml (built in):6: pipes 1 is not between 2 and 65536"),
            ("classes = 8", "classes = 13", "classes 13 is not between 1 and 12"),
            ("instances = 2", "instances = 0", "instances 0 is not between 1 and 64"),
            ("load = \"110%\"", "load = \"30gbit\"", "a load is a share of the port's rate"),
            ("bytes = 1376", "byte = 1376", "there is no key \"byte\""),
            ("packet_ns = 250\n", "", "the key \"packet_ns\" is missing"),
            ("measured = \"40ms\"", "measured = \"1ms\"", "measured is not between 0.01 s and 10 s"),
            ("measured = \"40ms\"", "topology = \"isp\"", "a model has no network"),
            ("measured = \"40ms\"", "idle = \"1s\"", "a model has no network"),
            ("with = [33.9, ", "with = [", "with"),
        ];
        assert_refused(|text| Scenario::of(source("overload", text)), OVERLOAD, &mistakes);
    }

    #[test]
    fn published_figures_need_a_model() {
        let error = Scenario::of(source("mine", &OVERLOAD.replace("[model]\n", ""))).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let game = super::super::read(super::super::Folder::Scenarios, "game-4").unwrap().text;
        let error =
            Scenario::of(source("mine", &format!("{game}\n[published]\nwith = [1, 2, 3]\nwithout = [1, 2, 3]\n")));
        assert!(error.unwrap_err().what.contains("[published] beside [[load]]"));
    }

    const PORT: &str = "title = \"t\"\nabout = \"a\"\nmeasured = \"2s\"\n[port]\nflows = 200\nclasses = 8\nbytes = 1376\nload = \"110%\"\n";

    #[test]
    fn real_ports_are_checked() {
        let model = Scenario::of(source("port", PORT)).unwrap().model.unwrap();
        assert_eq!((model.real, model.pipes, model.classes, model.instances), (true, 200, 8, 1));
        assert_eq!(model.about(), "200 flows with 8 classes, frames of 1376 B, 110 % of the port's rate");
        let mistakes = [
            ("flows = 200", "flows = 0", "port.toml (built in):5: flows 0 is not between 1 and 1000"),
            ("classes = 8", "classes = 13", "classes 13 is not between 1 and 12"),
            ("bytes = 1376", "bytes = 1515", "bytes 1515 is not between 64 and 1514"),
            ("load = \"110%\"", "load = \"1gbit\"", "a load is a share of the port's rate"),
            ("[port]", "[model]", "flows"),
            ("measured = \"2s\"", "topology = \"isp\"", "a model has no network"),
        ];
        assert_refused(|text| Scenario::of(source("port", text)), PORT, &mistakes);
    }

    #[test]
    fn wires_are_checked() {
        let wire = "title = \"t\"\nabout = \"a\"\n[wire]\nport_limit = \"auto\"\n";
        assert!(Contender::of(source("mine", wire)).unwrap().is_ours());
        assert!(!Contender::of(source("mine", &wire.replace("auto", "2048"))).unwrap().is_ours());
        let mistakes = [
            ("\"auto\"", "\"2049\"", "mine.toml (built in):4: port_limit \"2049\" is neither auto nor a number"),
            ("\"auto\"", "\"none\"", "port_limit \"none\" is neither auto nor a number"),
            ("[wire]", "start = [\"x\"]\n[wire]", "[wire] beside"),
            ("[wire]", "[card]\nring = 1\n[wire]", "[wire] beside"),
        ];
        assert_refused(|text| Contender::of(source("mine", text)), wire, &mistakes);
    }

    #[test]
    fn uses_of_a_card_are_checked() {
        let contender = Contender::of(source("mine", QUEUES)).unwrap();
        assert!(contender.is_ours() && contender.card().is_some_and(|card| card.has_backpressure()));
        assert!(
            !Contender::of(source("mine", &QUEUES.replace("queues = 64\npending = 32", "ring = 512")))
                .unwrap()
                .is_ours()
        );
        let mistakes = [
            ("queues = 64", "queues = 0", "mine.toml (built in):4: queues 0 is not between 1 and 65536"),
            ("pending = 32", "pending = 65", "pending 65 is not between 1 and 64"),
            ("pending = 32", "", "[card] is one ring, or queues"),
            ("queues = 64", "ring = 64", "[card] is one ring, or queues"),
            ("queues = 64", "queues = 64\nring = 64", "[card] is one ring, or queues"),
            ("[card]", "start = [\"x\"]\n[card]", "[card] beside"),
        ];
        assert_refused(|text| Contender::of(source("mine", text)), QUEUES, &mistakes);
    }
}
