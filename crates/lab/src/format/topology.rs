//! A network: hosts, routers, links, and what contenders own in it: a device with a queue, the hops of a chain, or a device whose arrivals they observe.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::library::{Folder, Source, read};
use super::units::{Milliseconds, Rate};
use sluice_error::Result;

/// The longest name: device names have at most 15 characters, and begin with "to-".
const LONGEST_NAME: usize = 12;
/// The most links: addresses are 10.99.LINK.END.
const MAX_LINKS: usize = 250;

/// A checked topology file.
#[derive(Debug, Clone)]
pub struct Topology {
    /// A description of the network.
    pub about: String,
    /// Ends of traffic.
    pub hosts: Vec<String>,
    /// Nodes that forward packets.
    pub routers: Vec<String>,
    /// What contenders own.
    pub owned: Owned,
    /// All links.
    pub link: Vec<Link>,
}

/// What contenders own in a network.
#[derive(Debug, Clone)]
pub enum Owned {
    /// A device, with the queue before a line.
    Queue(Queue),
    /// The hops of a chain, each of which forwards a port to the next.
    Hops(Chain),
    /// A device whose arrivals they observe.
    Tap(Tap),
    /// A modelled card, without a network.
    Card,
}

/// A device that contenders own.
#[derive(Debug, Clone)]
pub struct Queue {
    /// The host and its neighbour: the contender owns the device from the first to the second.
    pub owner: Spanned<End>,
    /// A client and a server whose path touches no queue: it shows the harness's own noise.
    pub noise: Spanned<End>,
    /// The directions that contenders shape.
    pub shaped: Vec<Shaped>,
}

/// A client, hops that forward a port, and a server.
#[derive(Debug, Clone)]
pub struct Chain {
    /// The host that connects to the first hop.
    pub client: String,
    /// The routers that forward a port, each to the next and the last to the server.
    pub hops: Vec<String>,
    /// The host that answers.
    pub server: String,
}

/// A sender of frames, and the host that observes them.
#[derive(Debug, Clone)]
pub struct Tap {
    /// The host that sends.
    pub source: String,
    /// The host where contenders observe what arrives from the source.
    pub monitor: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    hosts: Vec<String>,
    routers: Vec<String>,
    owner: Option<Spanned<End>>,
    noise: Option<Spanned<End>>,
    shaped: Option<Vec<Shaped>>,
    chain: Option<Spanned<Vec<String>>>,
    tap: Option<Spanned<End>>,
    link: Vec<Link>,
}

/// The device of the first host towards the second.
pub type End = (String, String);

/// A link; its properties hold in both directions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The two ends of the link.
    pub between: Spanned<End>,
    /// Rate; none means unlimited.
    pub rate: Option<Rate>,
    /// The length of the link's queue at its rate.
    pub queue: Option<Milliseconds>,
    /// Delay each way.
    pub delay: Option<Milliseconds>,
    /// Variation of the delay.
    pub jitter: Option<Milliseconds>,
    /// Percent of packets that it loses.
    pub loss_percent: Option<f64>,
}

/// A direction of the owner's device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Departing packets.
    Egress,
    /// Arriving packets.
    Ingress,
}

/// A direction that contenders shape.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shaped {
    /// The direction at the owner's device.
    pub direction: Direction,
    /// The device whose queue stays empty if the contender owns the bottleneck.
    pub line: Spanned<End>,
    /// The device whose counters give the passed bytes.
    pub wire: Spanned<End>,
}

impl Direction {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Egress => "egress",
            Direction::Ingress => "ingress",
        }
    }
}

impl Link {
    /// Whether the link joins these two nodes.
    fn joins(&self, x: &str, y: &str) -> bool {
        let (a, b) = self.between.get_ref();
        (a == x && b == y) || (a == y && b == x)
    }
}

