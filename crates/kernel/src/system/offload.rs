//! Generic receive offload of an interface, by the ethtool ioctl.

use crate::system::ethtool;
use sluice_error::{Error, Result};

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
    // SAFETY: both commands read and write a value of this shape.
    match unsafe { ethtool::command(interface, &mut value) } {
        Ok(()) => Ok(value),
        Err(error) => Err(Error::system(format!("ethtool {interface}: {error}"))),
    }
}
