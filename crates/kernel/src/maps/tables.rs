//! Writing a compiled policy into the maps, and making it live with one word.

use crate::bpf::mapped::Words;
use crate::bpf::{inner, mapped};
use crate::maps::shared;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use sluice_abi as abi;
use sluice_error::{Doing, Error, Result};
use sluice_tables::Compiled;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::mem::offset_of;
use std::path::Path;
use std::time::Duration;

/// Opens a pinned map.
pub fn open(dir: &Path, name: &str) -> Result<MapHandle> {
    MapHandle::from_pinned_path(dir.join(name)).map_err(|error| {
        Error::system(format!("{}: {error}", dir.join(name).display()))
            .help("the pins are incomplete: `sluice down` cleans up, then `sluice up`")
    })
}

/// Reads a value of an array map.
pub fn read<T: abi::Pod>(map: &MapHandle, key: u32) -> Result<Box<T>> {
    let name = map.name().to_string_lossy().into_owned();
    let bytes = map.lookup(&key.to_ne_bytes(), MapFlags::ANY).doing(|| format!("reading {name}"))?;
    bytes.and_then(|bytes| abi::read_pod(&bytes)).ok_or_else(|| mapped::other_version(map))
}

pub fn write<T: abi::Pod>(map: &MapHandle, key: u32, value: &T) -> Result<()> {
    let name = map.name().to_string_lossy().into_owned();
    map.update(&key.to_ne_bytes(), abi::bytes_of(value), MapFlags::ANY).doing(|| format!("writing {name}"))
}

/// The buffer that is in force.
pub fn live_buffer(dir: &Path) -> Result<u32> {
    Ok(read::<abi::sl_live>(&open(dir, "live")?, 0)?.word as u32)
}

/// The buffer that is not in force.
pub(crate) fn spare_buffer(dir: &Path) -> Result<u32> {
    Ok((live_buffer(dir)? + 1) % abi::SL_BUFFERS)
}

/// The tables in force.
pub fn live(dir: &Path) -> Result<Box<abi::sl_tables>> {
    let tables: Box<abi::sl_tables> = read(&open(dir, "tables")?, live_buffer(dir)?)?;
    check_version(dir, tables.abi_version, tables.generation)?;
    Ok(tables)
}

fn check_version(dir: &Path, abi_version: u32, generation: u32) -> Result<()> {
    if abi_version == abi::SL_ABI_VERSION || generation == 0 {
        return Ok(());
    }
    let what = format!("{} has ABI version {abi_version}, this is version {}", dir.display(), abi::SL_ABI_VERSION);
    Err(Error::system(what).help("use the sluice that made it for `sluice down`, then this one for `sluice up`"))
}

/// The first word of the tables in force: the version of their layout, and the number of the configuration.
struct Head {
    words: Words,
    word: usize,
}

const _: () = assert!(
    offset_of!(abi::sl_tables, abi_version) == 0
        && offset_of!(abi::sl_tables, generation) == 4
        && size_of::<abi::sl_tables>() % 8 == 0
        && align_of::<abi::sl_tables>() == 8
);

impl Head {
    fn of(dir: &Path) -> Result<Head> {
        let words = Words::of::<abi::sl_tables>(&open(dir, "tables")?)?;
        let word = live_buffer(dir)? as usize * size_of::<abi::sl_tables>() / 8;
        let head = Head { words, word };
        let [abi_version, generation] = head.halves();
        check_version(dir, abi_version, generation)?;
        Ok(head)
    }

