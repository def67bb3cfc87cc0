//! Laws of the table of connections.

use crate::laws;
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_forward::{Functions, Segment, Side, Table, Tuple};
use sluice_tables::forward::timeouts;
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

laws! {
    connections_are_found_until_they_give_way:
        (2u32..7, proptest::collection::vec((0u32..400, any::<bool>(), 0u32..90, any::<bool>()), 1..600));
    nearly_every_record_is_used;
    nothing_is_left_of_connections;
    half_open_connections_fill_no_set;
    a_full_set_gives_way_in_order;
    there_are_no_twins;
    a_serial_tells_connections_apart;
    each_end_is_announced;
    packets_are_counted;
    gives_way_in_order;
    many_cpus_at_once;
    a_cpu_that_is_late_changes_nothing;
    a_closed_connection_is_begun_anew;
    time_ends_connections;
    a_client_keeps_its_share;
}

pub(crate) const SYN: Segment = Segment { seq: 1_000, ack: 0, bytes: 0, flags: 2 };
const DATAGRAM: Segment = Segment { seq: 0, ack: 0, bytes: 0, flags: 0 };
pub(crate) const TCP: u8 = 6;
const UDP: u8 = 17;
/// Ticks of 2^20 ns in a second, about.
const SECOND: u32 = 954;

