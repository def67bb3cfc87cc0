//! Counting and sampling: `telemetry/`, the very source that runs in the kernel, over memory of this process.

use sluice_abi as abi;

/// One build of `telemetry/`: its functions, as `sl_telemetry_functions` of `native.c` lists them.
#[repr(C)]
#[derive(Debug)]
pub struct Functions {
    count: unsafe extern "C" fn(*mut abi::sl_heavy_set, *const abi::sl_count_key, u32, u32) -> u64,
    step: unsafe extern "C" fn(u64, u32) -> u32,
    draw: unsafe extern "C" fn(*mut u64) -> u32,
    is_chosen: unsafe extern "C" fn(u32, u32) -> u32,
    is_one_in: unsafe extern "C" fn(u32, u32) -> u32,
    bin: unsafe extern "C" fn(u64) -> u32,
    first: unsafe extern "C" fn(u32) -> u64,
}

unsafe extern "C" {
    #[link_name = "sl_telemetry_functions"]
    static FUNCTIONS: Functions;
}

impl Functions {
    /// The build that belongs to this crate.
    pub fn own() -> &'static Functions {
        // SAFETY: a constant of native.c, of this layout.
        unsafe { &FUNCTIONS }
    }

    /// Counts packets of a key in a set. Returns the bytes of the key that gave way, or 0.
    pub fn count(&self, set: &mut abi::sl_heavy_set, key: &abi::sl_count_key, pkts: u32, bytes: u32) -> u64 {
        // SAFETY: both are whole values, and the function reads and writes only them.
        unsafe { (self.count)(set, key, pkts, bytes) }
    }

    /// The binary logarithm of one over the odds at which packets become records.
    pub fn step(&self, filled_bytes: u64, ring_bytes: u32) -> u32 {
        // SAFETY: a function of its arguments alone, as are the next ones.
        unsafe { (self.step)(filled_bytes, ring_bytes) }
    }

    /// The next 32 random bits.
    pub fn draw(&self, state: &mut u64) -> u32 {
        // SAFETY: the function reads and writes the state alone.
        unsafe { (self.draw)(state) }
    }

    /// Whether a packet is chosen with odds of one in 2^step.
    pub fn is_chosen(&self, random: u32, step: u32) -> bool {
        // SAFETY: as above.
        unsafe { (self.is_chosen)(random, step) != 0 }
    }

    /// Whether a packet is chosen with odds of one in n.
    pub fn is_one_in(&self, random: u32, n: u32) -> bool {
        // SAFETY: as above.
        unsafe { (self.is_one_in)(random, n) != 0 }
    }

    /// The bin of a size.
    pub fn bin(&self, size: u64) -> u32 {
        // SAFETY: as above.
        unsafe { (self.bin)(size) }
    }

    /// The least size of a bin.
    pub fn first(&self, bin: u32) -> u64 {
        // SAFETY: as above.
        unsafe { (self.first)(bin) }
    }
}
