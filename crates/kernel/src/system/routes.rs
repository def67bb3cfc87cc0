//! Whether the host reaches the world by an interface: default routes of all tables, by it or by what stands above it.

use crate::system::iproute;
use serde::Deserialize;
use sluice_error::Result;
use std::collections::HashSet;

/// Destinations of routes that lead everywhere: the default, and the two halves that tunnels put in its place.
const EVERYWHERE: [&str; 5] = ["default", "0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"];
/// Types of routes that lead nowhere.
const NOWHERE: [&str; 4] = ["unreachable", "blackhole", "prohibit", "throw"];

#[derive(Debug, Deserialize)]
struct Route {
    dst: String,
    #[serde(rename = "type", default)]
    kind: String,
    dev: Option<String>,
    #[serde(default)]
    nexthops: Vec<NextHop>,
}

#[derive(Debug, Deserialize)]
struct NextHop {
    dev: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Link {
    ifname: String,
    /// The bridge, bond or team that it is a port of.
    master: Option<String>,
    /// The device below it, as of a VLAN or a macvlan.
    link: Option<String>,
}

/// Whether a default route of IPv4 or IPv6, in any table, leads through the interface, through a bridge or bond that it is a port of, or through a
/// device on top of it.
pub fn carries_default(interface: &str) -> Result<bool> {
    let mut routes: Vec<Route> = iproute::json("ip", "-json -4 route show table all")?;
    routes.extend(iproute::json::<Vec<Route>>("ip", "-json -6 route show table all")?);
    let links: Vec<Link> = iproute::json("ip", "-json link show")?;
    Ok(leads_everywhere(&routes, &above(interface, &links)))
}

fn leads_everywhere(routes: &[Route], by: &HashSet<String>) -> bool {
    let everywhere =
        |route: &&Route| EVERYWHERE.contains(&route.dst.as_str()) && !NOWHERE.contains(&route.kind.as_str());
    let devices = |route: &Route| -> Vec<String> {
        route.dev.iter().chain(route.nexthops.iter().filter_map(|hop| hop.dev.as_ref())).cloned().collect()
    };
    routes.iter().filter(everywhere).flat_map(devices).any(|device| by.contains(&device))
}

/// The interface, and all devices whose packets come through it.
fn above(interface: &str, links: &[Link]) -> HashSet<String> {
    let mut found = HashSet::from([interface.to_owned()]);
    loop {
        let before = found.len();
        for link in links {
            if link.link.as_ref().is_some_and(|below| found.contains(below)) {
                found.insert(link.ifname.clone());
            }
            if let Some(master) = link.master.as_ref().filter(|_| found.contains(&link.ifname)) {
                found.insert(master.clone());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(text: &str) -> Vec<Route> {
        serde_json::from_str(text).expect("routes as ip prints them")
    }

    fn only(name: &str) -> HashSet<String> {
        HashSet::from([name.to_owned()])
    }

    #[test]
    fn default_routes_are_told_from_others() {
        let plain = routes(
            r#"[{"dst":"default","gateway":"10.0.0.1","dev":"wan0","flags":[]},{"dst":"10.0.0.0/8","dev":"lan0"}]"#,
        );
        assert!(leads_everywhere(&plain, &only("wan0")) && !leads_everywhere(&plain, &only("lan0")));
        let several = routes(r#"[{"dst":"default","nexthops":[{"dev":"a0","weight":1},{"dev":"b0","weight":1}]}]"#);
        assert!(leads_everywhere(&several, &only("b0")));
        let halves = routes(r#"[{"dst":"0.0.0.0/1","dev":"wg0","table":"100"},{"dst":"128.0.0.0/1","dev":"wg0"}]"#);
        assert!(leads_everywhere(&halves, &only("wg0")));
        let nowhere = routes(r#"[{"type":"unreachable","dst":"default","dev":"lo"}]"#);
        assert!(!leads_everywhere(&nowhere, &only("lo")));
    }

    #[test]
    fn packets_of_upper_devices_come_through_the_lower_one() {
        let text =
            r#"[{"ifname":"eth0","master":"br0"},{"ifname":"br0"},{"ifname":"br0.5","link":"br0"},{"ifname":"eth1"}]"#;
        let links: Vec<Link> = serde_json::from_str(text).expect("links as ip prints them");
        let mut found: Vec<String> = above("eth0", &links).into_iter().collect();
        found.sort();
        assert_eq!(found, ["br0", "br0.5", "eth0"]);
        assert_eq!(above("eth1", &links).len(), 1);
    }
}
