//! A topology made real: namespaces, veth pairs, addresses, routes, slow links.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use nix::unistd::geteuid;
use tempfile::TempDir;

use crate::error::{Error, Kind, Result};
use crate::format::{End, Link, Topology};
use crate::netns::{self, Namespace};
use crate::tool::ETHTOOL;

/// What the namespaces' names begin with.
pub const PREFIX: &str = "sluice-lab";

/// The hosts and routers of a topology. Dropping removes them.
pub struct Network {
    hosts: BTreeMap<String, Namespace>,
    /// What this kernel could not do, for the report.
    pub warnings: Vec<String>,
}

/// How a network is built.
#[derive(Debug, Clone, Copy)]
pub struct Build {
    /// The contender's rate, which the links' rates may refer to.
    pub rate_bps: u64,
    /// Whether devices keep their segmentation offloads.
    pub offloads: bool,
}

/// The name of the device that leads from a host to its neighbour.
pub fn device(end: &End) -> String {
    format!("to-{}", end.1)
}

impl Network {
    /// Build it.
    pub fn build(topology: &Topology, how: Build) -> Result<Network> {
        let mut network = Network { hosts: BTreeMap::new(), warnings: Vec::new() };
        for name in topology.nodes() {
            network.hosts.insert(name.clone(), Namespace::create(PREFIX, name)?);
        }
        for (number, link) in topology.link.iter().enumerate() {
            network.connect(topology, number, link)?;
        }
        for (name, host) in &network.hosts {
            network.route(topology, name, host)?;
        }
        for router in &topology.routers {
            forward(network.host(router)?)?;
        }
        if !how.offloads {
            network.turn_offloads_off(topology)?;
        }
        for link in &topology.link {
            network.slow_down(link, how.rate_bps)?;
        }
        Ok(network)
    }

    /// A host's namespace.
    pub fn host(&self, name: &str) -> Result<&Namespace> {
        self.hosts.get(name).ok_or_else(|| Error::system(format!("the network has no host {name}")))
    }

    fn connect(&self, topology: &Topology, number: usize, link: &Link) -> Result<()> {
        let (a, b) = link.between.get_ref();
        let (to_b, to_a) = (device(&(a.clone(), b.clone())), device(&(b.clone(), a.clone())));
        let peer = self.host(b)?.name();
        self.host(a)?
            .ip(&["link", "add", &to_b, "type", "veth", "peer", "name", &to_a, "netns", peer])
            .map_err(|e| e.help("links are veth pairs (CONFIG_VETH, module veth)"))?;
        for (name, own) in [(a, &to_b), (b, &to_a)] {
            let host = self.host(name)?;
            host.ip(&["address", "add", &format!("{}/24", topology.address(number, name)), "dev", own])?;
            host.ip(&["link", "set", own, "up"])?;
        }
        Ok(())
    }

    fn route(&self, topology: &Topology, name: &str, host: &Namespace) -> Result<()> {
        let hops = topology.next_hops(name);
        for (number, link) in topology.link.iter().enumerate() {
            let (a, b) = link.between.get_ref();
            if a == name || b == name {
                continue;
            }
            let near =
                [a, b].into_iter().min_by_key(|end| if hops.get(end.as_str()) == Some(&end.as_str()) { 0 } else { 1 });
            let Some(hop) = near.and_then(|end| hops.get(end.as_str())) else { continue };
            let shared = topology.link.iter().position(|link| {
                let (a, b) = link.between.get_ref();
                [a.as_str(), b.as_str()] == [name, hop] || [b.as_str(), a.as_str()] == [name, hop]
            });
            let Some(shared) = shared else { continue };
            let via = topology.address(shared, hop);
            host.ip(&["route", "add", &format!("10.99.{}.0/24", number + 1), "via", &via])?;
        }
        Ok(())
    }

    fn turn_offloads_off(&self, topology: &Topology) -> Result<()> {
        for link in &topology.link {
            let (a, b) = link.between.get_ref();
            for (from, to) in [(a, b), (b, a)] {
                let own = device(&(from.clone(), to.clone()));
                self.host(from)?.run(ETHTOOL.program, &["-K", &own, "tso", "off", "gso", "off", "gro", "off"])?;
            }
        }
        Ok(())
    }

