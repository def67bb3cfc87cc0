//! Counts of forwards: of connections that are open, and of those that have ended.

use super::{Count, text};
use crate::bpf::mapped::Mapped;
use crate::engine::forwarding::ForwardWay;
use crate::maps::{forwarding, tables};
use crate::record::Record;
use crate::system::clock;
use serde::Serialize;
use sluice_abi as abi;
use sluice_error::Result;
use sluice_policy::{Forward, IpNet, Resolved};
use sluice_tables::forward::{add_connection, add_counts, is_of, is_open, timeouts};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Why packets of a forward were not passed on, in the order of `enum sl_not_forwarded`.
const REASONS: [&str; abi::SL_NOT_FORWARDED_REASONS as usize] = [
    "table_full",
    "raced",
    "no_port_free",
    "unknown_fragment",
    "unknown_connection",
    "source_not_routed",
    "untranslatable",
    "ttl_exceeded",
    "too_big",
    "cut",
    "not_written",
];

/// A forward and its counts.
#[derive(Debug, Clone, Serialize)]
pub struct ForwardStatus {
    /// Name of the forward.
    pub name: String,
    /// Protocol: tcp, udp or both.
    pub protocol: String,
    /// Address and ports that it listens on, as `192.0.2.1:80-89`; `any` for every address of the interface.
    pub listen: String,
    /// Where connections go.
    pub targets: Vec<String>,
    /// Connections that are open.
    pub open: u64,
    /// Connections that were ever opened.
    pub opened: u64,
    /// Packets that were not passed on, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Packets and bytes from clients.
    pub from_clients: Count,
    /// Packets and bytes from targets.
    pub from_targets: Count,
    /// The ways by which its packets leave, and why. Empty: they were not looked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<ForwardWay>,
    /// Places in the table of forwards: its own, and those of forwards that it has replaced.
    #[serde(skip)]
    pub places: u32,
}

impl ForwardStatus {
    /// Every reason for which packets are not passed on.
    pub const REASONS: &[&str] = &REASONS;

    /// Keeps sums from falling below an earlier reading's: a connection whose record passes to another one while tables are read
    /// is missed once. Where a replaced forward has gone with its sums, they do fall.
    pub(crate) fn rise_from(&mut self, before: &ForwardStatus) {
        if self.name != before.name || self.places < before.places {
            return;
        }
        let sides = [(&mut self.from_clients, before.from_clients), (&mut self.from_targets, before.from_targets)];
        for (now, before) in sides {
            now.pkts = now.pkts.max(before.pkts);
            now.bytes = now.bytes.max(before.bytes);
        }
    }
}

/// The sums of one name: of the forward that has it now, and of those that it has replaced.
struct Sums {
    places: u32,
    open: u64,
    /// Packets and bytes of open connections are counted as if they had ended.
    counts: Box<abi::sl_forward_count>,
}

impl Default for Sums {
    fn default() -> Sums {
        Sums { places: 0, open: 0, counts: abi::boxed_zeroed() }
    }
}

/// The forwards of a policy in force. Without any, nothing is read.
pub(crate) fn read(record: &Record, policy: &Resolved) -> Result<Vec<ForwardStatus>> {
    if policy.forwards.is_empty() {
        return Ok(Vec::new());
    }
    let mut sums = sums(&forwarding::directory(record.netns)?, record.ifindex)?;
    Ok(policy.forwards.iter().map(|forward| shown(forward, sums.remove(&forward.name).unwrap_or_default())).collect())
}

