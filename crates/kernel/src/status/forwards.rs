//! What forwards have counted: of connections that are open, and of those that have ended.

use super::{Count, text};
use crate::bpf::mapped::Mapped;
use crate::engine::forwarding;
use crate::maps::tables;
use crate::record::Record;
use crate::system::clock;
use serde::Serialize;
use sluice_abi as abi;
use sluice_error::{Error, Result};
use sluice_policy::{Forward, IpNet, Resolved};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Why packets of a forward were not passed on, in the order of `enum sl_not_forwarded`.
const REASONS: [&str; abi::SL_NOT_FORWARDED_REASONS as usize] =
    ["table_full", "raced", "no_port_free", "unknown_fragment", "unknown_connection"];

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
#[derive(Default)]
struct Sums {
    places: u32,
    open: u64,
    opened: u64,
    refused: [u64; REASONS.len()],
    sides: [Count; 2],
}

impl Sums {
    fn add(&mut self, count: &abi::sl_forward_count) {
        self.opened += count.opened;
        self.refused.iter_mut().zip(count.refused).for_each(|(sum, count)| *sum += count);
        for (side, (pkts, bytes)) in self.sides.iter_mut().zip(count.ended_pkts.into_iter().zip(count.ended_bytes)) {
            side.pkts += pkts;
            side.bytes += bytes;
        }
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
    let refused = REASONS.into_iter().zip(sums.refused).filter(|(_, count)| *count > 0).collect();
    let [from_clients, from_targets] = sums.sides;
    ForwardStatus {
        name: forward.name.clone(),
        protocol: forward.transport.to_string(),
        listen: forward.listen.map_or(format!("any:{}", range(forward.ports)), |address| at(address, forward.ports)),
        targets: forward.targets.iter().map(|target| at(target.address, forward.target_ports(target))).collect(),
        open: sums.open,
        opened: sums.opened,
        refused,
        from_clients,
        from_targets,
        places: sums.places,
    }
}

/// The values of a table that programs write meanwhile: each integer is whole.
fn mapped<T: abi::Pod>(directory: &Path, name: &str) -> Result<Mapped<T>> {
    let map = tables::open(directory, name)?;
    Mapped::new(&map)?.ok_or_else(|| Error::system(format!("the table {name} is another version's")))
}

/// The sums of all forwards of an interface, by name.
fn sums(directory: &Path, ifindex: u32) -> Result<HashMap<String, Sums>> {
    let mut names: HashMap<u32, String> = HashMap::new();
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
        names.insert(index, name);
        sum.places += 1;
        // SAFETY: likewise.
        let (count, former) = unsafe { (counts.0.read_volatile(), counts.1.read_volatile()) };
        sum.add(&count);
        sum.add(&former);
    }
    let timeouts = forwarding::timeouts();
    let tick = (clock::monotonic().as_nanos() >> abi::SL_TICK_SHIFT) as u32;
    for connection in mapped::<abi::sl_connection>(directory, "connections")?.values() {
        // SAFETY: the address is within the mapping.
        let connection = unsafe { connection.read_volatile() };
        let state = connection.state & 0xff;
        let name = names.get(&u32::from(connection.forward));
        let Some(sum) = name.and_then(|name| sums.get_mut(name)) else { continue };
        if state < abi::SL_TCP_OPENING {
            continue;
        }
        for (side, (pkts, bytes)) in sum.sides.iter_mut().zip(connection.pkts.into_iter().zip(connection.bytes)) {
            side.pkts += u64::from(pkts);
            side.bytes += bytes;
        }
        // A connection that has ended, or whose time is over, keeps its place until another one takes it.
        let silent = tick.wrapping_sub(connection.last_tick) as i32;
        let over = timeouts.ticks.get(state as usize).is_none_or(|ticks| silent > 0 && silent as u32 >= *ticks);
        sum.open += u64::from(state != abi::SL_TCP_CLOSED && !over);
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
