//! Forwards as the maps of port forwarding hold them.

use sha2::{Digest, Sha256};
use sluice_abi as abi;
use sluice_policy::{Forward, ForwardSource, OldConnections};
use std::net::IpAddr;

/// A way to a target, as the kernel's routes have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The address of this host from which packets to the target would come. `None`: the target is this host, whose answers come by here anyway.
    pub source: Option<IpAddr>,
}

/// A forward of one interface, with the ways to its targets in their order.
#[derive(Debug, Clone)]
pub struct Routed<'a> {
    /// Number of the interface.
    pub ifindex: u32,
    /// The forward.
    pub forward: &'a Forward,
    /// The way to each target.
    pub routes: Vec<Route>,
    /// Whether clients must come by the interface that leads to them: `rp_filter` is 1.
    pub strict: bool,
}

/// An end as the maps hold it.
pub fn end(address: IpAddr) -> abi::sl_end {
    let octets = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    let word = |n: usize| u32::from_ne_bytes([octets[n], octets[n + 1], octets[n + 2], octets[n + 3]]);
    abi::sl_end { address: [word(0), word(4), word(8), word(12)] }
}

/// The address of an end.
pub fn address_of(end: &abi::sl_end) -> IpAddr {
    let mut octets = [0; 16];
    octets.chunks_exact_mut(4).zip(end.address).for_each(|(octets, word)| octets.copy_from_slice(&word.to_ne_bytes()));
    IpAddr::from(octets).to_canonical()
}

/// The time-outs of connections, by `enum sl_connection_state`: those of the kernel's own tracking, but 60 s for half-open connections.
pub fn timeouts() -> abi::sl_timeouts {
    let ticks = |seconds: u64| ((seconds * 1_000_000_000) >> abi::SL_TICK_SHIFT) as u32;
    let mut all = [0; abi::SL_TIMEOUTS as usize];
    for (state, seconds) in [
        (abi::SL_TCP_OPENING, 60),
        (abi::SL_TCP_ESTABLISHED, 5 * 86_400),
        (abi::SL_TCP_SURPLUS, 5 * 86_400),
        (abi::SL_TCP_CLOSING, 120),
        (abi::SL_TCP_CLOSED, 120),
        (abi::SL_UDP_ONE_WAY, 30),
        (abi::SL_UDP_ANSWERED, 180),
    ] {
        all[state as usize] = ticks(seconds);
    }
    abi::sl_timeouts { ticks: all }
}

/// Whether a record is of a connection of this forward, which is at its place in the table.
pub fn is_of(connection: &abi::sl_connection, forward: &abi::sl_forward) -> bool {
    connection.state & 0xff >= abi::SL_TCP_OPENING
        && connection.class >> abi::SL_DIGEST_SHIFT == u32::from(forward.digest as u16)
}

/// Whether a connection is open: it is not closed, and its time is not over. One that has ended keeps its place until another one takes it. tick: now.
pub fn is_open(connection: &abi::sl_connection, timeouts: &abi::sl_timeouts, tick: u32) -> bool {
    let state = connection.state & 0xff;
    let silent = tick.wrapping_sub(connection.last_tick) as i32;
    let over = timeouts.ticks.get(state as usize).is_none_or(|ticks| silent > 0 && silent as u32 >= *ticks);
    state >= abi::SL_TCP_OPENING && state != abi::SL_TCP_CLOSED && !over
}

/// Adds packets and bytes of a connection to the counts of its forward.
pub fn add_connection(sum: &mut abi::sl_forward_count, connection: &abi::sl_connection) {
    sum.ended_pkts.iter_mut().zip(connection.pkts).for_each(|(sum, pkts)| *sum += u64::from(pkts));
    sum.ended_bytes.iter_mut().zip(connection.bytes).for_each(|(sum, bytes)| *sum += bytes);
}

