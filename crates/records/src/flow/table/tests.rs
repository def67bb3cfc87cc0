use super::*;
use crate::column::tests::check;
use crate::labels::Labels;
use crate::packet::{Direction, Tcp};
use crate::verdict::Verdict;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

const S: u64 = 1_000_000_000;

/// A packet of host 1 to host 2, or back, at a time in ns.
fn packet(time_ns: u64, port: u16, is_back: bool, length: u32, flags: u8) -> Packet {
    let host = |number: u8| Address::Ip(IpAddr::V4(Ipv4Addr::new(192, 0, 2, number)));
    let (src, dst) = if is_back { (host(2), host(1)) } else { (host(1), host(2)) };
    let (sport, dport) = if is_back { (443, port) } else { (port, 443) };
    Packet {
        kind: Kind::Packet,
        interface: Some(0),
        direction: Some(if is_back { Direction::Ingress } else { Direction::Egress }),
        length,
        segments: 1,
        weight: 1,
        ip: Some(Ip { src, dst, ttl: 64, dscp: 0, ecn: 0 }),
        sport: Some(sport),
        dport: Some(dport),
        protocol: Some(6),
        tcp: Some(Tcp { flags, window: 500 }),
        verdict: Verdict::Passed,
        ..Packet::end(time_ns, 0)
    }
}

fn flows_of(packets: &[Packet], limits: Limits, sampling: Sampling) -> (Vec<Flow>, u64) {
    let mut flows = Flows::new(limits, sampling);
    let mut ended = Vec::new();
    let mut keep = |flow: &Flow| {
        ended.push(*flow);
        Ok(())
    };
    packets.iter().for_each(|packet| flows.add(packet, &mut keep).expect("kept"));
    let missed = flows.finish(&mut keep).expect("kept");
    assert!(flows.is_empty());
    (ended, missed)
}

#[test]
fn a_connection_is_one_record_of_both_ways() {
    let packets = [
        packet(0, 5000, false, 74, SYN),
        packet(1000, 5000, true, 74, SYN | ACK),
        packet(2000, 5000, false, 66, ACK),
        packet(10_000, 5000, false, 500, ACK),
        packet(20_000, 5000, true, 1500, ACK),
        packet(30_000, 5000, false, 66, ACK | FIN),
        packet(31_000, 5000, true, 66, ACK | FIN),
        packet(32_000, 5000, false, 66, ACK),
    ];
    let (ended, _) = flows_of(&packets, Limits::default(), Sampling::Packets);
    let [flow] = ended[..] else { panic!("{ended:?}") };
    assert_eq!(flow.ended, Ended::Fin);
    assert_eq!((flow.start_ns, flow.end_ns), (0, 32_000));
    assert_eq!((flow.forward.packets, flow.forward.bytes, flow.reverse.packets, flow.reverse.bytes), (5, 772, 3, 1640));
    assert_eq!((flow.forward.flags, flow.reverse.flags), (SYN | ACK | FIN, SYN | ACK | FIN));
    assert_eq!(flow.forward.sizes.mean(), Some(154.4));
    assert_eq!((flow.forward.gaps.min(), flow.forward.gaps.max()), (Some(2.0), Some(20.0)));
    assert_eq!(flow.forward.gaps.count(), 4);
    let identity = flow.identity.expect("a flow");
    assert_eq!((identity.sport, identity.dport, identity.direction), (Some(5000), Some(443), Direction::Egress));
    assert!(!flow.sampled);
    check(&flow, &Labels::new(vec!["eth0".to_owned()]));
    check(&Flow::end(5, 7), &Labels::new(Vec::new()));
}

#[test]
fn the_first_packet_says_which_way_is_forward() {
    let (ended, _) = flows_of(&[packet(0, 5000, true, 74, ACK)], Limits::default(), Sampling::Packets);
    let identity = ended[0].identity.expect("a flow");
    assert_eq!((identity.sport, identity.dport, identity.direction), (Some(443), Some(5000), Direction::Ingress));
    assert_eq!((ended[0].forward.packets, ended[0].reverse.packets), (1, 0));
}

#[test]
fn ports_that_are_used_again_begin_a_flow() {
    let packets =
        [packet(0, 5000, false, 74, SYN), packet(1, 5000, true, 54, RST | ACK), packet(2, 5000, false, 74, SYN)];
    let (ended, _) = flows_of(&packets, Limits::default(), Sampling::Packets);
    assert_eq!(ended.iter().map(|flow| flow.ended).collect::<Vec<_>>(), [Ended::Rst, Ended::End]);
    // After a while the connection is forgotten without a new one.
    let late = [packet(0, 5000, false, 54, RST), packet(6 * S, 6000, false, 74, SYN)];
    let (ended, _) = flows_of(&late, Limits::default(), Sampling::Packets);
    assert_eq!((ended[0].ended, ended[0].end_ns), (Ended::Rst, 0));
}