impl Topology {
    /// The topology that a scenario names: a file next to the scenario, which is added to its source, else built in.
    pub fn named(name: &str, scenario: &mut Source) -> Result<Topology> {
        let file = format!("{name}.toml");
        let Some(text) = scenario.sibling(Folder::Topologies, &file) else {
            return read(Folder::Topologies, name).and_then(|source| Topology::of(&source));
        };
        let path = scenario.path.as_ref().and_then(|path| Some(path.parent()?.join(&file)));
        let topology = Topology::of(&Source { name: name.to_owned(), text: text.clone(), path, attached: Vec::new() })?;
        scenario.attach(&file, text);
        Ok(topology)
    }

    /// Reads and checks a topology.
    pub fn of(source: &Source) -> Result<Topology> {
        let file: File = source.parse()?;
        let (chain, tap) = (file.chain.clone(), file.tap.clone());
        let topology = Topology::from_file(file, source)?;
        topology.check(source)?;
        match (&topology.owned, chain) {
            (Owned::Queue(queue), _) => topology.check_queue(source, queue)?,
            (Owned::Hops(_), Some(chain)) => topology.check_chain(source, &chain)?,
            (Owned::Hops(_), None) | (Owned::Card, _) => {}
            (Owned::Tap(_), _) => topology.check_tap(source, tap.as_ref())?,
        }
        Ok(topology)
    }

    /// The network of a modelled card, which is none.
    pub fn none() -> Topology {
        Topology { about: String::new(), hosts: Vec::new(), routers: Vec::new(), owned: Owned::Card, link: Vec::new() }
    }

    fn from_file(file: File, source: &Source) -> Result<Topology> {
        let chain = file.chain.map(Spanned::into_inner);
        let owned = match (file.owner, file.noise, file.shaped, chain, file.tap.map(Spanned::into_inner)) {
            (Some(owner), Some(noise), Some(shaped), None, None) => Owned::Queue(Queue { owner, noise, shaped }),
            (None, None, None, None, Some((source, monitor))) => Owned::Tap(Tap { source, monitor }),
            (None, None, None, Some(chain), None) => match chain.as_slice() {
                [client, hops @ .., server] if !hops.is_empty() => {
                    Owned::Hops(Chain { client: client.clone(), hops: hops.to_vec(), server: server.clone() })
                }
                _ => {
                    return Err(source.bad(
                        None,
                        "a chain has at least one hop",
                        "chain = [\"client\", \"hop-1\", \"server\"]",
                    ));
                }
            },
            _ => {
                return Err(source.bad(
                    None,
                    "contenders own a queue or the hops of a chain, or observe a device",
                    "give owner, noise and [[shaped]], or chain alone, or tap alone",
                ));
            }
        };
        Ok(Topology { about: file.about, hosts: file.hosts, routers: file.routers, owned, link: file.link })
    }

    fn check(&self, source: &Source) -> Result<()> {
        let all: Vec<&String> = self.nodes().collect();
        self.check_names(source, &all)?;
        self.check_links(source, &all)?;
        let unreached = all.iter().find(|name| !self.next_hops(all[0]).contains_key(name.as_str()) && **name != all[0]);
        if let Some(unreached) = unreached {
            return Err(source.bad(
                source.text(&format!("\"{unreached}\"")),
                &format!("no link leads to {unreached}"),
                "connect it",
            ));
        }
        Ok(())
    }

    fn check_names(&self, source: &Source, all: &[&String]) -> Result<()> {
        for name in all {
            let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            if !plain || name.is_empty() || name.len() > LONGEST_NAME {
                return Err(source.bad(
                    source.text(&format!("\"{name}\"")),
                    &format!("\"{name}\" cannot name a host"),
                    "1 to 12 of a-z, 0-9 and -",
                ));
            }
        }
        if all.iter().collect::<BTreeSet<_>>().len() < all.len() {
            return Err(source.bad(source.key(0, "hosts"), "two hosts have one name", "each has a name of its own"));
        }
        Ok(())
    }

