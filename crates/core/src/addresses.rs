//! The look-up in the address table (`sched/addresses.h`).

use sluice_abi as abi;
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;

/// One build of the look-up: its functions, as `sl_addresses_core` of `addresses.c` lists them.
#[repr(C)]
#[derive(Debug)]
pub struct LookUp {
    table_bytes: u32,
    leaf: unsafe extern "C" fn(*const abi::sl_addresses, *const u32) -> u32,
    leaf_marked: unsafe extern "C" fn(*const abi::sl_addresses, u32, u32) -> u32,
}

unsafe extern "C" {
    safe static sl_addresses_core: LookUp;
}

impl LookUp {
    /// The name of the table of functions in a build of `addresses.c`.
    pub const SYMBOL: &'static str = "sl_addresses_core";

    /// The build that is linked into this program.
    pub fn built_in() -> &'static LookUp {
        &sl_addresses_core
    }

    /// Whether it was compiled with the structs of this program.
    pub fn fits(&self) -> bool {
        self.table_bytes as usize == size_of::<abi::sl_addresses>()
    }

    /// The leaf of an address in a table, which others may change meanwhile; none: no prefix holds the address. `table`: the words of a
    /// whole `sl_addresses`.
    pub fn leaf(&self, table: &[AtomicU64], address: IpAddr) -> Option<u16> {
        assert_eq!(size_of_val(table), size_of::<abi::sl_addresses>(), "another table");
        let words = abi::address_words(address);
        // SAFETY: the table is whole and aligned for its words, each of which C reads at once; the address has four words.
        let leaf = unsafe { (self.leaf)(table.as_ptr().cast(), words.as_ptr()) };
        (leaf != abi::SL_ADDRESS_NO_LEAF).then_some(leaf as u16)
    }

    /// The leaf of packets with this firewall mark, else of those on this VLAN; none: neither has one. 0: no mark, or no VLAN. `table`: as of
    /// [`LookUp::leaf`].
    pub fn leaf_marked(&self, table: &[AtomicU64], mark: u32, vlan: u16) -> Option<u16> {
        assert_eq!(size_of_val(table), size_of::<abi::sl_addresses>(), "another table");
        // SAFETY: as above.
        let leaf = unsafe { (self.leaf_marked)(table.as_ptr().cast(), mark, vlan.into()) };
        (leaf != abi::SL_ADDRESS_NO_LEAF).then_some(leaf as u16)
    }
}
