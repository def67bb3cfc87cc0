//! Trees of classes that share one link: its rate, and the weights and guarantees of its children, hold for all of them together
//! (`sched/shared_tree.h`).

use crate::hierarchy::{RawVerdict, Tree, Verdict};
use sluice_abi as abi;
use std::cell::UnsafeCell;
use std::ptr::NonNull;

/// The functions of a build, as `sl_shared_tree_core` of `shared_tree.c` lists them.
#[repr(C)]
#[derive(Debug)]
struct SharedTreeCore {
    tree_bytes: u32,
    part_bytes: u32,
    link_bytes: u32,
    dequeue: unsafe extern "C" fn(
        *mut abi::sl_tree,
        *mut abi::sl_tree_part,
        *mut abi::sl_shared_trees,
        u64,
        *mut RawVerdict,
    ),
    stop: unsafe extern "C" fn(*mut abi::sl_tree_part, *mut abi::sl_shared_trees, u64),
}

unsafe extern "C" {
    safe static sl_shared_tree_core: SharedTreeCore;
}

fn core() -> &'static SharedTreeCore {
    let core = &sl_shared_tree_core;
    let fits = core.tree_bytes as usize == size_of::<abi::sl_tree>()
        && core.part_bytes as usize == size_of::<abi::sl_tree_part>()
        && core.link_bytes as usize == size_of::<abi::sl_shared_trees>();
    assert!(fits, "the core was compiled with other structs");
    core
}

/// The part of a tree that has nothing yet.
///
/// `number`: below `instances`, and no other tree's of the link. `instances`: trees of the link, up to `SL_SHARED_TREES`. `frame_bytes`: of a frame on
/// the wire; longer packets put a tree further into debt.
pub fn part(number: u32, instances: u32, frame_bytes: u32) -> abi::sl_tree_part {
    assert!(number < instances && instances <= abi::SL_SHARED_TREES, "1 to 16 trees share a link");
    // SAFETY: integers are valid when they are 0.
    let mut part: abi::sl_tree_part = unsafe { std::mem::zeroed() };
    (part.number, part.instances, part.frame_bytes) = (number, instances, frame_bytes);
    part
}

/// The words of a link that trees share.
pub struct Link(Box<UnsafeCell<abi::sl_shared_trees>>);

// SAFETY: the core changes the bucket by atomic operations, and each line has one tree that writes it.
unsafe impl Sync for Link {}
// SAFETY: plain words.
unsafe impl Send for Link {}

impl Default for Link {
    fn default() -> Link {
        // SAFETY: an UnsafeCell has the layout of what it holds, and the words are valid when they are 0.
        Link(unsafe { Box::from_raw(Box::into_raw(abi::boxed_zeroed::<abi::sl_shared_trees>()).cast()) })
    }
}

impl Link {
    /// Where the words are. Trees change them by the core alone.
    pub fn as_ptr(&self) -> *mut abi::sl_shared_trees {
        self.0.get()
    }

    /// A copy of the words.
    pub fn words(&self) -> abi::sl_shared_trees {
        // SAFETY: the words are whole. Each is of some moment, while others change them.
        unsafe { std::ptr::read_volatile(self.0.get()) }
    }
}

/// The part of a tree in a link, in memory that others read.
pub struct Share {
    own: NonNull<abi::sl_tree_part>,
    link: NonNull<abi::sl_shared_trees>,
}

// SAFETY: the part is this value's alone, and the core changes the words of the link for one thread beside others.
unsafe impl Send for Share {}

impl Share {
    /// The part whose state is here, of the link whose words are there.
    ///
    /// # Safety
    ///
    /// Both are whole and aligned, and stay where they are as long as the value. Nothing else writes the part, and the core alone the words of the link.
    /// The number of the part is that of no other of this link.
    pub unsafe fn at(own: NonNull<abi::sl_tree_part>, link: NonNull<abi::sl_shared_trees>) -> Share {
        core();
        Share { own, link }
    }

    /// The next packet that a tree is to send as this part, or the time to wait.
    pub fn dequeue(&mut self, tree: &mut Tree, now_ns: u64) -> Verdict {
        let mut raw = RawVerdict::default();
        // SAFETY: all are whole, and the verdict has the layout of struct sl_tree_verdict.
        unsafe { (core().dequeue)(tree.as_ptr(), self.own.as_ptr(), self.link.as_ptr(), now_ns, &mut raw) };
        raw.into()
    }

    /// Whether a tree without packets is to be asked once more, so that it gives back credit that others lack, or wants none any more.
    pub fn has_to_rest(&self) -> bool {
        // SAFETY: own is whole, and this part's alone.
        let own = unsafe { self.own.as_ref() };
        own.joined != 0 || (own.credit.scarce != 0 && own.credit.bytes > 0)
    }

    /// Leaves the link, and gives back what it has drawn: the packets are gone.
    pub fn stop(&mut self, now_ns: u64) {
        // SAFETY: as in dequeue.
        unsafe { (core().stop)(self.own.as_ptr(), self.link.as_ptr(), now_ns) }
    }
}
