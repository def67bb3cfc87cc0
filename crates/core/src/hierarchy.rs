//! The scheduler of a tree of classes (`sched/hierarchy.h`).
//!
//! Leaves are numbered from 0 and inner nodes from `SL_FIRST_INNER`, which is the link. Times are ns, and must not decrease from call to
//! call. Rates of nodes go from 31 kbit/s to 100 Gbit/s, weights from 1 to `SL_NODE_WEIGHT_MAX`, and there are up to `SL_TREE_LEVELS`
//! levels, link and leaves included.

use crate::{Packet, State, Underway};
use sluice_abi as abi;
use std::ptr::NonNull;

#[repr(C)]
#[derive(Default)]
struct RawVerdict {
    action: u32,
    slot: u32,
    leaf: u32,
    len_bytes: u32,
    mark: u32,
    assured: u32,
    wake_ns: u64,
}

const NO_SLOT: u32 = u32::MAX;
const WAIT: u32 = 1;
const SEND: u32 = 2;

/// One build of the tree: its functions, as `sl_tree_core` of `hierarchy.c` lists them.
#[repr(C)]
#[derive(Debug)]
pub struct TreeCore {
    state_bytes: u32,
    conf_bytes: u32,
    set_up: unsafe extern "C" fn(*mut abi::sl_tree, *const abi::sl_tree_conf),
    set_queue: unsafe extern "C" fn(*mut abi::sl_tree, u32, *const abi::sl_leaf_queue),
    configure: unsafe extern "C" fn(*mut abi::sl_tree, u32, *const abi::sl_node_conf, u64) -> u32,
    set_parts: unsafe extern "C" fn(*mut abi::sl_tree, u32, *const abi::sl_parts_conf),
    leaf_of_class: unsafe extern "C" fn(*mut abi::sl_tree, u32, u32) -> u32,
    leaf_by_class: unsafe extern "C" fn(*mut abi::sl_tree, u32) -> u32,
    remove: unsafe extern "C" fn(*mut abi::sl_tree, u32) -> u32,
    make: unsafe extern "C" fn(*mut abi::sl_tree, *const abi::sl_tree_change, u64) -> u32,
    catch_up: unsafe extern "C" fn(*mut abi::sl_tree, *mut abi::sl_tree_changes, u64),
    enqueue: unsafe extern "C" fn(*mut abi::sl_tree, *const Packet, u64) -> i32,
    dequeue: unsafe extern "C" fn(*mut abi::sl_tree, u64, *mut RawVerdict),
    drop: unsafe extern "C" fn(*mut abi::sl_tree, u32, u64) -> u32,
    clear: unsafe extern "C" fn(*mut abi::sl_tree, u64),
    reap: unsafe extern "C" fn(*mut abi::sl_tree) -> u32,
    early: unsafe extern "C" fn(*const abi::sl_tree, *mut abi::sl_underway, *const Packet, u64) -> u32,
    visits: unsafe extern "C" fn() -> u64,
}

unsafe extern "C" {
    safe static sl_tree_core: TreeCore;
}

impl TreeCore {
    /// The name of the table in a build of `hierarchy.c`.
    pub const SYMBOL: &'static str = "sl_tree_core";

    /// The build that is linked into this program.
    pub fn built_in() -> &'static TreeCore {
        &sl_tree_core
    }

    /// Whether it was compiled with the structs of this program.
    pub fn fits(&self) -> bool {
        self.state_bytes as usize == size_of::<abi::sl_tree>()
            && self.conf_bytes as usize == size_of::<abi::sl_node_conf>()
    }

    /// Nodes that calls from this thread have visited, in a build that counts them (`SL_TREE_COUNTS`); else 0.
    pub fn visits(&self) -> u64 {
        // SAFETY: reads a counter of this thread.
        unsafe { (self.visits)() }
    }
}

/// A rate and a burst of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Bits per second; at least 31,000 and at most 100 Gbit/s.
    pub bits_per_second: u64,
    /// The time for which the bucket saves credit, ns, at most 4.29 s. A node below the link has two buckets of a timing wheel at least
    /// (`SL_NODE_BURST_NS`).
    pub burst_ns: u32,
}

