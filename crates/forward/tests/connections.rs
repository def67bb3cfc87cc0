//! The promises of the table of connections.

use proptest::prelude::*;
use sluice_abi as abi;
use sluice_forward::{Segment, Side, Table, Tuple};
use sluice_tables::forward::timeouts;
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

const SYN: Segment = Segment { seq: 1_000, ack: 0, bytes: 0, flags: 2 };
const DATAGRAM: Segment = Segment { seq: 0, ack: 0, bytes: 0, flags: 0 };
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Ticks of 2^20 ns in a second, about.
const SECOND: u32 = 954;

fn v4(net: u8, n: u32, port: u16) -> SocketAddr {
    (Ipv4Addr::new(10, net, (n >> 8) as u8, n as u8), port).into()
}

/// The packets of client `n` as they arrive and as they leave; every fourth client is masqueraded, every third speaks IPv6.
fn client(n: u32, proto: u8) -> (Tuple, Tuple) {
    let (port, source) = (
        1_024 + (n % 50_000) as u16,
        if n % 4 == 0 { v4(9, 0, 2_000 + (n / 4) as u16) } else { v4(1, n >> 4, 1_024 + (n % 50_000) as u16) },
    );
    if n % 3 == 0 {
        let v6 = |net: u16, n: u32, port| {
            SocketAddr::from((Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, (n >> 16) as u16, n as u16), port))
        };
        let arrives = Tuple { proto, src: v6(1, n, port), dst: v6(2, 1, 80) };
        return (arrives, Tuple { src: arrives.src, dst: v6(3, n % 7, 8_080), ..arrives });
    }
    let arrives = Tuple { proto, src: v4(1, n >> 4, port), dst: v4(2, 1, 80) };
    (arrives, Tuple { proto, src: source, dst: v4(3, n % 7, 8_080) })
}

fn reversed(t: Tuple) -> Tuple {
    Tuple { proto: t.proto, src: t.dst, dst: t.src }
}

/// The connection is found by the packets of both sides, which are rewritten into each other's.
fn is_whole(table: &Table, number: u32, (arrives, leaves): (Tuple, Tuple)) -> Result<(), TestCaseError> {
    prop_assert_eq!(table.find(arrives), Some((number, Side::Client)));
    prop_assert_eq!(table.find(reversed(leaves)), Some((number, Side::Target)));
    prop_assert_eq!(table.tuples(number, Side::Client), (arrives, leaves));
    prop_assert_eq!(table.tuples(number, Side::Target), (reversed(leaves), reversed(arrives)));
    Ok(())
}

/// The three segments after which a connection is established.
fn shake_hands(table: &Table, number: u32, tick: u32) {
    table.pass(number, Side::Target, &Segment { seq: 5_000, ack: 1_001, bytes: 0, flags: 18 }, tick);
    table.pass(number, Side::Client, &Segment { seq: 1_001, ack: 5_001, bytes: 0, flags: 16 }, tick);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A table of any shape, connections of any kind that come and end: those that may not give way are found, no others are, and nothing is
    /// left of those that did.
    #[test]
    fn connections_are_found_until_they_give_way(
        shift in 2u32..7,
        steps in proptest::collection::vec((0u32..400, any::<bool>(), 0u32..90, any::<bool>()), 1..600),
    ) {
        let timeouts = timeouts();
        let table = Table::new(128, shift, timeouts);
        let (mut tick, mut hand) = (u32::MAX - 1_000, 0u32);
        let mut established: HashMap<u32, (u32, u32)> = HashMap::new(); // by client: number, last tick
        for (n, udp, seconds, shakes) in steps {
            tick = tick.wrapping_add(seconds * SECOND);
            let ends = client(n, if udp { UDP } else { TCP });
            if let Some((number, side)) = table.find(ends.0) {
                prop_assert_eq!(side, Side::Client);
                is_whole(&table, number, ends)?;
                continue;
            }
            hand = hand.wrapping_add(17);
            match table.open(ends.0, ends.1, if udp { &DATAGRAM } else { &SYN }, tick, hand) {
                Ok(number) => {
                    is_whole(&table, number, ends)?;
                    if shakes && !udp {
                        shake_hands(&table, number, tick);
                        prop_assert_eq!(table.state(number), abi::SL_TCP_ESTABLISHED);
                        established.insert(n, (number, tick));
                    }
                }
                Err(why) => prop_assert_eq!(why, abi::SL_NOT_FORWARDED_FULL),
            }
            established.retain(|_, (_, last)| tick.wrapping_sub(*last) < timeouts.ticks[abi::SL_TCP_ESTABLISHED as usize]);
            for (&n, &(number, _)) in &established {
                is_whole(&table, number, client(n, TCP))?;
            }
            prop_assert_eq!(table.entries(), 2 * table.in_use());
        }
        let outside = (0..400).flat_map(|n| [client(n, TCP), client(n, UDP)]).filter(|ends| table.find(ends.0).is_some()).count();
        prop_assert_eq!(outside, table.in_use());
    }
}

