//! Priority-aware backpressure (`sched/backpressure.h`): between the scheduler of pipes and a port with a finite queue for each class.
//!
//! A round is: offer the port what the lists hold, dequeue, offer again. Times are ns, as those of the scheduler.

use crate::pipes::{Packet, Pipes, PipesCore};
use sluice_abi as abi;

const CLASSES: usize = abi::SL_PIPE_CLASSES as usize;
/// `SL_PIPE_NEVER`.
const NEVER: u64 = u64::MAX;

/// One build of it: its functions, as `sl_backpressure_core` of `backpressure.c` lists them.
#[repr(C)]
#[derive(Debug)]
pub struct BackpressureCore {
    state_bytes: u32,
    conf_bytes: u32,
    pipes: &'static PipesCore,
    configure: unsafe extern "C" fn(*mut abi::sl_backpressure, *const abi::sl_backpressure_conf),
    held: unsafe extern "C" fn(*const abi::sl_backpressure) -> u32,
    run: unsafe extern "C" fn(*const abi::sl_backpressure, u32, u32, *mut u32) -> *const Packet,
    taken: unsafe extern "C" fn(*mut abi::sl_backpressure, *mut abi::sl_pipes, u32, u32),
    dequeue: unsafe extern "C" fn(*mut abi::sl_backpressure, *mut abi::sl_pipes, u32, u32, u64) -> u32,
    wake_ns: unsafe extern "C" fn(*const abi::sl_backpressure, *mut abi::sl_pipes, u32, u64) -> u64,
}

unsafe extern "C" {
    safe static sl_backpressure_core: BackpressureCore;
}

impl BackpressureCore {
    /// The name of the table in a build of `backpressure.c`.
    pub const SYMBOL: &'static str = "sl_backpressure_core";

    /// The build that is linked into this program.
    pub fn built_in() -> &'static BackpressureCore {
        &sl_backpressure_core
    }

    /// The scheduler of pipes of the same build.
    pub fn pipes(&self) -> &'static PipesCore {
        self.pipes
    }

    /// Whether it was compiled with the structs of this program.
    pub fn fits(&self) -> bool {
        self.state_bytes as usize == size_of::<abi::sl_backpressure>()
            && self.conf_bytes as usize == size_of::<abi::sl_backpressure_conf>()
            && self.pipes.fits()
    }
}

/// The sizes of the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lists {
    /// The packets that the list of each class holds, up to `SL_BACKPRESSURE_PLACES`; 0: the class does not leave.
    pub room_pkts: [u32; CLASSES],
    /// The packets of a class that come to its list in one dequeue.
    pub burst_pkts: u32,
}

/// The lists of one port, beside its scheduler of pipes.
pub struct Backpressure {
    core: &'static BackpressureCore,
    state: Box<abi::sl_backpressure>,
}

impl Backpressure {
    /// Empty lists of these sizes.
    pub fn new(lists: &Lists) -> Backpressure {
        Backpressure::of(BackpressureCore::built_in(), lists)
    }

    /// Empty lists of these sizes, that this build of the core runs.
    pub fn of(core: &'static BackpressureCore, lists: &Lists) -> Backpressure {
        assert!(core.fits(), "the core was compiled with other structs");
        let mut backpressure = Backpressure { core, state: abi::boxed_zeroed() };
        backpressure.configure(lists);
        backpressure
    }

    /// Its state.
    pub fn state(&self) -> &abi::sl_backpressure {
        &self.state
    }

    /// Lists have these sizes from now on. One that has more packets keeps them.
    pub fn configure(&mut self, lists: &Lists) {
        let conf = abi::sl_backpressure_conf { room_pkts: lists.room_pkts, burst_pkts: lists.burst_pkts };
        // SAFETY: both point at whole values; the core keeps neither.
        unsafe { (self.core.configure)(&mut *self.state, &conf) }
    }

    /// The classes that have packets for the port, as bits.
    pub fn held(&self) -> u32 {
        // SAFETY: the state is whole.
        unsafe { (self.core.held)(&*self.state) }
    }

    /// The packets of a class that the port is to have, in their order, in two parts, of which the second may be empty.
    pub fn offered(&self, class: u32) -> [&[Packet]; 2] {
        let mut from = 0;
        [(); 2].map(|()| {
            let mut count = 0;
            // SAFETY: the core gives so many packets of its state, which is borrowed as long as they are.
            let run = unsafe {
                let first = (self.core.run)(&*self.state, class, from, &mut count);
                std::slice::from_raw_parts(first, count as usize)
            };
            from += count;
            run
        })
    }

    /// The port was offered the packets of a class, and has taken so many of them, the first ones. Their slots are free again.
    pub fn taken(&mut self, pipes: &mut Pipes, class: u32, count: u32) {
        let state = self.of_same_build(pipes);
        // SAFETY: both states are whole, and of one build; the core bounds the count and masks the class.
        unsafe { (self.core.taken)(&mut *self.state, state, class, count) }
    }

    /// Up to so many packets of these classes leave the scheduler for the lists, `SL_PIPE_BATCH` at most, of each class no more than its allowance.
    /// How many.
    pub fn dequeue(&mut self, pipes: &mut Pipes, count: u32, classes: u32, now_ns: u64) -> u32 {
        let state = self.of_same_build(pipes);
        // SAFETY: both states are whole, and of one build.
        unsafe { (self.core.dequeue)(&mut *self.state, state, count, classes, now_ns) }
    }

    /// When a dequeue of these classes that gave nothing is to be repeated, if no packet comes and the port takes none before: now if it had
    /// not finished, none if no packet waits for a time. One that gave packets is repeated at once, since a burst may have ended it.
    pub fn wake_ns(&self, pipes: &mut Pipes, classes: u32, now_ns: u64) -> Option<u64> {
        let state = self.of_same_build(pipes);
        // SAFETY: both states are whole, and of one build.
        let wake_ns = unsafe { (self.core.wake_ns)(&*self.state, state, classes, now_ns) };
        (wake_ns != NEVER).then_some(wake_ns)
    }

    /// The state of a scheduler, which the same build of the core must run.
    fn of_same_build(&self, pipes: &mut Pipes) -> *mut abi::sl_pipes {
        assert!(pipes.is_run_by(self.core.pipes), "another build of the core runs the scheduler");
        pipes.raw()
    }
}
