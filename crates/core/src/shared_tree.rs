//! The part of a tree of classes in a link that several trees share (`sched/shared_tree.h`).

use sluice_abi as abi;

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