pub(crate) fn v4(net: u8, n: u32, port: u16) -> SocketAddr {
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
fn is_whole(table: &Table, number: u32, (arrives, leaves): (Tuple, Tuple)) -> TestCaseResult {
    prop_assert_eq!(table.find(arrives), Some((number, Side::Client)));
    prop_assert_eq!(table.find(reversed(leaves)), Some((number, Side::Target)));
    prop_assert_eq!(table.tuples(number, Side::Client), (arrives, leaves));
    prop_assert_eq!(table.tuples(number, Side::Target), (reversed(leaves), reversed(arrives)));
    Ok(())
}

/// The three segments after which a connection is established.
pub(crate) fn shake_hands(table: &Table, number: u32, tick: u32) {
    table.pass(number, Side::Target, &Segment { seq: 5_000, ack: 1_001, bytes: 0, flags: 18 }, tick);
    table.pass(number, Side::Client, &Segment { seq: 1_001, ack: 5_001, bytes: 0, flags: 16 }, tick);
}

/// Opens the connection of client `n`, which does not give way then; its record is looked for from the n-th on.
fn establish(table: &Table, n: u32) -> Result<u32, u32> {
    let (arrives, leaves) = client(n, TCP);
    let number = table.open(arrives, leaves, &SYN, 0, n)?;
    shake_hands(table, number, 0);
    Ok(number)
}

/// A table of any shape, connections of any kind that come and end: those that may not give way are found, no others are, and nothing is
/// left of those that did.
fn connections_are_found_until_they_give_way(
    functions: &'static Functions,
    (shift, steps): (u32, Vec<(u32, bool, u32, bool)>),
) -> TestCaseResult {
    let timeouts = timeouts();
    let table = Table::of(functions, 128, shift, timeouts);
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
    let outside =
        (0..400).flat_map(|n| [client(n, TCP), client(n, UDP)]).filter(|ends| table.find(ends.0).is_some()).count();
    prop_assert_eq!(outside, table.in_use());
    Ok(())
}

/// A table is as large as it says, but for one record in a thousand, whose packets found both of their sets full.
fn nearly_every_record_is_used(functions: &'static Functions) {
    let table = Table::of(functions, 1 << 14, 2, timeouts());
    let opened = (1..1 << 14).filter(|&n| establish(&table, n).is_ok()).count();
    assert!(opened > (1 << 14) / 1_000 * 999, "{opened}");
    assert!(table.elsewhere() > 0, "no set was full: the second sets were not tried");
    assert_eq!((1..1 << 14).filter(|&n| table.find(client(n, TCP).0).is_some()).count(), opened);
}

/// Connections that end, and those that were refused since both of their sets were full, leave neither entries nor counts of them.
fn nothing_is_left_of_connections(functions: &'static Functions) {
    let table = Table::of(functions, 1 << 10, 5, timeouts());
    let opened: Vec<u32> = (1..1 << 10).filter_map(|n| establish(&table, n).ok()).collect();
    assert!((100..900).contains(&opened.len()), "{} of 1,024: some are to be refused", opened.len());
    assert_eq!(table.in_use(), opened.len(), "those that were refused have no record");
    assert!(table.elsewhere() > 0);
    opened.iter().for_each(|&number| table.end(number));
    assert_eq!((table.entries(), table.in_use(), table.elsewhere()), (0, 0, 0));
}

/// A new connection finds room though half-open ones have filled its sets, long before the records are full. Established ones stay, also if more of
/// them follow each other than one search looks at.
fn half_open_connections_fill_no_set(functions: &'static Functions) {
    let table = Table::of(functions, 1 << 10, 5, timeouts());
    let established: Vec<(u32, u32)> = (1..100).map(|n| (n, establish(&table, n).unwrap())).collect();
    for n in 1_000..4_000 {
        let ends = client(n, TCP);
        let number = table.open(ends.0, ends.1, &SYN, n, n).unwrap_or_else(|why| panic!("{n} was refused: {why}"));
        is_whole(&table, number, ends).unwrap();
        assert_eq!(table.entries(), 2 * table.in_use());
    }
    assert!(table.in_use() < 300, "{} connections: the sets were not full", table.in_use());
    for (n, number) in established {
        is_whole(&table, number, client(n, TCP)).unwrap();
    }
}

/// The connection that ends for another one in a full set is one that is over before a half-open one, and of these the one that is silent for longest.
fn a_full_set_gives_way_in_order(functions: &'static Functions) {
    // 15 places for 7 connections.
    let table = Table::of(functions, 64, 6, timeouts());
    let open = |n: u32, tick| {
        let (arrives, leaves) = client(n, TCP);
        table.open(arrives, leaves, &SYN, tick, n)
    };
    let opened: Vec<u32> = (1..8).map(|n| open(n, 100 - n).unwrap()).collect();
    shake_hands(&table, opened[2], 97);
    shake_hands(&table, opened[4], 95);
    table.pass(opened[4], Side::Client, &Segment { seq: 1_001, ack: 0, bytes: 0, flags: 4 }, 95);
    assert_eq!((table.state(opened[4]), table.entries()), (abi::SL_TCP_CLOSED, 14));
    let is_open = |n: u32| table.find(client(n, TCP).0).is_some();
    for (n, gone) in [(8, 5), (9, 7), (10, 6), (11, 4), (12, 2), (13, 1)] {
        let number = open(n, 100).unwrap();
        shake_hands(&table, number, 100);
        assert!(is_open(n) && !is_open(gone), "{gone} has not given way to {n}");
        assert_eq!((table.in_use(), table.entries()), (7, 14));
    }
    assert_eq!(open(14, 100), Err(abi::SL_NOT_FORWARDED_FULL), "all are established");
    assert!(is_open(3));
}

/// The first of two connections that have the packets of a side in common stays.
fn there_are_no_twins(functions: &'static Functions) {
    let table = Table::of(functions, 64, 0, timeouts());
    let first @ (arrives, leaves) = (
        Tuple { proto: TCP, src: v4(1, 1, 2_000), dst: v4(2, 1, 80) },
        Tuple { proto: TCP, src: v4(9, 0, 3_000), dst: v4(3, 1, 8_080) },
    );
    let number = table.open(arrives, leaves, &SYN, 0, 1).unwrap();
    let another_client = Tuple { src: v4(1, 2, 2_000), ..arrives };
    let another_target = Tuple { dst: v4(3, 2, 8_080), ..leaves };
    for (arrives, leaves) in [first, (another_client, leaves), (arrives, another_target)] {
        assert_eq!(table.open(arrives, leaves, &SYN, 0, 1), Err(abi::SL_NOT_FORWARDED_TWIN), "{arrives:?}");
        is_whole(&table, number, first).unwrap();
        assert_eq!((table.entries(), table.in_use()), (2, 1));
    }
    assert!(table.open(another_client, another_target, &SYN, 0, 1).is_ok());
}

/// The serial of a record rises with each connection that takes it, and with nothing else.
fn a_serial_tells_connections_apart(functions: &'static Functions) {
    let table = Table::of(functions, 2, 0, timeouts());
    let serial = || table.connection(1).state >> 8;
    let mut before = serial();
    for n in 1..10 {
        let (arrives, leaves) = client(n, TCP);
        // The table has one record: connections take it from one that is opening, or that has ended.
        assert_eq!(table.open(arrives, leaves, &SYN, 0, 1), Ok(1));
        assert!(serial() > before, "{} after {before}", serial());
        before = serial();
        if n % 2 == 0 {
            shake_hands(&table, 1, 0);
            assert_eq!(serial(), before);
            table.end(1);
        }
    }
}

/// Each connection that ends, or gives way to another one, is announced once.
fn each_end_is_announced(functions: &'static Functions) {
    let table = Table::of(functions, 64, 0, timeouts());
    let open = |n| {
        let (arrives, leaves) = client(n, UDP);
        table.open(arrives, leaves, &DATAGRAM, 0, 1).unwrap()
    };
    let numbers: Vec<u32> = (0..63).map(open).collect();
    assert_eq!(table.ended(), 0);
    (63..73).map(open).for_each(drop);
    assert_eq!((table.in_use(), table.ended()), (63, 10));
    numbers.iter().for_each(|&number| table.end(number));
    assert_eq!((table.in_use(), table.ended()), (0, 73));
}

/// The packets and bytes of each side are counted.
fn packets_are_counted(functions: &'static Functions) {
    let table = Table::of(functions, 2, 0, timeouts());
    let (arrives, leaves) = client(1, UDP);
    let number = table.open(arrives, leaves, &DATAGRAM, 0, 1).unwrap();
    for (side, bytes) in [(Side::Client, 100), (Side::Target, 1_400), (Side::Target, 600)] {
        table.pass(number, side, &Segment { bytes, ..DATAGRAM }, 0);
    }
    let connection = table.connection(number);
    assert_eq!((connection.pkts, connection.bytes), ([1, 2], [100, 2_000]));
}

/// The order in which connections give way: closed ones, then those that were not answered, then UDP that is silent; established ones never.
fn gives_way_in_order(functions: &'static Functions) {
    let table = Table::of(functions, 64, 0, timeouts());
    let open = |n, proto, tick| {
        let (arrives, leaves) = client(n, proto);
        table.open(arrives, leaves, if proto == TCP { &SYN } else { &DATAGRAM }, tick, 1)
    };
    let established: Vec<u32> = (0..60).map(|n| open(n, TCP, 0).unwrap()).collect();
    established.iter().for_each(|&number| shake_hands(&table, number, 0));
    let udp = open(60, UDP, 0).unwrap();
    table.pass(udp, Side::Client, &DATAGRAM, 0);
    assert_eq!(table.state(udp), abi::SL_UDP_ONE_WAY, "its target has not answered");
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
fn many_cpus_at_once(functions: &'static Functions) {
    at_once(&Table::of(functions, 256, 2, timeouts()).with_share(12), 200_000);
    // CPUs meet at the 8 sets of this one more often.
    at_once(&Table::of(functions, 256, 5, timeouts()).with_share(12), 100_000);
}

fn at_once(table: &Table, steps: u32) {
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            scope.spawn(move || {
                let mut random = 0x1234_5678u32.wrapping_mul(thread + 1);
                for step in 0..steps {
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

/// A CPU moves or ends a connection only if no other one has changed its state meanwhile.
fn a_cpu_that_is_late_changes_nothing(functions: &'static Functions) {
    let table = Table::of(functions, 64, 0, timeouts());
    let (arrives, leaves) = client(1, TCP);
    let number = table.open(arrives, leaves, &SYN, 0, 1).unwrap();
    let word = || table.connection(number).state;
    let reset = Segment { seq: 1_001, ack: 0, bytes: 0, flags: 4 };
    let opening = word();
    shake_hands(&table, number, 0);
    let established = word();
    table.pass_seen(number, opening, Side::Client, &Segment { seq: 1_001, ack: 5_001, bytes: 0, flags: 16 }, 0);
    assert_eq!((word(), table.counted()), (established, 1), "both CPUs have seen the handshake");
    table.end_seen(number, opening);
    is_whole(&table, number, (arrives, leaves)).unwrap();
    assert_eq!((word(), table.counted(), table.ended()), (established, 1, 0), "the connection was opening");

    table.pass(number, Side::Client, &reset, 0);
    let closed = word();
    table.pass_seen(number, established, Side::Client, &reset, 0);
    assert_eq!((word(), table.counted()), (closed, 0), "both CPUs have seen the reset");
    table.end(number);
    let free = word();
    table.pass_seen(number, established, Side::Client, &reset, 0);
    table.end_seen(number, closed);
    assert_eq!((word(), table.counted(), table.ended()), (free, 0, 1), "the connection has ended");
}

/// The SYN of a client whose connection is closed begins another one; no other segment does, and no other state gives way to it.
fn a_closed_connection_is_begun_anew(functions: &'static Functions) {
    let table = Table::of(functions, 64, 0, timeouts());
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
fn time_ends_connections(functions: &'static Functions) {
    let table = Table::of(functions, 64, 0, timeouts());
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
    // A tick is a little more than a millisecond.
    let ends_after = |number, last: u32, seconds: u32| {
        for side in [Side::Client, Side::Target] {
            assert!(!table.is_over(number, side, &DATAGRAM, last.wrapping_sub(5)), "another CPU's clock is ahead");
            assert!(!table.is_over(number, side, &DATAGRAM, last + (seconds - 1) * 953), "{seconds} s: too early");
            assert!(table.is_over(number, side, &DATAGRAM, last + (seconds + 1) * 954), "{seconds} s: too late");
        }
    };
    for (number, seconds) in [(half_open, 60), (established, 5 * 86_400), (asked, 30), (spoken, 180)] {
        ends_after(number, 0, seconds);
    }
    table.pass(spoken, Side::Target, &DATAGRAM, 100 * SECOND);
    ends_after(spoken, 100 * SECOND, 180);
}

/// Established connections of a client beyond its share give way when the table is full; those within it, and of other clients, never.
fn a_client_keeps_its_share(functions: &'static Functions) {
    let table = Table::of(functions, 64, 0, timeouts()).with_share(10);
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
