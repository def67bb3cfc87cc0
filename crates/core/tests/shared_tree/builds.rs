//! Builds of `stepped.c` from changed headers: trees whose calls stop before each access to a shared word.

use crate::stepping::Stepping;
use sluice_abi as abi;
use std::ptr;

crate::suite::builds_of!(Stepped, "crates/core/tests/shared_tree/stepped.c");

pub const DEQUEUE: u32 = 0;
pub const STOP: u32 = 1;

/// `struct sl_tree_verdict`.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct RawVerdict {
    pub action: u32,
    pub slot: u32,
    pub leaf: u32,
    pub len_bytes: u32,
    pub mark: u32,
    pub assured: u32,
    pub wake_ns: u64,
}

/// A call: `struct stepped_call`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub kind: u32,
    pub pad: u32,
    pub now_ns: u64,
    pub tree: *mut abi::sl_tree,
    pub part: *mut abi::sl_tree_part,
    pub link: *mut abi::sl_shared_trees,
    pub verdict: RawVerdict,
}

impl Default for Call {
    fn default() -> Call {
        Call {
            kind: DEQUEUE,
            pad: 0,
            now_ns: 0,
            tree: ptr::null_mut(),
            part: ptr::null_mut(),
            link: ptr::null_mut(),
            verdict: RawVerdict::default(),
        }
    }
}

/// One build.
#[repr(C)]
#[derive(Debug)]
pub struct Stepped {
    call_bytes: u32,
    tree_bytes: u32,
    part_bytes: u32,
    link_bytes: u32,
    pub calls: Stepping,
}

impl Stepped {
    const SYMBOL: &'static str = "sl_stepped";

    /// Whether it was compiled with the structs of this program.
    fn fits(&self) -> bool {
        self.call_bytes as usize == size_of::<Call>()
            && self.tree_bytes as usize == size_of::<abi::sl_tree>()
            && self.part_bytes as usize == size_of::<abi::sl_tree_part>()
            && self.link_bytes as usize == size_of::<abi::sl_shared_trees>()
    }
}
