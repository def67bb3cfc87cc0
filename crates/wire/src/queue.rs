//! The queue of one way: the scheduler of flat classes, or the tree of a class tree or of subscribers, by one set of calls.

use crate::addresses;
use crate::handed::Handed;
use sluice_abi as abi;
use sluice_core::each_host::HostsCore;
use sluice_core::hierarchy::{self, Tree};
use sluice_core::shared_credit::Share;
use sluice_core::{Packet, Scheduler, Verdict};
use sluice_error::Result;
use sluice_kernel::wire::{self, FlatQueue, Terms, TreeQueue};

/// The leaf of packets that no other leaf takes.
const NOBODY: u32 = abi::SL_FIRST_INNER - 1;

/// The queue of one way, whose state is in the maps of its side.
pub enum Queue {
    Flat(Flat),
    Tree(Leaves),
}

/// The scheduler of flat classes.
pub struct Flat {
    scheduler: Scheduler,
    /// Its part in the rate that several workers share.
    share: Option<Share>,
    maps: FlatQueue,
}

/// The tree of a class tree or of subscribers.
pub struct Leaves {
    tree: Tree,
    maps: TreeQueue,
}

impl Queue {
    /// Takes over the scheduler of a side, as it was left.
    pub fn open(maps: wire::Queue) -> Queue {
        match maps {
            wire::Queue::Flat(maps) => {
                // SAFETY: the state is in a mapping that `maps` keeps, and the process has claimed the wire: nothing else writes it.
                let scheduler = unsafe { Scheduler::at(maps.state()) };
                // SAFETY: likewise; an instance is its worker's alone, and all workers change the words of the link by the core.
                let share = maps.shared.as_ref().map(|own| unsafe { Share::at(own.instance(), own.link()) });
                Queue::Flat(Flat { scheduler, share, maps })
            }
            wire::Queue::Tree(maps) => {
                // SAFETY: as above; the hook adds to what it counts atomically.
                let tree = unsafe { Tree::at(maps.state()) };
                Queue::Tree(Leaves { tree, maps })
            }
        }
    }

    /// Slots that packets may have.
    pub fn slots(&self) -> u32 {
        match self {
            Queue::Flat(_) => abi::SL_SLOTS,
            Queue::Tree(_) => abi::SL_TREE_SLOTS,
        }
    }

    /// Packets that wait.
    pub fn backlog_pkts(&self) -> u32 {
        match self {
            Queue::Flat(flat) => flat.scheduler.state().backlog_pkts,
            Queue::Tree(leaves) => leaves.tree.state().pkts,
        }
    }

    /// Takes up these terms, which have come into force.
    pub fn follow(&mut self, terms: &Terms, now_ns: u64) -> Result<()> {
        if let Queue::Flat(flat) = self {
            flat.scheduler.configure(&*flat.maps.conf(terms)?, now_ns);
            if let (Some(share), Some(link)) = (&mut flat.share, &flat.maps.shared) {
                share.configure(link.conf(terms)?);
            }
        }
        Ok(())
    }

    /// Makes some of the changes that wait, which come one by one. Whether more wait.
    pub fn catch_up(&mut self, now_ns: u64) -> bool {
        let Queue::Tree(leaves) = self else { return false };
        if leaves.maps.has_changes() {
            // SAFETY: the ring is in a mapping that `maps` keeps; commands write it as they are to, and only this process makes changes.
            unsafe { leaves.tree.catch_up_with(leaves.maps.ring(), now_ns) };
            return leaves.maps.has_changes();
        }
        false
    }

    /// The slot of a packet, which lies in this frame; none: it is refused.
    pub fn enqueue(&mut self, handed: &Handed, terms: &Terms, frame: &[u8], now_ns: u64) -> Option<u32> {
        let known = handed.tag == terms.tag;
        match self {
            Queue::Flat(flat) => {
                let class = if known { handed.class } else { terms.default_class.into() };
                flat.scheduler.enqueue_packet(&Packet { class, ..handed.packet }, now_ns).ok()
            }
            Queue::Tree(leaves) => {
                let leaf = leaves.leaf(handed, known, frame, now_ns);
                leaves.tree.enqueue_packet(&Packet { class: leaf, ..handed.packet }, now_ns).ok()
            }
        }
    }