#[test]
fn silence_ends_a_flow() {
    let packets = [packet(0, 5000, false, 74, ACK), packet(61 * S, 5000, false, 74, ACK)];
    let (ended, _) = flows_of(&packets, Limits::default(), Sampling::Packets);
    assert_eq!(ended.iter().map(|flow| flow.ended).collect::<Vec<_>>(), [Ended::Idle, Ended::End]);
    let mut flows = Flows::new(Limits::default(), Sampling::Packets);
    flows.add(&packets[0], &mut |_| Ok(())).expect("kept");
    flows.sweep(59 * S, &mut |_| panic!("too early")).expect("kept");
    flows.sweep(60 * S, &mut |_| Ok(())).expect("kept");
    assert!(flows.is_empty());
}

#[test]
fn a_full_table_gives_up_the_flow_that_was_silent_for_longest() {
    let limits = Limits { flows: 2, ..Limits::default() };
    let packets = [1, 2, 1, 3].map(|port| packet(port.into(), port, false, 74, ACK));
    let (ended, _) = flows_of(&packets, limits, Sampling::Packets);
    let ports: Vec<_> = ended.iter().map(|flow| (flow.identity.and_then(|one| one.sport), flow.ended)).collect();
    assert_eq!(ports, [(Some(2), Ended::Evicted), (Some(1), Ended::End), (Some(3), Ended::End)]);
}

#[test]
fn weights_are_of_packets_or_of_flows() {
    let sampled = Packet { weight: 10, ..packet(0, 5000, false, 100, ACK) };
    let (ended, _) = flows_of(&[sampled, sampled], Limits::default(), Sampling::Packets);
    assert_eq!((ended[0].weight, ended[0].forward.packets, ended[0].forward.bytes), (1, 20, 2000));
    assert!(ended[0].sampled);
    let (ended, _) = flows_of(&[sampled, sampled], Limits::default(), Sampling::Flows);
    assert_eq!((ended[0].weight, ended[0].forward.packets, ended[0].forward.bytes), (10, 2, 200));
    assert!(!ended[0].sampled);
}

#[test]
fn a_super_packet_counts_as_its_segments() {
    let long = Packet { segments: 3, ..packet(0, 5000, false, 4500, ACK) };
    let (ended, _) = flows_of(&[long], Limits::default(), Sampling::Packets);
    let side = ended[0].forward;
    assert_eq!((side.records, side.packets, side.bytes, side.sizes.mean()), (1, 3, 4500, Some(1500.0)));
}

proptest! {
    /// Whatever comes, all packets, bytes and missed records are in the flows, and flows are those of a map without bounds.
    #[test]
    fn nothing_is_lost(
        steps in prop::collection::vec((0..3 * S, 1..20u16, any::<bool>(), 60..1500u32, 0..32u8, 0..3u64), 1..300),
        most in 1..30u32,
    ) {
        let mut time_ns = 0;
        let packets: Vec<Packet> = steps
            .iter()
            .map(|&(wait_ns, port, is_back, length, flags, missed)| {
                time_ns += wait_ns;
                Packet { missed, ..packet(time_ns, port, is_back, length, flags) }
            })
            .collect();
        let limits = Limits { flows: most, idle_ns: 10 * S, linger_ns: 2 * S };
        let (ended, left) = flows_of(&packets, limits, Sampling::Packets);
        let sum = |of: fn(&Flow) -> u64| ended.iter().map(of).sum::<u64>();
        prop_assert_eq!(sum(|flow| flow.forward.packets + flow.reverse.packets), packets.len() as u64);
        let bytes: u64 = packets.iter().map(|packet| u64::from(packet.length)).sum();
        prop_assert_eq!(sum(|flow| flow.forward.bytes + flow.reverse.bytes), bytes);
        let missed: u64 = packets.iter().map(|packet| packet.missed).sum();
        prop_assert_eq!(sum(|flow| flow.missed) + left, missed);
        let by_port = |of: &dyn Fn(&Flow) -> u64| {
            let mut ports = BTreeMap::<u16, u64>::new();
            for flow in &ended {
                let identity = flow.identity.expect("a flow");
                let port = identity.sport.filter(|port| *port != 443).or(identity.dport).expect("a port");
                *ports.entry(port).or_default() += of(flow);
            }
            ports
        };
        let mut wanted = BTreeMap::<u16, u64>::new();
        for step in &steps {
            *wanted.entry(step.1).or_default() += 1;
        }
        prop_assert_eq!(by_port(&|flow| flow.forward.packets + flow.reverse.packets), wanted);
    }
}
