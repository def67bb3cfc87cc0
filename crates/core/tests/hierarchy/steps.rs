//! A call visits few nodes, however many there are.

use crate::{laws, traces, traces::Case};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi::{SL_FIRST_INNER as LINK, SL_TREE_LEVELS};
use sluice_core::hierarchy::{Bucket, Discipline, Node, Tree, TreeCore, Verdict};

laws! {
    each_call_visits_few_nodes: traces::of(0);
}

const LEVELS: u64 = SL_TREE_LEVELS as u64;

/// Nodes that an arrival visits at most: at each level itself, its parent, two neighbours in each ring and one in each wheel.
const ARRIVAL: u64 = LEVELS * 8;
/// Nodes that a departure visits at most: at each level a choice and a charge, which takes the node out of two rings and puts it into a wheel;
/// and 8 nodes of each wheel come back, half of them with an ancestor that was not ready.
const DEPARTURE: u64 = LEVELS * 9 + 8 * 12 + 8 * LEVELS;
/// Nodes that a packet visits on average, arrival and departure: ten for each level.
const AVERAGE: u64 = LEVELS * 10;
/// Nodes that are visited in the heaps of one way, for each level of a heap, by whatever joins and leaves: a merge takes seven for each of at most two
/// levels, and a call makes two of them, and mends depths above.
const HEAP: u64 = 40;
/// The most moves of EEVDF between its heaps in one departure: 64 children become eligible, and as many do not stay so.
const MOVES: u64 = 2 * 64;

/// Arrivals and departures visit no more nodes than the bounds say, with 10 to 2,000 leaves on one to six levels of inner nodes, all with a
/// ceiling and a guarantee, idle and backlogged; the trees serve by elastic round robin, or by a discipline with a heap.
fn each_call_visits_few_nodes(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let leaves = 10 + case.seed % 1991;
    let levels = 1 + case.seed / 2000 % (LEVELS as u32 - 2);
    let wide = 1 + leaves / 64;
    let all = [Discipline::Elastic, Discipline::Fair, Discipline::Eevdf, Discipline::Pifo];
    let discipline = all[(case.seed >> 30) as usize];
    // At most 65 leaves have a common parent, and the uppermost nodes.
    let one = HEAP * u64::from(65_u32.ilog2() + 1 + (wide + 1).ilog2() + 1);
    // EEVDF moves more from one heap to another than a departure makes room for, but no more than packets and wakes have paid for.
    let (heap, departure) = match discipline {
        Discipline::Elastic => (0, 0),
        Discipline::Eevdf => (one * 2, one * MOVES),
        _ => (one, one),
    };
    let mut tree = Tree::of(core);
    let rate = |bits_per_second| Some(Bucket { bits_per_second, burst_ns: 1_000_000 });
    let configured =
        |tree: &mut Tree, number, node: Node| tree.configure(number, &node, 0).expect("parents come first");
    configured(&mut tree, LINK, Node { ceil: rate(1_000_000_000), discipline, ..Node::below(LINK) });
    for level in 0..levels {
        for place in 0..wide {
            let number = LINK + 1 + level * wide + place;
            let parent = if level == 0 { LINK } else { number - wide };
            let ceil = rate(2_000_000_000 / u64::from(wide));
            configured(
                &mut tree,
                number,
                Node { ceil, rate: rate(900_000_000 / u64::from(wide)), discipline, ..Node::below(parent) },
            );
        }
    }
    for leaf in 0..leaves {
        let parent = LINK + 1 + (levels - 1) * wide + leaf % wide;
        let share = u64::from(leaves);
        let node = Node {
            ceil: rate(2_000_000_000 / share),
            rate: rate(900_000_000 / share),
            weight: 1 + leaf % 5,
            ..Node::below(parent)
        };
        configured(&mut tree, leaf, node);
    }
    let (mut now_ns, mut packets) = (1_000_000, 0);
    let begin = core.visits();
    let arrive = |tree: &mut Tree, leaf, now_ns| {
        let before = core.visits();
        tree.enqueue(leaf, 1000, now_ns).expect("leaves have room");
        let visits = core.visits() - before;
        // One that comes to an empty tree looks at none.
        prop_assert!(visits > 0 || tree.leaf(leaf).pkts > 1 || tree.state().pkts == 1, "nodes are not counted");
        prop_assert!(visits <= ARRIVAL + heap, "an arrival visits {} nodes", visits);
        Ok(())
    };
    // As many packets for each leaf as the seed says, in one burst; each that leaves comes back.
    for _ in 0..1 + case.seed / 8000 % 3 {
        for leaf in 0..leaves {
            arrive(&mut tree, leaf, now_ns)?;
        }
    }
    while packets < 2 * u64::from(leaves) + 500 {
        let before = core.visits();
        let verdict = tree.dequeue(now_ns);
        let visits = core.visits() - before;
        prop_assert!(visits <= DEPARTURE + departure, "a departure visits {} nodes", visits);
        match verdict {
            Verdict::Wait(wake_ns) => now_ns = wake_ns,
            Verdict::Send { leaf, .. } => {
                packets += 1;
                arrive(&mut tree, leaf, now_ns)?;
            }
            Verdict::Idle => return Err(TestCaseError::fail("idle")),
        }
    }
    let average = (core.visits() - begin) / packets;
    prop_assert!(average <= AVERAGE + heap, "a packet visits {} nodes on average", average);
    Ok(())
}
