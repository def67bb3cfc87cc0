//! The scheduler of pipes (`sched/pipes.h`): a port, subports, pipes, and 13 classes in 16 queues of each pipe.
//!
//! Times are ns, and must not decrease from call to call. Rates go from 31 kbit/s to 100 Gbit/s.

use sluice_abi as abi;
use std::ffi::{CStr, c_char};

pub use abi::{sl_pipe_allowance as RawAllowance, sl_pipe_packet as Packet};

/// All classes, as bits.
pub const ALL_CLASSES: u32 = (1 << abi::SL_PIPE_CLASSES) - 1;

/// The ways of comparing 64 pipes at once (`sched/pipe_vectors.h`).
pub const WAYS: [&CStr; 4] = [c"AVX-512", c"AVX2", c"SSE2", c"NEON"];

const CLASSES: usize = abi::SL_PIPE_CLASSES as usize;
const QUEUES: usize = abi::SL_PIPE_QUEUES as usize;
const NO_SLOT: u32 = abi::SL_PIPE_NO_SLOT;
/// `SL_PIPE_NEVER`.
const NEVER: u64 = u64::MAX;

/// One build of the scheduler: its functions, as `sl_pipes_core` of `pipes.c` lists them.
#[repr(C)]
#[derive(Debug)]
pub struct PipesCore {
    state_bytes: u32,
    profile_bytes: u32,
    set_up: unsafe extern "C" fn(*mut abi::sl_pipes, *const abi::sl_pipes_conf, u64),
    set_subport: unsafe extern "C" fn(*mut abi::sl_pipes, u32, *const abi::sl_subport_conf, u64) -> u32,
    set_profile: unsafe extern "C" fn(*mut abi::sl_pipes, u32, *const abi::sl_pipe_profile) -> u32,
    configure: unsafe extern "C" fn(*mut abi::sl_pipes, u32, *const abi::sl_pipe_conf, u64) -> u32,
    remove: unsafe extern "C" fn(*mut abi::sl_pipes, u32) -> u32,
    enqueue: unsafe extern "C" fn(*mut abi::sl_pipes, *mut Packet, u32, u64) -> u64,
    dequeue: unsafe extern "C" fn(*mut abi::sl_pipes, *mut Packet, u32, u32, *mut RawAllowance, u64) -> u32,
    drop: unsafe extern "C" fn(*mut abi::sl_pipes, u32) -> u32,
    reap: unsafe extern "C" fn(*mut abi::sl_pipes) -> u32,
    wake_ns: unsafe extern "C" fn(*mut abi::sl_pipes, u32, u64) -> u64,
    in_common: unsafe extern "C" fn(*const u16, u32) -> u64,
    in_common_plainly: unsafe extern "C" fn(*const u16, u32) -> u64,
    in_common_by: unsafe extern "C" fn(*const c_char, *const u16, u32, *mut u64) -> u32,
    steps: unsafe extern "C" fn() -> u64,
}

unsafe extern "C" {
    safe static sl_pipes_core: PipesCore;
}

impl PipesCore {
    /// The name of the table in a build of `pipes.c`.
    pub const SYMBOL: &'static str = "sl_pipes_core";

    /// The build that is linked into this program.
    pub fn built_in() -> &'static PipesCore {
        &sl_pipes_core
    }

    /// Whether it was compiled with the structs of this program.
    pub fn fits(&self) -> bool {
        self.state_bytes as usize == size_of::<abi::sl_pipes>()
            && self.profile_bytes as usize == size_of::<abi::sl_pipe_profile>()
    }

    /// The steps that calls from this thread have taken, in a build that counts them (`SL_PIPE_COUNTS`); else 0.
    pub fn steps(&self) -> u64 {
        // SAFETY: reads a counter of this thread.
        unsafe { (self.steps)() }
    }

    /// Those of 64 elements that have a bit in common with `queues`: by the way that is compiled in, and by the plain one.
    pub fn in_common(&self, elements: &[u16; 64], queues: u32) -> (u64, u64) {
        // SAFETY: both read 64 elements.
        unsafe { ((self.in_common)(elements.as_ptr(), queues), (self.in_common_plainly)(elements.as_ptr(), queues)) }
    }

    /// The same by one of [`WAYS`]; none if this build does not have it, or this processor cannot run it.
    pub fn in_common_by(&self, way: &CStr, elements: &[u16; 64], queues: u32) -> Option<u64> {
        let mut found = 0;
        // SAFETY: reads a string and 64 elements, and writes one number.
        let has = unsafe { (self.in_common_by)(way.as_ptr(), elements.as_ptr(), queues, &mut found) };
        (has != 0).then_some(found)
    }
}

