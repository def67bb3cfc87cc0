//! Array maps read through memory that the process shares with the kernel: no system call, and no copy of unread values.

use libbpf_rs::{MapCore, MapHandle};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use sluice_abi as abi;
use sluice_error::{Doing, Error, Result};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// An array map whose flags let it be mapped.
///
/// BPF programs write the map meanwhile: each integer is whole, two integers may be of different moments.
pub(crate) struct Mapped<T: abi::Pod> {
    memory: NonNull<c_void>,
    length_bytes: NonZeroUsize,
    stride_bytes: usize,
    entries: u32,
    values: PhantomData<T>,
}

// SAFETY: the memory is only read, by volatile reads, and stays mapped until the value is dropped.
unsafe impl<T: abi::Pod> Send for Mapped<T> {}

impl<T: abi::Pod> Mapped<T> {
    /// Maps a map into memory. None: its values are not of this type, so another version has made it.
    pub fn new(map: &MapHandle) -> Result<Option<Mapped<T>>> {
        if map.value_size() as usize != size_of::<T>() {
            return Ok(None);
        }
        // The kernel rounds a value up to eight bytes, and the mapping up to a page.
        let stride_bytes = size_of::<T>().next_multiple_of(8);
        let entries = map.max_entries();
        let Some(length_bytes) = NonZeroUsize::new(stride_bytes * entries as usize) else { return Ok(None) };
        // SAFETY: a new mapping, at an address that the kernel chooses; nothing of ours lies there.
        let memory = unsafe {
            mmap(None, length_bytes, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, map.as_fd(), 0)
                .doing(|| format!("mapping {}", map.name().to_string_lossy()))?
        };
        Ok(Some(Mapped { memory, length_bytes, stride_bytes, entries, values: PhantomData }))
    }

    /// Maps a map whose values must be of this type into memory.
    ///
    /// # Errors
    ///
    /// Another version has made it.
    pub fn of_this_version(map: &MapHandle) -> Result<Mapped<T>> {
        Mapped::new(map)?.ok_or_else(|| other_version(map))
    }

    /// The address of each value.
    pub fn values(&self) -> impl Iterator<Item = *const T> + '_ {
        let first = self.memory.as_ptr().cast_const().cast::<u8>();
        // SAFETY: the mapping holds `entries` values, so each lies within it.
        (0..self.entries as usize).map(move |n| unsafe { first.add(n * self.stride_bytes) }.cast::<T>())
    }
}

/// The error of a map that another version has made.
pub(crate) fn other_version(map: &MapHandle) -> Error {
    Error::system(format!("the map {} does not hold what this version expects", map.name().to_string_lossy()))
        .help("it was made by another version of sluice: use that one for `sluice down`, then this one")
}

/// An array map that the process reads and writes word by word, while programs do so too.
pub(crate) struct Words {
    memory: NonNull<c_void>,
    length_bytes: NonZeroUsize,
}

// SAFETY: the memory is touched as atomic words alone, and stays mapped until the value is dropped.
unsafe impl Send for Words {}

impl Words {
    /// Maps a map whose values are of this type, which has the alignment of a word.
    ///
    /// # Errors
    ///
    /// Another version has made it.
    pub fn of<T: abi::Pod>(map: &MapHandle) -> Result<Words> {
        if map.value_size() as usize != size_of::<T>() || align_of::<T>() != align_of::<u64>() {
            return Err(other_version(map));
        }
        let length_bytes =
            NonZeroUsize::new(size_of::<T>() * map.max_entries() as usize).ok_or_else(|| other_version(map))?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses; nothing of ours lies there.
        let memory = unsafe {
            mmap(None, length_bytes, access, MapFlags::MAP_SHARED, map.as_fd(), 0)
                .doing(|| format!("mapping {}", map.name().to_string_lossy()))?
        };
        Ok(Words { memory, length_bytes })
    }

    /// All words.
    pub fn all(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is as long, begins with a page, and lives as long as the slice; whoever shares it loads and stores whole words.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), self.length_bytes.get() / size_of::<u64>()) }
    }

    /// A word.
    pub fn load(&self, word: usize) -> u64 {
        self.all()[word].load(Ordering::Acquire)
    }

    /// Sets a word.
    pub fn store(&self, word: usize, value: u64) {
        self.all()[word].store(value, Ordering::Relaxed);
    }

    /// Sets a word after all that were set before.
    pub fn publish(&self, word: usize, value: u64) {
        self.all()[word].store(value, Ordering::Release);
    }

    /// Makes the first value equal to this one, word by word.
    pub fn copy_from<T: abi::Pod>(&self, from: &T) {
        self.set(0, from);
    }

    /// Makes a struct equal to this one, word by word. `at`: where it is, a multiple of eight bytes.
    pub fn set<T: abi::Pod>(&self, at: usize, from: &T) {
        let words =
            abi::bytes_of(from).chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
        for (word, value) in (at / 8..).zip(words).filter(|(word, value)| self.load(*word) != *value) {
            self.store(word, value);
        }
    }

    /// Copies bytes of the first value, from and to multiples of eight. Each word is whole, two words may be of different moments.
    pub fn copy_to<T: abi::Pod>(&self, to: &mut T, bytes: std::ops::Range<usize>) {
        assert!(bytes.end <= size_of::<T>() && bytes.start % 8 == 0 && bytes.end % 8 == 0 && align_of::<T>() == 8);
        // SAFETY: a Pod of the alignment of a word is made of words.
        let words = unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(to).cast::<u64>(), size_of::<T>() / 8) };
        let part = bytes.start / 8..bytes.end / 8;
        for (to, from) in words[part.clone()].iter_mut().zip(&self.all()[part]) {
            *to = from.load(Ordering::Relaxed);
        }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped by `of`; slices of it do not outlive the borrow that `all` takes.
        let _ = unsafe { munmap(self.memory, self.length_bytes.get()) };
    }
}

/// Stores the first word of a map atomically, which an update by system call does not guarantee.
pub(crate) fn store_word(map: &MapHandle, word: u64) -> Result<()> {
    let doing = || format!("mapping {}", map.name().to_string_lossy());
    let length_bytes = NonZeroUsize::new(size_of::<u64>()).expect("eight");
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new mapping, at an address that the kernel chooses; nothing of ours lies there.
    let memory = unsafe { mmap(None, length_bytes, access, MapFlags::MAP_SHARED, map.as_fd(), 0).doing(doing)? };
    // SAFETY: the mapping begins with a page, so the word is aligned and in it; programs and this process only load and store it whole.
    unsafe { AtomicU64::from_ptr(memory.as_ptr().cast()) }.store(word, Ordering::Release);
    // SAFETY: the memory was mapped above, and nothing points into it any more.
    unsafe { munmap(memory, length_bytes.get()) }.doing(doing)
}

impl<T: abi::Pod> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped by `new`; pointers into it do not outlive the borrow that `values` takes.
        let _ = unsafe { munmap(self.memory, self.length_bytes.get()) };
    }
}
