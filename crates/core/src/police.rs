//! The token bucket in one word that any number of CPUs take from.

use sluice_abi as abi;
use std::sync::atomic::{AtomicU64, Ordering};

unsafe extern "C" {
    fn sl_police_take(tat: *mut u64, now: u64, cost: u64, burst: u64) -> u64;
    safe fn sl_police_cost(per_byte: u64, bytes: u32) -> u64;
    safe fn sl_police_time(ns: u64) -> u64;
    fn sl_police_give_back(tat: *mut u64, now: u64, cost: u64, full: u64);
    fn sl_police_adopt(bucket: *mut abi::sl_police_bucket, now: u64, cost: u64);
}

/// The cost of a packet, from the cost of a byte in `struct sl_police_conf`.
pub fn cost(per_byte: u64, bytes: u32) -> u64 {
    sl_police_cost(per_byte, bytes)
}

/// Time in the unit of a bucket.
pub fn time(ns: u64) -> u64 {
    sl_police_time(ns)
}

/// A bucket; all times are in its unit.
#[derive(Debug, Default)]
pub struct Bucket(AtomicU64);

impl Bucket {
    /// Takes the cost of a packet. Returns when the bucket is full again; none if it is not open.
    pub fn take(&self, now: u64, cost: u64, burst: u64) -> Option<u64> {
        // SAFETY: the word is only changed by atomic operations, there and here.
        let full = unsafe { sl_police_take(self.0.as_ptr(), now, cost, burst) };
        (full > 0).then_some(full)
    }

    /// Gives back a cost; `full` is the answer of `take`.
    pub fn give_back(&self, now: u64, cost: u64, full: u64) {
        // SAFETY: only atomic operations change the word.
        unsafe { sl_police_give_back(self.0.as_ptr(), now, cost, full) }
    }

    /// The time at which the bucket is full again.
    pub fn full(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A bucket before the queues, as maps hold it: `struct sl_police_bucket`. It knows the rate of its debt.
pub struct RatedBucket(abi::sl_police_bucket);

impl Default for RatedBucket {
    fn default() -> RatedBucket {
        RatedBucket(abi::sl_police_bucket { tat: 0, cost: 0 })
    }
}

impl RatedBucket {
    /// Takes what a packet of so many bytes costs at this cost of a byte (as in `struct sl_police_conf`), which may be another than
    /// before. Whether the bucket was open.
    pub fn take(&mut self, now: u64, per_byte: u64, bytes: u32, burst: u64) -> bool {
        // SAFETY: the bucket is whole, and ours alone.
        unsafe {
            sl_police_adopt(&mut self.0, now, per_byte);
            sl_police_take(&mut self.0.tat, now, cost(per_byte, bytes), burst) > 0
        }
    }
}
