//! Maps in maps, each as large as one policy needs.

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use sluice_abi as abi;
use sluice_error::{Doing, Error, Result};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;

/// A new array map that holds these values.
pub fn filled<T: abi::Pod>(name: &str, values: &[T], flags: u32) -> Result<MapHandle> {
    let count = values.len() as u32;
    let types = Types::of(size_of::<T>() as u32)?;
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        map_flags: flags,
        btf_fd: types.fd,
        btf_key_type_id: types.key,
        btf_value_type_id: types.value,
        ..Default::default()
    };
    let map = MapHandle::create(MapType::Array, Some(name), 4, size_of::<T>() as u32, count, &options)
        .doing(|| format!("making a map of {count} {name}"))?;
    let keys: Vec<u8> = (0..count).flat_map(u32::to_ne_bytes).collect();
    let bytes: Vec<u8> = values.iter().flat_map(abi::bytes_of).copied().collect();
    map.update_batch(&keys, &bytes, count, MapFlags::ANY, MapFlags::ANY).doing(|| format!("writing {name}"))?;
    Ok(map)
}

/// A new ring of so many bytes: a power of two, and at least a page.
pub fn ring(name: &str, bytes: u32) -> Result<MapHandle> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    MapHandle::create(MapType::RingBuf, Some(name), 0, 0, bytes, &options).map_err(|error| {
        Error::system(format!("making a ring of {bytes} bytes: {error}"))
            .help("a smaller one may fit: see --ring; each processor has one")
    })
}

/// Puts a map into a slot of another.
pub fn place(outer: &MapHandle, index: u32, inner: &MapHandle) -> Result<()> {
    let fd = inner.as_fd().as_raw_fd().to_ne_bytes();
    outer.update(&index.to_ne_bytes(), &fd, MapFlags::ANY).doing(|| "placing a map".to_owned())
}

/// Removes the map in a slot, if there is one.
pub fn empty(outer: &MapHandle, index: u32) -> Result<()> {
    match outer.delete(&index.to_ne_bytes()) {
        Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => {
            Err(error).doing(|| "removing a map".to_owned())
        }
        _ => Ok(()),
    }
}

/// BTF types of a map's key and value. Some kernels (6.1) tell a map whose values are structs from one of other values, and
/// libbpf gives struct values to the template of the inner maps.
struct Types {
    btf: NonNull<libbpf_sys::btf>,
    fd: u32,
    key: u32,
    value: u32,
}

impl Types {
    /// Types of a key of 32 bits and of a struct of so many bytes.
    fn of(value_bytes: u32) -> Result<Types> {
        let refused = || Error::system("types of a map: the kernel does not take them");
        // SAFETY: `drop` frees the BTF that is made here, and each call gets the result of the one before.
        unsafe {
            let btf = NonNull::new(libbpf_sys::btf__new_empty()).ok_or_else(refused)?;
            let mut types = Types { btf, fd: 0, key: 0, value: 0 };
            let raw = btf.as_ptr();
            let key = libbpf_sys::btf__add_int(raw, c"u32".as_ptr(), 4, 0);
            let byte = libbpf_sys::btf__add_int(raw, c"u8".as_ptr(), 1, 0);
            let bytes = libbpf_sys::btf__add_array(raw, key, byte, value_bytes);
            let value = libbpf_sys::btf__add_struct(raw, c"value".as_ptr(), value_bytes);
            let field = libbpf_sys::btf__add_field(raw, c"bytes".as_ptr(), bytes, 0, 0);
            let made = [key, byte, bytes, value].iter().all(|id| *id > 0) && field == 0;
            if !made || libbpf_sys::btf__load_into_kernel(raw) != 0 {
                return Err(refused());
            }
            (types.key, types.value) = (key as u32, value as u32);
            types.fd = u32::try_from(libbpf_sys::btf__fd(raw)).map_err(|_| refused())?;
            Ok(types)
        }
    }
}

impl Drop for Types {
    fn drop(&mut self) {
        // SAFETY: the BTF was made by `of`, and nothing else uses it.
        unsafe { libbpf_sys::btf__free(self.btf.as_ptr()) }
    }
}
