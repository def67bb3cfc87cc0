//! Schedulers of several queues that share one link: its rate, and the ceilings, guarantees and weights of classes hold for all of them together
//! (`sched/shared_credit.h`, `sched/shared_shares.h`, `sched/shared_dequeue.h`).

use crate::{RawVerdict, Scheduler, Verdict};
use sluice_abi as abi;
use std::cell::UnsafeCell;
use std::ptr::NonNull;

/// One build of the functions that instances share a link by, as `sl_shared_core` of `shared_credit.c` lists them.
#[repr(C)]
#[derive(Debug)]
pub struct SharedCore {
    sched_bytes: u32,
    link_bytes: u32,
    instance_bytes: u32,
    conf_bytes: u32,
    rate: unsafe extern "C" fn(*mut abi::sl_shared_rate, u64, u64, u32),
    fill: unsafe extern "C" fn(*mut u64, *const abi::sl_shared_rate, *mut i32, u64, u64) -> u64,
    give_back: unsafe extern "C" fn(*mut u64, *const abi::sl_shared_rate, u32),
    join: unsafe extern "C" fn(
        *mut abi::sl_shared_siblings,
        *const abi::sl_shared_conf,
        *mut abi::sl_shared_instance,
        u32,
        u64,
    ),
    leave: unsafe extern "C" fn(*mut abi::sl_shared_siblings, *mut abi::sl_shared_instance, u32),
    dequeue: unsafe extern "C" fn(
        *mut abi::sl_sched,
        *mut abi::sl_shared_instance,
        *mut abi::sl_shared_link,
        *const abi::sl_shared_conf,
        u64,
        *mut RawVerdict,
    ),
    stop: unsafe extern "C" fn(*mut abi::sl_shared_instance, *mut abi::sl_shared_link, *const abi::sl_shared_conf, u64),
    renew: unsafe extern "C" fn(*mut abi::sl_shared_instance, *mut abi::sl_shared_link),
}

unsafe extern "C" {
    safe static sl_shared_core: SharedCore;
}

impl SharedCore {
    /// The build that is linked into this program.
    pub fn built_in() -> &'static SharedCore {
        &sl_shared_core
    }

    /// Whether it was compiled with the structs of this program.
    pub fn fits(&self) -> bool {
        self.sched_bytes as usize == size_of::<abi::sl_sched>()
            && self.link_bytes as usize == size_of::<abi::sl_shared_link>()
            && self.instance_bytes as usize == size_of::<abi::sl_shared_instance>()
            && self.conf_bytes as usize == size_of::<abi::sl_shared_conf>()
    }
}

/// A rate that instances draw from: its batch and its burst are at least as long as `sched/shared_credit.h` says.
pub fn rate(bits_per_second: u64, burst_ns: u64, frame_bytes: u32) -> abi::sl_shared_rate {
    // SAFETY: integers are valid when they are 0.
    let mut rate: abi::sl_shared_rate = unsafe { std::mem::zeroed() };
    // Rounded up, so that no rate is exceeded.
    let cost = ((8_000_000_000u128 << 20).div_ceil(u128::from(bits_per_second))) as u64;
    // SAFETY: the rate is whole.
    unsafe { (SharedCore::built_in().rate)(&mut rate, cost, burst_ns, frame_bytes) };
    rate
}

/// A bucket of a shared rate; any thread may draw from it.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Bucket(std::sync::atomic::AtomicU64);

impl Bucket {
    /// Raises credit that is used up to a batch, if it can be spent within a time ahead. Returns from when it can; times are in 1/64 ns.
    pub fn fill(&self, rate: &abi::sl_shared_rate, credit_bytes: &mut i32, now: u64, ahead: u64) -> Result<u64, u64> {
        // SAFETY: only atomic operations change the word; the rate is only read, and the credit is the caller's.
        let from = unsafe { (SharedCore::built_in().fill)(self.0.as_ptr(), rate, credit_bytes, now, ahead) };
        if from <= now + ahead { Ok(from) } else { Err(from) }
    }

    /// Puts back bytes that were drawn and not spent.
    pub fn give_back(&self, rate: &abi::sl_shared_rate, bytes: u32) {
        // SAFETY: only atomic operations change the word; the rate is only read.
        unsafe { (SharedCore::built_in().give_back)(self.0.as_ptr(), rate, bytes) }
    }

