//! Super-packets at a router: split, they hold the link for a frame's time; whole, for many.

use crate::command::await_that;
use crate::iperf;
use crate::lab::Lab;
use crate::needs::{Need, is_icount};
use crate::net::{Routed, SERVER};
use crate::policy::{port, three, with};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome};
use serde_json::json;
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("gso").both("super_packets_are_split", &[Need::Ifb], super_packets_are_split)
}

/// A frame of 1514 bytes at 20 Mbit/s.
const FRAME_MS: f64 = 0.6056;

/// Bulk TCP through the router beside a thin stream in the most urgent class: the length of TCP's average packet that came
/// out, a super-packet being one, and what became of the stream.
fn bulk_and_game(lab: &Lab, split: &str) -> (f64, Outcome) {
    let net = lab.routed();
    let policy = with(three(), "link", json!({ "split_gso": split }));
    lab.up(&net.router, "wan0", &lab.policy(&policy), &["--rate", "20mbit"]);
    assert_eq!(lab.status(&net.router, "wan0").split, split == "on");
    let mut server = iperf::serve(&net.server);
    let client = iperf::start(&net.client, &format!("-c {SERVER} -C cubic -t 3 -P 2"));
    let bytes = || net.router.root("wan0").expect("a root qdisc").bytes;
    let start = bytes();
    await_that("TCP is under way", Duration::from_secs(20), || bytes() > start + 1_500_000);
    let before = arrived(&net);
    let flows = [Flow::new(port(0), &[114], 200_000)];
    let game = traffic::run(&net.client, &net.server, SERVER, &flows, Duration::from_millis(1500), || 0).remove(0);
    let after = arrived(&net);
    client.finish().ok();
    server.kill();
    lab.down(&net.router, "wan0");
    let (packets, bytes) = (after.0 - before.0 - game.sent, after.1 - before.1 - game.sent * 114);
    let average = bytes as f64 / packets as f64;
    eprintln!(
        "    split {split}: average packet {average:.0} bytes; game p50 {:.3}, p99 {:.3}, max {:.3} ms, {} of {} lost",
        game.delay_ms(0.5),
        game.delay_ms(0.99),
        game.delay_ms(1.0),
        game.lost(),
        game.sent
    );
    (average, game)
}

/// Packets and bytes that the server's interface has got. (Not asked of the qdisc, which counts segments; nor of a packet
/// socket, which a veth behind an ifb passes by.)
fn arrived(net: &Routed) -> (u64, u64) {
    let links: serde_json::Value = serde_json::from_str(&net.server.ip("-s -j link show dev s0")).expect("JSON of ip");
    let count = |what: &str| links[0]["stats64"]["rx"][what].as_u64().expect("a count");
    (count("packets"), count("bytes"))
}

fn super_packets_are_split(lab: &Lab) {
    let (average, split) = bulk_and_game(lab, "on");
    assert!((1400.0..=1514.0).contains(&average), "TCP fills its frames, and nothing is longer: {average}");
    assert_eq!(split.lost(), 0);
    // That it can fail: whole, the packets are longer, and so is the delay.
    let (average, whole) = bulk_and_game(lab, "off");
    assert!(average > 3000.0, "{average}");
    if is_icount() {
        let (split, whole) = (split.delay_ms(0.99), whole.delay_ms(0.99));
        assert!(split <= 1.5 * FRAME_MS, "p99 {split} ms, a frame takes {FRAME_MS} ms");
        assert!(whole > 2.0 * split, "p99 {whole} ms, split {split} ms");
    }
}