/// Adds the counts of a forward to others.
pub fn add_counts(sum: &mut abi::sl_forward_count, count: &abi::sl_forward_count) {
    let rows = [
        (&mut sum.refused[..], &count.refused[..]),
        (&mut sum.ended_pkts[..], &count.ended_pkts[..]),
        (&mut sum.ended_bytes[..], &count.ended_bytes[..]),
    ];
    sum.opened += count.opened;
    sum.ended += count.ended;
    for (sums, counts) in rows {
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
}

impl Routed<'_> {
    /// A number that differs between forwards that differ in anything that new connections see.
    pub fn digest(&self) -> u64 {
        let Forward { name: _, transport: _, listen: _, ports, targets, source, class, connections, line: _ } =
            self.forward;
        let text =
            format!("{ports:?} {targets:?} {source:?} {class:?} {connections:?} {:?} {}", self.routes, self.strict);
        let hash = Sha256::digest(text.as_bytes());
        u64::from_le_bytes(hash[..8].try_into().expect("eight of 32 bytes"))
    }

    /// Its targets.
    pub fn targets(&self) -> Vec<abi::sl_target> {
        let targets = self.forward.targets.iter().zip(&self.routes);
        let masquerades = self.forward.source == ForwardSource::Masquerade;
        targets
            .map(|(target, route)| abi::sl_target {
                end: end(target.address),
                source: route.source.filter(|_| masquerades).map_or(abi::sl_end { address: [0; 4] }, end),
                first_port: target.first_port,
                pad: 0,
            })
            .collect()
    }

    /// Which target each slot has, by its index among the forward's; empty for a single target. The permutations of Maglev (Eisenbud et al., NSDI
    /// 2016, 3.4), in which a target's turns are as many as its weight: a target that comes or goes moves few slots of the others.
    pub fn slots(&self) -> Vec<u32> {
        let targets = &self.forward.targets;
        if targets.len() < 2 {
            return Vec::new();
        }
        let weights: u32 = targets.iter().map(|target| target.weight).sum();
        let size = prime_from(weights.saturating_mul(SLOTS_PER_WEIGHT).min(MOST_SLOTS));
        let mut turns: Vec<Permutation> =
            targets.iter().map(|target| Permutation::of(&format!("{target:?}"), size)).collect();
        let mut slots = vec![u32::MAX; size as usize];
        let mut left = slots.len();
        loop {
            for (n, target) in targets.iter().enumerate() {
                for _ in 0..target.weight {
                    let free = turns[n].by_ref().find(|&slot| slots[slot] == u32::MAX);
                    slots[free.expect("a permutation has every slot")] = n as u32;
                    left -= 1;
                    if left == 0 {
                        return slots;
                    }
                }
            }
        }
    }

    /// The forward, once its targets and slots have places.
    pub fn forward(&self, first_target: u32, first_slot: u32, slots: u32) -> abi::sl_forward {
        abi::sl_forward {
            targets: self.forward.targets.len() as u32,
            first_target,
            first_slot,
            slots,
            ifindex: self.ifindex,
            first_port: self.forward.ports.0,
            flags: [
                (self.strict, abi::SL_FORWARD_STRICT),
                (self.forward.connections == OldConnections::Cut, abi::SL_FORWARD_CUTS),
            ]
            .iter()
            .map(|(has, flag)| if *has { *flag as u8 } else { 0 })
            .sum(),
            class: self.forward.class.map_or(abi::SL_CLASSES as u8, |class| class.0),
            digest: self.digest(),
            name: crate::name(&self.forward.name),
        }
    }

    /// Every port and protocol that it listens on at these addresses of this host, for sockets of this host.
    pub fn own_listens(&self, addresses: &[IpAddr]) -> impl Iterator<Item = abi::sl_own_listen> + '_ {
        let (first, last) = self.forward.ports;
        let ends: Vec<abi::sl_end> = addresses.iter().map(|address| end(*address)).collect();
        let protocols = self.forward.transport.protocols().iter();
        protocols.flat_map(move |&proto| {
            let ends = ends.clone();
            (first..=last).flat_map(move |port| {
                let of = move |end| abi::sl_own_listen { end, port: port.to_be(), proto, pad: 0 };
                ends.clone().into_iter().map(of)
            })
        })
    }

    /// Every address, port and protocol that it listens on, and port 0 of them: some forward listens there.
    pub fn listens(&self) -> impl Iterator<Item = abi::sl_listen> + '_ {
        let of = |proto: u8, port: u16| abi::sl_listen {
            end: self.forward.listen.map_or(abi::sl_end { address: [0; 4] }, end),
            ifindex: self.ifindex,
            port: port.to_be(),
            proto,
            ipv6: u8::from(self.forward.listen.is_none() && !self.forward.is_ipv4()),
        };
        let protocols = self.forward.transport.protocols();
        let (first, last) = self.forward.ports;
        protocols.iter().flat_map(move |&proto| std::iter::once(0).chain(first..=last).map(move |port| of(proto, port)))
    }
}