/// A table is as large as it says, but for one record in a thousand, whose packets found both of their sets full.
#[test]
fn nearly_every_record_is_used() {
    let table = Table::new(1 << 14, 2, timeouts());
    let opened = (1..1 << 14)
        .filter(|&n| {
            let (a, l) = client(n, UDP);
            table.open(a, l, &DATAGRAM, 0, n).is_ok()
        })
        .count();
    assert!(opened > (1 << 14) / 1_000 * 999, "{opened}");
    assert!(table.elsewhere() > 0, "no set was full: the second sets were not tried");
    assert_eq!((1..1 << 14).filter(|&n| table.find(client(n, UDP).0).is_some()).count(), opened);
}

/// The order in which connections give way: closed ones, then those that were not answered, then UDP that is silent; established ones never.
#[test]
fn gives_way_in_order() {
    let table = Table::new(64, 0, timeouts());
    let open = |n, proto, tick| {
        let (arrives, leaves) = client(n, proto);
        table.open(arrives, leaves, if proto == TCP { &SYN } else { &DATAGRAM }, tick, 1)
    };
    let established: Vec<u32> = (0..60).map(|n| open(n, TCP, 0).unwrap()).collect();
    established.iter().for_each(|&number| shake_hands(&table, number, 0));
    let udp = open(60, UDP, 0).unwrap();
    table.pass(udp, Side::Target, &DATAGRAM, 0);
    assert_eq!(table.state(udp), abi::SL_UDP_ONE_WAY, "its client may be forged");
    table.pass(udp, Side::Client, &DATAGRAM, 0);
    assert_eq!(table.state(udp), abi::SL_UDP_ANSWERED);
    let opening = open(61, TCP, 0).unwrap();
    let closed = open(62, TCP, 0).unwrap();
    shake_hands(&table, closed, 0);
    table.pass(closed, Side::Client, &Segment { seq: 1_001, ack: 0, bytes: 0, flags: 4 }, 0);
    assert_eq!(table.state(closed), abi::SL_TCP_CLOSED);

    assert_eq!(open(100, TCP, 1), Ok(closed));
    shake_hands(&table, closed, 1);
    assert_eq!(open(101, TCP, 2), Ok(opening));
    shake_hands(&table, opening, 2);
    assert_eq!(open(102, TCP, 3), Err(abi::SL_NOT_FORWARDED_FULL), "the UDP flow spoke 3 ticks ago");
    assert_eq!(open(103, TCP, 31 * SECOND), Ok(udp));
    shake_hands(&table, udp, 31 * SECOND);
    assert_eq!(open(104, TCP, 4 * 86_400 * SECOND), Err(abi::SL_NOT_FORWARDED_FULL));
    for &number in &established {
        assert_eq!(table.state(number), abi::SL_TCP_ESTABLISHED);
    }
    assert!(open(105, TCP, 6 * 86_400 * SECOND).is_ok());
}

/// CPUs that open the same connections and others at once, and end them by filling the table, leave a table without loose ends.
#[test]
fn many_cpus_at_once() {
    let table = Table::new(256, 2, timeouts()).with_share(12);
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let table = &table;
            scope.spawn(move || {
                let mut random = 0x1234_5678u32.wrapping_mul(thread + 1);
                for step in 0..200_000u32 {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let proto = if random >> 31 == 0 { UDP } else { TCP };
                    let (arrives, leaves) = client(random >> 16 & 0x1ff, proto);
                    if let Some((number, _)) = table.find(arrives) {
                        if proto == UDP {
                            table.pass(number, Side::Client, &DATAGRAM, step);
                        } else if random >> 30 == 3 {
                            shake_hands(table, number, step);
                        } else {
                            table.pass(number, Side::Client, &Segment { seq: 1_001, ack: 0, bytes: 0, flags: 4 }, step);
                        }
                    } else {
                        let first = if proto == UDP { &DATAGRAM } else { &SYN };
                        let _ = table.open(arrives, leaves, first, step, random >> 8);
                    }
                }
            });
        }
    });
    assert_eq!(table.entries(), 2 * table.in_use());
    let (mut found, mut established) = (HashMap::new(), 0);
    for (n, proto) in (0..0x200).flat_map(|n| [(n, UDP), (n, TCP)]) {
        if let Some((number, _)) = table.find(client(n, proto).0) {
            assert_eq!(found.insert(number, n), None, "two clients have connection {number}");
            assert_eq!(table.tuples(number, Side::Client), client(n, proto));
            established += u32::from(table.state(number) == abi::SL_TCP_ESTABLISHED);
        }
    }
    assert_eq!(found.len(), table.in_use(), "a connection is there that no packet finds");
    assert_eq!(table.counted(), established, "each is counted once, while it is established");
}

