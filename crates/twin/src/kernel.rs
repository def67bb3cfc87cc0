//! The core as BPF, in the kernel.

use crate::Error;
use libbpf_rs::{AsRawLibbpf, MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};
use sluice_abi as abi;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

macro_rules! object {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"))
    };
}

/// The BPF object of the core with every discipline.
pub const ALL: &[u8] = object!("twin");
/// The BPF object of the tree of classes.
pub const TREE: &[u8] = object!("tree_twin");
/// The BPF object of the address table.
pub const ADDRESSES: &[u8] = object!("addresses_twin");
/// The BPF objects of the core with one discipline alone, by `enum sl_kind`.
pub const ALONE: [&[u8]; abi::SL_KINDS as usize] = include!(concat!(env!("OUT_DIR"), "/alone.rs"));

/// The cost of verifying and loading the core.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Instructions that the verifier walked.
    pub verified_instructions: u32,
    /// Time to load, verification included.
    pub load: Duration,
}

pub struct Kernel {
    object: Object,
    load: Duration,
}

impl Kernel {
    pub fn load(object: &[u8]) -> Result<Kernel, Error> {
        let open = ObjectBuilder::default().open_memory(object)?;
        let before = Instant::now();
        let object = open.load()?;
        Ok(Kernel { object, load: before.elapsed() })
    }

    pub fn cost(&self) -> Cost {
        let program = self.object.progs().find(|program| program.name() == "sl_twin").expect("the object has it");
        let mut info = libbpf_sys::bpf_prog_info::default();
        let mut size = size_of_val(&info) as u32;
        // SAFETY: the program is loaded, and info holds size bytes.
        unsafe {
            let fd = libbpf_sys::bpf_program__fd(program.as_libbpf_object().as_ptr());
            libbpf_sys::bpf_obj_get_info_by_fd(fd, (&raw mut info).cast(), &mut size);
        }
        Cost { verified_instructions: info.verified_insns, load: self.load }
    }

    pub fn configure(&self, confs: &[abi::sl_sched_conf]) -> Result<(), Error> {
        for (key, conf) in (0u32..).zip(confs) {
            self.map("confs").update(&key.to_ne_bytes(), abi::bytes_of(conf), MapFlags::ANY)?;
        }
        Ok(())
    }

    /// Replaces the state.
    pub fn set_state<T: abi::Pod>(&self, state: &T) -> Result<(), Error> {
        Ok(self.map("state").update(&KEY, abi::bytes_of(state), MapFlags::ANY)?)
    }

    /// Maps the state, which must be a `T` in a map that allows it.
    pub fn map_state<T: abi::Pod>(&self) -> Result<Mapping, Error> {
        let map = self.map("state");
        assert_eq!(map.value_size() as usize, size_of::<T>(), "the map holds one");
        Mapping::of(map.as_fd(), size_of::<T>())
    }

    /// Plays a batch in the kernel. Returns it with the answers.
    pub fn play<T: abi::Pod>(&mut self, trace: &T) -> Result<Box<T>, Error> {
        self.map("trace").update(&KEY, abi::bytes_of(trace), MapFlags::ANY)?;
        let program = self.object.progs_mut().find(|program| program.name() == "sl_twin").expect("the object has it");
        let status = program.test_run(ProgramInput::default())?.return_value;
        if status != 0 {
            return Err(Error(format!("the program in the kernel ended with {status}")));
        }
        let bytes = self.map("trace").lookup(&KEY, MapFlags::ANY)?.unwrap_or_default();
        abi::read_pod(&bytes).ok_or_else(|| Error("the trace in the kernel has another size".to_owned()))
    }

    /// The index of the first byte at which the state in the kernel differs from this one.
    pub fn first_difference(&self, native: &[u8]) -> Result<Option<usize>, Error> {
        let bytes = self.map("state").lookup(&KEY, MapFlags::ANY)?.unwrap_or_default();
        if bytes.len() != native.len() {
            return Err(Error(format!("the state has {} bytes in the kernel, {} natively", bytes.len(), native.len())));
        }
        Ok(bytes.iter().zip(native).position(|(a, b)| a != b))
    }

    fn map(&self, name: &str) -> impl MapCore {
        self.object.maps().find(|map| map.name() == name).expect("the object has it")
    }
}

/// The value of a map, as memory that the kernel's programs share.
pub struct Mapping {
    start: NonNull<AtomicU64>,
    bytes: usize,
}

impl Mapping {
    pub fn of(map: BorrowedFd, bytes: usize) -> Result<Mapping, Error> {
        let (rights, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping, which only this struct has, and unmaps.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, shared, map.as_raw_fd(), 0) };
        match NonNull::new(start) {
            Some(at) if start != libc::MAP_FAILED => Ok(Mapping { start: at.cast(), bytes }),
            _ => Err(Error(format!("the state cannot be mapped: {}", std::io::Error::last_os_error()))),
        }
    }

    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many bytes are mapped while this lives, and whoever writes to them does so by whole words.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes / size_of::<u64>()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is ours, and what was borrowed of it is gone.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

const KEY: [u8; 4] = [0; 4];
