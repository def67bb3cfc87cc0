//! The ways by which the packets of forwards leave, and why, as reports tell them.

use super::routes::{self, Way};
use super::shortcuts::{Departure, Queued, departure};
use super::{OfInterface, others};
use crate::engine::features::Features;
use crate::maps::{forwarding, tables};
use crate::record::Record;
use crate::system::interface::Interface;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use serde::Serialize;
use sluice_abi as abi;
use sluice_error::{Doing, Result};
use sluice_policy::{Forward, Resolved};
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;

/// The most forwards that one line names.
const NAMED: usize = 6;

/// The way by which packets of a forward leave.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Leaving {
    /// The target is on this host.
    ThisHost,
    /// No route leads there: the host's stack answers.
    Unrouted,
    /// This host sends no packets of the family on.
    Disabled {
        /// Setting of the kernel that is 0.
        sysctl: &'static str,
    },
    /// An interface and its queues.
    Queues {
        /// Name of the interface.
        interface: String,
        /// The reason.
        why: Queued,
    },
    /// The other end of a veth, at once: nothing was scheduled there when a policy last changed.
    Peer {
        /// Name of the interface.
        interface: String,
        /// A reason to go through the queues that has come since.
        #[serde(skip_serializing_if = "Option::is_none")]
        passes: Option<Queued>,
    },
    /// The stack, after the queue of arrivals.
    Stack {
        /// Name of the interface.
        interface: String,
    },
}

impl fmt::Display for Queued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Queued::NoPeer => "it is no veth into another network namespace",
            Queued::Policy => "a policy does more than forward there",
            Queued::Qdisc => "a qdisc schedules there",
            Queued::Program => "a program or a filter sees what departs there",
            Queued::Earlier => "something scheduled or saw packets there when a policy last changed",
        })
    }
}

/// The way as an adverbial, with the reason.
impl fmt::Display for Leaving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Leaving::ThisHost => f.write_str("on this host"),
            Leaving::Unrouted => f.write_str("(to which no route leads: the host's stack answers)"),
            Leaving::Disabled { sysctl } => write!(f, "(but this host sends no packets on: {sysctl} is 0)"),
            Leaving::Queues { interface, why } => write!(f, "by {interface} and its queues, since {why}"),
            Leaving::Peer { interface, passes: None } => {
                write!(f, "by {interface}, into its other end at once, since nothing is scheduled there")
            }
            Leaving::Peer { interface, passes: Some(why) } => {
                write!(
                    f,
                    "by {interface}, into its other end at once, since nothing was scheduled there when a policy last changed; now {why}"
                )
            }
            Leaving::Stack { interface } => {
                write!(f, "by {interface}, sent by the stack after the queue of arrivals")
            }
        }
    }
}

/// A way of a forward's packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForwardWay {
    /// Sender of the packets: client or target. What a target sends is told as it goes to a client behind the forward's own interface.
    pub sender: &'static str,
    /// The targets of the forward that have this way.
    pub targets: Vec<IpAddr>,
    /// The way.
    #[serde(flatten)]
    pub way: Leaving,
}

/// The state of this network namespace on which ways depend.
struct Host<'a> {
    record: &'a Record,
    /// The managed interfaces.
    interfaces: Vec<OfInterface>,
    departures: MapHandle,
    routes: HashMap<IpAddr, Way>,
    /// The ways out of interfaces that have been looked at.
    known: HashMap<String, Leaving>,
}

impl<'a> Host<'a> {
    fn look<'t>(record: &'a Record, policy: &Resolved, targets: impl Iterator<Item = &'t IpAddr>) -> Result<Host<'a>> {
        let mut interfaces = others(record)?;
        interfaces.push(OfInterface::of(record, policy));
        Ok(Host {
            record,
            interfaces,
            departures: tables::open(&forwarding::directory(record.netns)?, "departures")?,
            routes: routes::ways_to(&targets.copied().collect())?,
            known: HashMap::new(),
        })
    }

