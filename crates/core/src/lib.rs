//! The scheduler core of `sched/`, compiled natively: the very source that runs in the kernel, for tests, the simulator
//! and engines in userspace.

pub mod addresses;
pub mod backpressure;
pub mod each_host;
pub mod hierarchy;
pub mod level_backpressure;
pub mod pipes;
pub mod police;
pub mod port_limit;
pub mod shared_credit;
pub mod shared_tree;

use sluice_abi as abi;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

#[repr(C)]
#[derive(Default)]
struct RawVerdict {
    action: u32,
    slot: u32,
    class: u32,
    len_bytes: u32,
    mark: u32,
    wake_ns: u64,
}

/// A packet, as the core sees it: `struct sl_packet`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Packet {
    /// The packet's class.
    pub class: u32,
    /// The packet's length.
    pub len_bytes: u32,
    /// Frames it becomes on the wire; at least 1.
    pub segments: u32,
    /// Hash of its flow, in classes that queue by flow.
    pub flow_hash: u32,
    /// Hash of its source address, in classes that queue by flow.
    pub src_host: u16,
    /// Hash of its destination address, in classes that queue by flow.
    pub dst_host: u16,
    /// Not 0: it can be marked instead of dropped.
    pub ecn: u32,
}

const NO_SLOT: u32 = u32::MAX;

const WAIT: u32 = 1;
const SEND: u32 = 2;

/// One build of the core: its functions, as `sl_core` of `native.c` lists them.
#[repr(C)]
#[derive(Debug)]
pub struct Core {
    state_bytes: u32,
    conf_bytes: u32,
    enqueue: unsafe extern "C" fn(*mut abi::sl_sched, *const Packet, u64) -> i32,
    dequeue: unsafe extern "C" fn(*mut abi::sl_sched, u64, *mut RawVerdict),
    reap: unsafe extern "C" fn(*mut abi::sl_sched) -> u32,
    configure: unsafe extern "C" fn(*mut abi::sl_sched, *const abi::sl_sched_conf, u64),
    clear: unsafe extern "C" fn(*mut abi::sl_sched),
    wipe: unsafe extern "C" fn(*mut abi::sl_sched),
    wire_bytes: unsafe extern "C" fn(*const abi::sl_sched, u32, u32) -> u32,
    sojourn_bucket: unsafe extern "C" fn(u64) -> u32,
    drops_early: unsafe extern "C" fn(*const abi::sl_sched, *mut abi::sl_underway, *const Packet, u64) -> u32,
}

unsafe extern "C" {
    safe static sl_core: Core;
}

impl Core {
    /// The name of the table in a build of `native.c`.
    pub const SYMBOL: &'static str = "sl_core";

    /// The build that is linked into this program.
    pub fn built_in() -> &'static Core {
        &sl_core
    }

    /// Whether it was compiled with the structs of this program.
    pub fn fits(&self) -> bool {
        self.state_bytes as usize == size_of::<abi::sl_sched>()
            && self.conf_bytes as usize == size_of::<abi::sl_sched_conf>()
    }
}

/// The answer to a device that asks for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is queued.
    Idle,
    /// Nothing may be sent before this time, ns.
    Wait(u64),
    /// Send the packet of this slot; the slot is free again.
    Send {
        /// The packet's slot.
        slot: u32,
        /// The packet's class.
        class: u32,
        /// The packet's length.
        len_bytes: u32,
        /// The packet is to carry the mark of congestion.
        mark: bool,
    },
}

impl From<RawVerdict> for Verdict {
    fn from(raw: RawVerdict) -> Verdict {
        match raw.action {
            SEND => Verdict::Send { slot: raw.slot, class: raw.class, len_bytes: raw.len_bytes, mark: raw.mark != 0 },
            WAIT => Verdict::Wait(raw.wake_ns),
            _ => Verdict::Idle,
        }
    }
}

/// The packets of a class that a hook has let through, and that the queue has not had yet; of one processor.
#[derive(Debug, Clone, Copy)]
pub struct Underway(abi::sl_underway);

impl Default for Underway {
    fn default() -> Underway {
        Underway(abi::sl_underway { had_pkts: 0, since_ns: 0, pkts: 0, bytes: 0 })
    }
}

/// The state of a scheduler, and where it is.
pub(crate) enum State<T> {
    Own(Box<T>),
    Elsewhere(NonNull<T>),
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            State::Own(own) => own,
            // SAFETY: as whoever made the scheduler has promised.
            State::Elsewhere(state) => unsafe { state.as_ref() },
        }
    }
}

impl<T> DerefMut for State<T> {
    fn deref_mut(&mut self) -> &mut T {
        match self {
            State::Own(own) => own,
            // SAFETY: as above.
            State::Elsewhere(state) => unsafe { state.as_mut() },
        }
    }
}

