//! One side of a wire as one of its workers has it: the maps that the process shares with the arrival hook and the commands.

use super::end::End;
use crate::bpf::mapped::{Mapped, Written};
use crate::maps::tables;
use crate::maps::tree::TreeMaps;
use crate::maps::workers::OwnWorker;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use sluice_abi as abi;
use sluice_error::{Doing, Result};
use sluice_policy::network::Way;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// One side of a wire, as the worker of one of its receive queues has it.
pub struct Side {
    /// Name of the interface.
    pub interface: String,
    /// Number of the interface.
    pub ifindex: u32,
    /// Number of the receive queue, and of the worker.
    pub receive_queue: u32,
    pins: PathBuf,
    worker: OwnWorker,
    live: Mapped<abi::sl_live>,
    sockets: MapHandle,
}

// SAFETY: the mappings belong to the value, and one thread at a time has it.
unsafe impl Send for Side {}

/// The part of the policy in force that the process needs.
pub struct Terms {
    /// The tag of the policy in classes that the hook hands on.
    pub tag: u16,
    /// The class of packets whose class is of another policy, where classes are flat.
    pub default_class: u8,
    /// The buffer of the maps that the policy is in.
    buffer: u32,
}

/// The queue of a side, by the kind of its policy.
pub enum Queue {
    /// Flat classes.
    Flat(FlatQueue),
    /// A class tree, or subscribers.
    Tree(TreeQueue),
}

/// The maps of a scheduler of flat classes.
pub struct FlatQueue {
    receive_queue: usize,
    state: Written<abi::sl_instance>,
    conf: MapHandle,
    /// The link that several workers share.
    pub shared: Option<SharedLink>,
}

/// The maps of a link that the schedulers of several workers share.
pub struct SharedLink {
    receive_queue: usize,
    link: Written<abi::sl_shared_link>,
    instance: Written<abi::sl_shared_instance>,
    conf: MapHandle,
}

// SAFETY: as above.
unsafe impl Send for SharedLink {}

// SAFETY: as above.
unsafe impl Send for FlatQueue {}

/// The maps of a tree of classes.
pub struct TreeQueue {
    tree: Written<abi::sl_tree>,
    ring: Written<abi::sl_tree_changes>,
    hosts: Written<abi::sl_each_host>,
    /// Whether the class of a packet alone chooses its leaf.
    pub is_class_tree: bool,
    /// Whether the source of a packet is its subscriber, and not the destination.
    pub by_source: bool,
}

// SAFETY: as above.
unsafe impl Send for TreeQueue {}

impl Side {
    /// Opens the maps of the worker of a receive queue.
    ///
    /// # Errors
    ///
    /// The maps are of another version.
    pub fn open(end: &End, receive_queue: u32) -> Result<(Side, Queue)> {
        let (record, pins) = (&end.record, end.pins.clone());
        let worker = OwnWorker::open(&pins)?;
        let place = receive_queue as usize;
        let queue = match record.way {
            None => Queue::Flat(FlatQueue {
                receive_queue: place,
                state: Written::of_this_version(&tables::open(&pins, "state")?)?,
                conf: tables::open(&pins, "sched_conf")?,
                shared: (record.workers() > 1).then(|| SharedLink::open(&pins, place)).transpose()?,
            }),
            Some(way) => {
                // A process that was killed may have left the tree in the middle of a step.
                if worker.last_seen_ns(receive_queue) != 0 {
                    worker.count_lost(receive_queue, TreeMaps::open(&pins)?.first().rebuild()?);
                }
                Queue::Tree(TreeQueue {
                    tree: Written::of_this_version(&tables::open(&pins, "tree")?)?,
                    ring: Written::of_this_version(&tables::open(&pins, "changes")?)?,
                    hosts: Written::of_this_version(&tables::open(&pins, "hosts")?)?,
                    is_class_tree: record.class_tree,
                    by_source: way == Way::Up,
                })
            }
        };
        let side = Side {
            interface: record.interface.clone(),
            ifindex: record.ifindex,
            receive_queue,
            worker,
            live: Mapped::of_this_version(&tables::open(&pins, "live")?)?,
            sockets: tables::open(&pins, "sockets")?,
            pins,
        };
        Ok((side, queue))
    }

    /// The word of the configuration in force: the generation in its high 32 bits, the buffer in its low 32.
    pub fn live(&self) -> u64 {
        let word = self.live.values().next().expect("a section has one value").cast::<u64>().cast_mut();
        // SAFETY: the value begins with the word, which is aligned and stored whole.
        unsafe { AtomicU64::from_ptr(word) }.load(Ordering::Acquire)
    }

