//! States of connections, which their own packets change, and forged ones do not.

use crate::laws;
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_forward::{Functions, Segment, Side, Table, Tuple};
use sluice_tables::forward::timeouts;

laws! {
    a_connection_ends_when_its_sides_end_it: (
        any::<[u32; 2]>(),
        proptest::collection::vec(1u32..65_000, 0..30),
        proptest::collection::vec(1u32..65_000, 0..30),
        any::<bool>(),
        proptest::collection::vec((0u32..10, 0usize..4), 80),
    );
    forged_packets_change_nothing: (
        any::<[u32; 2]>(),
        proptest::collection::vec((any::<bool>(), any::<bool>(), prop_oneof![any::<u32>(), 0u32..4], FAR, 0u32..32), 1..100),
    );
    a_reset_after_bytes_in_flight_counts;
    a_reset_has_the_expected_number;
    a_half_closed_connection_is_not_closed;
    only_the_first_acknowledgement_establishes;
    an_answer_acknowledges_the_syn;
    a_syn_counts_until_it_is_answered;
    a_closed_connection_stays_closed;
    a_refused_connection_is_closed;
    nobody_else_establishes;
}

const FIN: u32 = 1;
const SYN: u32 = 2;
const RST: u32 = 4;
const ACK: u32 = 16;

/// Numbers that no segment of a connection has, counted from its first.
const FAR: std::ops::Range<u32> = 1 << 23..u32::MAX - (1 << 23);

/// A connection that is tracked, with the numbers that both sides begin with.
struct Tracked {
    table: Table,
    number: u32,
    first: [u32; 2],
}

impl Tracked {
    fn new(functions: &'static Functions, client: u32, target: u32) -> Tracked {
        let table = Table::of(functions, 2, 0, timeouts());
        let at = |text: &str| text.parse().unwrap();
        let arrives = Tuple { proto: 6, src: at("192.0.2.1:1024"), dst: at("198.51.100.1:80") };
        let leaves = Tuple { dst: at("10.0.0.1:8080"), ..arrives };
        let syn = Segment { seq: client, ack: 0, bytes: 0, flags: SYN };
        let number = table.open(arrives, leaves, &syn, 0, 1).unwrap();
        Tracked { table, number, first: [client, target] }
    }

    fn established(functions: &'static Functions, client: u32, target: u32) -> Tracked {
        let tracked = Tracked::new(functions, client, target);
        tracked.pass(Side::Target, 0, 1, 0, SYN | ACK);
        tracked.pass(Side::Client, 1, 1, 0, ACK);
        assert_eq!(tracked.state(), abi::SL_TCP_ESTABLISHED);
        tracked
    }

    /// A segment of a side; its numbers count from the first of its sender and of the other side.
    fn pass(&self, side: Side, seq: u32, ack: u32, bytes: u32, flags: u32) {
        let (own, other) = if side == Side::Client { (0, 1) } else { (1, 0) };
        let ack = if flags & ACK > 0 { self.first[other].wrapping_add(ack) } else { 0 };
        let segment = Segment { seq: self.first[own].wrapping_add(seq), ack, bytes, flags };
        self.table.pass(self.number, side, &segment, 0);
    }

    fn state(&self) -> u32 {
        self.table.state(self.number)
    }
}

/// The first numbers of client and target, the sizes of their segments, whether the target closes first, and what becomes of each segment: lost (0),
/// doubled (1) or neither, and how late it comes if it is sent again.
type Exchange = ([u32; 2], Vec<u32>, Vec<u32>, bool, Vec<(u32, usize)>);

/// A forged packet: whether the target seems to have sent it, whether `seq` is far (or `ack`), the number that may be near, the one that is far, flags.
type Forged = (bool, bool, u32, u32, u32);