    /// The way of a client's packets to a target.
    fn towards_target(&mut self, from_ipv4: bool, target: IpAddr) -> Result<Leaving> {
        let Some(way) = self.routes.get(&target) else { return Ok(Leaving::Unrouted) };
        if way.is_local() {
            return Ok(Leaving::ThisHost);
        }
        let interface = way.dev.clone();
        let families = [from_ipv4, target.is_ipv4()];
        if let Some(sysctl) = families.map(routes::sysctl).into_iter().find(|name| !routes::is_router(name)) {
            return Ok(Leaving::Disabled { sysctl });
        }
        self.from(&self.record.interface.clone(), interface, from_ipv4 != target.is_ipv4())
    }

    /// The way of a target's packets to a client that is behind the forward's own interface. None: nothing comes from there, or this host's
    /// stack sends it.
    fn towards_client(&mut self, from_ipv4: bool, target: IpAddr, there: &Leaving) -> Result<Option<Leaving>> {
        let (Leaving::Queues { interface, .. } | Leaving::Peer { interface, .. } | Leaving::Stack { interface }) =
            there
        else {
            return Ok(None);
        };
        let own = self.record.interface.clone();
        self.from(interface, own, from_ipv4 != target.is_ipv4()).map(Some)
    }

    /// The way of packets that arrive at one interface, and leave by another.
    fn from(&mut self, arrive: &str, interface: String, translated: bool) -> Result<Leaving> {
        let queued =
            |one: &OfInterface| one.queues_arrivals && Interface::name_of(one.ifindex).as_deref() == Some(arrive);
        if !translated && Features::known()?.tcx && self.interfaces.iter().any(queued) {
            return Ok(Leaving::Stack { interface });
        }
        if let Some(known) = self.known.get(&interface) {
            return Ok(known.clone());
        }
        let device = Interface::find(&interface)?;
        let found = self.departures.lookup(&device.ifindex.to_ne_bytes(), MapFlags::ANY);
        let found = found.doing(|| "looking for hooks on departure".to_owned())?;
        let at_once = found.is_some_and(|value| value[..] == abi::SL_DEPARTS_BY_PEER.to_ne_bytes());
        let way = match (at_once, departure(&device, &self.interfaces)?) {
            (true, Departure::Peer) => Leaving::Peer { interface: interface.clone(), passes: None },
            (true, Departure::Queues(why)) => Leaving::Peer { interface: interface.clone(), passes: Some(why) },
            (false, Departure::Queues(why)) => Leaving::Queues { interface: interface.clone(), why },
            (false, Departure::Peer) => Leaving::Queues { interface: interface.clone(), why: Queued::Earlier },
        };
        self.known.insert(interface, way.clone());
        Ok(way)
    }

    /// The ways of a forward's packets, each once.
    fn of(&mut self, forward: &Forward) -> Result<Vec<ForwardWay>> {
        let mut ways: Vec<ForwardWay> = Vec::new();
        let mut add = |sender, way, target| match ways.iter_mut().find(|one| one.sender == sender && one.way == way) {
            Some(one) => one.targets.push(target),
            None => ways.push(ForwardWay { sender, targets: vec![target], way }),
        };
        let from_ipv4 = forward.is_ipv4();
        for target in forward.targets.iter().map(|target| target.address) {
            let there = self.towards_target(from_ipv4, target)?;
            let back = self.towards_client(from_ipv4, target, &there)?;
            add("client", there, target);
            back.into_iter().for_each(|way| add("target", way, target));
        }
        Ok(ways)
    }
}

/// The ways of a client's packets to targets of a managed interface's forwards, in their order.
pub(crate) fn leaving(record: &Record, policy: &Resolved, from_ipv4: bool, targets: &[IpAddr]) -> Result<Vec<Leaving>> {
    let mut host = Host::look(record, policy, targets.iter())?;
    targets.iter().map(|target| host.towards_target(from_ipv4, *target)).collect()
}

