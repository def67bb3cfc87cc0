//! The network of a topology: namespaces, veth pairs, addresses, routes, links with rates and delays.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;
use tempfile::TempDir;

use crate::format::{End, Link, Topology};
use sluice_error::{Error, Kind, Result};
use sluice_testbed::Namespace;
use sluice_testbed::tool::ETHTOOL;
use sluice_testbed::{namespace, veth};

/// Rate of the bucket that splits super-packets, as a multiple of the line's, so that it never limits.
const SPLIT_FACTOR: u64 = 20;

/// Congestion control of the connections over a chain. The system's own differs from machine to machine, servers and relays cannot
/// be told another, and namespaces may not be given one that the first has not allowed; a route may.
const CONGESTION: &str = "cubic";

/// The prefix of the namespaces' names.
pub const PREFIX: &str = "sluice-lab";

/// The hosts and routers of a topology. Dropping removes them.
pub struct Network {
    hosts: BTreeMap<String, Namespace>,
    /// Features that this kernel lacks, for the report.
    pub warnings: Vec<String>,
}

/// The parameters of a network.
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
    /// Builds the network.
    pub fn build(topology: &Topology, how: Build) -> Result<Network> {
        let mut network = Network { hosts: BTreeMap::new(), warnings: Vec::new() };
        for name in topology.nodes() {
            network.hosts.insert(name.clone(), Namespace::create(PREFIX, name)?);
        }
        network.connect(topology)?;
        for (name, host) in &network.hosts {
            host.ip_batch(&ends(topology, name))?;
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

    fn connect(&self, topology: &Topology) -> Result<()> {
        let end = |from: &String, to: &String| {
            let namespace = self.host(from)?;
            Ok(veth::End { namespace, device: device(&(from.clone(), to.clone())), options: String::new() })
        };
        let pair = |link: &Link| {
            let (a, b) = link.between.get_ref();
            Ok([end(a, b)?, end(b, a)?])
        };
        veth::connect(&topology.link.iter().map(pair).collect::<Result<Vec<_>>>()?)
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
                self.add_line(from, &own, bps, bytes)?;
            }
            if link.delay.is_some() || link.loss_percent.is_some() {
                self.delay(from, &own, link)?;
            }
        }
        Ok(())
    }

    /// A line that sends one frame after the other. netem takes the time of each, so that a small packet waits for the frame before
    /// it; a token bucket, where there is no netem, lets it go as soon as there are tokens for it. netem counts packets, and what
    /// it is given whole it keeps whole, so a bucket above it that never limits cuts super-packets into frames first.
    fn add_line(&mut self, from: &str, own: &str, bps: u64, queue_bytes: f64) -> Result<()> {
        let (rate, pkts) = (format!("{bps}bit"), format!("{:.0}", (queue_bytes / 1_514.0).ceil()));
        let (cutter, limit) = (format!("{}bit", bps * SPLIT_FACTOR), format!("{queue_bytes:.0}"));
        let host = self.host(from)?;
        let bucket = |verb, rate: &str, burst: &str| {
            host.tc(&[
                "qdisc", verb, "dev", own, "root", "handle", "1:", "tbf", "rate", rate, "burst", burst, "limit", &limit,
            ])
            .map(drop)
            .map_err(|e| e.help("lines are made of the kernel's tbf and netem (modules sch_tbf, sch_netem)"))
        };
        bucket("add", &cutter, "2000")?;
        let line =
            ["qdisc", "add", "dev", own, "parent", "1:1", "handle", "2:", "netem", "rate", &rate, "limit", &pkts];
        match host.tc(&line) {
            Err(e) if lacks_qdisc(&e.what) => bucket("change", &rate, &burst_bytes(bps).to_string())?,
            other => return other.map(drop),
        }
        self.warn("this kernel has no netem: lines are token buckets, where a small packet does not wait for the frame before it");
        Ok(())
    }

    fn warn(&mut self, warning: &str) {
        if !self.warnings.iter().any(|known| known == warning) {
            self.warnings.push(warning.to_owned());
        }
    }

    /// Without netem the rest of the scenario is still worth running, and the report names the missing feature.
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
                self.warn(&format!(
                    "this kernel has no netem: delay, jitter and loss between {a} and {b} are left out"
                ));
                Ok(())
            }
            Err(e) => Err(e),
        }
    }
}

