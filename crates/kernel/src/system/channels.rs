//! The receive queues of an interface that are in use, by the ethtool ioctl.

use crate::system::ethtool;
use crate::system::interface::Interface;
use sluice_error::{Error, Result};

const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// struct ethtool_channels: most of each kind, then those in use.
#[repr(C)]
#[derive(Default)]
struct Channels {
    cmd: u32,
    max: [u32; 4],
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

/// Receive queues in use. A driver that has no channels uses all that the interface has.
pub fn receive_queues(interface: &Interface) -> Result<u32> {
    let mut channels = Channels { cmd: ETHTOOL_GCHANNELS, ..Channels::default() };
    // SAFETY: the value has the shape of struct ethtool_channels.
    match unsafe { ethtool::command(&interface.name, &mut channels) } {
        Ok(()) => Ok((channels.rx + channels.combined).max(1)),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(interface.rx_queues),
        Err(error) => Err(Error::system(format!("ethtool -l {}: {error}", interface.name))),
    }
}
