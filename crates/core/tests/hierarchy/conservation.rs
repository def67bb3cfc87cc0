//! Nothing is lost and nothing is made.

use crate::{
    laws, traces,
    traces::Case,
    world::{Event, World, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_abi::SL_FIRST_INNER as LINK;
use sluice_core::hierarchy::TreeCore;
use std::collections::BTreeMap;

laws! {
    nothing_is_lost: traces::of(200).ceilings().guarantees().disciplines().limits().flows().edits();
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Account {
    sent_pkts: u64,
    sent_bytes: u64,
    marked_pkts: u32,
    dropped_pkts: [u32; abi::SL_DROPS as usize],
    /// A mean of the waits of sent packets, which moves by a 16th with each.
    wait_ns: u64,
}

impl Account {
    fn dropped(mut self, reason: u32) -> Account {
        self.dropped_pkts[reason as usize] += 1;
        self
    }
}

/// The nodes that count the packets of a leaf: itself, and the divided leaf of which it is a part.
fn counting(world: &World, leaf: u32) -> impl Iterator<Item = u32> {
    [Some(leaf), world.whole(leaf)].into_iter().flatten()
}

/// A packet that arrives at a leaf leaves it once, in order within its flow, or is refused or dropped and counted, also if the tree is edited
/// meanwhile. In the end all packets have left, and all counters are true. A leaf refuses only what is beyond its limit, and only if no flow of it
/// has two packets.
fn nothing_is_lost(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let mut accounts = BTreeMap::<u32, Account>::new();
    let world = run(core, case, &mut |world, event| {
        match *event {
            Event::Arrived { leaf, refused } => {
                let limit = world.nodes[&leaf].limit_pkts as usize;
                let queued = world.queued(leaf).count();
                prop_assert!(queued <= limit, "{} packets, and the limit is {}", queued, limit);
                if let Some(reason) = refused {
                    prop_assert_eq!(reason, abi::SL_DROP_LIMIT_PKTS);
                    prop_assert_eq!(queued, limit, "refused");
                    let longest = world.flows.range((leaf, 0)..=(leaf, u32::MAX)).map(|(_, queue)| queue.len()).max();
                    prop_assert!(longest < Some(2), "refused, and a flow has {:?} packets", longest);
                    for node in counting(world, leaf) {
                        let account = accounts.entry(node).or_default();
                        *account = account.dropped(reason);
                    }
                }
            }
            Event::Sent { leaf, bytes, marked, waited_ns } => {
                for node in counting(world, leaf) {
                    let account = accounts.entry(node).or_default();
                    account.sent_pkts += 1;
                    account.sent_bytes += u64::from(bytes);
                    account.marked_pkts += u32::from(marked);
                    account.wait_ns = account.wait_ns - account.wait_ns / 16 + waited_ns.min(u32::MAX.into()) / 16;
                }
            }
            Event::Dropped { leaf, reason } => {
                for node in counting(world, leaf) {
                    let account = accounts.entry(node).or_default();
                    *account = account.dropped(reason);
                }
            }
            Event::Edited(node) if !world.nodes.contains_key(&node) => {
                // Then the world asks whether it takes a packet.
                accounts.insert(node, Account::default().dropped(abi::SL_DROP_LIMIT_PKTS));
            }
            _ => {}
        }
        if matches!(event, Event::Dropped { .. }) {
            // Others may have been dropped with it, and are yet to be reaped.
            return Ok(());
        }
        for leaf in world.nodes.keys().copied().filter(|node| *node < LINK) {
            let holds = |of: u32| world.queued(of).fold((0, 0), |(n, bytes), packet| (n + 1, bytes + packet.bytes));
            let parts = world.nodes.iter().filter(|(_, node)| node.parent == leaf).map(|(number, _)| holds(*number));
            let all = parts.fold(holds(leaf), |(n, bytes), (more, more_bytes)| (n + more, bytes + more_bytes));
            let counted = world.tree.leaf(leaf);
            prop_assert_eq!((counted.pkts, counted.backlog_bytes), all, "leaf {}", leaf);
        }
        Ok(())
    })?;
    for (leaf, account) in accounts {
        let leaf = world.tree.leaf(leaf);
        let counted = Account {
            sent_pkts: leaf.sent_pkts,
            sent_bytes: leaf.sent_bytes,
            marked_pkts: leaf.marked_pkts,
            dropped_pkts: leaf.dropped_pkts,
            wait_ns: leaf.wait_ns.into(),
        };
        prop_assert_eq!(counted, account);
    }
    Ok(())
}