    fn check_links(&self, source: &Source, all: &[&String]) -> Result<()> {
        if self.link.len() > MAX_LINKS {
            return Err(source.bad(None, "more than 250 links", "leave some out"));
        }
        for link in &self.link {
            let (a, b) = link.between.get_ref();
            let at = Some(link.between.span());
            if let Some(unknown) = [a, b].into_iter().find(|name| !all.contains(name)) {
                return Err(source.bad(
                    at,
                    &format!("there is no host \"{unknown}\""),
                    &format!("there are {}", list(all)),
                ));
            }
            if self.link.iter().filter(|other| other.joins(a, b)).count() > 1 {
                let what = format!("two links between {a} and {b}");
                return Err(source.bad(at, &what, "one is enough: its devices bear the neighbours' names"));
            }
            if a == b {
                return Err(source.bad(at, "a link has two ends", "name two hosts"));
            }
            if link.rate.is_some() && (link.delay.is_some() || link.jitter.is_some() || link.loss_percent.is_some()) {
                return Err(source.bad(
                    at,
                    "a link with a rate has a queue of its own, so delay, jitter and loss cannot be there too",
                    "give them to another link of the way",
                ));
            }
            if link.rate == Some(Rate::Max) || link.queue.is_some() && link.rate.is_none() {
                return Err(source.bad(at, "a queue needs a rate", "rate = \"105%\" or \"20mbit\""));
            }
            if link.jitter.is_some() && link.delay.is_none() {
                return Err(source.bad(at, "jitter varies a delay, and there is none", "delay = \"10ms\""));
            }
            if link.loss_percent.is_some_and(|percent| !(0.0..=100.0).contains(&percent)) {
                return Err(source.bad(at, "loss_percent is not between 0 and 100", "loss_percent = 0.1"));
            }
        }
        Ok(())
    }

    /// Checks that neighbours in the chain are joined, and that its hops forward packets.
    fn check_chain(&self, source: &Source, chain: &Spanned<Vec<String>>) -> Result<()> {
        let at = || Some(chain.span());
        let nodes = chain.get_ref();
        if let Some(pair) = nodes.windows(2).find(|pair| self.link_of(&(pair[0].clone(), pair[1].clone())).is_none()) {
            let what = format!("there is no link between {} and {}", pair[0], pair[1]);
            return Err(source.bad(at(), &what, "a chain goes from one end of a [[link]] to the other"));
        }
        let hops = &nodes[1..nodes.len() - 1];
        if let Some(host) = hops.iter().find(|hop| !self.routers.contains(hop)) {
            return Err(source.bad(at(), &format!("{host} is no router"), "the hops of a chain are routers"));
        }
        if nodes.iter().collect::<BTreeSet<_>>().len() < nodes.len() {
            return Err(source.bad(at(), "a chain passes each node once", "leave one out"));
        }
        Ok(())
    }

    /// Checks that a link without a rate joins the source and the monitor.
    fn check_tap(&self, source: &Source, tap: Option<&Spanned<End>>) -> Result<()> {
        let Some(tap) = tap else { return Ok(()) };
        let (a, b) = tap.get_ref();
        let what = match self.link_of(tap.get_ref()) {
            None => format!("there is no link between {a} and {b}"),
            Some(link) if link.rate.is_some() || link.delay.is_some() || link.loss_percent.is_some() => {
                "the observed link has a rate, delay or loss".to_owned()
            }
            Some(_) => return Ok(()),
        };
        Err(source.bad(Some(tap.span()), &what, "tap names the source and the monitor, which a plain [[link]] joins"))
    }

