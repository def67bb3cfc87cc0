//! The changes of a tree that wait in its ring, until the qdisc makes them, or the process of a wire.

use super::Instance;
use sluice_abi as abi;
use sluice_error::{Error, Result};
use sluice_tables::tree::TreeTable;
use std::mem::offset_of;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time for which a qdisc with packets may take up no change. The longest burst of a node is 4.3 s.
const LONGEST_PAUSE: Duration = Duration::from_secs(6);
/// Time between two looks at the qdisc.
const LOOK: Duration = Duration::from_micros(500);
/// Looks after which a qdisc without packets is believed to be idle.
const IDLE_LOOKS: u32 = 4;

/// How the qdisc got on with the changes of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Progress {
    written: u64,
    made: u64,
    refused: u64,
}

impl Instance {
    /// The changes that wait for the qdisc.
    pub(super) fn waiting(&self) -> Vec<abi::sl_tree_change> {
        let Progress { written, made, .. } = self.progress();
        (made..written).map(|number| self.change(number)).collect()
    }

    /// Makes the tree anew and empty, with the configuration that it has once the changes are made that wait: the process that ran it has died, maybe in
    /// the middle of a step. Counters of leaves stay. Returns how many packets it held. No process runs it.
    pub fn rebuild(&self) -> Result<u64> {
        let was = self.copy();
        self.keep(&TreeTable::read(&was).after(&self.waiting()))?;
        let is_used =
            |leaf: &abi::sl_leaf| leaf.sent_pkts > 0 || leaf.early_pkts > 0 || leaf.dropped_pkts != [0; DROPS];
        for (number, former) in was.leaf.iter().enumerate().filter(|(_, leaf)| is_used(leaf)) {
            let at = offset_of!(abi::sl_tree, leaf) + number * size_of::<abi::sl_leaf>();
            let mut leaf = abi::boxed_zeroed::<abi::sl_leaf>();
            self.tree.get(at, &mut *leaf);
            (leaf.sent_pkts, leaf.sent_bytes, leaf.early_pkts) =
                (former.sent_pkts, former.sent_bytes, former.early_pkts);
            (leaf.marked_pkts, leaf.dropped_pkts) = (former.marked_pkts, former.dropped_pkts);
            self.tree.set(at, &*leaf);
        }
        if let Some(ring) = &self.ring {
            ring.publish(offset_of!(abi::sl_tree_changes, made) / 8, self.progress().written);
        }
        Ok(was.pkts.into())
    }

    /// Whether changes may wait for long: the qdisc has no packets, or no process runs. One that begins makes them before its first packet.
    fn is_idle(&self) -> bool {
        // The word also has the leaf of an only packet.
        let is_empty = || self.tree.load(offset_of!(abi::sl_tree, pkts) / 8) == 0;
        self.worker.as_ref().map_or_else(is_empty, |worker| !worker.is_running())
    }

    fn progress(&self) -> Progress {
        let at = |offset: usize| self.ring.as_ref().map_or(0, |ring| ring.load(offset / 8));
        Progress {
            made: at(offset_of!(abi::sl_tree_changes, made)),
            refused: at(offset_of!(abi::sl_tree_changes, refused)),
            written: at(offset_of!(abi::sl_tree_changes, written)),
        }
    }

    fn change(&self, number: u64) -> abi::sl_tree_change {
        let mut change = abi::sl_tree_change { kind: 0, at: 0, what: [0; 6] };
        let first = place_of(number);
        let load = |word: usize| self.ring.as_ref().map_or(0, |ring| ring.load(word));
        let words: Vec<u64> = (first..first + CHANGE_WORDS).map(load).collect();
        (change.kind, change.at) = (words[0] as u32, (words[0] >> 32) as u32);
        change.what.copy_from_slice(&words[1..]);
        change
    }

    /// Has the qdisc make these changes before its next packets. Returns when it has made them, or has no packets to make them for.
    ///
    /// # Errors
    /// The qdisc refuses a change, or makes none for [`LONGEST_PAUSE`] although it has packets.
    pub fn make(&self, changes: &[abi::sl_tree_change]) -> Result<()> {
        let Some(ring) = &self.ring else { return Err(Error::system("no qdisc runs this tree of classes")) };
        let before = self.progress();
        let room = u64::from(abi::SL_TREE_CHANGES) - (before.written - before.made);
        if changes.len() as u64 > room {
            let waiting = before.written - before.made;
            return Err(Error::system(format!(
                "{waiting} changes wait for a packet, and {} more have no room",
                changes.len()
            ))
            .help("they take force with the next packets that depart: try again then"));
        }
        for (change, number) in changes.iter().zip(before.written..) {
            let first = place_of(number);
            ring.store(first, u64::from(change.kind) | u64::from(change.at) << 32);
            change.what.iter().zip(first + 1..).for_each(|(value, word)| ring.store(word, *value));
        }
        let written = before.written + changes.len() as u64;
        ring.publish(offset_of!(abi::sl_tree_changes, written) / 8, written);
        self.await_changes(before.refused)
    }

    fn await_changes(&self, refused_before: u64) -> Result<()> {
        let (mut made, mut since, mut idle) = (None, Instant::now(), 0);
        loop {
            let now = self.progress();
            if now.refused != refused_before {
                let many = now.refused - refused_before;
                return Err(Error::system(format!("the qdisc has refused {many} of the changes of its classes"))
                    .help("`sluice down`, then `sluice up`, makes the tree anew; please report this as a bug"));
            }
            if now.made == now.written {
                return Ok(());
            }
            if made != Some(now.made) {
                (made, since, idle) = (Some(now.made), Instant::now(), 0);
            } else if self.is_idle() {
                idle += 1;
                if idle >= IDLE_LOOKS {
                    return Ok(());
                }
            } else if since.elapsed() > LONGEST_PAUSE {
                let what = format!("the qdisc has packets, and has sent none for {} s", LONGEST_PAUSE.as_secs());
                return Err(Error::system(what)
                    .help("its device takes none (its driver's queue is stopped): see `ip -s link`, then try again"));
            }
            sleep(LOOK);
        }
    }
}

const DROPS: usize = abi::SL_DROPS as usize;

const CHANGE_WORDS: usize = size_of::<abi::sl_tree_change>() / 8;

/// The first word of a change in the ring.
fn place_of(number: u64) -> usize {
    let slot = (number % u64::from(abi::SL_TREE_CHANGES)) as usize;
    offset_of!(abi::sl_tree_changes, change) / 8 + slot * CHANGE_WORDS
}