/// The cost of a byte at this rate, ns with so many fraction bits.
fn cost(bits_per_second: u64, fraction_bits: u32) -> u64 {
    let unit = 8_000_000_000_u64 << fraction_bits;
    ((unit + bits_per_second / 2) / bits_per_second.max(1)).max(1)
}

/// A rate and a burst of the port or of a subport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Bits per second.
    pub bits_per_second: u64,
    /// The time for which the bucket saves credit, ns.
    pub burst_ns: u64,
}

impl Bucket {
    /// The cost of a byte, as `struct sl_bucket` has it.
    pub fn cost(&self) -> u64 {
        cost(self.bits_per_second, 20)
    }
}

/// The port.
#[derive(Debug, Clone, Copy)]
pub struct Port {
    /// Packets that it may hold, up to `SL_PIPE_SLOTS`.
    pub slots: u32,
    /// Bytes that the link below adds to each frame.
    pub overhead_bytes: i32,
    /// The least bytes of a frame there.
    pub mpu_bytes: u32,
    /// Its rate; none: no limit.
    pub rate: Option<Bucket>,
}

/// A subport.
#[derive(Debug, Clone, Copy)]
pub struct Subport {
    /// Its pipes: the first, and how many, both multiples of 64.
    pub pipes: (u32, u32),
    /// Its rate; none: no limit.
    pub rate: Option<Bucket>,
    /// The rate of each class, bits per second; none: no limit.
    pub classes: [Option<u64>; CLASSES],
    /// The time for which a class's bucket saves credit, ns.
    pub class_burst_ns: u64,
}

impl Subport {
    /// A subport of these pipes, without limits.
    pub fn of(first: u32, count: u32) -> Subport {
        Subport { pipes: (first, count), rate: None, classes: [None; CLASSES], class_burst_ns: 0 }
    }
}

/// CoDel of some queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codel {
    /// The classes that have it, as bits.
    pub classes: u32,
    /// The wait that is no cause for action, ns; in units of 65 us.
    pub target_ns: u64,
    /// The time for which the wait must be longer, ns; in units of 65 us.
    pub interval_ns: u64,
}

/// Limits, weights and CoDel that pipes have in common.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// The packets that each queue holds.
    pub limit_pkts: [u32; QUEUES],
    /// A queue takes packets while it has fewer bytes.
    pub limit_bytes: [u32; QUEUES],
    /// The rate of each class in a pipe, bits per second; none: no limit. It is exact to 0.1 % if it is no less than a millionth of the fastest
    /// one's and 8 kbit/s.
    pub classes: [Option<u64>; CLASSES],
    /// The weights of the four queues of best effort, 1 to 255.
    pub weights: [u32; 4],
    /// CoDel, if some queues have it.
    pub codel: Option<Codel>,
}

impl Profile {
    /// Queues of so many packets, equal weights, and no other limit.
    pub fn of(limit_pkts: u32) -> Profile {
        Profile {
            limit_pkts: [limit_pkts; QUEUES],
            limit_bytes: [u32::MAX; QUEUES],
            classes: [None; CLASSES],
            weights: [1; 4],
            codel: None,
        }
    }

    /// The length of a period of class limits, as a power of two of ns: so short that the fastest class fits.
    pub fn period_bits(&self) -> u32 {
        let fastest = self.classes.iter().flatten().copied().max().unwrap_or(0);
        let fits = |bits: &u32| u128::from(fastest) << bits <= u128::from(abi::SL_PIPE_CREDIT_MAX) * 8_000_000_000;
        (abi::SL_PIPE_PERIOD_LEAST..=abi::SL_PIPE_PERIOD_MOST).rev().find(fits).unwrap_or(abi::SL_PIPE_PERIOD_LEAST)
    }