    /// Checks the ends of links that the owner, lines and wires name, and those of the probe of the harness's own noise.
    fn check_queue(&self, source: &Source, queue: &Queue) -> Result<()> {
        let all: Vec<&String> = self.nodes().collect();
        let mut ends = vec![&queue.owner];
        ends.extend(queue.shaped.iter().flat_map(|shaped| [&shaped.line, &shaped.wire]));
        for end in ends {
            if self.link_of(end.get_ref()).is_none() {
                let (a, b) = end.get_ref();
                return Err(source.bad(
                    Some(end.span()),
                    &format!("there is no link between {a} and {b}"),
                    "name the ends of a [[link]]",
                ));
            }
        }
        if self
            .link_of(queue.owner.get_ref())
            .is_some_and(|link| link.rate.is_some() || link.delay.is_some() || link.loss_percent.is_some())
        {
            return Err(source.bad(
                Some(queue.owner.span()),
                "the owner's device is the contender's alone",
                "its link has neither rate nor delay nor loss",
            ));
        }
        if queue.shaped.is_empty() {
            return Err(source.bad(None, "nothing is shaped", "add a [[shaped]]"));
        }
        for shaped in &queue.shaped {
            if self.link_of(shaped.line.get_ref()).is_some_and(|link| link.rate.is_none()) {
                return Err(source.bad(
                    Some(shaped.line.span()),
                    "the line has no rate",
                    "rate = \"105%\" in its [[link]]",
                ));
            }
        }
        let (client, server) = queue.noise.get_ref();
        if let Some(unknown) = [client, server].into_iter().find(|name| !all.contains(name)) {
            return Err(source.bad(
                Some(queue.noise.span()),
                &format!("there is no host \"{unknown}\""),
                &format!("there are {}", list(&all)),
            ));
        }
        Ok(())
    }

    /// The queue that contenders own; none in a chain.
    pub fn queue(&self) -> Option<&Queue> {
        match &self.owned {
            Owned::Queue(queue) => Some(queue),
            Owned::Hops(_) | Owned::Tap(_) | Owned::Card => None,
        }
    }

    /// The sender and the observer of frames, if contenders observe.
    pub fn tap(&self) -> Option<&Tap> {
        match &self.owned {
            Owned::Tap(tap) => Some(tap),
            Owned::Queue(_) | Owned::Hops(_) | Owned::Card => None,
        }
    }

    /// The chain whose hops contenders own, if they do.
    pub fn chain(&self) -> Option<&Chain> {
        match &self.owned {
            Owned::Hops(chain) => Some(chain),
            Owned::Queue(_) | Owned::Tap(_) | Owned::Card => None,
        }
    }

    /// Hosts, then routers.
    pub fn nodes(&self) -> impl Iterator<Item = &String> {
        self.hosts.iter().chain(&self.routers)
    }

    /// The link of a device.
    pub fn link_of(&self, end: &End) -> Option<&Link> {
        self.number_of(end).map(|number| &self.link[number])
    }

    /// The link's number.
    pub fn number_of(&self, end: &End) -> Option<usize> {
        self.link.iter().position(|link| link.joins(&end.0, &end.1))
    }

    /// The address of a host's end of a link: 10.99.LINK.END.
    pub fn address(&self, number: usize, host: &str) -> String {
        let first = self.link[number].between.get_ref().0 == host;
        format!("10.99.{}.{}", number + 1, if first { 1 } else { 2 })
    }

    /// The address by which others reach a host: that of its first link.
    pub fn address_of(&self, host: &str) -> Option<String> {
        let number = self.link.iter().position(|link| {
            let (a, b) = link.between.get_ref();
            a == host || b == host
        })?;
        Some(self.address(number, host))
    }

    /// For every other host, the neighbour that leads there by the fewest links.
    pub fn next_hops(&self, from: &str) -> BTreeMap<&str, &str> {
        let neighbours = |of: &str| {
            let of = of.to_owned();
            self.link.iter().filter_map(move |link| {
                let (a, b) = link.between.get_ref();
                if *a == of { Some(b.as_str()) } else { (*b == of).then_some(a.as_str()) }
            })
        };
        let mut via = BTreeMap::new();
        let mut ahead = VecDeque::new();
        for next in neighbours(from) {
            if via.insert(next, next).is_none() {
                ahead.push_back(next);
            }
        }
        while let Some(at) = ahead.pop_front() {
            let hop = via[at];
            for next in neighbours(at) {
                if next != from && !via.contains_key(next) {
                    via.insert(next, hop);
                    ahead.push_back(next);
                }
            }
        }
        via
    }
}

fn list(names: &[&String]) -> String {
    names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
