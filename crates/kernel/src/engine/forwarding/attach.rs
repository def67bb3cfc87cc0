//! The hooks of port forwarding beside the arrival hooks that call it.

use super::shortcuts::{Departure, departure};
use super::{LINK, OfInterface, own_clients};
use crate::bpf::hooks::{self, Point, Side};
use crate::engine::features::Features;
use crate::maps::arrivals;
use crate::system::interface::{self, Interface};
use crate::system::{netns, qdiscs};
use sluice_abi as abi;
use sluice_error::{Doing, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A place where a program of port forwarding is attached beside the arrival hooks that call it.
struct Hook {
    device: Interface,
    side: Side,
}

impl Hook {
    /// Name of the pin of its link; on kernels without tcx there is a file of this name instead.
    fn pin(&self) -> String {
        format!("{LINK}{}_{}", if self.side == Side::Ingress { "in" } else { "out" }, self.device.ifindex)
    }

    fn program(&self) -> &'static str {
        match (self.side, self.device.ethernet) {
            (Side::Ingress, true) => "sl_forward",
            (Side::Ingress, false) => "sl_forward_l3",
            (Side::Egress, true) => "sl_forward_out",
            (Side::Egress, false) => "sl_forward_out_l3",
        }
    }

    fn attach(&self, directory: &Path) -> Result<()> {
        let (pin, program) = (directory.join(self.pin()), directory.join(self.program()));
        if hooks::is_attached(&pin) {
            return Ok(());
        }
        hooks::detach(&pin)?;
        let point = if self.side == Side::Ingress { Point::TcxIngress } else { Point::TcxEgressFirst };
        if hooks::attach(&program, self.device.ifindex, point, &pin)?.is_err() {
            if !qdiscs::has_clsact(&self.device.name)? {
                hooks::add_clsact(&self.device.name)?;
            }
            hooks::set_forward_filter(&self.device.name, self.side, &program)?;
        }
        Ok(())
    }
}

/// Attaches port forwarding where targets answer and no arrival hook of ours calls it; and on departure from interfaces with forwards and to targets.
/// Removes it elsewhere. Returns the interfaces with a hook on departure, with their enum sl_departure.
pub(super) fn attach(
    directory: &Path,
    netns: u64,
    devices: &BTreeSet<&str>,
    interfaces: &[OfInterface],
) -> Result<BTreeMap<u32, u32>> {
    let mut wanted = BTreeSet::new();
    let managed: BTreeSet<u32> = interfaces.iter().map(|interface| interface.ifindex).collect();
    for device in devices.iter().filter(|device| **device != "lo") {
        let device = Interface::find(device)?;
        if !managed.contains(&device.ifindex) {
            let hook = Hook { device, side: Side::Ingress };
            hook.attach(directory)?;
            // The hook says the class of answers, or that they have none.
            arrivals::add(netns, hook.device.ifindex)?;
            wanted.insert(hook.pin());
        }
    }
    let forwarding = interfaces.iter().filter(|interface| !interface.forwards.is_empty());
    let listening: Vec<String> = forwarding.filter_map(|interface| Interface::name_of(interface.ifindex)).collect();
    let departing =
        devices.iter().copied().filter(|device| *device != "lo").chain(listening.iter().map(String::as_str));
    let mut departures = BTreeMap::new();
    for device in departing {
        let hook = Hook { device: Interface::find(device)?, side: Side::Egress };
        hook.attach(directory)?;
        wanted.insert(hook.pin());
        let by = match departure(&hook.device, interfaces)? {
            Departure::Peer => abi::SL_DEPARTS_BY_PEER,
            Departure::Queues(_) => abi::SL_DEPARTS_BY_QUEUE,
        };
        departures.insert(hook.device.ifindex, by);
    }
    wanted.append(&mut own_clients::attach(directory)?);
    detach_but(directory, netns, &wanted, &managed)?;
    Ok(departures)
}

/// Has programs believe no class of packets that arrive where these hooks are not: all but those that are wanted. Managed interfaces have other hooks.
fn believe_no_longer(directory: &Path, netns: u64, wanted: &BTreeSet<String>, managed: &BTreeSet<u32>) -> Result<()> {
    for name in links(directory)?.into_iter().filter(|name| !wanted.contains(name)) {
        let arriving = name.strip_prefix(LINK).and_then(|of| of.strip_prefix("in_"));
        if let Some(ifindex) = arriving.and_then(|ifindex| ifindex.parse().ok()).filter(|own| !managed.contains(own)) {
            arrivals::remove(netns, ifindex)?;
        }
    }
    Ok(())
}

/// The file names of the links.
fn links(directory: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(directory).doing(|| format!("reading {}", directory.display()))?.flatten();
    Ok(entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(LINK))
        .collect())
}

/// Has the links run the programs that are pinned now. Filters are replaced by `attach`.
pub(super) fn renew(directory: &Path) -> Result<()> {
    for name in links(directory)? {
        let of = &name[LINK.len()..];
        let program = match of.split_once('_') {
            Some((side @ ("in" | "out"), ifindex)) => {
                let named = ifindex.parse().ok().and_then(Interface::name_of);
                let Some(device) = named.and_then(|name| Interface::find(&name).ok()) else { continue };
                let side = if side == "in" { Side::Ingress } else { Side::Egress };
                Hook { device, side }.program()
            }
            _ => of,
        };
        hooks::update(&directory.join(&name), &directory.join(program))?;
    }
    Ok(())
}

/// Removes every hook of a network namespace that has no managed interface any more, or whose hooks are attached anew.
pub(super) fn detach(directory: &Path, netns: u64) -> Result<()> {
    detach_but(directory, netns, &BTreeSet::new(), &BTreeSet::new())
}

/// Removes every hook but these: links by their pins, filters by the interfaces that have them. Those of another network namespace go with it.
fn detach_but(directory: &Path, netns: u64, but: &BTreeSet<String>, managed: &BTreeSet<u32>) -> Result<()> {
    believe_no_longer(directory, netns, but, managed)?;
    if netns != netns::inode()? {
        return Ok(());
    }
    for name in links(directory)?.into_iter().filter(|name| !but.contains(name)) {
        hooks::detach(&directory.join(name))?;
    }
    if Features::known()?.tcx {
        return Ok(());
    }
    for (name, ifindex) in interface::indices()? {
        for (side, word) in [(Side::Ingress, "in"), (Side::Egress, "out")] {
            if !but.contains(&format!("{LINK}{word}_{ifindex}")) && hooks::clear_forward_filter(&name, side)? {
                hooks::remove_unused_clsact(&name)?;
            }
        }
    }
    Ok(())
}
