//! The parser and the rules of the BPF classifier (`bpf/lib/parse.h`, `bpf/lib/choose.h`), compiled natively, for engines that take packets without the
//! kernel: the class of a frame by the tables of a policy. The programs' memory of flows and of first fragments is not here, nor are buckets.

use sluice_abi as abi;
use sluice_tables::Compiled;
use std::hash::{BuildHasher, RandomState};
use std::sync::Once;

/// `struct sl_values`.
#[repr(C)]
struct Values {
    first: *const u8,
    bytes: u32,
    count: u32,
}

impl Values {
    fn of<T>(values: &[T]) -> Values {
        let bytes = u32::try_from(size_of::<T>()).expect("values of maps are small");
        let count = u32::try_from(values.len()).expect("maps are small");
        Values { first: values.as_ptr().cast(), bytes, count }
    }
}

/// `struct sl_policy`.
#[repr(C)]
struct Maps {
    tables: *const abi::sl_tables,
    rows: Values,
    ranges: Values,
}

/// The result for a packet: `struct sl_found`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Found {
    /// Its class.
    pub class: u32,
    /// The rule that has chosen the class, or `enum sl_no_rule`.
    pub rule: u32,
    /// `enum sl_parse`.
    pub kind: u32,
    drops: u32,
    /// Hash of its flow, that no sender can predict.
    pub flow_hash: u32,
    /// Hash of its source.
    pub src_host: u16,
    /// Hash of its destination.
    pub dst_host: u16,
    ecn: u32,
    control: u32,
    never_queued: u32,
}

impl Found {
    /// The packet is malformed, and the policy drops such packets.
    pub fn is_to_be_dropped(&self) -> bool {
        self.drops != 0
    }

    /// The packet may be marked instead of dropped (ECN).
    pub fn can_be_marked(&self) -> bool {
        self.ecn != 0
    }

    /// A built-in rule has chosen its class: without such packets there is no network.
    pub fn is_control(&self) -> bool {
        self.control != 0
    }

    /// A wire does not queue it, but sends it ahead of others: without such packets there is no network.
    pub fn is_never_queued(&self) -> bool {
        self.never_queued != 0
    }
}

unsafe extern "C" {
    fn sl_native_keys(key: *const u64);
    safe fn sl_native_key_count() -> u32;
    fn sl_native_classify(policy: *const Maps, bytes: *const u8, length: u32, interface: u32, found: *mut Found);
}

/// Draws the keys of hashes, once in a process. A hasher of the standard library has random keys.
fn draw_keys() {
    static DRAWN: Once = Once::new();
    DRAWN.call_once(|| {
        let keys: Vec<u64> = (0..sl_native_key_count()).map(|n| RandomState::new().hash_one(n)).collect();
        // SAFETY: there are as many as are read, and no packet is classified before.
        unsafe { sl_native_keys(keys.as_ptr()) }
    });
}

/// The rules of one policy.
pub struct Classifier {
    compiled: Compiled,
}

impl Classifier {
    /// The rules of these tables, which were compiled for buffer 0.
    pub fn new(compiled: Compiled) -> Classifier {
        assert_eq!(compiled.tables.buffer, 0, "there is one buffer");
        draw_keys();
        Classifier { compiled }
    }

    /// The tables.
    pub fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// Looks at an Ethernet frame without firewall mark, which has come by this interface: its number among those that the tables were compiled with, or 0.
    pub fn classify(&self, frame: &[u8], interface: u32) -> Found {
        let ranges = self.compiled.ranges.each_ref().map(|ranges| match ranges {
            Some(ranges) => Values::of(std::slice::from_ref(&**ranges)),
            None => Values { first: std::ptr::null(), bytes: 0, count: 0 },
        });
        let maps =
            Maps { tables: &*self.compiled.tables, rows: Values::of(&self.compiled.rows), ranges: Values::of(&ranges) };
        let mut found = Found::default();
        // A packet is never longer; if one were, its rest would not be looked at.
        let length = frame.len().min(0xffff) as u32;
        // SAFETY: the maps are borrowed until the call ends, which reads so many bytes of the frame at most and writes what is found.
        unsafe { sl_native_classify(&maps, frame.as_ptr(), length, interface, &mut found) };
        found
    }
}