    /// The configuration that this word names.
    ///
    /// # Errors
    ///
    /// The maps are of another version.
    pub fn terms(&self, live: u64) -> Result<Terms> {
        let buffer = live as u32;
        let own: Box<abi::sl_tables> = tables::read(&tables::open(&self.pins, "tables")?, buffer)?;
        Ok(Terms { tag: own.tag, default_class: own.default_class, buffer })
    }

    /// Has the hook find the socket of the receive queue.
    ///
    /// # Errors
    ///
    /// The kernel refuses it.
    pub fn hand_over(&self, socket: BorrowedFd<'_>) -> Result<()> {
        let fd = socket.as_raw_fd().to_ne_bytes();
        let doing = || format!("handing queue {} of {} to its socket", self.receive_queue, self.interface);
        self.sockets.update(&self.receive_queue.to_ne_bytes(), &fd, MapFlags::ANY).doing(doing)
    }

    /// Says that the worker is there, ns of CLOCK_MONOTONIC; 0: that it ends.
    pub fn say_seen(&self, now_ns: u64) {
        self.worker.say_seen(self.receive_queue, now_ns);
    }

    /// Counts packets that were held and lost.
    pub fn count_lost(&self, pkts: u64) {
        self.worker.count_lost(self.receive_queue, pkts);
    }

    /// Counts time in which packets waited for the port that they leave by.
    pub fn count_port_wait(&self, wait_ns: u64) {
        self.worker.count_port_wait(self.receive_queue, wait_ns);
    }

    /// Says how many bytes this port may have under way; 0: a number of packets was asked for.
    pub fn say_port_limit(&self, bytes: u64) {
        self.worker.say_port_limit(self.receive_queue, bytes);
    }
}

impl FlatQueue {
    /// The scheduler's state, which is this worker's alone; others read it.
    pub fn state(&self) -> NonNull<abi::sl_sched> {
        // SAFETY: the value lies in the mapping; only an address is taken.
        NonNull::new(unsafe { &raw mut (*self.state.value(self.receive_queue)).sched }).expect("it is mapped")
    }

    /// The scheduler's configuration under these terms.
    ///
    /// # Errors
    ///
    /// The map is of another version.
    pub fn conf(&self, terms: &Terms) -> Result<Box<abi::sl_sched_conf>> {
        tables::read(&self.conf, terms.buffer * abi::SL_DIRECTIONS + abi::SL_INGRESS)
    }
}

impl SharedLink {
    fn open(pins: &Path, receive_queue: usize) -> Result<SharedLink> {
        Ok(SharedLink {
            receive_queue,
            link: Written::of_this_version(&tables::open(pins, "shared_link")?)?,
            instance: Written::of_this_version(&tables::open(pins, "shared_instance")?)?,
            conf: tables::open(pins, "shared_conf")?,
        })
    }

    /// The words of the link, which all workers change by atomic operations.
    pub fn link(&self) -> NonNull<abi::sl_shared_link> {
        NonNull::new(self.link.value(0)).expect("it is mapped")
    }

    /// The state of the worker's instance, which is its alone.
    pub fn instance(&self) -> NonNull<abi::sl_shared_instance> {
        NonNull::new(self.instance.value(self.receive_queue)).expect("it is mapped")
    }

    /// The configuration of the link under these terms.
    ///
    /// # Errors
    ///
    /// The map is of another version.
    pub fn conf(&self, terms: &Terms) -> Result<Box<abi::sl_shared_conf>> {
        tables::read(&self.conf, terms.buffer)
    }
}

impl TreeQueue {
    /// The tree's state, which is this process's alone; others read it, and the hook counts what it drops.
    pub fn state(&self) -> NonNull<abi::sl_tree> {
        NonNull::new(self.tree.value(0)).expect("it is mapped")
    }

    /// The ring in which commands write changes of the tree.
    pub fn ring(&self) -> NonNull<abi::sl_tree_changes> {
        NonNull::new(self.ring.value(0)).expect("it is mapped")
    }

    /// Whether changes wait in the ring.
    pub fn has_changes(&self) -> bool {
        let ring = self.ring.value(0);
        // SAFETY: both words are aligned and stored whole, and lie in a mapping that lives as long as `self`.
        let load = |word: *mut u64| unsafe { AtomicU64::from_ptr(word) }.load(Ordering::Acquire);
        // SAFETY: the value lies in the mapping; only addresses are taken.
        unsafe { load(&raw mut (*ring).written) != load(&raw mut (*ring).made) }
    }

    /// The groups of hosts that no list names, which commands change; the places of hosts are this process's.
    pub fn hosts(&self) -> NonNull<abi::sl_each_host> {
        NonNull::new(self.hosts.value(0)).expect("it is mapped")
    }
}
