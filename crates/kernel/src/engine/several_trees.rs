//! Whether each tx queue of an interface has a tree of classes: what this machine must have for it, and what is said of it.

use crate::engine::features::Features;
use sluice_abi as abi;
use sluice_policy::network::Network;
use sluice_policy::{LinkQueues, Rate, Resolved};

/// The part of the memory that is left which trees take at most, unless they are asked for.
const PART_OF_MEMORY: u64 = 4;

/// The way out where the kernel has no memory for so many trees.
pub(super) fn help_without_memory(trees: u32, interface: &str) -> String {
    format!(
        "{trees} trees of classes take {} MB: write `\"queues\": \"one\"` into \"link\", or use fewer tx queues (ethtool -L {interface} combined N, or tx N)",
        mb(trees)
    )
}

/// The memory of so many trees, in MB.
fn mb(trees: u32) -> u64 {
    u64::from(trees) * size_of::<abi::sl_tree>() as u64 / 1_000_000
}

/// The reason why this machine has one tree for all tx queues, of a policy that could have one for each. `available_bytes`: the memory that it has left, if
/// that is known; `runs`: each queue has a tree now.
pub(super) fn why_one(
    policy: &Resolved,
    trees: u32,
    features: &Features,
    (available_bytes, runs): (Option<u64>, bool),
) -> Option<String> {
    policy.network.as_ref()?;
    if !features.skbedit {
        let what = "this kernel has no action skbedit (CONFIG_NET_ACT_SKBEDIT), which leads packets to queues";
        return Some(what.to_owned());
    }
    let left_mb = available_bytes? / 1_000_000;
    let is_asked_for = policy.queues == LinkQueues::All || runs;
    let mb = mb(trees);
    (!is_asked_for && mb > left_mb / PART_OF_MEMORY).then(|| {
        format!("{trees} trees of classes would take {mb} MB, more than a quarter of the {left_mb} MB that this machine has left")
    })
}

/// The note on trees that share this rate.
pub(super) fn note(network: &Network, queues: u32, rate: Rate) -> String {
    let what = match network.is_class_tree() {
        true => "class of the first level",
        false => "site of the first level, or a subscriber without a site,",
    };
    format!(
        "each of the {queues} tx queues has a tree of classes, below mq, and all of them share {rate} (and take {} MB): what is below a {what} comes to one \
         of them, and weights and guarantees there hold for all together",
        mb(queues)
    )
}
