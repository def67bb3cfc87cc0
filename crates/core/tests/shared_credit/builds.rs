//! Builds of `stepped.c` from changed headers: instances whose calls stop before each access to a shared word.

use crate::stepping::Stepping;
use sluice_abi as abi;
use std::ptr;

crate::suite::builds_of!(Stepped, "crates/core/tests/shared_credit/stepped.c");

pub const FILL: u32 = 0;
pub const GIVE_BACK: u32 = 1;
pub const JOIN: u32 = 2;
pub const LEAVE: u32 = 3;
pub const DEQUEUE: u32 = 4;
pub const STOP: u32 = 5;
pub const RENEW: u32 = 6;

/// `struct sl_verdict`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct RawVerdict {
    pub action: u32,
    pub slot: u32,
    pub class: u32,
    pub len_bytes: u32,
    pub mark: u32,
    pub wake_ns: u64,
}

/// A call: `struct stepped_call`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub kind: u32,
    pub class: u32,
    pub now: u64,
    pub ahead: u64,
    pub answer: u64,
    pub bytes: u32,
    pub pad: u32,
    pub bucket: *mut u64,
    pub rate: *const abi::sl_shared_rate,
    pub credit: *mut i32,
    pub sched: *mut abi::sl_sched,
    pub own: *mut abi::sl_shared_instance,
    pub link: *mut abi::sl_shared_link,
    pub conf: *const abi::sl_shared_conf,
    pub verdict: RawVerdict,
}

impl Default for Call {
    fn default() -> Call {
        Call {
            kind: FILL,
            class: 0,
            now: 0,
            ahead: 0,
            answer: 0,
            bytes: 0,
            pad: 0,
            bucket: ptr::null_mut(),
            rate: ptr::null(),
            credit: ptr::null_mut(),
            sched: ptr::null_mut(),
            own: ptr::null_mut(),
            link: ptr::null_mut(),
            conf: ptr::null(),
            verdict: RawVerdict::default(),
        }
    }
}

/// One build.
#[repr(C)]
#[derive(Debug)]
pub struct Stepped {
    call_bytes: u32,
    sched_bytes: u32,
    link_bytes: u32,
    instance_bytes: u32,
    conf_bytes: u32,
    pub calls: Stepping,
}

impl Stepped {
    const SYMBOL: &'static str = "sl_stepped";

    /// Whether it was compiled with the structs of this program.
    fn fits(&self) -> bool {
        self.call_bytes as usize == size_of::<Call>()
            && self.sched_bytes as usize == size_of::<abi::sl_sched>()
            && self.link_bytes as usize == size_of::<abi::sl_shared_link>()
            && self.instance_bytes as usize == size_of::<abi::sl_shared_instance>()
            && self.conf_bytes as usize == size_of::<abi::sl_shared_conf>()
    }
}