/// Slots for each unit of weight, and the most: shares are then exact to a percent or two.
const SLOTS_PER_WEIGHT: u32 = 64;
const MOST_SLOTS: u32 = 4_096;

/// The order in which a target takes slots.
struct Permutation {
    next: u64,
    skip: u64,
    size: u64,
}

impl Permutation {
    fn of(text: &str, size: u32) -> Permutation {
        let hash = Sha256::digest(text.as_bytes());
        let word = |n: usize| u64::from_le_bytes(hash[n..n + 8].try_into().expect("eight of 32 bytes"));
        let size = u64::from(size);
        Permutation { next: word(0) % size, skip: word(8) % (size - 1) + 1, size }
    }
}

impl Iterator for Permutation {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let slot = self.next;
        self.next = (self.next + self.skip) % self.size;
        Some(slot as usize)
    }
}

fn prime_from(least: u32) -> u32 {
    let is_prime = |n: u32| (2..).take_while(|d| d * d <= n).all(|d| n % d != 0);
    (least.max(2)..).find(|&n| is_prime(n)).expect("there are primes above any number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_policy::{Target, Transport};

    fn forward(weights: &[u32]) -> Forward {
        let target =
            |(n, &weight): (usize, &u32)| Target { address: [10, 0, 0, n as u8].into(), first_port: 80, weight };
        Forward {
            name: "web".into(),
            transport: Transport::Tcp,
            listen: None,
            ports: (80, 80),
            targets: weights.iter().enumerate().map(target).collect(),
            source: ForwardSource::Keep,
            class: None,
            connections: OldConnections::Keep,
            line: 0,
        }
    }

    fn slots(forward: &Forward) -> Vec<u32> {
        let routes = vec![Route { source: Some([10, 0, 0, 254].into()) }; forward.targets.len()];
        Routed { ifindex: 1, forward, routes, strict: false }.slots()
    }

    #[test]
    fn targets_get_their_shares() {
        let slots = slots(&forward(&[1, 2, 5]));
        for (n, weight) in [(0, 1.0), (1, 2.0), (2, 5.0)] {
            let share = slots.iter().filter(|&&slot| slot == n).count() as f64 / slots.len() as f64;
            assert!((share - weight / 8.0).abs() < 0.01, "{n}: {share}");
        }
    }

    #[test]
    fn a_target_that_goes_moves_few_others() {
        let (all, mut fewer) = (forward(&[1; 8]), forward(&[1; 8]));
        fewer.targets[7] = Target { address: [10, 0, 1, 7].into(), ..fewer.targets[7] };
        let (before, after) = (slots(&all), slots(&fewer));
        let moved = before.iter().zip(&after).filter(|(was, is)| **was != 7 && was != is).count();
        assert!(moved * 4 < before.len(), "{moved} of {}", before.len());
    }

    #[test]
    fn one_target_needs_no_slots() {
        assert_eq!(slots(&forward(&[7])), Vec::<u32>::new());
    }
}