impl Bucket {
    /// The cost of a byte, as `struct sl_node_bucket` has it.
    pub fn cost(&self) -> u32 {
        let unit = 8_000_000_000_u64 << abi::SL_NODE_COST_BITS;
        let cost = (unit + self.bits_per_second / 2) / self.bits_per_second.max(1);
        cost.clamp(1, u64::from(u32::MAX)) as u32
    }
}

/// How a node shares among its children what their guarantees leave: an `enum sl_tree_discipline`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum Discipline {
    /// Elastic round robin, by weight in bytes.
    #[default]
    Elastic = abi::SL_TREE_ELASTIC,
    /// Strict priority; children of one priority take turns of a packet.
    Priority = abi::SL_TREE_PRIORITY,
    /// Round robin: each child in turn, with one packet.
    RoundRobin = abi::SL_TREE_ROUND_ROBIN,
    /// Weighted fair queueing, by weight in bytes.
    Fair = abi::SL_TREE_FAIR,
    /// Earliest eligible virtual deadline first, by weight in bytes; a child with a small request waits less.
    Eevdf = abi::SL_TREE_EEVDF,
    /// The child whose first packet has the smallest rank.
    Pifo = abi::SL_TREE_PIFO,
}

/// What a node is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// The number of its parent; of the link: any.
    pub parent: u32,
    /// 1 to `SL_NODE_WEIGHT_MAX`.
    pub weight: u32,
    /// 0 to 63, of a part 0 to 15, where the parent serves by priority; 0 goes first.
    pub priority: u32,
    /// How it serves its children.
    pub discipline: Discipline,
    /// How it ranks their packets, as a PIFO: an `enum sl_rank`.
    pub rank_function: u32,
    /// The bytes of a request, where the parent serves by EEVDF; the latency budget in us, where it is a PIFO that ranks by one; up to
    /// `SL_NODE_REQUEST_MAX`.
    pub request: u32,
    /// Its ceiling; none: no limit.
    pub ceil: Option<Bucket>,
    /// Its guarantee, which the link has not.
    pub rate: Option<Bucket>,
    /// The packets that a leaf holds, up to 65,535; 0: as many as there are slots for.
    pub limit_pkts: u32,
    /// How a leaf queues by flow: a number below `SL_LEAF_QUEUES`, of [`Tree::set_queue`]; or `SL_LEAF_DIVIDED`: its packets are in parts, which
    /// are leaves below it.
    pub queue: u32,
}

/// How leaves queue by flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafQueue {
    /// A flow's turn, 1 to 2^24 bytes.
    pub quantum_bytes: u32,
    /// The bytes that a flow may send ahead of turns before it is bulk: at least a quantum, at most 2^26.
    pub allowance_bytes: u32,
    /// The time of a quantum at the ceiling of the leaf, ns.
    pub round_ns: u32,
    /// Bits of `enum sl_hosts`: between which hosts a leaf is fair before it is between flows.
    pub hosts: u8,
    /// Whether all packets are of one flow: a FIFO.
    pub one_flow: bool,
    /// CoDel: the wait that is no cause for action, ns; 0: it does not act.
    pub target_ns: u64,
    /// CoDel: how long the wait must be longer, ns.
    pub interval_ns: u64,
}

impl LeafQueue {
    /// A FIFO.
    pub fn fifo() -> LeafQueue {
        LeafQueue { one_flow: true, ..LeafQueue::by_flow() }
    }

    /// By flow, with a quantum and an allowance of a frame each, whatever their hosts, without CoDel.
    pub fn by_flow() -> LeafQueue {
        LeafQueue {
            quantum_bytes: 1514,
            allowance_bytes: 1514,
            round_ns: 12_112,
            hosts: 0,
            one_flow: false,
            target_ns: 0,
            interval_ns: 0,
        }
    }

