//! `tree SUBSCRIBERS`: registers the qdisc `sluicetree`, whose tree has so many subscribers (up to 32,767) at sites of 32, each with a ceiling and
//! a guarantee, by flow, with CoDel, and of addresses from 10.99.64.0 on. It says how long that took, then obeys the lines of standard input until
//! they end: `hold` lets no packet out, `release` all again; each is answered `ok`.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sluice_abi::SL_FIRST_INNER as LINK;
use sluice_core::hierarchy::{Bucket, LeafQueue, Node, Tree};
use sluice_twin::queue::TreeQueue;
use std::net::Ipv4Addr;
use std::time::Instant;

const GIGABIT: u64 = 1_000_000_000;
/// Years after boot, and small enough for a bucket.
const NEVER_NS: u64 = 1 << 57;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let subscribers: u32 = std::env::args().nth(1).ok_or("a number of subscribers")?.parse()?;
    let start = Instant::now();
    let mut tree = Tree::default();
    tree.set_queue(0, &LeafQueue { target_ns: 5_000_000, interval_ns: 100_000_000, ..LeafQueue::by_flow() });
    let rate = |bits_per_second: u64| Some(Bucket { bits_per_second, burst_ns: 10_000_000 });
    let mut set = |number: u32, node: Node| {
        tree.configure(number, &node, 0).map_err(|refusal| format!("node {number}: {refusal:?}"))
    };
    set(LINK, Node { ceil: rate(10 * GIGABIT), ..Node::below(LINK) })?;
    let sites = subscribers.div_ceil(32);
    for site in 0..sites {
        set(LINK + 1 + site, Node { ceil: rate(5 * GIGABIT), rate: rate(GIGABIT / 8), ..Node::below(LINK) })?;
    }
    // The last leaf is for addresses without a subscriber.
    for leaf in (0..subscribers).chain([LINK - 1]) {
        let site = LINK + 1 + leaf % sites;
        set(leaf, Node { ceil: rate(GIGABIT), rate: rate(GIGABIT / 256), limit_pkts: 1000, ..Node::below(site) })?;
    }
    let first = u32::from(Ipv4Addr::new(10, 99, 64, 0));
    let prefixes: Vec<_> =
        (0..subscribers).map(|n| (std::net::IpAddr::from(Ipv4Addr::from(first + n)), n as u16)).collect();
    let mut random = SmallRng::from_os_rng();
    let table = sluice_tables::build_addresses(&prefixes, || random.random())?;
    let queue = TreeQueue::register("sluicetree", tree.state(), &table)?;
    println!("ready after {} us", start.elapsed().as_micros());
    for line in std::io::stdin().lines() {
        match line?.as_str() {
            "hold" => queue.hold(Some(NEVER_NS))?,
            "release" => queue.hold(None)?,
            other => return Err(format!("there is no command {other:?}").into()),
        }
        println!("ok");
    }
    let state = queue.tree()?;
    let leaves = state.leaf.iter().filter(|leaf| leaf.sent_pkts > 0).count();
    println!("{leaves} subscribers have sent");
    Ok(())
}