    /// The time at which the bucket is full again, in 1/64 ns.
    pub fn full(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// The weight and rates of a class over all instances.
#[derive(Debug, Clone, Copy)]
pub struct Class {
    /// Its share of what guarantees leave; 1 to 65535.
    pub weight: u32,
    /// Classes of a lower level go first.
    pub level: u32,
    /// The most that it sends, bit/s.
    pub ceiling: Option<u64>,
    /// Burst of its ceiling, if that is longer than the link's, ns at the ceiling.
    pub ceiling_burst_ns: u64,
    /// The least that it can send, bit/s.
    pub guarantee: Option<u64>,
    /// Burst of its guarantee, if that is longer than what the core needs, ns at the guarantee.
    pub guarantee_burst_ns: u64,
}

impl Default for Class {
    fn default() -> Class {
        Class { weight: 1, level: 0, ceiling: None, ceiling_burst_ns: 0, guarantee: None, guarantee_burst_ns: 0 }
    }
}

/// The configuration of instances that share a link.
pub struct Conf(Box<abi::sl_shared_conf>);

impl Conf {
    /// So many instances of a link with this rate and burst, and classes 0 and on; `frame_bytes` is the longest frame on the wire.
    pub fn new(instances: u32, bits_per_second: u64, burst_ns: u64, frame_bytes: u32, classes: &[Class]) -> Conf {
        assert!((1..=abi::SL_SHARED_INSTANCES).contains(&instances), "1 to 64 instances share a link");
        let mut conf: Box<abi::sl_shared_conf> = abi::boxed_zeroed();
        conf.link = rate(bits_per_second, burst_ns, frame_bytes);
        conf.instances = instances;
        let batch_ns = conf.link.batch >> 6;
        conf.horizon_ns = (8 * batch_ns).max(1_000_000);
        for (c, into) in conf.classes.iter_mut().enumerate() {
            let class = classes.get(c).copied().unwrap_or_default();
            into.weight = class.weight.max(1);
            into.level = class.level;
            if let Some(bits_per_second) = class.ceiling {
                into.ceiling = rate(bits_per_second, burst_ns.max(class.ceiling_burst_ns), frame_bytes);
                conf.ceilings |= 1 << c;
            }
            if let Some(bits_per_second) = class.guarantee {
                // The burst makes up for the time in which others spend what they have drawn before.
                let late_ns = u64::from(2 * abi::SL_SHARED_AHEAD_NS) + u64::from(instances) * batch_ns;
                let burst_ns = burst_ns.max(late_ns).max(class.guarantee_burst_ns);
                into.guarantee = rate(bits_per_second, burst_ns, frame_bytes);
                conf.guarantees |= 1 << c;
            }
        }
        Conf(conf)
    }

    /// The configuration, as the kernel's maps would show it.
    pub fn raw(&self) -> &abi::sl_shared_conf {
        &self.0
    }

    /// The configuration, to be written into the kernel's maps.
    pub fn into_raw(self) -> Box<abi::sl_shared_conf> {
        self.0
    }
}

/// The shared words of a link.
pub struct Link(Box<UnsafeCell<abi::sl_shared_link>>);

// SAFETY: the words are changed by the atomic operations of the core alone.
unsafe impl Sync for Link {}
// SAFETY: plain words.
unsafe impl Send for Link {}

impl Default for Link {
    fn default() -> Link {
        // SAFETY: an UnsafeCell has the layout of what it holds, and the words are valid when they are 0.
        Link(unsafe { Box::from_raw(Box::into_raw(abi::boxed_zeroed::<abi::sl_shared_link>()).cast()) })
    }
}

impl Link {
    /// Where the words are. They are changed by atomic operations alone.
    pub fn as_ptr(&self) -> *mut abi::sl_shared_link {
        self.0.get()
    }

    /// A copy of the words.
    pub fn words(&self) -> abi::sl_shared_link {
        // SAFETY: the words are whole. Each is of some moment, while others change them.
        unsafe { std::ptr::read_volatile(self.0.get()) }
    }
}

/// The next packet that a scheduler is to send as an instance, or the time to wait.
///
/// # Safety
///
/// Instance and link are whole; nothing else uses the instance, and the words of the link are changed by atomic operations alone.
unsafe fn dequeue(
    scheduler: &mut Scheduler,
    own: *mut abi::sl_shared_instance,
    link: *mut abi::sl_shared_link,
    conf: &abi::sl_shared_conf,
    now_ns: u64,
) -> Verdict {
    let mut raw = RawVerdict::default();
    // SAFETY: the caller says so of instance and link; the scheduler is whole, and the configuration is only read.
    unsafe { (SharedCore::built_in().dequeue)(&mut *scheduler.state, own, link, conf, now_ns, &mut raw) };
    raw.into()
}

/// The scheduler of one tx queue.
pub struct Instance {
    scheduler: Scheduler,
    own: Box<abi::sl_shared_instance>,
}

impl Instance {
    /// An instance with this number. The configuration of the scheduler has no rates: the link's holds for all.
    pub fn new(number: u32, conf: &abi::sl_sched_conf, now_ns: u64) -> Instance {
        assert!(SharedCore::built_in().fits(), "the core was compiled with other structs");
        assert!(number < abi::SL_SHARED_INSTANCES, "instances have numbers below 64");
        let mut own: Box<abi::sl_shared_instance> = abi::boxed_zeroed();
        own.number = number;
        Instance { scheduler: Scheduler::new(conf, now_ns), own }
    }

    /// Its queues; packets come by them.
    pub fn scheduler(&mut self) -> &mut Scheduler {
        &mut self.scheduler
    }

    /// Its own state, beside the scheduler: credit, classes, times to wait for.
    pub fn own(&self) -> &abi::sl_shared_instance {
        &self.own
    }

    /// Where its state is.
    pub fn as_ptrs(&mut self) -> (*mut abi::sl_sched, *mut abi::sl_shared_instance) {
        (&mut *self.scheduler.state, &mut *self.own)
    }

    /// The next packet to send, or the time to wait.
    pub fn dequeue(&mut self, link: &Link, conf: &Conf, now_ns: u64) -> Verdict {
        // SAFETY: all are whole; the words of the link are changed by atomic operations.
        unsafe { dequeue(&mut self.scheduler, &mut *self.own, link.as_ptr(), &conf.0, now_ns) }
    }

    /// The link has another configuration from now on: the instance leaves its classes, and keeps its debts alone.
    pub fn renew(&mut self, link: &Link) {
        // SAFETY: own is this instance's, and the words of the link are changed by atomic operations.
        unsafe { (SharedCore::built_in().renew)(&mut *self.own, link.as_ptr()) }
    }

    /// Leaves the link, and gives back what it has drawn.
    pub fn stop(&mut self, link: &Link, conf: &Conf, now_ns: u64) {
        // SAFETY: as in dequeue.
        unsafe { (SharedCore::built_in().stop)(&mut *self.own, link.as_ptr(), &*conf.0, now_ns) }
    }
}

/// The part in a link of a scheduler whose state is in memory that others read, such as the maps of a wire.
pub struct Share {
    own: NonNull<abi::sl_shared_instance>,
    link: NonNull<abi::sl_shared_link>,
    conf: Box<abi::sl_shared_conf>,
}

// SAFETY: the instance is this value's alone, and the words of the link are changed by the atomic operations of the core alone.
unsafe impl Send for Share {}

impl Share {
    /// The instance whose state is here, of the link whose words are there. It has no configuration yet.
    ///
    /// # Safety
    ///
    /// Both are whole and aligned, and stay where they are as long as the value. Nothing else writes the instance, and the words of the link are changed
    /// by atomic operations alone. The number of the instance is that of no other of this link.
    pub unsafe fn at(own: NonNull<abi::sl_shared_instance>, link: NonNull<abi::sl_shared_link>) -> Share {
        assert!(SharedCore::built_in().fits(), "the core was compiled with other structs");
        Share { own, link, conf: abi::boxed_zeroed() }
    }

    /// Whether there is a rate to share.
    pub fn is_shared(&self) -> bool {
        self.conf.link.cost > 0
    }

    /// The link has this configuration from now on: the instance leaves its classes, and keeps its debts alone.
    pub fn configure(&mut self, conf: Box<abi::sl_shared_conf>) {
        // SAFETY: own is this instance's, and the words of the link are changed by atomic operations.
        unsafe { (SharedCore::built_in().renew)(self.own.as_ptr(), self.link.as_ptr()) }
        self.conf = conf;
    }

    /// The next packet that a scheduler is to send as this instance, or the time to wait.
    pub fn dequeue(&mut self, scheduler: &mut Scheduler, now_ns: u64) -> Verdict {
        // SAFETY: all are whole; the words of the link are changed by atomic operations.
        unsafe { dequeue(scheduler, self.own.as_ptr(), self.link.as_ptr(), &self.conf, now_ns) }
    }

    /// Whether a scheduler without packets is to be asked once more, so that the instance leaves classes, or gives back credit that others lack.
    pub fn has_to_rest(&self) -> bool {
        // SAFETY: own is whole, and this instance's alone.
        let own = unsafe { self.own.as_ref() };
        own.joined != 0 || (own.credit.scarce != 0 && own.credit.bytes > 0)
    }

    /// Leaves the link, and gives back what it has drawn: the packets are gone.
    pub fn stop(&mut self, now_ns: u64) {
        // SAFETY: as in dequeue.
        unsafe { (SharedCore::built_in().stop)(self.own.as_ptr(), self.link.as_ptr(), &*self.conf, now_ns) }
    }
}