    /// The slot of a packet that was dropped from within.
    pub fn reap(&mut self) -> Option<u32> {
        match self {
            Queue::Flat(flat) => flat.scheduler.reap(),
            Queue::Tree(leaves) => leaves.tree.reap(),
        }
    }

    /// The next packet to send, or the time to wait.
    pub fn dequeue(&mut self, now_ns: u64) -> Verdict {
        match self {
            Queue::Flat(flat) => match sharing(&mut flat.share) {
                Some(share) => share.dequeue(&mut flat.scheduler, now_ns),
                None => flat.scheduler.dequeue(now_ns),
            },
            Queue::Tree(leaves) => match leaves.tree.dequeue(now_ns) {
                hierarchy::Verdict::Idle => Verdict::Idle,
                hierarchy::Verdict::Wait(until_ns) => Verdict::Wait(until_ns),
                hierarchy::Verdict::Send { slot, leaf, bytes, mark } => {
                    Verdict::Send { slot, class: leaf, len_bytes: bytes, mark }
                }
            },
        }
    }

    /// There are no packets: other workers get what this one has drawn and does not need.
    pub fn rest(&mut self, now_ns: u64) {
        let Queue::Flat(flat) = self else { return };
        if let Some(share) = sharing(&mut flat.share).filter(|share| share.has_to_rest()) {
            share.dequeue(&mut flat.scheduler, now_ns);
        }
    }

    /// Every packet is gone. Returns how many there were.
    pub fn clear(&mut self, now_ns: u64) -> u64 {
        let lost = self.backlog_pkts();
        match self {
            Queue::Flat(flat) => {
                flat.scheduler.clear();
                if let Some(share) = sharing(&mut flat.share) {
                    share.stop(now_ns);
                }
            }
            Queue::Tree(leaves) => leaves.tree.clear(now_ns),
        }
        lost.into()
    }
}

/// The part of a worker in a rate that is shared, if one is.
fn sharing(share: &mut Option<Share>) -> Option<&mut Share> {
    share.as_mut().filter(|share| share.is_shared())
}

impl Leaves {
    /// The leaf of a packet. `known`: its class is of the policy in force.
    fn leaf(&mut self, handed: &Handed, known: bool, frame: &[u8], now_ns: u64) -> u32 {
        let class = if known { handed.class } else { abi::SL_TREE_CLASSES - 1 };
        if self.maps.is_class_tree {
            return self.tree.leaf_by_class(class).unwrap_or(NOBODY);
        }
        if handed.leaf >= NOBODY {
            return NOBODY;
        }
        let leaf = self.host_leaf(handed.leaf, frame, now_ns);
        // Classes inside a leaf have smaller numbers; the last is that of packets without one.
        self.tree.leaf_of_class(leaf, class.min(abi::SL_PART_CLASSES - 1)).unwrap_or(NOBODY)
    }

    /// The leaf of the host of a packet whose address leads to this leaf: another one if that is a group's.
    fn host_leaf(&mut self, leaf: u32, frame: &[u8], now_ns: u64) -> u32 {
        // SAFETY: the table is in a mapping that `maps` keeps. Places are this process's alone; commands change groups by whole words, and wait for a turn
        // of this process before they use the places of a group that has gone.
        let hosts = unsafe { self.maps.hosts().as_mut() };
        if hosts.groups == 0 || hosts.group_of[leaf as usize] == 0 {
            return leaf;
        }
        let Some(ends) = addresses::ends(frame) else { return leaf };
        let address = if self.maps.by_source { ends.0 } else { ends.1 };
        HostsCore::built_in().leaf(hosts, self.tree.state(), leaf, address, now_ns)
    }
}