    /// As the core takes it. A class that could send more than `SL_PIPE_CREDIT_MAX` in the shortest period (15.6 Gbit/s) is limited to that.
    pub fn conf(&self) -> abi::sl_pipe_profile {
        let period_bits = self.period_bits();
        let mut credit = [0; abi::SL_PIPE_PLACES as usize];
        for (credit, bits_per_second) in credit.iter_mut().zip(self.classes) {
            let unit = 8_000_000_000;
            let bytes = |rate: u64| ((u128::from(rate) << (period_bits + abi::SL_PIPE_CREDIT_BITS)) + unit / 2) / unit;
            let most = u128::from(abi::SL_PIPE_CREDIT_MAX) << abi::SL_PIPE_CREDIT_BITS;
            *credit = bits_per_second.map_or(0, |rate| bytes(rate).clamp(1, most) as u32);
        }
        let ticks = |ns: u64| (ns >> abi::SL_PIPE_STAMP_SHIFT).clamp(1, 1 << 16) as u32;
        let (mut codel, mut codel_target, mut codel_interval) = (0, 0, 0);
        if let Some(of) = self.codel {
            codel = (0..QUEUES as u32)
                .filter(|queue| of.classes >> (*queue).min(abi::SL_PIPE_BEST_EFFORT) & 1 == 1)
                .fold(0, |queues, queue| queues | 1 << queue);
            (codel_target, codel_interval) = (ticks(of.target_ns), ticks(of.interval_ns));
        }
        abi::sl_pipe_profile {
            limit_pkts: self.limit_pkts,
            limit_bytes: self.limit_bytes,
            credit,
            period_bits,
            share_cost: self.weights.map(|weight| (abi::SL_PIPE_SHARE_COST / weight.clamp(1, 255)) as u16),
            codel_target,
            codel_interval,
            codel,
            limited: 0,
            pad: 0,
        }
    }
}

/// A pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pipe {
    /// The number of its profile.
    pub profile: u32,
    /// Its rate in bits per second, from 31,000 to 100 Gbit/s; none: no limit.
    pub bits_per_second: Option<u64>,
    /// The time for which its bucket saves credit, ns; two buckets of a timing wheel (33 us) at least, at most 1 s.
    pub burst_ns: u64,
}

impl Pipe {
    /// As the core takes it.
    pub fn conf(&self) -> abi::sl_pipe_conf {
        let cost = |rate| cost(rate, abi::SL_PIPE_COST_BITS).min(u64::from(u32::MAX)) as u32;
        abi::sl_pipe_conf {
            profile: self.profile,
            cost: self.bits_per_second.map_or(0, cost),
            burst_ticks: (self.burst_ns >> abi::SL_WHEEL_TICK_BITS).clamp(2, 0xffff) as u32,
        }
    }
}

/// Why a change was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such pipe, or it is not configured.
    NoPipe,
    /// There is no such subport, the pipe is in none, or another one has the pipes.
    NoSubport,
    /// There is no such profile.
    NoProfile,
    /// The pipe has packets, or the subport has pipes.
    Busy,
}

fn refusal(error: u32) -> Result<(), Refusal> {
    match error {
        0 => Ok(()),
        1 => Err(Refusal::NoPipe),
        2 => Err(Refusal::NoSubport),
        3 => Err(Refusal::NoProfile),
        _ => Err(Refusal::Busy),
    }
}

/// The number of a queue of a pipe, as packets carry it.
pub fn queue_number(pipe: u32, queue: u32) -> u32 {
    pipe * abi::SL_PIPE_QUEUES + queue
}

/// One scheduler, of 23 MiB, of which it touches what it uses.
pub struct Pipes {
    core: &'static PipesCore,
    state: Box<abi::sl_pipes>,
}

impl Default for Pipes {
    fn default() -> Pipes {
        Pipes::of(PipesCore::built_in())
    }
}

impl Pipes {
    /// An empty scheduler without slots, subports and pipes, that this build of the core runs.
    pub fn of(core: &'static PipesCore) -> Pipes {
        assert!(core.fits(), "the core was compiled with other structs");
        Pipes { core, state: abi::boxed_zeroed() }
    }

    /// Its state.
    pub fn state(&self) -> &abi::sl_pipes {
        &self.state
    }

    /// Its state, for other parts of the core that change it.
    pub(crate) fn raw(&mut self) -> &mut abi::sl_pipes {
        &mut self.state
    }

    /// Whether this build of the core runs it.
    pub(crate) fn is_run_by(&self, core: &PipesCore) -> bool {
        std::ptr::eq(self.core, core)
    }

    /// The port is so from now on.
    pub fn set_up(&mut self, port: &Port, now_ns: u64) {
        let conf = abi::sl_pipes_conf {
            slots: port.slots,
            overhead_bytes: port.overhead_bytes,
            mpu_bytes: port.mpu_bytes,
            pad: 0,
            cost: port.rate.map_or(0, |rate| rate.cost()),
            burst_ns: port.rate.map_or(0, |rate| rate.burst_ns),
        };
        // SAFETY: both point at whole values; the core keeps neither.
        unsafe { (self.core.set_up)(&mut *self.state, &conf, now_ns) }
    }

