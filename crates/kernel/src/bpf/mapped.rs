//! Array maps read through memory that the process shares with the kernel: no copy of unread values.

use libbpf_rs::{MapCore, MapHandle};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use sluice_abi as abi;
use sluice_error::{Doing, Error, Result};
use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
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
        Mapped::with(map, ProtFlags::PROT_READ)
    }

    fn with(map: &MapHandle, access: ProtFlags) -> Result<Option<Mapped<T>>> {
        if map.value_size() as usize != size_of::<T>() {
            return Ok(None);
        }
        // The kernel rounds a value up to eight bytes, and the mapping up to a page.
        let stride_bytes = size_of::<T>().next_multiple_of(8);
        let entries = map.max_entries();
        let Some(length_bytes) = NonZeroUsize::new(stride_bytes * entries as usize) else { return Ok(None) };
        // SAFETY: a new mapping, at an address that the kernel chooses; nothing of ours lies there.
        let memory = unsafe {
            mmap(None, length_bytes, access, MapFlags::MAP_SHARED, map.as_fd(), 0)
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

/// An array map that the process reads and writes, of which another side writes nothing but whole words.
pub(crate) struct Written<T: abi::Pod>(Mapped<T>);

impl<T: abi::Pod> Written<T> {
    /// Maps a map whose values must be of this type into memory.
    ///
    /// # Errors
    ///
    /// Another version has made it.
    pub fn of_this_version(map: &MapHandle) -> Result<Written<T>> {
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        Mapped::with(map, access)?.map(Written).ok_or_else(|| other_version(map))
    }

    /// The address of a value, which may be written through it.
    pub fn value(&self, n: usize) -> *mut T {
        self.0.values().nth(n).expect("the map has such a value").cast_mut()
    }
}

/// The error of a map that another version has made.
pub(crate) fn other_version(map: &MapHandle) -> Error {
    Error::system(format!("the map {} does not hold what this version expects", map.name().to_string_lossy()))
        .help("it was made by another version of sluice: use that one for `sluice down`, then this one")
}

/// A value of an array map that the process reads and writes word by word, while programs do so too.
///
/// It is mapped in windows, each when it is first touched: the kernel enters each page of a mapping at once, which for a map of 30 MB takes longer than
/// what a small change does to it.
pub(crate) struct Words {
    /// Addresses that are reserved for all of the map.
    memory: NonNull<c_void>,
    length_bytes: NonZeroUsize,
    map: OwnedFd,
    /// The first byte of the value, a multiple of eight.
    first_byte: usize,
    value_bytes: usize,
    /// Of each window: whether it is mapped.
    windows: Vec<Cell<bool>>,
}

// SAFETY: the memory is touched as atomic words alone, and stays mapped until the value is dropped.
unsafe impl Send for Words {}

/// A multiple of the pages of every processor.
const WINDOW_BYTES: usize = 1 << 18;

impl Words {
    /// The words of all values of a map, which are of this type and have the alignment of a word.
    ///
    /// # Errors
    ///
    /// Another version has made it, or the process has no room for it.
    pub fn of<T: abi::Pod>(map: &MapHandle) -> Result<Words> {
        let all = 0..map.max_entries() as usize;
        Words::of_values::<T>(map, all)
    }

    /// The words of each value of a map.
    ///
    /// # Errors
    ///
    /// As of [`Words::of`].
    pub fn of_each<T: abi::Pod>(map: &MapHandle) -> Result<Vec<Words>> {
        (0..map.max_entries() as usize).map(|n| Words::of_values::<T>(map, n..n + 1)).collect()
    }

    fn of_values<T: abi::Pod>(map: &MapHandle, values: Range<usize>) -> Result<Words> {
        if map.value_size() as usize != size_of::<T>() || align_of::<T>() < align_of::<u64>() {
            return Err(other_version(map));
        }
        let length_bytes =
            NonZeroUsize::new(size_of::<T>() * map.max_entries() as usize).ok_or_else(|| other_version(map))?;
        let (first_byte, value_bytes) = (values.start * size_of::<T>(), values.len() * size_of::<T>());
        let doing = || format!("mapping {}", map.name().to_string_lossy());
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: a new mapping, at an address that the kernel chooses; nothing of ours lies there.
        let memory = unsafe { mmap_anonymous(None, length_bytes, ProtFlags::PROT_NONE, flags).doing(doing)? };
        let windows = vec![Cell::new(false); length_bytes.get().div_ceil(WINDOW_BYTES)];
        let words = Words {
            memory,
            length_bytes,
            map: map.as_fd().try_clone_to_owned().doing(doing)?,
            first_byte,
            value_bytes,
            windows,
        };
        // The first one tells whether the map can be mapped.
        words.map_window(0).doing(doing)?;
        Ok(words)
    }

    fn map_window(&self, window: usize) -> nix::Result<()> {
        let from = window * WINDOW_BYTES;
        let length_bytes =
            NonZeroUsize::new(WINDOW_BYTES.min(self.length_bytes.get() - from)).expect("it has a window");
        let at = NonZeroUsize::new(self.memory.as_ptr() as usize + from);
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let flags = MapFlags::MAP_SHARED | MapFlags::MAP_FIXED;
        // SAFETY: these addresses were reserved by `of`, and nothing points to them before their window is mapped.
        unsafe { mmap(at, length_bytes, access, flags, self.map.as_fd(), from as i64)? };
        self.windows[window].set(true);
        Ok(())
    }

    /// Some words.
    ///
    /// # Panics
    ///
    /// The map has no such words, or the process no memory for its tables of pages.
    fn part(&self, words: Range<usize>) -> &[AtomicU64] {
        const WINDOW_WORDS: usize = WINDOW_BYTES / size_of::<u64>();
        let count = self.value_bytes / size_of::<u64>();
        assert!(words.start < words.end && words.end <= count, "words {words:?} of {count}");
        let first = self.first_byte / size_of::<u64>();
        let words = first + words.start..first + words.end;
        for window in words.start / WINDOW_WORDS..words.end.div_ceil(WINDOW_WORDS) {
            if !self.windows[window].get() {
                self.map_window(window).expect("the first window was mapped");
            }
        }
        // SAFETY: all windows of these words are mapped, begin with a page, and live as long as the slice; whoever shares them loads and stores whole
        // words.
        unsafe {
            let first = self.memory.as_ptr().cast::<AtomicU64>().add(words.start);
            std::slice::from_raw_parts(first, words.len())
        }
    }

    fn word(&self, word: usize) -> &AtomicU64 {
        &self.part(word..word + 1)[0]
    }

    /// All words.
    pub fn all(&self) -> &[AtomicU64] {
        self.part(0..self.value_bytes / size_of::<u64>())
    }

    /// A word.
    pub fn load(&self, word: usize) -> u64 {
        self.word(word).load(Ordering::Acquire)
    }

    /// Sets a word.
    pub fn store(&self, word: usize, value: u64) {
        self.word(word).store(value, Ordering::Relaxed);
    }

    /// Sets a word after all that were set before.
    pub fn publish(&self, word: usize, value: u64) {
        self.word(word).store(value, Ordering::Release);
    }

    /// Makes the first value equal to this one, word by word.
    pub fn copy_from<T: abi::Pod>(&self, from: &T) {
        self.set(0, from);
    }

    /// Makes a struct equal to this one, word by word. `at`: where it is, a multiple of eight bytes.
    pub fn set<T: abi::Pod>(&self, at: usize, from: &T) {
        let values =
            abi::bytes_of(from).chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
        let words = self.part(at / 8..at / 8 + size_of::<T>() / 8).iter();
        for (word, value) in words.zip(values).filter(|(word, value)| word.load(Ordering::Acquire) != *value) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Reads a struct, word by word. `at`: where it is, a multiple of eight bytes.
    pub fn get<T: abi::Pod>(&self, at: usize, to: &mut T) {
        assert!(size_of::<T>() % 8 == 0 && align_of::<T>() == 8);
        // SAFETY: a Pod of the alignment of a word is made of words.
        let words = unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(to).cast::<u64>(), size_of::<T>() / 8) };
        let from = self.part(at / 8..at / 8 + words.len());
        words.iter_mut().zip(from).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
    }

    /// Copies a word of each element of an array in the first value. `first`: where that word of the first element is; `stride_bytes`: between two
    /// elements; all are multiples of eight.
    pub fn copy_each_to<T: abi::Pod>(&self, to: &mut T, first: usize, stride_bytes: usize, count: usize) {
        assert!(first % 8 == 0 && stride_bytes % 8 == 0 && align_of::<T>() == 8 && count > 0);
        let part = first / 8..(first + stride_bytes * (count - 1)) / 8 + 1;
        assert!(part.end <= size_of::<T>() / 8);
        // SAFETY: a Pod of the alignment of a word is made of words.
        let words = unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(to).cast::<u64>(), size_of::<T>() / 8) };
        let from = self.part(part.clone()).iter().step_by(stride_bytes / 8);
        for (to, from) in words[part].iter_mut().step_by(stride_bytes / 8).zip(from) {
            *to = from.load(Ordering::Relaxed);
        }
    }

    /// Copies bytes of the first value, from and to multiples of eight. Each word is whole, two words may be of different moments.
    pub fn copy_to<T: abi::Pod>(&self, to: &mut T, bytes: Range<usize>) {
        assert!(bytes.end <= size_of::<T>() && bytes.start % 8 == 0 && bytes.end % 8 == 0 && align_of::<T>() == 8);
        // SAFETY: a Pod of the alignment of a word is made of words.
        let words = unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(to).cast::<u64>(), size_of::<T>() / 8) };
        let part = bytes.start / 8..bytes.end / 8;
        for (to, from) in words[part.clone()].iter_mut().zip(self.part(part)) {
            *to = from.load(Ordering::Relaxed);
        }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the addresses were reserved by `of`; slices of them do not outlive the borrow that `part` takes.
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
