//! The map of interfaces whose arrival hook is ours, with or without a policy; one for the machine. A program believes the class that a packet got on
//! arrival only if the packet arrived at one of them: a packet from elsewhere may bring a forged class along.

use crate::system::bpffs;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use sluice_abi as abi;
use sluice_error::{Doing, Result};
use std::path::PathBuf;

/// Name of the pin. No interface has a colon in its name.
const NAME: &str = "arrivals:of:machine";

/// Path of the map's pin. Makes the map if it is missing.
pub(crate) fn pinned() -> Result<PathBuf> {
    let path = bpffs::root()?.join(NAME);
    if !path.exists() {
        let mut options: libbpf_rs::libbpf_sys::bpf_map_create_opts =
            libbpf_rs::libbpf_sys::bpf_map_create_opts::default();
        options.sz = size_of_val(&options) as _;
        let key_bytes = size_of::<abi::sl_arrival>() as u32;
        let mut map = MapHandle::create(MapType::Hash, Some("arrivals"), key_bytes, 4, abi::SL_ARRIVALS, &options)
            .doing(|| "making a map of managed interfaces".to_owned())?;
        map.pin(&path).doing(|| format!("pinning {}", path.display()))?;
    }
    Ok(path)
}

fn key(netns: u64, ifindex: u32) -> [u8; 8] {
    let arrival = abi::sl_arrival { netns: netns as u32, ifindex };
    abi::bytes_of(&arrival).try_into().expect("two numbers of 32 bits")
}

/// Adds an interface: programs believe the classes of packets that arrive there.
pub(crate) fn add(netns: u64, ifindex: u32) -> Result<()> {
    let path = pinned()?;
    let map = MapHandle::from_pinned_path(&path).doing(|| format!("opening {}", path.display()))?;
    map.update(&key(netns, ifindex), &1u32.to_ne_bytes(), MapFlags::ANY).doing(|| format!("noting interface {ifindex}"))
}

/// Removes an interface: programs do not believe the classes of its packets any longer.
pub(crate) fn remove(netns: u64, ifindex: u32) -> Result<()> {
    let path = bpffs::root()?.join(NAME);
    if !path.exists() {
        return Ok(());
    }
    let map = MapHandle::from_pinned_path(&path).doing(|| format!("opening {}", path.display()))?;
    match map.delete(&key(netns, ifindex)) {
        Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => {
            Err(error).doing(|| format!("forgetting interface {ifindex}"))
        }
        _ => Ok(()),
    }
}