    /// As the core takes it.
    pub fn conf(&self) -> abi::sl_leaf_queue {
        abi::sl_leaf_queue {
            flow_quantum_bytes: self.quantum_bytes,
            allowance_bytes: self.allowance_bytes,
            round_ns: self.round_ns,
            hosts: self.hosts,
            one_flow: u8::from(self.one_flow),
            pad: 0,
            target_ns: self.target_ns,
            interval_ns: self.interval_ns,
        }
    }
}

impl Node {
    /// A node of weight 1 without limits; a leaf has queue 0.
    pub fn below(parent: u32) -> Node {
        Node {
            parent,
            weight: 1,
            priority: 0,
            discipline: Discipline::default(),
            rank_function: abi::SL_RANK_PRIORITY,
            request: 0,
            ceil: None,
            rate: None,
            limit_pkts: 0,
            queue: 0,
        }
    }

    /// As the core takes it.
    pub fn conf(&self) -> abi::sl_node_conf {
        let cost = |bucket: Option<Bucket>| bucket.map_or(0, |bucket| bucket.cost());
        let burst_ns = |bucket: Option<Bucket>| bucket.map_or(0, |bucket| bucket.burst_ns);
        abi::sl_node_conf {
            parent: self.parent,
            weight: self.weight,
            priority: self.priority,
            discipline: self.discipline as u32,
            ceil_cost: cost(self.ceil),
            ceil_burst_ns: burst_ns(self.ceil),
            rate_cost: cost(self.rate),
            rate_burst_ns: burst_ns(self.rate),
            limit_pkts: self.limit_pkts,
            queue: self.queue,
            request: self.request,
            rank: self.rank_function,
        }
    }
}

/// Why a node cannot be configured or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such node.
    NoNode,
    /// The parent is no inner node and no divided leaf, or is not configured.
    NoParent,
    /// The tree would have too many levels, or a node with children would move to another level.
    Depth,
    /// The node has children or packets, which forbid this change.
    Busy,
}

fn refusal(error: u32) -> Result<(), Refusal> {
    match error {
        0 => Ok(()),
        1 => Err(Refusal::NoNode),
        2 => Err(Refusal::NoParent),
        3 => Err(Refusal::Depth),
        _ => Err(Refusal::Busy),
    }
}

/// The answer to a device that asks for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is queued.
    Idle,
    /// Nothing may be sent before this time, ns, which is later than now.
    Wait(u64),
    /// Send the packet of this slot; the slot is free again.
    Send {
        /// The packet's slot.
        slot: u32,
        /// The packet's leaf.
        leaf: u32,
        /// The packet's length, bytes.
        bytes: u32,
        /// The packet is to carry the mark of congestion.
        mark: bool,
    },
}

/// The verdict of a hook on arrivals at another interface on a packet for a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Early {
    /// It lets the packet through.
    Passes,
    /// It drops the packet if that would come to the leaf, which is full.
    Full,
    /// It drops the packet: others of its flow, which is one of the longest, wait in the leaf.
    Long,
}

/// One scheduler, of about 32 MB, of which it touches what it uses.
pub struct Tree {
    core: &'static TreeCore,
    state: State<abi::sl_tree>,
}

// SAFETY: a state that is elsewhere is this scheduler's alone, as whoever made it has promised.
unsafe impl Send for Tree {}

impl Default for Tree {
    fn default() -> Tree {
        Tree::of(TreeCore::built_in())
    }
}

impl Tree {
    /// An empty scheduler that this build of the core runs: a link without limit and children, all slots, and FIFOs as queue 0.
    pub fn of(core: &'static TreeCore) -> Tree {
        assert!(core.fits(), "the core was compiled with other structs");
        let mut tree = Tree { core, state: State::Own(abi::boxed_zeroed()) };
        tree.set_up(&abi::sl_tree_conf { slots: abi::SL_TREE_PKTS, mpu_bytes: 0, overhead_bytes: 0, cells: 0 });
        tree.set_queue(0, &LeafQueue::fifo());
        tree
    }