/// The segments of a connection in the order in which they are sent: both sides send so many bytes, a side closes first.
fn exchange(client: &[u32], target: &[u32], closes: Side) -> Vec<(Side, u32, u32, u32, u32)> {
    let mut segments = vec![(Side::Target, 0, 1, 0, SYN | ACK), (Side::Client, 1, 1, 0, ACK)];
    let mut next = [1, 1];
    for n in 0..client.len().max(target.len()) {
        for (own, side, sizes) in [(0, Side::Client, client), (1, Side::Target, target)] {
            if let Some(&bytes) = sizes.get(n) {
                segments.push((side, next[own], next[1 - own], bytes, ACK));
                next[own] += bytes;
            }
        }
    }
    let order = if closes == Side::Client { [0, 1] } else { [1, 0] };
    let sides = [Side::Client, Side::Target];
    for own in order {
        segments.push((sides[own], next[own], next[1 - own], 0, FIN | ACK));
        next[own] += 1;
        segments.push((sides[1 - own], next[1 - own], next[own], 0, ACK));
    }
    segments
}

/// Whatever is lost before it comes here, sent again or late: in the end the connection is closed, and never before a side closes it.
fn a_connection_ends_when_its_sides_end_it(
    functions: &'static Functions,
    (numbers, client, target, target_closes, fates): Exchange,
) -> TestCaseResult {
    let tracked = Tracked::new(functions, numbers[0], numbers[1]);
    let segments = exchange(&client, &target, if target_closes { Side::Target } else { Side::Client });
    let last_of_data = segments.len() - 4;
    let mut seen: Vec<usize> = Vec::new();
    for n in 0..segments.len() {
        let (fate, late) = fates[n % fates.len()];
        match fate {
            0 if n > 1 => seen.push((n + late).min(segments.len() - 1)), // lost, and sent again after some others
            1 if n > 1 => seen.extend([n, n]),
            _ => seen.push(n),
        }
    }
    let mut came = Vec::new();
    for n in seen {
        let (side, seq, ack, bytes, flags) = segments[n];
        tracked.pass(side, seq, ack, bytes, flags);
        came.push(n);
        if came.contains(&0) && came.contains(&1) && came.iter().all(|&n| n < last_of_data) {
            prop_assert_eq!(tracked.state(), abi::SL_TCP_ESTABLISHED);
        }
    }
    for (n, &(side, seq, ack, bytes, flags)) in segments.iter().enumerate() {
        // Segments that were lost on the way here come in the end.
        if !came.contains(&n) {
            tracked.pass(side, seq, ack, bytes, flags);
        }
    }
    prop_assert_eq!(tracked.state(), abi::SL_TCP_CLOSED);
    Ok(())
}

/// Packets whose sender knows addresses and ports alone neither end a connection nor establish one: of their two numbers, at least one is far
/// from the connection's.
fn forged_packets_change_nothing(
    functions: &'static Functions,
    (numbers, forged): ([u32; 2], Vec<Forged>),
) -> TestCaseResult {
    let established = Tracked::established(functions, numbers[0], numbers[1]);
    let opening = Tracked::new(functions, numbers[0], numbers[1]);
    opening.pass(Side::Target, 0, 1, 0, SYN | ACK);
    for (from_target, seq_is_far, any, far, flags) in forged {
        let side = if from_target { Side::Target } else { Side::Client };
        // A reset without an acknowledgement has one number alone.
        let (seq, ack) = if seq_is_far || flags & ACK == 0 { (far, any) } else { (any, far) };
        let resets = flags & RST > 0 && seq == 1;
        if !resets {
            established.pass(side, seq, ack, 100, flags);
            prop_assert_eq!(established.state(), abi::SL_TCP_ESTABLISHED);
        }
        if flags & (SYN | RST) == 0 {
            opening.pass(Side::Client, seq, if ack == 1 { 2 } else { ack }, 0, flags | ACK);
            prop_assert_eq!(opening.state(), abi::SL_TCP_OPENING);
        }
        // A reset to the numbers of the forged packet, which its sender knows.
        established.pass(side, seq.wrapping_add(100), ack, 0, RST | ACK);
        let other = if from_target { Side::Client } else { Side::Target };
        if ack != 1 {
            established.pass(other, ack, 0, 0, RST);
        }
        prop_assert!(established.state() == abi::SL_TCP_ESTABLISHED || seq.wrapping_add(100) == 1);
    }
    for (side, flags) in
        [(Side::Client, RST), (Side::Target, RST), (Side::Client, RST | ACK), (Side::Target, RST | ACK)]
    {
        let reset = Tracked::established(functions, numbers[0], numbers[1]);
        reset.pass(side, 1, 1, 0, flags);
        prop_assert_eq!(reset.state(), abi::SL_TCP_CLOSED, "the true reset of {:?}", side);
    }
    Ok(())
}

