//! Generic receive offload of an interface, by the ethtool ioctl.

use sluice_error::{Error, Result};
use std::os::fd::AsRawFd;

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_SGRO: u32 = 0x2c;

#[repr(C)]
struct EthtoolValue {
    cmd: u32,
    data: u32,
}

/// Whether arriving packets are merged.
pub fn gro(interface: &str) -> Result<bool> {
    ethtool(interface, EthtoolValue { cmd: ETHTOOL_GGRO, data: 0 }).map(|value| value.data != 0)
}

/// Turns merging on or off.
pub fn set_gro(interface: &str, on: bool) -> Result<()> {
    ethtool(interface, EthtoolValue { cmd: ETHTOOL_SGRO, data: u32::from(on) }).map(drop)
}

fn ethtool(interface: &str, mut value: EthtoolValue) -> Result<EthtoolValue> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    let failed = |error: &dyn std::fmt::Display| Error::system(format!("ethtool {interface}: {error}"));
    let socket =
        socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).map_err(|e| failed(&e))?;
    // SAFETY: an ifreq of zeroes is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(failed(&"the name is too long"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut value).cast();
    // SAFETY: the request names the interface and points at a value of the shape that these two commands read and write.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &mut request) };
    if result < 0 { Err(failed(&std::io::Error::last_os_error())) } else { Ok(value) }
}