    fn halves(&self) -> [u32; 2] {
        let bytes = self.words.load(self.word).to_ne_bytes();
        [0, 4].map(|at| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
    }

    fn generation(&self) -> u32 {
        self.halves()[1]
    }

    fn set_generation(&self, generation: u32) {
        let [abi_version, _] = self.halves().map(u32::to_ne_bytes);
        let [a, b, c, d] = abi_version;
        let [e, f, g, h] = generation.to_ne_bytes();
        self.words.publish(self.word, u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
    }
}

/// The number of the configuration in force.
pub fn live_generation(dir: &Path) -> Result<u32> {
    Ok(Head::of(dir)?.generation())
}

/// Writes a compiled policy into the buffer that is not in force; no packet sees it yet.
pub fn stage(dir: &Path, compiled: &Compiled, buffer: u32) -> Result<()> {
    stage_in(|name| open(dir, name), shared::open, compiled, buffer)?;
    if dir.join("sched_conf").exists() {
        let map = open(dir, "sched_conf")?;
        for (direction, conf) in compiled.sched.iter().enumerate() {
            write(&map, buffer * abi::SL_DIRECTIONS + direction as u32, &**conf)?;
        }
    }
    if dir.join("shared_conf").exists() {
        write(&open(dir, "shared_conf")?, buffer, &*compiled.shared_link)?;
    } else if compiled.shared_link.link.cost > 0 {
        return Err(Error::input("the programs that run cannot share a rate over several queues")
            .help("they are of another version: `sluice upgrade` renews them"));
    }
    Ok(())
}

/// Writes the classifier's part of a compiled policy, into maps and shared buckets that the caller opens.
pub fn stage_in(
    open: impl Fn(&str) -> Result<MapHandle>,
    bucket: impl Fn(&str) -> Result<MapHandle>,
    compiled: &Compiled,
    buffer: u32,
) -> Result<()> {
    stage_shared(&open("shared")?, bucket, compiled, buffer)?;
    let rows = open("rows")?;
    if compiled.rows.is_empty() {
        inner::empty(&rows, buffer)?;
    } else {
        inner::place(&rows, buffer, &inner::filled("rows", &compiled.rows, libbpf_sys::BPF_F_INNER_MAP)?)?;
    }
    let ranges = open("ranges")?;
    for (field, own) in (0..abi::SL_RANGE_FIELDS).zip(&compiled.ranges) {
        let index = buffer * abi::SL_RANGE_FIELDS + field;
        match own {
            Some(own) => inner::place(&ranges, index, &inner::filled("ranges", std::slice::from_ref(&**own), 0)?)?,
            None => inner::empty(&ranges, index)?,
        }
    }
    write(&open("tables")?, buffer, &*compiled.tables)
}

fn stage_shared(
    outer: &MapHandle,
    bucket: impl Fn(&str) -> Result<MapHandle>,
    compiled: &Compiled,
    buffer: u32,
) -> Result<()> {
    empty_shared(outer, buffer)?;
    let mut buckets: BTreeMap<&str, MapHandle> = BTreeMap::new();
    for (class, name) in &compiled.shared {
        let bucket = match buckets.entry(name) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(bucket(name)?),
        };
        inner::place(outer, buffer * abi::SL_CLASSES + u32::from(*class), bucket)?;
    }
    Ok(())
}

fn empty_shared(outer: &MapHandle, buffer: u32) -> Result<()> {
    (0..abi::SL_CLASSES).try_for_each(|class| inner::empty(outer, buffer * abi::SL_CLASSES + class))
}

/// Makes a staged buffer live for every packet from now on, and waits until no packet uses the other one.
pub fn flip(dir: &Path, buffer: u32, generation: u32) -> Result<()> {
    flip_in(|name| open(dir, name), buffer, generation)?;
    wait_for_readers();
    Ok(())
}

/// Makes a staged buffer live, without waiting for the programs that use the other one.
pub fn flip_in(open: impl Fn(&str) -> Result<MapHandle>, buffer: u32, generation: u32) -> Result<()> {
    mapped::store_word(&open("live")?, u64::from(generation) << 32 | u64::from(buffer))
}

/// Gives the tables in force another number, and nothing else. While this is done, the word has the new number and the tables the former one.
pub fn renumber(dir: &Path, generation: u32) -> Result<()> {
    let head = Head::of(dir)?;
    let buffer = live_buffer(dir)?;
    mapped::store_word(&open(dir, "live")?, u64::from(generation) << 32 | u64::from(buffer))?;
    head.set_generation(generation);
    Ok(())
}

/// Frees the maps that a buffer has beside its tables, after a flip to the other buffer.
pub fn forget(dir: &Path, buffer: u32) -> Result<()> {
    inner::empty(&open(dir, "rows")?, buffer)?;
    empty_shared(&open(dir, "shared")?, buffer)?;
    let ranges = open(dir, "ranges")?;
    (0..abi::SL_RANGE_FIELDS).try_for_each(|field| inner::empty(&ranges, buffer * abi::SL_RANGE_FIELDS + field))
}

/// Waits until every program that runs now has ended: membarrier(2) waits for a grace period of RCU.
pub fn wait_for_readers() {
    // SAFETY: the call takes numbers only.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if result != 0 {
        // Kernels with nohz_full refuse the call. Programs run with preemption off or for microseconds.
        std::thread::sleep(Duration::from_millis(50));
    }
}
