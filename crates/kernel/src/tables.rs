//! Writing a compiled policy into the maps, and making it live with one word.

use crate::error::{Doing, Error, Result};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use sluice_abi as abi;
use sluice_tables::{Compiled, Prefix};
use std::path::Path;
use std::time::Duration;

/// A pinned map.
pub fn open(dir: &Path, name: &str) -> Result<MapHandle> {
    MapHandle::from_pinned_path(dir.join(name)).map_err(|error| {
        Error::system(format!("{}: {error}", dir.join(name).display()))
            .help("the pins are incomplete: `sluice down` cleans up, then `sluice up`")
    })
}

/// A value of an array map.
pub fn read<T: abi::Pod>(map: &MapHandle, key: u32) -> Result<Box<T>> {
    let name = map.name().to_string_lossy().into_owned();
    let bytes = map.lookup(&key.to_ne_bytes(), MapFlags::ANY).doing(|| format!("reading {name}"))?;
    bytes.and_then(|bytes| abi::read_pod(&bytes)).ok_or_else(|| {
        Error::system(format!("the map {name} does not hold what this version expects"))
            .help("it was made by another version of sluice: use that one for `sluice down`, then this one")
    })
}

fn write<T: abi::Pod>(map: &MapHandle, key: u32, value: &T) -> Result<()> {
    let name = map.name().to_string_lossy().into_owned();
    map.update(&key.to_ne_bytes(), abi::bytes_of(value), MapFlags::ANY).doing(|| format!("writing {name}"))
}

/// The buffer that is in force.
pub fn live_buffer(dir: &Path) -> Result<u32> {
    Ok(read::<abi::sl_live>(&open(dir, "live")?, 0)?.word as u32)
}

/// The tables in force.
pub fn live(dir: &Path) -> Result<Box<abi::sl_tables>> {
    let tables: Box<abi::sl_tables> = read(&open(dir, "tables")?, live_buffer(dir)?)?;
    if tables.abi_version != abi::SL_ABI_VERSION && tables.generation != 0 {
        return Err(Error::system(format!(
            "{} has ABI version {}, this is version {}",
            dir.display(),
            tables.abi_version,
            abi::SL_ABI_VERSION
        ))
        .help("use the sluice that made it for `sluice down`, then this one for `sluice up`"));
    }
    Ok(tables)
}

/// Writes everything into the buffer that is not in force; no packet sees it yet.
pub fn stage(dir: &Path, compiled: &Compiled, buffer: u32) -> Result<()> {
    for (name, prefixes) in [("src_prefixes", &compiled.src_prefixes), ("dst_prefixes", &compiled.dst_prefixes)] {
        let map = open(dir, name)?;
        clear_prefixes(&map, buffer)?;
        for prefix in prefixes {
            write_prefix(&map, prefix)?;
        }
    }
    write(&open(dir, "tables")?, buffer, &*compiled.tables)?;
    if dir.join("sched_conf").exists() {
        let map = open(dir, "sched_conf")?;
        for (direction, conf) in compiled.sched.iter().enumerate() {
            write(&map, buffer * abi::SL_DIRECTIONS + direction as u32, &**conf)?;
        }
    }
    Ok(())
}

/// Makes a staged buffer live for every packet from now on, and waits until no packet uses the other one.
pub fn flip(dir: &Path, buffer: u32, generation: u32) -> Result<()> {
    write(&open(dir, "live")?, 0, &abi::sl_live { word: u64::from(generation) << 32 | u64::from(buffer) })?;
    wait_for_readers();
    Ok(())
}

/// After a flip: the prefixes of the buffer that was in force go.
pub fn forget(dir: &Path, buffer: u32) -> Result<()> {
    for name in ["src_prefixes", "dst_prefixes"] {
        clear_prefixes(&open(dir, name)?, buffer)?;
    }
    Ok(())
}

fn write_prefix(map: &MapHandle, prefix: &Prefix) -> Result<()> {
    map.update(abi::bytes_of(&prefix.key()), &prefix.row.to_ne_bytes(), MapFlags::ANY)
        .doing(|| "writing a prefix".to_owned())
}

fn clear_prefixes(map: &MapHandle, buffer: u32) -> Result<()> {
    let keys: Vec<Vec<u8>> = map.keys().collect();
    for key in keys {
        if abi::read_pod::<abi::sl_prefix>(&key).is_some_and(|prefix| prefix.buffer == buffer) {
            map.delete(&key).doing(|| "removing a prefix".to_owned())?;
        }
    }
    Ok(())
}

/// Until every program that runs now has ended: membarrier(2) waits for a grace period of RCU.
fn wait_for_readers() {
    // SAFETY: the call takes numbers only.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if result != 0 {
        // Kernels with nohz_full refuse it. Programs run with preemption off or for microseconds.
        std::thread::sleep(Duration::from_millis(50));
    }
}