/// One scheduler.
pub struct Scheduler {
    core: &'static Core,
    state: State<abi::sl_sched>,
}

// SAFETY: a state that is elsewhere is this scheduler's alone, as whoever made it has promised.
unsafe impl Send for Scheduler {}

impl Scheduler {
    /// An empty scheduler with this configuration, at this time.
    pub fn new(conf: &abi::sl_sched_conf, now_ns: u64) -> Scheduler {
        Scheduler::of(Core::built_in(), conf, now_ns)
    }

    /// An empty scheduler that this build of the core runs.
    pub fn of(core: &'static Core, conf: &abi::sl_sched_conf, now_ns: u64) -> Scheduler {
        assert!(core.fits(), "the core was compiled with other structs");
        let mut scheduler = Scheduler { core, state: State::Own(abi::boxed_zeroed()) };
        scheduler.configure(conf, now_ns);
        scheduler
    }

    /// The scheduler whose state is in memory that others read, such as a map. It is as it was left.
    ///
    /// # Safety
    ///
    /// The state is whole and aligned, stays where it is as long as the scheduler, and nothing else writes it. Others may read whole words.
    pub unsafe fn at(state: NonNull<abi::sl_sched>) -> Scheduler {
        assert!(Core::built_in().fits(), "the core was compiled with other structs");
        Scheduler { core: Core::built_in(), state: State::Elsewhere(state) }
    }

    /// The state, as the kernel's maps show it.
    pub fn state(&self) -> &abi::sl_sched {
        &self.state
    }

    /// A new configuration takes force; packets and counters stay.
    pub fn configure(&mut self, conf: &abi::sl_sched_conf, now_ns: u64) {
        // SAFETY: both point at whole values; the core keeps neither.
        unsafe { (self.core.configure)(&mut *self.state, conf, now_ns) }
    }

    /// The slot that a packet without a flow has now, or the reason (`enum sl_drop`) for which it is refused.
    pub fn enqueue(&mut self, class: u32, len_bytes: u32, segments: u32, now_ns: u64) -> Result<u32, u32> {
        self.enqueue_packet(&Packet { class, len_bytes, segments, ..Packet::default() }, now_ns)
    }

    /// The slot that the packet has now, or the reason (`enum sl_drop`) for which it is refused.
    pub fn enqueue_packet(&mut self, packet: &Packet, now_ns: u64) -> Result<u32, u32> {
        // SAFETY: state and packet are whole; the core masks the class.
        let answer = unsafe { (self.core.enqueue)(&mut *self.state, packet, now_ns) };
        u32::try_from(answer).map_err(|_| (-1 - answer) as u32)
    }

    /// Whether a hook before the queue drops the packet. If it does not, the packet counts as under way until the queue has it.
    pub fn drops_early(&self, underway: &mut Underway, packet: &Packet, now_ns: u64) -> bool {
        // SAFETY: all three are whole; the core masks the class, and changes the second alone.
        unsafe { (self.core.drops_early)(&*self.state, &mut underway.0, packet, now_ns) != 0 }
    }

    /// The slot of a packet that was dropped after it had been queued; the slot is free again.
    pub fn reap(&mut self) -> Option<u32> {
        // SAFETY: the state is whole.
        let slot = unsafe { (self.core.reap)(&mut *self.state) };
        (slot != NO_SLOT).then_some(slot)
    }

    /// The next packet to send, or the time to wait.
    pub fn dequeue(&mut self, now_ns: u64) -> Verdict {
        let mut raw = RawVerdict::default();
        // SAFETY: the state is whole, and the verdict has the layout of struct sl_verdict.
        unsafe { (self.core.dequeue)(&mut *self.state, now_ns, &mut raw) };
        raw.into()
    }

    /// Every packet is gone; counters and configuration stay.
    pub fn clear(&mut self) {
        // SAFETY: the state is whole.
        unsafe { (self.core.clear)(&mut *self.state) }
    }

    /// As good as new: empty, unconfigured, all counters zero.
    pub fn wipe(&mut self) {
        // SAFETY: the state is whole.
        unsafe { (self.core.wipe)(&mut *self.state) }
    }

    /// The bytes of a packet on the link below.
    pub fn wire_bytes(&self, len_bytes: u32, segments: u32) -> u32 {
        // SAFETY: the state is whole and only read.
        unsafe { (self.core.wire_bytes)(&*self.state, len_bytes, segments) }
    }
}

/// The bucket of the sojourn histogram that counts this time.
pub fn sojourn_bucket(ns: u64) -> usize {
    // SAFETY: takes and gives numbers.
    unsafe { (Core::built_in().sojourn_bucket)(ns) as usize }
}
