//! Access to pinned maps of the product without the product.

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A pinned array map.
pub struct Map {
    fd: OwnedFd,
    value_bytes: usize,
}

impl Map {
    pub fn open(path: &Path) -> Map {
        let name = CString::new(path.as_os_str().as_bytes()).expect("a path");
        // SAFETY: the path is a string that ends.
        let fd = unsafe { libbpf_sys::bpf_obj_get(name.as_ptr()) };
        assert!(fd >= 0, "opening {}: {}", path.display(), std::io::Error::last_os_error());
        // SAFETY: the descriptor is new, and no other owner has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut info = libbpf_sys::bpf_map_info::default();
        let mut length = size_of_val(&info) as u32;
        // SAFETY: the kernel writes at most `length` bytes of plain numbers.
        let result = unsafe {
            libbpf_sys::bpf_obj_get_info_by_fd(fd.as_raw_fd(), std::ptr::from_mut(&mut info).cast(), &mut length)
        };
        assert_eq!(result, 0, "asking of {}", path.display());
        Map { fd, value_bytes: info.value_size as usize }
    }

    pub fn value(&self, key: u32) -> Vec<u8> {
        let mut value = vec![0u8; self.value_bytes];
        // SAFETY: the key is of the array's size, and the value has room for one of the map's.
        let result = unsafe {
            libbpf_sys::bpf_map_lookup_elem(
                self.fd.as_raw_fd(),
                std::ptr::from_ref(&key).cast(),
                value.as_mut_ptr().cast(),
            )
        };
        assert_eq!(result, 0, "reading a value");
        value
    }

    pub fn set(&self, key: u32, value: &[u8]) {
        assert_eq!(value.len(), self.value_bytes, "a value of this map has another length");
        // SAFETY: the key is of the array's size, and the value is as long as one of the map's.
        let result = unsafe {
            libbpf_sys::bpf_map_update_elem(
                self.fd.as_raw_fd(),
                std::ptr::from_ref(&key).cast(),
                value.as_ptr().cast(),
                0,
            )
        };
        assert_eq!(result, 0, "writing a value");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a value of this map has another length")]
    fn a_value_of_another_length_is_not_written() {
        let fd = std::fs::File::open("/dev/null").expect("a file that is no map").into();
        Map { fd, value_bytes: 8 }.set(0, &[0; 4]);
    }
}
