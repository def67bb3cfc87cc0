//! Nothing is lost and nothing is made.

use crate::{
    laws, traces,
    traces::Case,
    world::{Event, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_core::hierarchy::TreeCore;
use std::collections::BTreeMap;

laws! {
    nothing_is_lost: traces::of(200).ceilings().guarantees().priorities().limits().edits();
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Account {
    sent_pkts: u64,
    sent_bytes: u64,
    dropped_pkts: u64,
}

/// What arrives at a leaf leaves it once, in order, or is refused or dropped and counted, whatever is edited while packets are queued. In
/// the end all packets have left, and all counters are true. A leaf refuses only what is beyond its limit.
fn nothing_is_lost(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let mut accounts = BTreeMap::<u32, Account>::new();
    let world = run(core, case, &mut |world, event| {
        match *event {
            Event::Arrived { leaf, taken } => {
                let limit = world.nodes[&leaf].limit_pkts as usize;
                let queued = world.queues.get(&leaf).map_or(0, |queue| queue.len());
                prop_assert!(queued <= limit, "{} packets, and the limit is {}", queued, limit);
                prop_assert!(taken || queued == limit, "refused at {} of {} packets", queued, limit);
                accounts.entry(leaf).or_default().dropped_pkts += u64::from(!taken);
            }
            Event::Sent { leaf, bytes } => {
                let account = accounts.entry(leaf).or_default();
                account.sent_pkts += 1;
                account.sent_bytes += u64::from(bytes);
            }
            Event::Dropped(leaf) => accounts.entry(leaf).or_default().dropped_pkts += 1,
            Event::Edited(node) if !world.nodes.contains_key(&node) => {
                // Then the world asks whether it takes a packet.
                accounts.insert(node, Account { dropped_pkts: 1, ..Account::default() });
            }
            _ => {}
        }
        for (leaf, queue) in &world.queues {
            let bytes: u32 = queue.iter().map(|(_, bytes)| bytes).sum();
            prop_assert_eq!(usize::from(world.tree.leaf(*leaf).pkts), queue.len());
            prop_assert_eq!(world.tree.leaf(*leaf).backlog_bytes, bytes);
        }
        Ok(())
    })?;
    for (leaf, account) in accounts {
        let leaf = world.tree.leaf(leaf);
        let counted = Account {
            sent_pkts: leaf.sent_pkts,
            sent_bytes: leaf.sent_bytes,
            dropped_pkts: u64::from(leaf.dropped_pkts),
        };
        prop_assert_eq!(counted, account);
    }
    Ok(())
}
