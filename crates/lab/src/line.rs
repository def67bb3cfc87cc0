//! The topology of the demo: a home line, server -- router -- modem -- home, whose slow link is the modem's to the home.

use std::fs;

use crate::error::{Error, Result};
use crate::netns::Namespace;

/// What the namespaces' names begin with.
pub const PREFIX: &str = "sluice-demo";
/// The router's end of the link to the modem: where a contender may do something.
pub const ROUTER_EGRESS: &str = "to-modem";
/// The modem's end of the slow link.
pub const MODEM_EGRESS: &str = "to-home";
/// How long a full queue of the modem takes to empty, milliseconds: as much as modems are known for. It counts bytes, as
/// theirs do, so small packets find room when a full-size one does not.
pub const MODEM_QUEUE_MS: u32 = 250;
/// The server's address.
pub const SERVER_ADDRESS: &str = "10.99.1.1";

const ROUTER: &str = "router";

/// The four machines. Dropping removes them.
pub struct Line {
    /// Serves the game, the call and the downloads.
    pub server: Namespace,
    /// Forwards between the server and the modem, and is where a contender runs.
    pub router: Namespace,
    /// Forwards to the home through a long, dumb queue.
    pub modem: Namespace,
    /// Plays, calls and downloads.
    pub home: Namespace,
}

impl Line {
    /// Build it; the slow link carries `rate_mbit`, everything else is as fast as the machine.
    pub fn build(rate_mbit: u32) -> Result<Line> {
        let line = Line {
            server: Namespace::create(PREFIX, "server")?,
            router: Namespace::create(PREFIX, ROUTER)?,
            modem: Namespace::create(PREFIX, "modem")?,
            home: Namespace::create(PREFIX, "home")?,
        };
        link((&line.server, "to-router", SERVER_ADDRESS), (&line.router, "to-server", "10.99.1.2"))?;
        link((&line.router, ROUTER_EGRESS, "10.99.2.1"), (&line.modem, "to-router", "10.99.2.2"))?;
        link((&line.modem, MODEM_EGRESS, "10.99.3.1"), (&line.home, "to-modem", "10.99.3.2"))?;
        line.server.ip(&["route", "add", "default", "via", "10.99.1.2"])?;
        line.router.ip(&["route", "add", "10.99.3.0/24", "via", "10.99.2.2"])?;
        line.modem.ip(&["route", "add", "10.99.1.0/24", "via", "10.99.2.1"])?;
        line.home.ip(&["route", "add", "default", "via", "10.99.3.1"])?;
        forward(&line.router)?;
        forward(&line.modem)?;
        line.slow_link(rate_mbit)?;
        Ok(line)
    }

    fn slow_link(&self, rate_mbit: u32) -> Result<()> {
        let rate = format!("{rate_mbit}mbit");
        let burst = burst_bytes(rate_mbit).to_string();
        let limit = queue_bytes(rate_mbit).to_string();
        let queue = ["tbf", "rate", &rate, "burst", &burst, "limit", &limit];
        self.modem
            .tc(&[&["qdisc", "add", "dev", MODEM_EGRESS, "root"][..], &queue].concat())
            .map(drop)
            .map_err(|e| e.help("the modem is made of the kernel's tbf qdisc (CONFIG_NET_SCH_TBF, module sch_tbf)"))
    }
}

/// Room in the modem's queue, bytes.
pub fn queue_bytes(rate_mbit: u32) -> u64 {
    u64::from(rate_mbit) * 1_000_000 / 8 * u64::from(MODEM_QUEUE_MS) / 1_000
}

/// How long this many bytes take on the slow link, milliseconds.
pub fn drain_ms(bytes: f64, rate_mbit: u32) -> f64 {
    bytes * 8.0 / (f64::from(rate_mbit) * 1e6) * 1e3
}

/// One frame and a little, so that the modem sends frame by frame and cuts up larger packets; at high rates a quarter of
/// a millisecond, since timers are no finer.
fn burst_bytes(rate_mbit: u32) -> u32 {
    (rate_mbit * 1_000_000 / 8 / 4_000).max(2_000)
}

/// Which namespace of a run that was killed is its router.
pub fn is_router(name: &str) -> bool {
    name.strip_suffix(ROUTER).is_some_and(|rest| rest.ends_with('-'))
}

fn link(a: (&Namespace, &str, &str), b: (&Namespace, &str, &str)) -> Result<()> {
    a.0.ip(&["link", "add", a.1, "type", "veth", "peer", "name", b.1, "netns", b.0.name()])
        .map_err(|e| e.help("the demo's links are veth pairs (CONFIG_VETH, module veth)"))?;
    for (host, device, address) in [a, b] {
        host.ip(&["address", "add", &format!("{address}/24"), "dev", device])?;
        host.ip(&["link", "set", device, "up"])?;
    }
    Ok(())
}

fn forward(host: &Namespace) -> Result<()> {
    let path = "/proc/sys/net/ipv4/ip_forward";
    host.inside(|| fs::write(path, "1"))?
        .map_err(|e| Error::system(format!("cannot turn forwarding on in namespace {} ({path}): {e}", host.name())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modem_is_sized_by_time() {
        assert_eq!(queue_bytes(20), 625_000);
        assert_eq!(drain_ms(625_000.0, 20), 250.0);
        assert_eq!((burst_bytes(20), burst_bytes(1_000)), (2_000, 31_250));
    }

    #[test]
    fn routers_are_told_by_name() {
        assert!(is_router("sluice-demo-12-router"));
        assert!(!is_router("sluice-demo-12-modem"));
    }
}
