//! The leaves of hosts that no list names (`sched/each_host.h`).

use sluice_abi as abi;
use std::net::IpAddr;

/// One build of the table of hosts: its functions, as `sl_each_host_core` of `each_host.c` lists them.
#[repr(C)]
#[derive(Debug)]
pub struct HostsCore {
    hosts_bytes: u32,
    tree_bytes: u32,
    leaf:
        unsafe extern "C" fn(*mut abi::sl_each_host, *const abi::sl_tree, u32, *const abi::sl_address_key, u64) -> u32,
    leaf_if_known: unsafe extern "C" fn(*const abi::sl_each_host, u32, *const abi::sl_address_key) -> u32,
}

unsafe extern "C" {
    safe static sl_each_host_core: HostsCore;
}

impl HostsCore {
    /// The name of the table of functions in a build of `each_host.c`.
    pub const SYMBOL: &'static str = "sl_each_host_core";

    /// The build that is linked into this program.
    pub fn built_in() -> &'static HostsCore {
        &sl_each_host_core
    }

    /// Whether it was compiled with the structs of this program.
    pub fn fits(&self) -> bool {
        self.hosts_bytes as usize == size_of::<abi::sl_each_host>()
            && self.tree_bytes as usize == size_of::<abi::sl_tree>()
    }

    /// The leaf of a packet whose address leads to `leaf`, at a time that is not 0.
    pub fn leaf(
        &self,
        hosts: &mut abi::sl_each_host,
        tree: &abi::sl_tree,
        leaf: u32,
        address: IpAddr,
        now_ns: u64,
    ) -> u32 {
        // SAFETY: all structs are whole, and C stays within them.
        unsafe { (self.leaf)(hosts, tree, leaf, &key(address), now_ns) }
    }

    /// The same leaf, if the host has a place already, or `leaf` is no group's.
    pub fn leaf_if_known(&self, hosts: &abi::sl_each_host, leaf: u32, address: IpAddr) -> Option<u32> {
        // SAFETY: both structs are whole, and C stays within them.
        let found = unsafe { (self.leaf_if_known)(hosts, leaf, &key(address)) };
        (found != abi::SL_ADDRESS_NO_LEAF).then_some(found)
    }
}

/// The halves of an address as numbers.
fn key(address: IpAddr) -> abi::sl_address_key {
    let words = abi::address_words(address).map(u32::from_be);
    let half = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    abi::sl_address_key { upper: half(words[0], words[1]), lower: half(words[2], words[3]) }
}