/// A masqueraded connection has the client's port if the host would not give it away itself, and always one that no other connection to the same
/// target has; one that keeps its source has the client's port.
#[test]
fn source_ports_are_nobody_elses() {
    const OWN: std::ops::RangeInclusive<u16> = 32_768..=60_999;
    let table = Table::new(1 << 12, 2, timeouts()).with_own_ports(OWN);
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
    let all = Table::new(64, 0, timeouts()).with_own_ports(1_024..=65_535);
    let arrives = Tuple { proto: TCP, src: v4(1, 1, 40_000), dst: v4(2, 1, 80) };
    let leaves = Tuple { proto: TCP, src: v4(9, 0, 0), dst: v4(3, 1, 8_080) };
    assert_eq!(
        all.source_port(arrives, leaves, 7, 0),
        Some((40_000, 1)),
        "a host that gives every port away leaves none else"
    );
}

/// The SYN of a client whose connection is closed begins another one; no other segment does, and no other state gives way to it.
#[test]
fn a_closed_connection_is_begun_anew() {
    let table = Table::new(64, 0, timeouts());
    let (arrives, leaves) = client(1, TCP);
    let number = table.open(arrives, leaves, &SYN, 0, 1).unwrap();
    let is_over = |side, segment: &Segment| table.is_over(number, side, segment, 1);
    assert!(!is_over(Side::Client, &SYN), "it is opening");
    shake_hands(&table, number, 0);
    assert!(!is_over(Side::Client, &SYN), "it is established");
    table.pass(number, Side::Client, &Segment { seq: 1_001, ack: 0, bytes: 0, flags: 4 }, 0);
    assert_eq!(table.state(number), abi::SL_TCP_CLOSED);
    assert!(is_over(Side::Client, &SYN));
    assert!(!is_over(Side::Target, &SYN), "its target begins none");
    for flags in [2 | 16, 2 | 4, 16, 1, 4, 0] {
        assert!(!is_over(Side::Client, &Segment { flags, ..SYN }), "flags {flags}");
    }
    table.end(number);
    assert_eq!((table.find(arrives), table.entries(), table.in_use()), (None, 0, 0));
}

/// A connection whose time is over has ended, though its record is still there: whichever packet comes next finds none.
#[test]
fn time_ends_connections() {
    let table = Table::new(64, 0, timeouts());
    let open = |n, proto, first| {
        let (arrives, leaves) = client(n, proto);
        table.open(arrives, leaves, first, 0, n).unwrap()
    };
    let (half_open, established, asked, spoken) =
        (open(1, TCP, &SYN), open(2, TCP, &SYN), open(3, UDP, &DATAGRAM), open(4, UDP, &DATAGRAM));
    shake_hands(&table, established, 0);
    for side in [Side::Target, Side::Client] {
        table.pass(spoken, side, &DATAGRAM, 0);
    }
    table.pass(asked, Side::Target, &DATAGRAM, 0);
    for (number, seconds) in [(half_open, 60), (established, 5 * 86_400), (asked, 30), (spoken, 180)] {
        for side in [Side::Client, Side::Target] {
            // A tick is a little more than a millisecond.
            let (before, after) = ((seconds - 1) * 953, (seconds + 1) * 954);
            assert!(!table.is_over(number, side, &DATAGRAM, before), "{seconds} s: too early");
            assert!(table.is_over(number, side, &DATAGRAM, after), "{seconds} s: too late");
        }
    }
}

/// Established connections of a client beyond its share give way when the table is full; those within it, and of other clients, never.
#[test]
fn a_client_keeps_its_share() {
    let table = Table::new(64, 0, timeouts()).with_share(10);
    let ends = |address: u32, port: u16| {
        let arrives = Tuple { proto: TCP, src: v4(1, address, port), dst: v4(2, 1, 80) };
        (arrives, Tuple { dst: v4(3, 1, 8_080), ..arrives })
    };
    let establish = |address, port, tick| {
        let (arrives, leaves) = ends(address, port);
        let number = table.open(arrives, leaves, &SYN, tick, 1)?;
        shake_hands(&table, number, tick);
        Ok::<u32, u32>(number)
    };
    let (greedy, modest) = (1, 2);
    let first = establish(modest, 1, 0).unwrap();
    let all: Vec<u32> = (0..62).map(|port| establish(greedy, port, 1 + u32::from(port)).unwrap()).collect();
    let kept = |numbers: &[u32]| numbers.iter().filter(|&&n| table.state(n) == abi::SL_TCP_ESTABLISHED).count();
    assert_eq!((kept(&all), kept(&[first]), table.counted()), (10, 1, 11));
    assert!(all[10..].iter().all(|&number| table.state(number) == abi::SL_TCP_SURPLUS));
    assert_eq!(establish(modest, 2, 100), Ok(all[10]), "the one that has been silent for longest gives way");
    table.end(first);
    table.pass(all[0], Side::Client, &Segment { seq: 1_001, ack: 0, bytes: 0, flags: 4 }, 100);
    assert_eq!(
        (table.state(all[0]), table.counted()),
        (abi::SL_TCP_CLOSED, 10),
        "those that end are counted no longer"
    );
    let again = establish(greedy, 500, 101).unwrap();
    assert_eq!((table.state(again), table.counted()), (abi::SL_TCP_ESTABLISHED, 11));
}
