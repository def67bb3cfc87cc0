//! Laws of the ports of masqueraded connections.

use crate::{
    connections::{SYN, TCP, shake_hands, v4},
    laws,
};
use sluice_abi as abi;
use sluice_forward::{Functions, Segment, Side, Table, Tuple};
use sluice_tables::forward::timeouts;

laws! {
    source_ports_are_nobody_elses;
    a_closed_connection_gives_its_port_away;
}

/// A masqueraded connection has the client's port if the host would not give it away itself, and always one that no other connection to the same
/// target has; one that keeps its source has the client's port.
fn source_ports_are_nobody_elses(functions: &'static Functions) {
    const OWN: std::ops::RangeInclusive<u16> = 32_768..=60_999;
    let table = Table::of(functions, 1 << 12, 2, timeouts()).with_own_ports(OWN);
    let mut taken = std::collections::HashSet::new();
    for n in 0..3_000u32 {
        let port = 1_024 + (n * 37 % 64_512) as u16;
        let arrives = Tuple { proto: TCP, src: v4(1, n, port), dst: v4(2, 1, 80) };
        let mut leaves = Tuple { proto: TCP, src: v4(9, 0, 0), dst: v4(3, 1, 8_080) };
        let (source, tried) = table.source_port(arrives, leaves, n.wrapping_mul(0x9e37_79b9), 0).expect("a port");
        assert!(!OWN.contains(&source) && source >= 1_024, "client port {port} became {source}");
        assert!(OWN.contains(&port) || tried > 1 || source == port, "{port} was free");
        assert!(taken.insert(source), "{source} is another connection's");
        let (other, more) = table.source_port(arrives, leaves, n.wrapping_mul(0x9e37_79b9), tried).expect("a port");
        assert!(more > tried && other != source, "the caller has refused {source}");
        leaves.src.set_port(source);
        table.open(arrives, leaves, &SYN, 0, n).expect("room");

        let kept = Tuple { src: arrives.src, ..leaves };
        assert_eq!(table.source_port(arrives, kept, n, 0), Some((port, 1)));
    }
    let all = Table::of(functions, 64, 0, timeouts()).with_own_ports(1_024..=65_535);
    let arrives = Tuple { proto: TCP, src: v4(1, 1, 40_000), dst: v4(2, 1, 80) };
    let leaves = Tuple { proto: TCP, src: v4(9, 0, 0), dst: v4(3, 1, 8_080) };
    assert_eq!(
        all.source_port(arrives, leaves, 7, 0),
        Some((40_000, 1)),
        "a host that gives every port away leaves none else"
    );
}

/// A connection that is closed ends when another one is to have its port, and no other connection does.
fn a_closed_connection_gives_its_port_away(functions: &'static Functions) {
    let table = Table::of(functions, 64, 0, timeouts());
    let of = |n| Tuple { proto: TCP, src: v4(1, n, 2_000), dst: v4(2, 1, 80) };
    let leaves = Tuple { proto: TCP, src: v4(9, 0, 2_000), dst: v4(3, 1, 8_080) };
    let number = table.open(of(1), leaves, &SYN, 0, 1).unwrap();
    let another = || table.source_port(of(2), leaves, 7, 0).expect("a port");
    assert!(another().1 > 1, "it is opening");
    shake_hands(&table, number, 0);
    assert!(another().1 > 1, "it is established");
    assert_eq!(table.in_use(), 1);
    table.pass(number, Side::Client, &Segment { seq: 1_001, ack: 0, bytes: 0, flags: 4 }, 0);
    assert_eq!(table.state(number), abi::SL_TCP_CLOSED);
    assert_eq!(another(), (2_000, 1));
    assert_eq!((table.find(of(1)), table.entries(), table.in_use()), (None, 0, 0));
}
