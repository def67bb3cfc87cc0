//! Shared structs as bytes and back: they are what maps hold.

use crate::generated as abi;

/// Plain old data of the ABI: integers and arrays of them, valid for any bit pattern.
///
/// # Safety
/// Only for types without pointers, padding that matters, or invalid values.
pub unsafe trait Pod: Sized + 'static {}

macro_rules! pod {
    ($($name:ident),* $(,)?) => {
        // SAFETY: generated from C structs of integers and arrays of integers.
        $(unsafe impl Pod for abi::$name {})*
    };
}

// SAFETY: integers.
unsafe impl Pod for u16 {}
// SAFETY: as above.
unsafe impl Pod for u32 {}
// SAFETY: as above.
unsafe impl Pod for u64 {}

pod!(
    sl_sched,
    sl_instance,
    sl_addresses,
    sl_each_host,
    sl_leaf,
    sl_host_group,
    sl_host_place,
    sl_address_op,
    sl_address_trace,
    sl_tree,
    sl_node_conf,
    sl_leaf_queue,
    sl_parts_conf,
    sl_class_leaf_conf,
    sl_tree_change,
    sl_tree_changes,
    sl_tree_conf,
    sl_tree_op,
    sl_tree_trace,
    sl_backpressure,
    sl_level_backpressure,
    sl_port_limit,
    sl_pipes,
    sl_shared_link,
    sl_shared_trees,
    sl_tree_part,
    sl_tree_homes,
    sl_shared_instance,
    sl_shared_conf,
    sl_event,
    sl_packet_event,
    sl_watch,
    sl_wire_meta,
    sl_wire_worker,
    sl_sched_conf,
    sl_tables,
    sl_flow_key,
    sl_flow_set,
    sl_count,
    sl_class_count,
    sl_row,
    sl_xdp_meta,
    sl_headers,
    sl_explanation,
    sl_ranges,
    sl_fragment,
    sl_fragment_key,
    sl_live,
    sl_arrival,
    sl_belonging,
    sl_police_state,
    sl_shared_state,
    sl_op,
    sl_connection,
    sl_places,
    sl_listen,
    sl_own_listen,
    sl_forward,
    sl_target,
    sl_forward_count,
    sl_forwarding,
    sl_trace,
    sl_cell,
    sl_heavy_set,
    sl_telemetry_cpu,
    sl_telemetry_conf,
    sl_packet_record,
    sl_captured,
    sl_stamp,
    sl_observing,
);

// bindgen derives neither for a struct with a signed number.
impl Copy for abi::sl_tree_conf {}
impl Clone for abi::sl_tree_conf {
    fn clone(&self) -> abi::sl_tree_conf {
        *self
    }
}

/// A zeroed value on the heap; some of these structs are too large for a stack.
pub fn boxed_zeroed<T: Pod>() -> Box<T> {
    let layout = std::alloc::Layout::new::<T>();
    assert_ne!(layout.size(), 0, "a Pod holds something");
    // SAFETY: the layout is T's and not empty, a Box frees with the same one, and all zeroes is valid for a Pod.
    unsafe {
        let raw = std::alloc::alloc_zeroed(layout);
        if raw.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Box::from_raw(raw.cast())
    }
}

/// The bytes of a value, as a map stores them.
pub fn bytes_of<T: Pod>(value: &T) -> &[u8] {
    // SAFETY: a Pod is readable as bytes; the slice borrows the value.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// As [`read_pod`], of a small value that need not be on the heap.
pub fn read_small<T: Pod + Copy>(bytes: &[u8]) -> Option<T> {
    // SAFETY: the comparison says that there are enough bytes, any alignment is allowed, and any bytes are a valid T.
    (bytes.len() >= size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// A copy of the value that starts at `bytes`, at whatever alignment; `None` if there are too few.
pub fn read_pod<T: Pod>(bytes: &[u8]) -> Option<Box<T>> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    let mut value = boxed_zeroed::<T>();
    // SAFETY: both sides hold size_of::<T>() bytes and do not overlap, and any bytes are a valid T.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), std::ptr::from_mut(&mut *value).cast(), size_of::<T>());
    }
    Some(value)
}