    /// A subport is so from now on. Its pipes are others only while none of them is configured.
    pub fn set_subport(&mut self, number: u32, subport: &Subport, now_ns: u64) -> Result<(), Refusal> {
        let conf = abi::sl_subport_conf {
            first_pipe: subport.pipes.0,
            pipes: subport.pipes.1,
            cost: subport.rate.map_or(0, |rate| rate.cost()),
            burst_ns: subport.rate.map_or(0, |rate| rate.burst_ns),
            class_cost: subport.classes.map(|rate| rate.map_or(0, |rate| cost(rate, 20))),
            class_burst_ns: subport.class_burst_ns,
        };
        // SAFETY: both point at whole values; the core checks the numbers.
        refusal(unsafe { (self.core.set_subport)(&mut *self.state, number, &conf, now_ns) })
    }

    /// Pipes with this profile are so from now on.
    pub fn set_profile(&mut self, number: u32, profile: &Profile) -> Result<(), Refusal> {
        // SAFETY: both point at whole values; the core checks the number.
        refusal(unsafe { (self.core.set_profile)(&mut *self.state, number, &profile.conf()) })
    }

    /// A pipe is so from now on, with the packets that it has.
    pub fn configure(&mut self, number: u32, pipe: &Pipe, now_ns: u64) -> Result<(), Refusal> {
        // SAFETY: both point at whole values; the core checks the numbers.
        refusal(unsafe { (self.core.configure)(&mut *self.state, number, &pipe.conf(), now_ns) })
    }

    /// A pipe without packets is there no longer.
    pub fn remove(&mut self, number: u32) -> Result<(), Refusal> {
        // SAFETY: the state is whole; the core checks the number.
        refusal(unsafe { (self.core.remove)(&mut *self.state, number) })
    }

    /// Packets come, up to `SL_PIPE_BATCH`: each gets its slot. Those whose bits are set in the answer are refused, and have none.
    pub fn enqueue(&mut self, packets: &mut [Packet], now_ns: u64) -> u64 {
        let count = packets.len().min(abi::SL_PIPE_BATCH as usize) as u32;
        // SAFETY: there are as many packets; the core masks their queues and lengths.
        unsafe { (self.core.enqueue)(&mut *self.state, packets.as_mut_ptr(), count, now_ns) }
    }

    /// Packets of these classes leave, as many as `out` has places, but at most `SL_PIPE_BATCH`; of each class no more than its allowance,
    /// which is counted down. How many left; their slots are free again.
    pub fn dequeue(
        &mut self,
        out: &mut [Packet],
        classes: u32,
        allowance: Option<&mut RawAllowance>,
        now_ns: u64,
    ) -> usize {
        let count = out.len().min(abi::SL_PIPE_BATCH as usize) as u32;
        let allowance = allowance.map_or(std::ptr::null_mut(), std::ptr::from_mut);
        // SAFETY: there are as many places, and the allowance is whole or null; the core keeps neither.
        unsafe { (self.core.dequeue)(&mut *self.state, out.as_mut_ptr(), count, classes, allowance, now_ns) as usize }
    }

    /// Drops a packet of a pipe: the slot, which is free again.
    pub fn drop_next(&mut self, pipe: u32) -> Option<u32> {
        // SAFETY: the state is whole; the core checks the number.
        let slot = unsafe { (self.core.drop)(&mut *self.state, pipe) };
        (slot != NO_SLOT).then_some(slot)
    }

    /// The slot of a packet that CoDel has dropped; it is free again.
    pub fn reap(&mut self) -> Option<u32> {
        // SAFETY: the state is whole.
        let slot = unsafe { (self.core.reap)(&mut *self.state) };
        (slot != NO_SLOT).then_some(slot)
    }

    /// When a dequeue of these classes that gave too little is to be repeated, if no packet comes before: now if it had not finished, none if no
    /// packet waits for a time.
    pub fn wake_ns(&mut self, classes: u32, now_ns: u64) -> Option<u64> {
        // SAFETY: the state is whole.
        let wake_ns = unsafe { (self.core.wake_ns)(&mut *self.state, classes, now_ns) };
        (wake_ns != NEVER).then_some(wake_ns)
    }
}
