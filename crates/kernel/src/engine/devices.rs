//! The devices that an interface needs beside it: one behind which arriving packets are queued, one that splits super-packets.

use crate::record::Record;
use crate::system::{interface, iproute};
use sluice_error::{Doing, Error, Result};

/// Group of the devices that we make, which tells them from others. Unlike an alias, a device has it from the start.
const GROUP: u32 = 5100;

/// Makes the devices that the plan needs, up and empty.
///
/// Programs know devices by number: a device that was deleted is made again with the number on record.
pub(crate) fn make(record: &mut Record) -> Result<()> {
    // The device takes one segment at most, so the stack splits a super-packet on its way there.
    if record.split {
        let number = make_ifb(&record.split_device(), "gso_max_segs 1 txqueuelen 10000", record.split_ifindex)?;
        record.split_ifindex = Some(number);
    }
    if record.ingress_rate_bps.is_some() && record.partner.is_none() {
        record.ingress_ifindex = Some(make_ifb(&record.ingress_device(), "", record.ingress_ifindex)?);
    }
    Ok(())
}

pub(super) fn make_ifb(name: &str, options: &str, number: Option<u32>) -> Result<u32> {
    if nix::net::if_::if_nametoindex(name).is_err() {
        let number = number.map_or(String::new(), |number| format!("index {number} "));
        iproute::ip(&format!("link add name {name} {number}group {GROUP} type ifb"))?;
    } else if !is_our_ifb(name)? {
        return Err(Error::input(format!(
            "there is a device `{name}` that sluice has not made, and sluice needs the name"
        ))
        .help(format!(
            "give it another name (ip link set dev {name} name OTHER), or remove it (ip link del dev {name})"
        )));
    }
    iproute::ip(&format!("link set dev {name} {options} up"))?;
    ifindex(name)
}

/// Removes a device that we have made; a device of another program stays.
pub(crate) fn remove(name: &str) -> Result<()> {
    if nix::net::if_::if_nametoindex(name).is_err() || !is_our_ifb(name)? {
        return Ok(());
    }
    iproute::ip(&format!("link del dev {name}")).map(drop)
}

/// Whether a device is there, and ours.
pub(crate) fn is_ours(name: &str) -> bool {
    nix::net::if_::if_nametoindex(name).is_ok() && is_our_ifb(name).unwrap_or(false)
}

/// Whether a device is there, and was made for a group: the others of ours have names of their own.
pub(crate) fn is_of_group(name: &str) -> bool {
    !interface::is_own_device(name) && is_ours(name)
}

fn is_our_ifb(name: &str) -> Result<bool> {
    Ok(!iproute::ip(&format!("-o link show dev {name} group {GROUP} type ifb"))?.trim().is_empty())
}

/// The number of a device that is there.
pub(super) fn ifindex(name: &str) -> Result<u32> {
    nix::net::if_::if_nametoindex(name).doing(|| format!("looking for {name}"))
}
