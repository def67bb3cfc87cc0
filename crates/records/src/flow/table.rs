//! The table of flows that are open: bounded, and swept a little with each packet.

use super::order::{Links, Order};
use super::{Ended, Flow, Identity, Side};
use crate::Sampling;
use crate::address::Address;
use crate::packet::{Ip, Kind, Packet};
use sluice_error::Result;
use std::collections::HashMap;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// The bounds of a table.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Flows that are open at once.
    pub flows: u32,
    /// A flow without packets for so long has ended.
    pub idle_ns: u64,
    /// A connection that was closed or reset may have last packets on their way for so long.
    pub linger_ns: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { flows: 65_536, idle_ns: 60_000_000_000, linger_ns: 5_000_000_000 }
    }
}

type End = (Option<Address>, Option<u16>);

/// What the packets of a flow share, both ways: the lesser end comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    interface: u16,
    protocol: u16,
    vlan: Option<u16>,
    ends: [End; 2],
}

#[derive(Debug)]
struct Open {
    key: Key,
    flow: Flow,
    /// Whether the sender of the first packet is the greater end of the key.
    is_swapped: bool,
    /// Which sides have sent FIN: 1 forward, 2 reverse.
    finished: u8,
    closing: Option<Ended>,
    last_ns: u64,
}

/// Flows that are open. Ended ones are given to a closure, which may fail.
pub struct Flows {
    limits: Limits,
    sampling: Sampling,
    places: HashMap<Key, u32>,
    open: Vec<Open>,
    links: Vec<Links>,
    /// Flows by their last packet.
    running: Order,
    /// Connections that were closed or reset, by their last packet.
    closing: Order,
    missed: u64,
    now_ns: u64,
}

impl Flows {
    /// An empty table.
    pub fn new(limits: Limits, sampling: Sampling) -> Flows {
        Flows {
            limits: Limits { flows: limits.flows.clamp(1, u32::MAX - 1), ..limits },
            sampling,
            places: HashMap::new(),
            open: Vec::new(),
            links: Vec::new(),
            running: Order::default(),
            closing: Order::default(),
            missed: 0,
            now_ns: 0,
        }
    }

    /// The number of open flows.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether no flow is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Adds a packet. Flows that it ends or finds over go to `ended`.
    ///
    /// # Errors
    ///
    /// The first error of `ended`.
    pub fn add(&mut self, packet: &Packet, ended: &mut impl FnMut(&Flow) -> Result<()>) -> Result<()> {
        self.missed += packet.missed;
        let (Kind::Packet, Some(interface), Some(direction)) = (packet.kind, packet.interface, packet.direction) else {
            return Ok(());
        };
        self.sweep(packet.time_ns, ended)?;
        let (src, dst) = packet.ip.map_or((None, None), |Ip { src, dst, .. }| (Some(src), Some(dst)));
        let (from, to) = ((src, packet.sport), (dst, packet.dport));
        let is_swapped = from > to;
        let ends = if is_swapped { [to, from] } else { [from, to] };
        let key = Key { interface, protocol: packet.protocol.unwrap_or_default(), vlan: packet.vlan, ends };
        let flags = packet.tcp.map_or(0, |tcp| tcp.flags);
        let mut found = self.places.get(&key).copied();
        // The same ports are used again, before the old connection was forgotten.
        if let Some(place) = found.filter(|_| flags & (SYN | ACK) == SYN)
            && let Some(how) = self.open[place as usize].closing
        {
            self.end(place, how, ended)?;
            found = None;
        }
        let place = match found {
            Some(place) => {
                self.unlink(place);
                place
            }
            None => {
                if self.open.len() >= self.limits.flows as usize {
                    self.evict(ended)?;
                }
                let identity = Identity {
                    interface,
                    direction,
                    src,
                    dst,
                    sport: packet.sport,
                    dport: packet.dport,
                    protocol: key.protocol,
                    vlan: packet.vlan,
                    class: packet.class,
                };
                self.begin(key, is_swapped, identity, packet)
            }
        };
        self.open[place as usize].add(packet, is_swapped, flags, self.sampling);
        let (list, links) = self.list_of(place);
        list.push(place, links);
        Ok(())
    }

    fn begin(&mut self, key: Key, is_swapped: bool, identity: Identity, packet: &Packet) -> u32 {
        let place = self.open.len() as u32;
        let mut flow = Flow::end(packet.time_ns, 0);
        flow.identity = Some(identity);
        flow.weight = 1;
        let last_ns = packet.time_ns;
        self.open.push(Open { key, flow, is_swapped, finished: 0, closing: None, last_ns });
        self.links.push(Links::default());
        self.places.insert(key, place);
        place
    }

