//! The hooks of an interface before its queues, and taking them off again.

use crate::bpf::hooks::{self, Point, Side};
use crate::record::{Hook, Record};
use crate::system::{bpffs, qdiscs};
use sluice_error::{Doing, Result};
use std::io;
use std::path::Path;

/// Sends what may be a super-packet through the splitter.
pub(crate) fn install_splitter(record: &mut Record, pins: &Path) -> Result<()> {
    claim_clsact(record)?;
    let action = format!("action mirred egress redirect dev {}", record.split_device());
    hooks::set_filter(&record.interface, Side::Egress, &pins.join("sl_split"), &action)
}

/// Adds clsact where nobody has. That it is ours is on record before it is there.
fn claim_clsact(record: &mut Record) -> Result<()> {
    if !qdiscs::has_clsact(&record.interface)? {
        record.made_clsact = true;
        record.save()?;
        hooks::add_clsact(&record.interface)?;
    }
    Ok(())
}

/// Attaches the hooks that classify: on arrival always, on departure where nothing queues. What the kernel lacks is
/// replaced by the next best; `notes` says so. Sets what the record must know.
pub(crate) fn install_hooks(record: &mut Record, tcx: bool, pins: &Path, notes: &mut Vec<String>) -> Result<()> {
    attach_xdp(record, pins, notes)?;
    attach_hook(record, tcx, Side::Ingress, pins)?;
    attach_hook(record, tcx, Side::Egress, pins)
}

/// Attaches the XDP program, if there shall be one.
pub(crate) fn attach_xdp(record: &mut Record, pins: &Path, notes: &mut Vec<String>) -> Result<()> {
    if record.hook == Hook::Xdp {
        let attached = hooks::attach(&pins.join("sl_xdp"), record.ifindex, Point::Xdp, &pins.join("link_xdp"))?;
        if let Err(error) = attached {
            notes.push(no_xdp(&record.interface, &error));
            record.hook = Hook::Tc;
        }
    }
    Ok(())
}

/// The program at the hook of a side; none: nothing has to be done there.
pub(crate) fn program(record: &Record, side: Side) -> Option<&'static str> {
    match side {
        Side::Ingress => Some("sl_ingress"),
        Side::Egress if !record.engine.queues() => Some("sl_egress"),
        Side::Egress if record.marks => Some("sl_mark"),
        Side::Egress => None,
    }
}

/// Attaches the program of a side, if there shall be one.
pub(crate) fn attach_hook(record: &mut Record, tcx: bool, side: Side, pins: &Path) -> Result<()> {
    match program(record, side) {
        Some(program) => tc_hook(record, tcx, side, program, pins),
        None => Ok(()),
    }
}

fn no_xdp(interface: &str, error: &io::Error) -> String {
    if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST)) {
        return format!(
            "{interface}: another XDP program is attached, and stays; arriving packets are classified by tc, behind it. For XDP, \
             detach it (`ip link set dev {interface} xdp off`), then `sluice down {interface}` and `up` again"
        );
    }
    format!("{interface}: the driver takes no XDP program ({error}); arriving packets are classified by tc")
}

fn tc_hook(record: &mut Record, tcx: bool, side: Side, program: &str, pins: &Path) -> Result<()> {
    let (point, link) = match side {
        Side::Ingress => (Point::TcxIngress, "link_ingress"),
        Side::Egress => (Point::TcxEgress, "link_egress"),
    };
    // What arrives is taken away to be queued: other people's filters must have seen it before.
    let behind_others =
        side == Side::Ingress && record.ingress_rate_bps.is_some() && hooks::has_filters(&record.interface, side)?;
    if tcx && !behind_others {
        return hooks::attach(&pins.join(program), record.ifindex, point, &pins.join(link))?
            .doing(|| format!("attaching {program} to {}", record.interface));
    }
    claim_clsact(record)?;
    hooks::set_filter(&record.interface, side, &pins.join(program), "")?;
    if side == Side::Ingress && record.ingress_rate_bps.is_some() && !tcx {
        hooks::set_redirect(&record.interface, &record.ingress_device())?;
    }
    Ok(())
}

/// Detaches the hooks that links hold, which are to be attached anew.
pub(crate) fn remove_links(pins: &Path) -> Result<()> {
    ["link_xdp", "link_ingress", "link_egress"].iter().try_for_each(|link| hooks::detach(&pins.join(link)))
}

/// Takes every hook off the interface.
pub(crate) fn remove_hooks(record: &Record, pins: &Path) -> Result<()> {
    remove_links(pins)?;
    remove_links(&record.new_pins(&bpffs::root()?))?;
    hooks::clear_filter(&record.interface, Side::Ingress)?;
    hooks::clear_filter(&record.interface, Side::Egress)?;
    if record.made_clsact {
        hooks::remove_unused_clsact(&record.interface)?;
    }
    Ok(())
}
