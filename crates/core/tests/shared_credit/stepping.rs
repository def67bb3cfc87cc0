//! Calls that stop before each access to a shared word, as `coroutines.h` makes them go on.

use crate::builds::Call;

/// The last two members of a build's table.
#[repr(C)]
#[derive(Debug)]
pub struct Stepping {
    begin: unsafe extern "C" fn(u32, *mut Call),
    go_on: unsafe extern "C" fn(u32) -> u32,
}

impl Stepping {
    /// A call begins at a place where none is under way.
    ///
    /// # Safety
    /// The call and all that it points at stay where they are, and are not touched, until it has ended.
    pub unsafe fn begin(&self, place: usize, call: *mut Call) {
        // SAFETY: as the caller has promised.
        unsafe { (self.begin)(place as u32, call) }
    }

    /// The call of this place goes on until its next access to a shared word. Whether it has ended.
    pub fn go_on(&self, place: usize) -> bool {
        // SAFETY: a call is under way there, as begin was told.
        unsafe { (self.go_on)(place as u32) != 0 }
    }
}
