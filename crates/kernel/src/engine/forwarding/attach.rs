//! The hooks of port forwarding beside the arrival hooks that call it.

use super::{LINK, OfInterface, own_clients};
use crate::bpf::hooks::{self, Point, Side};
use crate::engine::features::Features;
use crate::system::interface::{self, Interface};
use crate::system::qdiscs;
use sluice_error::{Doing, Result};
use std::collections::BTreeSet;
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

/// Attaches port forwarding where targets answer and no arrival hook of ours calls it, and on departure from interfaces with forwards; removes it
/// elsewhere.
pub(super) fn attach(directory: &Path, devices: &BTreeSet<&str>, interfaces: &[OfInterface]) -> Result<()> {
    let mut wanted = BTreeSet::new();
    let managed = |ifindex: u32| interfaces.iter().any(|interface| interface.ifindex == ifindex);
    for device in devices.iter().filter(|device| **device != "lo") {
        let device = Interface::find(device)?;
        if !managed(device.ifindex) {
            let hook = Hook { device, side: Side::Ingress };
            hook.attach(directory)?;
            wanted.insert(hook.pin());
        }
    }
    for interface in interfaces.iter().filter(|interface| !interface.forwards.is_empty()) {
        let Some(name) = Interface::name_of(interface.ifindex) else { continue };
        let hook = Hook { device: Interface::find(&name)?, side: Side::Egress };
        hook.attach(directory)?;
        wanted.insert(hook.pin());
    }
    wanted.append(&mut own_clients::attach(directory)?);
    detach(directory, &wanted)
}

/// Has the links run the programs that are pinned now. Filters are replaced by `attach`.
pub(super) fn renew(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory).doing(|| format!("reading {}", directory.display()))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(of) = name.strip_prefix(LINK) else { continue };
        let program = match of.split_once('_') {
            Some((side @ ("in" | "out"), ifindex)) => {
                let named = ifindex.parse().ok().and_then(Interface::name_of);
                let Some(device) = named.and_then(|name| Interface::find(&name).ok()) else { continue };
                let side = if side == "in" { Side::Ingress } else { Side::Egress };
                Hook { device, side }.program()
            }
            _ => of,
        };
        hooks::update(&entry.path(), &directory.join(program))?;
    }
    Ok(())
}

/// Removes every hook but these: links by their pins, filters by the interfaces that have them.
pub(super) fn detach(directory: &Path, but: &BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(directory).doing(|| format!("reading {}", directory.display()))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(LINK) && !but.contains(&name) {
            hooks::detach(&entry.path())?;
        }
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