/// The ways of the packets of each forward of a managed interface's policy, in their order. Without forwards, or where their tables are missing,
/// nothing is looked at.
pub(crate) fn ways(record: &Record, policy: &Resolved) -> Result<Vec<Vec<ForwardWay>>> {
    if policy.forwards.is_empty() || !forwarding::directory(record.netns)?.join("departures").exists() {
        return Ok(Vec::new());
    }
    let targets = policy.forwards.iter().flat_map(|forward| &forward.targets).map(|target| &target.address);
    let mut host = Host::look(record, policy, targets)?;
    policy.forwards.iter().map(|forward| host.of(forward)).collect()
}

/// A way, and the forwards whose packets have it.
pub struct SharedWay {
    /// Sender of the packets: client or target.
    pub sender: &'static str,
    /// The way.
    pub way: Leaving,
    /// Names of the forwards, each with those targets that have the way where others of it have another.
    pub forwards: Vec<String>,
}

impl SharedWay {
    /// The ways of these forwards, each once, in the order in which they are met.
    pub fn of<'a>(forwards: impl Iterator<Item = (&'a str, &'a [ForwardWay])>) -> Vec<SharedWay> {
        let mut all: Vec<SharedWay> = Vec::new();
        for (name, ways) in forwards {
            for way in ways {
                let alone = ways.iter().filter(|other| other.sender == way.sender).count() == 1;
                let targets: Vec<String> = way.targets.iter().take(NAMED).map(ToString::to_string).collect();
                let name = if alone { name.to_owned() } else { format!("{name} ({})", targets.join(", ")) };
                match all.iter_mut().find(|one| one.sender == way.sender && one.way == way.way) {
                    Some(one) => one.forwards.push(name),
                    None => all.push(SharedWay { sender: way.sender, way: way.way.clone(), forwards: vec![name] }),
                }
            }
        }
        all
    }
}

impl fmt::Display for SharedWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.forwards.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = self.forwards.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        match (&self.way, self.sender) {
            (Leaving::Unrouted, _) => f.write_str("no route leads to a target, and the host's stack answers")?,
            (Leaving::Disabled { sysctl }, _) => write!(f, "this host sends no packets on: {sysctl} is 0")?,
            (Leaving::ThisHost, _) => f.write_str("to a target on this host")?,
            (way, sender) => write!(f, "from {sender}s {way}")?,
        }
        write!(f, ": {named}{more}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_share_ways() {
        let queues = Leaving::Queues { interface: "wan0".to_owned(), why: Queued::Qdisc };
        let peer = Leaving::Peer { interface: "lan0".to_owned(), passes: None };
        let way = |sender, way: &Leaving, targets: &[&str]| ForwardWay {
            sender,
            targets: targets.iter().map(|target| target.parse().expect("an address")).collect(),
            way: way.clone(),
        };
        let web = [way("client", &queues, &["10.0.0.5"]), way("target", &peer, &["10.0.0.5"])];
        let api = [way("client", &queues, &["10.0.0.6"]), way("client", &Leaving::Unrouted, &["10.0.0.7"])];
        let shared = SharedWay::of([("web", &web[..]), ("api", &api[..])].into_iter());
        let told: Vec<String> = shared.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "from clients by wan0 and its queues, since a qdisc schedules there: web, api (10.0.0.6)",
                "from targets by lan0, into its other end at once, since nothing is scheduled there: web",
                "no route leads to a target, and the host's stack answers: api (10.0.0.7)",
            ]
        );
        let many: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        let shared = SharedWay::of(many.iter().map(|name| (name.as_str(), &web[1..])));
        assert!(shared[0].to_string().ends_with(": 0, 1, 2, 3, 4, 5 and 4 more"), "{}", shared[0]);
    }
}
