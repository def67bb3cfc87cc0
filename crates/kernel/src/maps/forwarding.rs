//! The pins of port forwarding, one directory for a network namespace.

use crate::system::bpffs;
use libbpf_rs::{MapHandle, MapType};
use sluice_error::{Doing, Result};
use std::path::PathBuf;

/// The map through which arrival hooks call port forwarding.
pub(crate) const CALL_TABLE: &str = "forwarder";

/// Directory of the pins. No interface has a colon in its name.
pub(crate) fn directory(netns: u64) -> Result<PathBuf> {
    Ok(bpffs::root()?.join(format!("forwarding:@{netns}")))
}

/// Path of the map through which the arrival hooks of a network namespace call port forwarding. Makes it if it is missing.
pub(crate) fn call_table(netns: u64) -> Result<PathBuf> {
    let directory = directory(netns)?;
    let path = directory.join(CALL_TABLE);
    if !path.exists() {
        bpffs::own_directory(&directory)?;
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        let mut map = MapHandle::create(MapType::ProgArray, Some(CALL_TABLE), 4, 4, 1, &options)
            .doing(|| "making a map of programs".to_owned())?;
        map.pin(&path).doing(|| format!("pinning {}", path.display()))?;
    }
    Ok(path)
}
