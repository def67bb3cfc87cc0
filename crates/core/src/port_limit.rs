//! How much a port may have under way (`sched/port_limit.h`): as little as keeps it busy.

use sluice_abi as abi;

/// One build of it: its functions, as `sl_limit_core` of `port_limit.c` lists them.
#[repr(C)]
#[derive(Debug)]
pub struct LimitCore {
    state_bytes: u32,
    conf_bytes: u32,
    configure: unsafe extern "C" fn(*mut abi::sl_port_limit, *const abi::sl_port_limit_conf, u64),
    has_room: unsafe extern "C" fn(*const abi::sl_port_limit) -> u32,
    give: unsafe extern "C" fn(*mut abi::sl_port_limit, u32),
    come_back: unsafe extern "C" fn(*mut abi::sl_port_limit, u64, u64),
}

unsafe extern "C" {
    safe static sl_limit_core: LimitCore;
}

impl LimitCore {
    /// The name of the table in a build of `port_limit.c`.
    pub const SYMBOL: &'static str = "sl_limit_core";

    /// The build that is linked into this program.
    pub fn built_in() -> &'static LimitCore {
        &sl_limit_core
    }

    /// Whether it was compiled with the structs of this program.
    pub fn fits(&self) -> bool {
        self.state_bytes as usize == size_of::<abi::sl_port_limit>()
            && self.conf_bytes as usize == size_of::<abi::sl_port_limit_conf>()
    }
}

/// The bounds of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The limit is not below this.
    pub least_bytes: u64,
    /// The limit is not above this.
    pub most_bytes: u64,
    /// The time for which bytes must be too many before the limit falls by them, ns.
    pub hold_ns: u64,
}

/// The limit of one port, and what it has under way.
pub struct PortLimit {
    core: &'static LimitCore,
    state: Box<abi::sl_port_limit>,
}

impl PortLimit {
    /// The least limit, of a port that has nothing under way.
    pub fn new(bounds: &Bounds, now_ns: u64) -> PortLimit {
        PortLimit::of(LimitCore::built_in(), bounds, now_ns)
    }

    /// A limit that this build of the core runs.
    pub fn of(core: &'static LimitCore, bounds: &Bounds, now_ns: u64) -> PortLimit {
        assert!(core.fits(), "the core was compiled with other structs");
        let mut limit = PortLimit { core, state: abi::boxed_zeroed() };
        let Bounds { least_bytes, most_bytes, hold_ns } = *bounds;
        let conf = abi::sl_port_limit_conf { least_bytes, most_bytes, hold_ns };
        // SAFETY: both point at whole values; the core keeps neither.
        unsafe { (core.configure)(&mut *limit.state, &conf, now_ns) };
        limit
    }

    /// The limit now.
    pub fn bytes(&self) -> u64 {
        self.state.limit_bytes
    }

    /// Bytes that the port has.
    pub fn under_way_bytes(&self) -> u64 {
        self.state.given_bytes - self.state.returned_bytes
    }

    /// Whether the port may be given a packet.
    pub fn has_room(&self) -> bool {
        // SAFETY: the state is whole.
        unsafe { (self.core.has_room)(&*self.state) != 0 }
    }

    /// The port was given a packet of so many bytes.
    pub fn give(&mut self, bytes: u32) {
        // SAFETY: the state is whole.
        unsafe { (self.core.give)(&mut *self.state, bytes) }
    }

    /// The port has sent packets of so many bytes, as the engine has seen now. Nothing has come back: no look.
    pub fn come_back(&mut self, bytes: u64, now_ns: u64) {
        if bytes > 0 {
            // SAFETY: the state is whole.
            unsafe { (self.core.come_back)(&mut *self.state, bytes, now_ns) }
        }
    }
}