    /// The scheduler whose state is in memory that others read, such as a map. It is as it was left.
    ///
    /// # Safety
    ///
    /// The state is whole and aligned, stays where it is as long as the scheduler, and nothing else writes it, but for `early_pkts` of leaves, which
    /// are added to atomically. Others may read whole words.
    pub unsafe fn at(state: NonNull<abi::sl_tree>) -> Tree {
        assert!(TreeCore::built_in().fits(), "the core was compiled with other structs");
        Tree { core: TreeCore::built_in(), state: State::Elsewhere(state) }
    }

    /// How many packets the tree may hold, and how the link below counts their bytes.
    pub fn set_up(&mut self, conf: &abi::sl_tree_conf) {
        // SAFETY: both are whole; the core keeps neither.
        unsafe { (self.core.set_up)(&mut *self.state, conf) }
    }

    /// Leaves with this queue, a number below `SL_LEAF_QUEUES`, queue so from now on, also what they hold.
    pub fn set_queue(&mut self, queue: u32, conf: &LeafQueue) {
        // SAFETY: both are whole; the core keeps neither, and masks the number.
        unsafe { (self.core.set_queue)(&mut *self.state, queue, &conf.conf()) }
    }

    /// The state, as a map would show it.
    pub fn state(&self) -> &abi::sl_tree {
        &self.state
    }

    /// Where the state is, for functions of the core.
    pub fn as_ptr(&mut self) -> *mut abi::sl_tree {
        &mut *self.state
    }

    /// The counters and the backlog of a leaf.
    pub fn leaf(&self, leaf: u32) -> &abi::sl_leaf {
        &self.state.leaf[leaf as usize]
    }

    /// A node becomes this; packets stay queued. Parents are configured before their children.
    pub fn configure(&mut self, node: u32, conf: &Node, now_ns: u64) -> Result<(), Refusal> {
        // SAFETY: state and configuration are whole; the core keeps neither, and checks the number.
        refusal(unsafe { (self.core.configure)(&mut *self.state, node, &conf.conf(), now_ns) })
    }

    /// The leaves of a divided leaf's packets by their class; the last class is that of packets without one. None: the leaf takes none of the class.
    pub fn set_parts(&mut self, leaf: u32, of_class: &[Option<u32>; abi::SL_PART_CLASSES as usize]) {
        let conf = abi::sl_parts_conf { of_class: of_class.map(|part| part.map_or(0, |part| part as u16 + 1)) };
        // SAFETY: state and configuration are whole; the core keeps neither, and masks the number.
        unsafe { (self.core.set_parts)(&mut *self.state, leaf, &conf) }
    }

    /// The leaf of a packet of this class that a leaf is to have: itself, or one of its parts. None: it takes no such packets.
    pub fn leaf_of_class(&mut self, leaf: u32, class: u32) -> Option<u32> {
        // SAFETY: the state is whole; the core masks both numbers.
        let part = unsafe { (self.core.leaf_of_class)(&mut *self.state, leaf, class) };
        (part != abi::SL_NO_NODE).then_some(part)
    }

    /// The leaf of a packet of this class, whatever its addresses; the last class is that of packets without one. None: the class has no leaf, or
    /// addresses choose it.
    pub fn leaf_by_class(&mut self, class: u32) -> Option<u32> {
        // SAFETY: the state is whole; the core masks the number.
        let leaf = unsafe { (self.core.leaf_by_class)(&mut *self.state, class) };
        (leaf != abi::SL_NO_NODE).then_some(leaf)
    }

    /// A node without packets and children is no more.
    pub fn remove(&mut self, node: u32) -> Result<(), Refusal> {
        // SAFETY: the state is whole; the core checks the number.
        refusal(unsafe { (self.core.remove)(&mut *self.state, node) })
    }

    /// Makes a change as a ring has it.
    pub fn make(&mut self, change: &abi::sl_tree_change, now_ns: u64) -> Result<(), Refusal> {
        // SAFETY: state and change are whole; the core keeps neither, and checks the numbers.
        refusal(unsafe { (self.core.make)(&mut *self.state, change, now_ns) })
    }