/// A side that aborts while its bytes are on their way resets with the number after them.
fn a_reset_after_bytes_in_flight_counts(functions: &'static Functions) {
    for side in [Side::Client, Side::Target] {
        let tracked = Tracked::established(functions, 1_000, 2_000);
        tracked.pass(side, 1, 1, 5_000, ACK);
        tracked.pass(side, 1, 1, 1_000, ACK); // sent again
        tracked.pass(side, 5_001, 1, 0, RST | ACK);
        assert_eq!(tracked.state(), abi::SL_TCP_CLOSED);

        let closing = Tracked::established(functions, 1_000, 2_000);
        closing.pass(side, 1, 1, 0, FIN | ACK);
        closing.pass(side, 2, 1, 0, RST | ACK);
        assert_eq!(closing.state(), abi::SL_TCP_CLOSED, "FIN takes a number");
    }
}

/// A reset with another number than its receiver expects changes nothing, however near it is.
fn a_reset_has_the_expected_number(functions: &'static Functions) {
    for (side, other) in [(Side::Client, Side::Target), (Side::Target, Side::Client)] {
        let tracked = Tracked::established(functions, 1_000, 2_000);
        for (near, flags) in [0, 2, 100, 65_000, 1 << 20, u32::MAX].into_iter().flat_map(|n| [(n, RST), (n, RST | ACK)])
        {
            tracked.pass(side, near, 1, 0, flags);
            assert_eq!(tracked.state(), abi::SL_TCP_ESTABLISHED, "{side:?}, {near}");
        }
        tracked.pass(side, 1, 1, 5_000, ACK);
        tracked.pass(side, 5_001, 0, 0, RST);
        tracked.pass(side, 5_001, 1 << 23, 0, RST | ACK);
        assert_eq!(tracked.state(), abi::SL_TCP_ESTABLISHED, "its receiver expects 1: {side:?}");
        tracked.pass(other, 1, 5_001, 0, ACK);
        tracked.pass(other, 1, 1, 0, ACK); // sent before, but late
        tracked.pass(side, 1, 0, 0, RST);
        assert_eq!(tracked.state(), abi::SL_TCP_ESTABLISHED, "its receiver expects 5,001: {side:?}");
        tracked.pass(side, 5_001, 0, 0, RST);
        assert_eq!(tracked.state(), abi::SL_TCP_CLOSED, "{side:?}");
    }
    let opening = Tracked::new(functions, 1_000, 2_000);
    opening.pass(Side::Client, 2, 0, 0, RST);
    assert_eq!(opening.state(), abi::SL_TCP_OPENING);
    opening.pass(Side::Client, 1, 0, 0, RST);
    assert_eq!(opening.state(), abi::SL_TCP_CLOSED);
}

/// A side that has closed still gets what the other one sends.
fn a_half_closed_connection_is_not_closed(functions: &'static Functions) {
    for (side, other) in [(Side::Client, Side::Target), (Side::Target, Side::Client)] {
        let tracked = Tracked::established(functions, 1_000, 2_000);
        tracked.pass(side, 1, 1, 0, FIN | ACK);
        tracked.pass(other, 1, 2, 0, ACK);
        tracked.pass(other, 1, 2, 900, ACK);
        tracked.pass(side, 2, 901, 0, ACK);
        assert_eq!(tracked.state(), abi::SL_TCP_CLOSING, "{side:?}");
        tracked.pass(other, 901, 2, 0, FIN | ACK);
        assert_eq!(tracked.state(), abi::SL_TCP_CLOSED, "{side:?}");
    }
}