    /// The list of a flow, and the links of all.
    fn list_of(&mut self, place: u32) -> (&mut Order, &mut [Links]) {
        let is_closing = self.open[place as usize].closing.is_some();
        (if is_closing { &mut self.closing } else { &mut self.running }, &mut self.links)
    }

    /// Ends the flows that have been silent for too long at this time, nanoseconds since 1970. Time does not go back.
    ///
    /// # Errors
    ///
    /// The first error of `ended`.
    pub fn sweep(&mut self, now_ns: u64, ended: &mut impl FnMut(&Flow) -> Result<()>) -> Result<()> {
        self.now_ns = self.now_ns.max(now_ns);
        while let Some(place) = self.closing.oldest() {
            let open = &self.open[place as usize];
            if self.now_ns.saturating_sub(open.last_ns) < self.limits.linger_ns {
                break;
            }
            self.end(place, open.closing.unwrap_or(Ended::Fin), ended)?;
        }
        while let Some(place) = self.running.oldest() {
            if self.now_ns.saturating_sub(self.open[place as usize].last_ns) < self.limits.idle_ns {
                break;
            }
            self.end(place, Ended::Idle, ended)?;
        }
        Ok(())
    }

    /// Makes room: the flow goes that has been silent for longest.
    fn evict(&mut self, ended: &mut impl FnMut(&Flow) -> Result<()>) -> Result<()> {
        let last = |place: &u32| self.open[*place as usize].last_ns;
        let Some(place) = self.running.oldest().into_iter().chain(self.closing.oldest()).min_by_key(last) else {
            return Ok(());
        };
        let how = self.open[place as usize].closing.unwrap_or(Ended::Evicted);
        self.end(place, how, ended)
    }

    fn end(&mut self, place: u32, how: Ended, ended: &mut impl FnMut(&Flow) -> Result<()>) -> Result<()> {
        self.unlink(place);
        let moved = self.open.len() as u32 - 1;
        // The last flow takes the place that becomes free, in its list too: its neighbours must know.
        if moved != place {
            let (list, links) = self.list_of(moved);
            list.rename(moved, place, links);
        }
        let mut gone = self.open.swap_remove(place as usize);
        self.links.pop();
        self.places.remove(&gone.key);
        if let Some(open) = self.open.get(place as usize) {
            self.places.insert(open.key, place);
        }
        gone.flow.ended = how;
        gone.flow.missed = std::mem::take(&mut self.missed);
        ended(&gone.flow)
    }

    fn unlink(&mut self, place: u32) {
        let (list, links) = self.list_of(place);
        list.remove(place, links);
    }

    /// Ends all flows, oldest first, and returns how many records of packets found no room since the last flow.
    ///
    /// # Errors
    ///
    /// The first error of `ended`.
    pub fn finish(&mut self, ended: &mut impl FnMut(&Flow) -> Result<()>) -> Result<u64> {
        while let Some(place) = self.closing.oldest() {
            let how = self.open[place as usize].closing.unwrap_or(Ended::Fin);
            self.end(place, how, ended)?;
        }
        while let Some(place) = self.running.oldest() {
            self.end(place, Ended::End, ended)?;
        }
        Ok(std::mem::take(&mut self.missed))
    }
}

impl Open {
    fn add(&mut self, packet: &Packet, is_swapped: bool, flags: u8, sampling: Sampling) {
        let is_reverse = is_swapped != self.is_swapped;
        let flow = &mut self.flow;
        let factor = match sampling {
            Sampling::Packets => u64::from(packet.weight),
            Sampling::Flows => {
                flow.weight = packet.weight;
                1
            }
        };
        flow.sampled |= factor > 1;
        // Packets of two CPUs may come in another order than they were seen.
        flow.start_ns = flow.start_ns.min(packet.time_ns);
        flow.end_ns = flow.end_ns.max(packet.time_ns);
        self.last_ns = self.last_ns.max(packet.time_ns);
        let side = if is_reverse { &mut flow.reverse } else { &mut flow.forward };
        side.add(packet, factor);
        side.flags |= flags;
        if flags & FIN != 0 {
            self.finished |= if is_reverse { 2 } else { 1 };
        }
        if flags & RST != 0 {
            self.closing = Some(Ended::Rst);
        } else if self.finished == 3 {
            self.closing.get_or_insert(Ended::Fin);
        }
    }
}

impl Side {
    fn add(&mut self, packet: &Packet, factor: u64) {
        let segments = u64::from(packet.segments.max(1));
        if self.records > 0 {
            self.gaps.add(packet.time_ns.saturating_sub(self.last_ns) as f64 / 1e3, 1);
        }
        self.records += 1;
        self.packets += segments * factor;
        self.bytes += u64::from(packet.length) * factor;
        self.sizes.add(f64::from(packet.length) / segments as f64, segments);
        self.last_ns = self.last_ns.max(packet.time_ns);
    }
}

#[cfg(test)]
mod tests;
