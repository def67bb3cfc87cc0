//! The scheduler of a tree of classes (`sched/hierarchy.h`).
//!
//! Leaves are numbered from 0 and inner nodes from `SL_FIRST_INNER`, which is the link. Times are ns, and must not decrease from call to
//! call. Rates of nodes go from 31 kbit/s to 100 Gbit/s, weights from 1 to `SL_NODE_WEIGHT_MAX`, and there are up to `SL_TREE_LEVELS`
//! levels, link and leaves included.

use sluice_abi as abi;

#[repr(C)]
#[derive(Default)]
struct RawVerdict {
    action: u32,
    slot: u32,
    leaf: u32,
    bytes: u32,
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
    configure: unsafe extern "C" fn(*mut abi::sl_tree, u32, *const abi::sl_node_conf, u64) -> u32,
    remove: unsafe extern "C" fn(*mut abi::sl_tree, u32) -> u32,
    enqueue: unsafe extern "C" fn(*mut abi::sl_tree, u32, u32, u64) -> u32,
    dequeue: unsafe extern "C" fn(*mut abi::sl_tree, u64, *mut RawVerdict),
    drop: unsafe extern "C" fn(*mut abi::sl_tree, u32) -> u32,
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

/// What a node is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// The number of its parent; of the link: any.
    pub parent: u32,
    /// 1 to `SL_NODE_WEIGHT_MAX`.
    pub weight: u32,
    /// 0 to 63, where the parent serves by priority; 0 goes first.
    pub priority: u32,
    /// Whether it serves its children by strict priority, and not by weight.
    pub serves_by_priority: bool,
    /// Its ceiling; none: no limit.
    pub ceil: Option<Bucket>,
    /// Its guarantee, which the link has not.
    pub rate: Option<Bucket>,
    /// The packets that a leaf holds, up to 65,535; 0: as many as there are slots for.
    pub limit_pkts: u32,
}

impl Node {
    /// A node of weight 1 without limits.
    pub fn below(parent: u32) -> Node {
        Node { parent, weight: 1, priority: 0, serves_by_priority: false, ceil: None, rate: None, limit_pkts: 0 }
    }

    fn conf(&self) -> abi::sl_node_conf {
        let cost = |bucket: Option<Bucket>| bucket.map_or(0, |bucket| bucket.cost());
        let burst_ns = |bucket: Option<Bucket>| bucket.map_or(0, |bucket| bucket.burst_ns);
        abi::sl_node_conf {
            parent: self.parent,
            weight: self.weight,
            priority: self.priority,
            discipline: if self.serves_by_priority { abi::SL_TREE_PRIORITY } else { abi::SL_TREE_ROUND_ROBIN },
            ceil_cost: cost(self.ceil),
            ceil_burst_ns: burst_ns(self.ceil),
            rate_cost: cost(self.rate),
            rate_burst_ns: burst_ns(self.rate),
            limit_pkts: self.limit_pkts,
        }
    }
}

/// Why a node cannot be configured or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such node.
    NoNode,
    /// The parent is no inner node, or is not configured.
    NoParent,
    /// The tree would have too many levels, or a node with children would move to another level.
    Depth,
    /// The node has children, or packets.
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
        /// The packet's length.
        bytes: u32,
    },
}

/// One scheduler, of about 7 MB.
pub struct Tree {
    core: &'static TreeCore,
    state: Box<abi::sl_tree>,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree::of(TreeCore::built_in())
    }
}

impl Tree {
    /// An empty scheduler that this build of the core runs: a link without limit and children.
    pub fn of(core: &'static TreeCore) -> Tree {
        assert!(core.fits(), "the core was compiled with other structs");
        Tree { core, state: abi::boxed_zeroed() }
    }

    /// The state, as a map would show it.
    pub fn state(&self) -> &abi::sl_tree {
        &self.state
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

    /// A node without packets and children is no more.
    pub fn remove(&mut self, node: u32) -> Result<(), Refusal> {
        // SAFETY: the state is whole; the core checks the number.
        refusal(unsafe { (self.core.remove)(&mut *self.state, node) })
    }

    /// The slot that a packet of a leaf has now; none if the leaf or the tree is full. A packet counts as 2^20 bytes at most.
    pub fn enqueue(&mut self, leaf: u32, bytes: u32, now_ns: u64) -> Option<u32> {
        // SAFETY: the state is whole; the core checks the number.
        let slot = unsafe { (self.core.enqueue)(&mut *self.state, leaf, bytes, now_ns) };
        (slot != NO_SLOT).then_some(slot)
    }

    /// The next packet to send, or the time to wait.
    pub fn dequeue(&mut self, now_ns: u64) -> Verdict {
        let mut raw = RawVerdict::default();
        // SAFETY: the state is whole, and the verdict has the layout of struct sl_tree_verdict.
        unsafe { (self.core.dequeue)(&mut *self.state, now_ns, &mut raw) };
        match raw.action {
            SEND => Verdict::Send { slot: raw.slot, leaf: raw.leaf, bytes: raw.bytes },
            WAIT => Verdict::Wait(raw.wake_ns),
            _ => Verdict::Idle,
        }
    }

    /// Drops the first packet of a leaf: its slot, which is free again; none if it has none.
    pub fn drop_first(&mut self, leaf: u32) -> Option<u32> {
        // SAFETY: the state is whole; the core checks the number.
        let slot = unsafe { (self.core.drop)(&mut *self.state, leaf) };
        (slot != NO_SLOT).then_some(slot)
    }
}
