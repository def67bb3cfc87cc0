//! The states that disciplines keep of classes and schedulers. The structs of `abi/` hold them as words.

use crate::generated as abi;

/// A struct that a discipline keeps of a class.
///
/// # Safety
/// Only for structs of integers that fit into the words of a class, aligned to 8 bytes at most.
pub unsafe trait StateOfClass {}

/// A struct that a discipline keeps of a scheduler.
///
/// # Safety
/// Only for structs of integers that fit into the words of a scheduler, aligned to 8 bytes at most.
pub unsafe trait StateOfScheduler {}

type ClassWords = [u64; abi::SL_CLASS_STATE_WORDS as usize];
type SchedulerWords = [[u64; abi::SL_SCHED_STATE_WORDS as usize]; abi::SL_SCHED_STATE_ROWS as usize];

macro_rules! states {
    ($trait:ident in $words:ident: $($name:ident),*) => {
        $(
            const _: () = assert!(size_of::<abi::$name>() <= size_of::<$words>() && align_of::<abi::$name>() <= 8);
            // SAFETY: made of integers, and it fits.
            unsafe impl $trait for abi::$name {}
        )*
    };
}

states!(StateOfClass in ClassWords: sl_drr_class, sl_virtual_class, sl_eevdf_class, sl_pifo_class, sl_err_class);
states!(StateOfScheduler in SchedulerWords: sl_drr_sched, sl_rr_sched, sl_virtual_sched, sl_eevdf_sched, sl_err_sched);

impl abi::sl_class {
    /// The state that the discipline in force keeps of this class. It has a meaning only if `T` is that discipline's.
    pub fn state_of<T: StateOfClass>(&self) -> T {
        // SAFETY: the words are as long as T at least, and any bits are a valid T.
        unsafe { self.state.as_ptr().cast::<T>().read_unaligned() }
    }
}

impl abi::sl_sched {
    /// The state that the discipline in force keeps of this scheduler. It has a meaning only if `T` is that discipline's.
    pub fn state_of<T: StateOfScheduler>(&self) -> T {
        // SAFETY: a scheduler is readable, as a reference shows.
        unsafe { Self::state_at(self) }
    }

    /// [`Self::kept`] of a scheduler that programs may be writing to.
    ///
    /// # Safety
    /// `at` points at a whole scheduler that stays readable meanwhile.
    pub unsafe fn state_at<T: StateOfScheduler>(at: *const Self) -> T {
        // SAFETY: the words are as long as T at least and aligned to 8 bytes, as no T needs more; any bits are a valid T.
        unsafe { std::ptr::addr_of!((*at).state).cast::<T>().read_volatile() }
    }
}