    fn slow_down(&mut self, link: &Link, trial_bps: u64) -> Result<()> {
        let (a, b) = link.between.get_ref();
        for (from, to) in [(a, b), (b, a)] {
            let own = device(&(from.clone(), to.clone()));
            if let Some(bps) = link.rate.and_then(|rate| rate.bps(trial_bps)) {
                let bytes = link.queue.map_or(0.0, |queue| bps as f64 / 8.0 * queue.seconds()).max(3_028.0);
                let words = [format!("{bps}bit"), burst_bytes(bps).to_string(), format!("{bytes:.0}")];
                let [rate, burst, limit] = &words;
                self.host(from)?
                    .tc(&["qdisc", "add", "dev", &own, "root", "tbf", "rate", rate, "burst", burst, "limit", limit])
                    .map_err(|e| {
                        e.help("lines are made of the kernel's tbf qdisc (CONFIG_NET_SCH_TBF, module sch_tbf)")
                    })?;
            }
            if link.delay.is_some() || link.loss_percent.is_some() {
                self.delay(from, &own, link)?;
            }
        }
        Ok(())
    }

    /// Without netem the rest of the scenario is still worth running, and the report says what is missing.
    fn delay(&mut self, from: &str, own: &str, link: &Link) -> Result<()> {
        let us = |time: Option<crate::format::Milliseconds>| time.map(|time| time.us());
        let loss = link.loss_percent.map(|percent| format!("{percent}%"));
        let mut words: Vec<String> = vec!["limit".into(), "100000".into()];
        if let Some(delay) = us(link.delay) {
            words.extend(["delay".into(), delay]);
            words.extend(us(link.jitter));
        }
        words.extend(loss.iter().flat_map(|loss| ["loss".to_owned(), loss.clone()]));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let command = [&["qdisc", "add", "dev", own, "root", "netem"], &words[..]].concat();
        match self.host(from)?.tc(&command) {
            Ok(_) => Ok(()),
            Err(e) if lacks_qdisc(&e.what) => {
                let (a, b) = link.between.get_ref();
                let warning =
                    format!("this kernel has no netem: delay, jitter and loss between {a} and {b} are left out");
                if !self.warnings.contains(&warning) {
                    self.warnings.push(warning);
                }
                Ok(())
            }
            Err(e) => Err(e),
        }
    }
}

/// Whether words of tc mean that the kernel does not have something.
pub fn lacks_qdisc(words: &str) -> bool {
    [
        "kind is unknown",
        "Unknown qdisc",
        "No such file or directory",
        "not supported",
        "Failed to load TC action module",
        "Unknown filter",
        "TC classifier not found",
    ]
    .iter()
    .any(|says| words.contains(says))
}

/// One frame and a little, so that a line sends frame by frame and cuts up larger packets; at high rates a quarter of
/// a millisecond, since timers are no finer.
fn burst_bytes(bps: u64) -> u64 {
    (bps / 8 / 4_000).max(2_000)
}

fn forward(host: &Namespace) -> Result<()> {
    let path = "/proc/sys/net/ipv4/ip_forward";
    host.inside(|| fs::write(path, "1"))?
        .map_err(|e| Error::system(format!("cannot turn forwarding on in namespace {} ({path}): {e}", host.name())))
}

/// Refuse to go on without root.
pub fn require_root(what: &str, cure: &str) -> Result<()> {
    if geteuid().is_root() {
        return Ok(());
    }
    Err(Error::new(Kind::Privilege, format!("{what} needs root: it makes network namespaces and links of its own"))
        .help(cure))
}

/// Remove what a killed run left.
pub fn remove_stale(sluice: &Path) -> Result<()> {
    netns::remove_stale(PREFIX, |name| {
        // It may have been killed before Sluice was up, so there may be nothing to take down.
        for device in managed(sluice, name).unwrap_or_default() {
            let _ = crate::sluice::down(sluice, name, &device);
        }
    })
}

/// The interfaces that Sluice manages in a namespace.
fn managed(sluice: &Path, namespace: &str) -> Result<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct Interface {
        interface: String,
    }
    let json = crate::sluice::call("sluice status", sluice, &["--netns", namespace, "status", "--json"])?;
    let all: Vec<Interface> =
        serde_json::from_str(&json).map_err(|e| Error::system(format!("reading \"sluice status\": {e}")))?;
    Ok(all.into_iter().map(|own| own.interface).collect())
}

/// A directory for files that tools need, which goes away when dropped.
pub fn scratch() -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix(PREFIX)
        .tempdir()
        .map_err(|e| Error::system(format!("cannot make a temporary directory: {e}")))
}