/// The client acknowledges the very number that the target begins with: a sender that has not seen the answer cannot, though it comes near.
fn only_the_first_acknowledgement_establishes(functions: &'static Functions) {
    let tracked = Tracked::new(functions, 1_000, 2_000);
    tracked.pass(Side::Target, 0, 1, 0, SYN | ACK);
    for near in [0, 2, 1_000, 1 << 16, 1 << 20, 0u32.wrapping_sub(1 << 15)] {
        tracked.pass(Side::Client, 1, near, 0, ACK);
        assert_eq!(tracked.state(), abi::SL_TCP_OPENING, "{near}");
    }
    tracked.pass(Side::Client, 1, 1, 0, ACK);
    assert_eq!(tracked.state(), abi::SL_TCP_ESTABLISHED);
}

/// An answer to another SYN is none: its sender has not seen the client's.
fn an_answer_acknowledges_the_syn(functions: &'static Functions) {
    let tracked = Tracked::new(functions, 1_000, 2_000);
    for near in [0, 2, 1_000, u32::MAX] {
        tracked.pass(Side::Target, 0, near, 0, SYN | ACK);
        tracked.pass(Side::Client, 1, 1, 0, ACK);
        assert_eq!(tracked.state(), abi::SL_TCP_OPENING, "{near}");
    }
    tracked.pass(Side::Target, 0, 1, 0, SYN | ACK);
    tracked.pass(Side::Client, 1, 1, 0, ACK);
    assert_eq!(tracked.state(), abi::SL_TCP_ESTABLISHED);
}

/// A client that tries again may begin with another number, but only as long as no answer has come.
fn a_syn_counts_until_it_is_answered(functions: &'static Functions) {
    let tracked = Tracked::new(functions, 1_000, 2_000);
    tracked.pass(Side::Client, 7_000_000, 0, 0, SYN);
    tracked.pass(Side::Target, 0, 7_000_001, 0, SYN | ACK);
    tracked.pass(Side::Client, 900, 0, 0, SYN);
    tracked.pass(Side::Client, 7_000_001, 1, 0, ACK);
    assert_eq!(tracked.state(), abi::SL_TCP_ESTABLISHED);
}

/// Nothing opens a closed connection again: its client's SYN begins another one.
fn a_closed_connection_stays_closed(functions: &'static Functions) {
    for client_has_closed in [false, true] {
        let tracked = Tracked::established(functions, 7, 9);
        if client_has_closed {
            tracked.pass(Side::Client, 1, 1, 0, FIN | ACK);
        }
        tracked.pass(Side::Target, 1, 1, 0, RST | ACK);
        assert_eq!(tracked.state(), abi::SL_TCP_CLOSED);
        tracked.pass(Side::Client, 1, 1, 10, ACK);
        tracked.pass(Side::Target, 900, 0, 0, SYN);
        assert_eq!(tracked.state(), abi::SL_TCP_CLOSED);
        tracked.pass(Side::Client, 1_000, 0, 0, SYN);
        assert_eq!(tracked.state(), abi::SL_TCP_CLOSED);
    }
}

/// A port that nobody listens on: the target's reset has the number 0.
fn a_refused_connection_is_closed(functions: &'static Functions) {
    let tracked = Tracked::new(functions, 100, 0);
    tracked.pass(Side::Target, 0, 500, 0, RST | ACK);
    assert_eq!(tracked.state(), abi::SL_TCP_OPENING, "it acknowledges another number");
    tracked.pass(Side::Target, 0, 1, 0, RST | ACK);
    assert_eq!(tracked.state(), abi::SL_TCP_CLOSED);
}

/// A SYN flood: no answer makes a connection that its client did not ask for.
fn nobody_else_establishes(functions: &'static Functions) {
    let tracked = Tracked::new(functions, 100, 200);
    tracked.pass(Side::Client, 1, 1, 0, ACK);
    assert_eq!(tracked.state(), abi::SL_TCP_OPENING, "the target has not answered");
    let acknowledges_0 = Tracked::new(functions, 100, u32::MAX);
    acknowledges_0.pass(Side::Client, 1, 1, 0, ACK);
    assert_eq!(acknowledges_0.state(), abi::SL_TCP_OPENING, "likewise");
    tracked.pass(Side::Target, 0, 1, 0, SYN | ACK);
    tracked.pass(Side::Target, 1, 1, 50, ACK);
    assert_eq!(tracked.state(), abi::SL_TCP_OPENING, "the client has not acknowledged");
}
