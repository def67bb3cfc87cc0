//! Backpressure by level (`sched/level_backpressure.h`): between the flat scheduler and a port that refuses packets.
//!
//! A round is: offer the port what the lists hold, dequeue, offer again. A list knows places, and the engine keeps the packets there.

use crate::{Core, RawVerdict, Scheduler, Verdict};
use sluice_abi as abi;

/// Lists, at most.
pub const LISTS: u32 = abi::SL_BACKPRESSURE_LISTS;
/// Places of a list.
pub const PLACES: u32 = abi::SL_BACKPRESSURE_PLACES;

#[repr(C)]
#[derive(Default)]
struct RawLevelVerdict {
    verdict: RawVerdict,
    list: u32,
    place: u32,
}

/// One build of it: its functions, as `sl_level_core` of `level_backpressure.c` lists them.
#[repr(C)]
#[derive(Debug)]
pub struct LevelCore {
    state_bytes: u32,
    conf_bytes: u32,
    core: &'static Core,
    configure: unsafe extern "C" fn(*mut abi::sl_level_backpressure, *const abi::sl_level_backpressure_conf),
    follow: unsafe extern "C" fn(*mut abi::sl_level_backpressure, *const abi::sl_sched),
    begin: unsafe extern "C" fn(*mut abi::sl_level_backpressure),
    dequeue: unsafe extern "C" fn(*mut abi::sl_level_backpressure, *mut abi::sl_sched, u64, *mut RawLevelVerdict),
    run: unsafe extern "C" fn(*const abi::sl_level_backpressure, u32, u32, *mut u32) -> u32,
    taken: unsafe extern "C" fn(*mut abi::sl_level_backpressure, u32, u32) -> u32,
}

unsafe extern "C" {
    safe static sl_level_core: LevelCore;
}

impl LevelCore {
    /// The name of the table in a build of `level_backpressure.c`.
    pub const SYMBOL: &'static str = "sl_level_core";

    /// The build that is linked into this program.
    pub fn built_in() -> &'static LevelCore {
        &sl_level_core
    }

    /// The flat scheduler of the same build.
    pub fn core(&self) -> &'static Core {
        self.core
    }

    /// Whether it was compiled with the structs of this program.
    pub fn fits(&self) -> bool {
        self.state_bytes as usize == size_of::<abi::sl_level_backpressure>()
            && self.conf_bytes as usize == size_of::<abi::sl_level_backpressure_conf>()
            && self.core.fits()
    }
}

/// The lists of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lists {
    /// How many there are, up to [`LISTS`]. The last one is of all levels that have none of their own.
    pub lists: u32,
    /// The packets that each holds, up to [`PLACES`].
    pub room_pkts: u32,
    /// The packets that come to a list in one dequeue.
    pub burst_pkts: u32,
}

/// The answer of a dequeue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing is queued.
    Idle,
    /// Nothing leaves before this time, ns; none: until a packet comes, or the port takes some.
    Wait(Option<u64>),
    /// The packet of this slot comes to this place of this list. The slot is free again.
    Listed {
        /// The packet's slot.
        slot: u32,
        /// The packet's class.
        class: u32,
        /// The packet's length.
        len_bytes: u32,
        /// The packet is to carry the mark of congestion.
        mark: bool,
        /// The list that has it now.
        list: u32,
        /// Its place in the list.
        place: u32,
    },
}

/// The lists of one port, beside its scheduler.
pub struct LevelBackpressure {
    core: &'static LevelCore,
    state: Box<abi::sl_level_backpressure>,
}

impl LevelBackpressure {
    /// Empty lists for a scheduler as it is configured.
    pub fn new(lists: &Lists, scheduler: &Scheduler) -> LevelBackpressure {
        LevelBackpressure::of(LevelCore::built_in(), lists, scheduler)
    }

    /// Empty lists that this build of the core runs, as it runs the scheduler.
    pub fn of(core: &'static LevelCore, lists: &Lists, scheduler: &Scheduler) -> LevelBackpressure {
        assert!(core.fits(), "the core was compiled with other structs");
        let mut backpressure = LevelBackpressure { core, state: abi::boxed_zeroed() };
        let Lists { lists, room_pkts, burst_pkts } = *lists;
        let conf = abi::sl_level_backpressure_conf { lists, room_pkts, burst_pkts };
        // SAFETY: both point at whole values; the core keeps neither.
        unsafe { (core.configure)(&mut *backpressure.state, &conf) };
        backpressure.follow(scheduler);
        backpressure
    }

    /// The scheduler was configured, or cleared. Packets in lists stay.
    pub fn follow(&mut self, scheduler: &Scheduler) {
        assert!(std::ptr::eq(scheduler.core, self.core.core), "another build of the core runs the scheduler");
        // SAFETY: both states are whole, and of one build.
        unsafe { (self.core.follow)(&mut *self.state, &*scheduler.state) }
    }

    /// Its state.
    pub fn state(&self) -> &abi::sl_level_backpressure {
        &self.state
    }

    /// A dequeue begins: each list may get as many packets as it has room for, but a burst at most.
    pub fn begin(&mut self) {
        // SAFETY: the state is whole.
        unsafe { (self.core.begin)(&mut *self.state) }
    }

    /// The next packet of a dequeue. Anything but a packet ends it.
    pub fn dequeue(&mut self, scheduler: &mut Scheduler, now_ns: u64) -> Next {
        assert!(std::ptr::eq(scheduler.core, self.core.core), "another build of the core runs the scheduler");
        let mut raw = RawLevelVerdict::default();
        // SAFETY: both states are whole, and of one build; the verdict has the layout of struct sl_level_verdict.
        unsafe { (self.core.dequeue)(&mut *self.state, &mut *scheduler.state, now_ns, &mut raw) };
        let RawLevelVerdict { verdict, list, place } = raw;
        match verdict.into() {
            Verdict::Idle => Next::Idle,
            Verdict::Wait(at_ns) => Next::Wait((at_ns < abi::SL_HOLD_NEVER_NS).then_some(at_ns)),
            Verdict::Send { slot, class, len_bytes, mark } => {
                Next::Listed { slot, class, len_bytes, mark, list, place }
            }
        }
    }

    /// The places of the packets of a list that the port is to have, in their order, in two parts, of which the second may be empty.
    pub fn offered(&self, list: u32) -> [std::ops::Range<u32>; 2] {
        let mut from = 0;
        [(); 2].map(|()| {
            let mut count = 0;
            // SAFETY: the state is whole; the core masks the list.
            let place = unsafe { (self.core.run)(&*self.state, list, from, &mut count) };
            from += count;
            place..place + count
        })
    }

    /// The port was offered the packets of a list, and has taken so many of them, the first ones.
    pub fn taken(&mut self, list: u32, count: u32) {
        // SAFETY: the state is whole; the core bounds the count and masks the list.
        unsafe { (self.core.taken)(&mut *self.state, list, count) };
    }
}