    /// Makes the changes that wait in a ring, up to `SL_CHANGES_A_CALL` of them.
    pub fn catch_up(&mut self, ring: &mut abi::sl_tree_changes, now_ns: u64) {
        // SAFETY: the ring is whole, and the caller's alone.
        unsafe { self.catch_up_with(NonNull::from(ring), now_ns) }
    }

    /// The same, of a ring that another process writes.
    ///
    /// # Safety
    ///
    /// The ring is whole and aligned. Others write changes and then, at once, the word that says how many; only this scheduler makes them.
    pub unsafe fn catch_up_with(&mut self, ring: NonNull<abi::sl_tree_changes>, now_ns: u64) {
        // SAFETY: as promised; the state is whole, and the core masks the numbers of changes.
        unsafe { (self.core.catch_up)(&mut *self.state, ring.as_ptr(), now_ns) }
    }

    /// The slot that a packet of one frame has now, as [`Tree::enqueue_packet`] says.
    pub fn enqueue(&mut self, leaf: u32, bytes: u32, now_ns: u64) -> Result<u32, u32> {
        self.enqueue_packet(&Packet { class: leaf, len_bytes: bytes, segments: 1, ..Packet::default() }, now_ns)
    }

    /// The slot that a packet has now, whose class is a leaf, or the reason (`enum sl_drop`) for which it is refused. A packet counts as
    /// 2^20 bytes at most.
    pub fn enqueue_packet(&mut self, packet: &Packet, now_ns: u64) -> Result<u32, u32> {
        // SAFETY: state and packet are whole; the core checks the number.
        let answer = unsafe { (self.core.enqueue)(&mut *self.state, packet, now_ns) };
        u32::try_from(answer).map_err(|_| (-1 - answer) as u32)
    }

    /// The verdict of a hook on arrivals on a packet, whose class is a leaf. A packet that passes counts as under way until the queue has it.
    pub fn early(&self, underway: &mut Underway, packet: &Packet, now_ns: u64) -> Early {
        // SAFETY: all three are whole; the core masks the leaf, and changes the second alone.
        match unsafe { (self.core.early)(&*self.state, &mut underway.0, packet, now_ns) } {
            abi::SL_LEAF_PASSES => Early::Passes,
            abi::SL_LEAF_FULL => Early::Full,
            _ => Early::Long,
        }
    }

    /// The next packet to send, or the time to wait.
    pub fn dequeue(&mut self, now_ns: u64) -> Verdict {
        let mut raw = RawVerdict::default();
        // SAFETY: the state is whole, and the verdict has the layout of struct sl_tree_verdict.
        unsafe { (self.core.dequeue)(&mut *self.state, now_ns, &mut raw) };
        match raw.action {
            SEND => Verdict::Send { slot: raw.slot, leaf: raw.leaf, bytes: raw.len_bytes, mark: raw.mark != 0 },
            WAIT => Verdict::Wait(raw.wake_ns),
            _ => Verdict::Idle,
        }
    }

    /// Drops the packet that a leaf would send next: its slot, which is free again; none if it has none.
    pub fn drop_next(&mut self, leaf: u32, now_ns: u64) -> Option<u32> {
        // SAFETY: the state is whole; the core checks the number.
        let slot = unsafe { (self.core.drop)(&mut *self.state, leaf, now_ns) };
        (slot != NO_SLOT).then_some(slot)
    }

    /// Every packet is gone, and counted as dropped; other counters and the configuration stay, and what nodes owe.
    pub fn clear(&mut self, now_ns: u64) {
        // SAFETY: the state is whole.
        unsafe { (self.core.clear)(&mut *self.state, now_ns) }
    }

    /// The slot of a packet that was dropped after it had been queued; the slot is free again. To be asked after each call that enqueues,
    /// dequeues or drops.
    pub fn reap(&mut self) -> Option<u32> {
        // SAFETY: the state is whole.
        let slot = unsafe { (self.core.reap)(&mut *self.state) };
        (slot != NO_SLOT).then_some(slot)
    }
}