fn shown(forward: &Forward, sums: Sums) -> ForwardStatus {
    let range = |(first, last): (u16, u16)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    let at = |address: std::net::IpAddr, ports| match IpNet::from(address) {
        IpNet::V4(net) => format!("{}:{}", net.addr(), range(ports)),
        IpNet::V6(net) => format!("[{}]:{}", net.addr(), range(ports)),
    };
    let refused = REASONS.into_iter().zip(sums.counts.refused).filter(|(_, count)| *count > 0).collect();
    let from = |side: u32| Count {
        pkts: sums.counts.ended_pkts[side as usize],
        bytes: sums.counts.ended_bytes[side as usize],
    };
    ForwardStatus {
        name: forward.name.clone(),
        protocol: forward.transport.to_string(),
        listen: forward.listen.map_or(format!("any:{}", range(forward.ports)), |address| at(address, forward.ports)),
        targets: forward.targets.iter().map(|target| at(target.address, forward.target_ports(target))).collect(),
        open: sums.open,
        opened: sums.counts.opened,
        refused,
        from_clients: from(abi::SL_CLIENT),
        from_targets: from(abi::SL_TARGET),
        ways: Vec::new(),
        places: sums.places,
    }
}

/// The values of a table that programs write meanwhile: each integer is whole.
fn mapped<T: abi::Pod>(directory: &Path, name: &str) -> Result<Mapped<T>> {
    Mapped::of_this_version(&tables::open(directory, name)?)
}

/// The sums of all forwards of an interface, by name.
fn sums(directory: &Path, ifindex: u32) -> Result<HashMap<String, Sums>> {
    let mut places: HashMap<u32, (String, abi::sl_forward)> = HashMap::new();
    let mut sums: HashMap<String, Sums> = HashMap::new();
    let forwards = mapped::<abi::sl_forward>(directory, "forwards")?;
    let counts = mapped::<abi::sl_forward_count>(directory, "forward_counts")?;
    let former = mapped::<abi::sl_forward_count>(directory, "former_counts")?;
    for (index, (forward, counts)) in (0u32..).zip(forwards.values().zip(counts.values().zip(former.values()))) {
        // SAFETY: the address is within the mapping.
        let forward = unsafe { forward.read_volatile() };
        if forward.targets == 0 || forward.ifindex != ifindex {
            continue;
        }
        let name = text(&forward.name);
        let sum = sums.entry(name.clone()).or_default();
        places.insert(index, (name, forward));
        sum.places += 1;
        // SAFETY: likewise.
        let (count, former) = unsafe { (counts.0.read_volatile(), counts.1.read_volatile()) };
        add_counts(&mut sum.counts, &count);
        add_counts(&mut sum.counts, &former);
    }
    let timeouts = timeouts();
    let tick = clock::tick();
    for connection in mapped::<abi::sl_connection>(directory, "connections")?.values() {
        // SAFETY: the address is within the mapping.
        let connection = unsafe { connection.read_volatile() };
        let Some((name, forward)) = places.get(&u32::from(connection.forward)) else { continue };
        let Some(sum) = sums.get_mut(name).filter(|_| is_of(&connection, forward)) else { continue };
        add_connection(&mut sum.counts, &connection);
        sum.open += u64::from(is_open(&connection, &timeouts, tick));
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forward(pkts: u64, places: u32) -> ForwardStatus {
        ForwardStatus {
            name: "web".to_owned(),
            protocol: "tcp".to_owned(),
            listen: "any:80".to_owned(),
            targets: Vec::new(),
            open: 0,
            opened: 0,
            refused: BTreeMap::new(),
            from_clients: Count { pkts, bytes: pkts * 100 },
            from_targets: Count { pkts: 5, bytes: 500 },
            ways: Vec::new(),
            places,
        }
    }

    #[test]
    fn sums_fall_only_with_a_replaced_forward() {
        let after = |now: u64, places: u32| {
            let mut forward = forward(now, places);
            forward.rise_from(&self::forward(100, 2));
            (forward.from_clients.pkts, forward.from_clients.bytes, forward.from_targets.pkts)
        };
        assert_eq!(after(130, 2), (130, 13_000, 5));
        assert_eq!(after(90, 2), (100, 10_000, 5), "a connection was missed between two tables");
        assert_eq!(after(90, 1), (90, 9_000, 5), "a replaced forward has gone");
    }
}