/// The commands that give a host's devices their addresses, and its routes to all links.
fn ends(topology: &Topology, name: &str) -> Vec<String> {
    let mut commands = vec!["link set lo up".to_owned()];
    let hops = topology.next_hops(name);
    let mut routes = Vec::new();
    for (number, link) in topology.link.iter().enumerate() {
        let (a, b) = link.between.get_ref();
        if let Some(other) = (a == name).then_some(b).or((b == name).then_some(a)) {
            let own = device(&(name.to_owned(), other.clone()));
            commands.push(format!("address add {}/24 dev {own}", topology.address(number, name)));
            commands.push(format!("link set {own} up"));
            if topology.chain().is_some() {
                let (link, source) = (number + 1, topology.address(number, name));
                commands.push(format!("route replace 10.99.{link}.0/24 dev {own} src {source} congctl {CONGESTION}"));
            }
            continue;
        }
        // The near end of a link is the one that is not behind the other.
        let near = [a, b].into_iter().find(|end| hops.get(end.as_str()) == Some(&end.as_str())).unwrap_or(a);
        let Some(hop) = hops.get(near.as_str()) else { continue };
        let end = (name.to_owned(), (*hop).to_owned());
        if let Some(number_to_hop) = topology.number_of(&end) {
            let route = format!("route add 10.99.{}.0/24 via {}", number + 1, topology.address(number_to_hop, hop));
            routes.push(match topology.chain() {
                Some(_) => format!("{route} congctl {CONGESTION}"),
                None => route,
            });
        }
    }
    commands.append(&mut routes);
    commands
}

/// Whether a message of tc means that the kernel lacks a qdisc.
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

/// The burst of a line's bucket, bytes: one frame and a little, so that the line sends frame by frame and splits larger
/// packets; at high rates a quarter of a millisecond, since timers are no finer.
fn burst_bytes(bps: u64) -> u64 {
    (bps / 8 / 4_000).max(2_000)
}

fn forward(host: &Namespace) -> Result<()> {
    let path = "/proc/sys/net/ipv4/ip_forward";
    host.inside(|| fs::write(path, "1"))?
        .map_err(|e| Error::system(format!("cannot turn forwarding on in namespace {} ({path}): {e}", host.name())))
}

/// Refuses to continue without root.
pub fn require_root(what: &str, cure: &str) -> Result<()> {
    if geteuid().is_root() {
        return Ok(());
    }
    Err(Error::new(Kind::Privilege, format!("{what} needs root: it makes network namespaces and links of its own"))
        .help(cure))
}

/// Removes the networks that a killed run left.
pub fn remove_stale(sluice: &Path) -> Result<()> {
    // The lock lets one process at a time remove: two at once could not take an interface down in order.
    let path = Path::new("/run").join(PREFIX).with_extension("lock");
    let file = fs::File::create(&path).map_err(|e| Error::system(format!("cannot write {}: {e}", path.display())))?;
    let _lock = Flock::lock(file, FlockArg::LockExclusive)
        .map_err(|(_, e)| Error::system(format!("cannot lock {}: {e}", path.display())))?;
    remove_stale_scratch();
    namespace::remove_stale(PREFIX, |name| {
        // A run that was killed before Sluice was up leaves nothing to take down.
        for device in managed(sluice, name).unwrap_or_default() {
            let _ = crate::tool::sluice::down(sluice, name, &device);
        }
    })
}

/// The interfaces that Sluice manages in a namespace.
fn managed(sluice: &Path, namespace: &str) -> Result<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct Interface {
        interface: String,
    }
    let json = crate::tool::sluice::call("sluice status", sluice, &["--netns", namespace, "status", "--json"])?;
    let all: Vec<Interface> =
        serde_json::from_str(&json).map_err(|e| Error::system(format!("reading \"sluice status\": {e}")))?;
    Ok(all.into_iter().map(|own| own.interface).collect())
}

/// Removes the temporary directories of processes that are gone.
fn remove_stale_scratch() {
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.strip_prefix('-')?.split('-').next()?.parse().ok());
        if pid.is_some_and(|pid: u32| !Path::new("/proc").join(pid.to_string()).exists()) {
            // A directory that cannot be removed belongs to another user.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A directory for files that tools need; dropping removes it.
pub fn scratch() -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix(&format!("{PREFIX}-{}-", std::process::id()))
        .tempdir()
        .map_err(|e| Error::system(format!("cannot make a temporary directory: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Folder, read};

    #[test]
    fn hosts_have_routes() {
        let isp = Topology::of(&read(Folder::Topologies, "isp").unwrap()).unwrap();
        let expected = [
            "link set lo up",
            "address add 10.99.2.2/24 dev to-core",
            "link set to-core up",
            "address add 10.99.3.1/24 dev to-access",
            "link set to-access up",
            "route add 10.99.1.0/24 via 10.99.2.1",
            "route add 10.99.4.0/24 via 10.99.3.2",
        ];
        assert_eq!(ends(&isp, "router"), expected);
    }

    #[test]
    fn connections_over_a_chain_have_one_congestion_control() {
        let chain = Topology::of(&read(Folder::Topologies, "chain-2").unwrap()).unwrap();
        let expected = [
            "link set lo up",
            "address add 10.99.1.1/24 dev to-hop-1",
            "link set to-hop-1 up",
            "route replace 10.99.1.0/24 dev to-hop-1 src 10.99.1.1 congctl cubic",
            "route add 10.99.2.0/24 via 10.99.1.2 congctl cubic",
            "route add 10.99.3.0/24 via 10.99.1.2 congctl cubic",
        ];
        assert_eq!(ends(&chain, "client"), expected);
    }

    #[test]
    fn lines_are_sized_by_time() {
        assert_eq!((burst_bytes(20_000_000), burst_bytes(1_000_000_000)), (2_000, 31_250));
    }
}
