//! The queues of an interface that are in use, by the ethtool ioctl.

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
    Ok(channels(interface)?.map_or(interface.rx_queues, |channels| (channels.rx + channels.combined).max(1)))
}

/// Transmit queues in use, of a virtual device: a card may have more than channels, one for each traffic class.
pub fn transmit_queues(interface: &Interface) -> Result<u32> {
    Ok(channels(interface)?.map_or(interface.tx_queues, |channels| (channels.tx + channels.combined).max(1)))
}

/// The most queues of both kinds that the interface can be given by `ethtool -L`. A driver that has no channels changes none.
pub fn most(interface: &Interface) -> Result<u32> {
    let in_use = receive_queues(interface)?.min(transmit_queues(interface)?);
    Ok(channels(interface)?.map_or(in_use, |channels| {
        let [rx, tx, _, combined] = channels.max;
        (rx.min(tx) + combined).max(1)
    }))
}

/// None: the driver has no channels.
fn channels(interface: &Interface) -> Result<Option<Channels>> {
    let mut channels = Channels { cmd: ETHTOOL_GCHANNELS, ..Channels::default() };
    // SAFETY: the value has the shape of struct ethtool_channels.
    match unsafe { ethtool::command(&interface.name, &mut channels) } {
        Ok(()) => Ok(Some(channels)),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
        Err(error) => Err(Error::system(format!("ethtool -l {}: {error}", interface.name))),
    }
}
