//! Attaches the hooks of an interface before its queues, and removes them.

use crate::bpf::hooks::{self, Point, Side};
use crate::engine::xsk_checks;
use crate::engine::{clsact, steering};
use crate::record::{Hook, Record};
use crate::system::{bpffs, steering_filter};
use sluice_error::{Doing, Error, Result};
use std::io;
use std::path::Path;

/// The program that chooses which packets go through the splitter.
pub(crate) const SPLITTER: &str = "sl_split";

/// Installs the filter that sends possible super-packets through the splitter.
pub(crate) fn install_splitter(record: &mut Record, pins: &Path) -> Result<()> {
    clsact::claim(record)?;
    let action = format!("action mirred egress redirect dev {}", record.split_device());
    hooks::set_filter(&record.interface, Side::Egress, &pins.join(SPLITTER), &action)
}

/// Attaches the hooks: on arrival always, on departure where nothing queues or a hook marks. A hook that the kernel lacks is
/// replaced by the next best, which `notes` says. The record gets the hooks that were attached.
pub(crate) fn install_hooks(record: &mut Record, tcx: bool, pins: &Path, notes: &mut Vec<String>) -> Result<()> {
    attach_xdp(record, pins, notes)?;
    attach_hook(record, tcx, Side::Ingress, pins)?;
    attach_hook(record, tcx, Side::Egress, pins)?;
    steering::install(record, pins)
}

/// Attaches the XDP program, if the record has hook XDP.
pub(crate) fn attach_xdp(record: &mut Record, pins: &Path, notes: &mut Vec<String>) -> Result<()> {
    if record.hook == Hook::Xdp {
        let attached = hooks::attach(&pins.join("sl_xdp"), record.ifindex, Point::Xdp, &pins.join("link_xdp"))?;
        if let Err(error) = attached {
            if record.partner.is_some() {
                let what = format!(
                    "{}: engine xsk needs an XDP program, and it cannot be attached: {error}",
                    record.interface
                );
                return Err(Error::unsupported(what).help(xsk_checks::cure_of_no_xdp(&record.interface, &error)));
            }
            notes.push(no_xdp(&record.interface, &record.interface, &error));
            record.hook = Hook::Tc;
        }
    }
    Ok(())
}

/// The program at the hook of a side; none: there is no hook.
pub(crate) fn program(record: &Record, side: Side) -> Option<&'static str> {
    match side {
        Side::Ingress => Some("sl_ingress"),
        // Packets that depart from a side of a wire have been seen when they arrived at the other one.
        Side::Egress if record.partner.is_some() => None,
        Side::Egress if !record.engine.queues() => Some("sl_egress"),
        // Without an ifb it splits nothing; it classifies and marks.
        Side::Egress if record.classifies => Some(SPLITTER),
        Side::Egress if record.marks => Some("sl_mark"),
        Side::Egress => None,
    }
}

/// Attaches the program of a side, if there is one.
pub(crate) fn attach_hook(record: &mut Record, tcx: bool, side: Side, pins: &Path) -> Result<()> {
    match program(record, side) {
        Some(program) => tc_hook(record, tcx, side, program, pins),
        None => Ok(()),
    }
}

/// The note on an interface that takes no XDP program. `managed`: what is managed, the interface or a group that it is in.
pub(super) fn no_xdp(interface: &str, managed: &str, error: &io::Error) -> String {
    if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST)) {
        return format!(
            "{interface}: another XDP program is attached, and stays; arriving packets are classified by tc, behind it. For XDP, \
             detach it (`ip link set dev {interface} xdp off`), then `sluice down {managed}` and `up` again"
        );
    }
    let why = match error.raw_os_error() {
        Some(libc::ENOSPC) if xsk_checks::is_veth(interface) => {
            format!("; for XDP, {}", xsk_checks::fewer_queues_at_the_peer(interface))
        }
        _ => String::new(),
    };
    format!("{interface}: the driver takes no XDP program ({error}); arriving packets are classified by tc{why}")
}

fn tc_hook(record: &mut Record, tcx: bool, side: Side, program: &str, pins: &Path) -> Result<()> {
    let (point, link) = match side {
        // The hook of a group takes arrivals away: it comes last.
        Side::Ingress if record.is_in_group()? => (Point::TcxIngressFirst, "link_ingress"),
        Side::Ingress => (Point::TcxIngress, "link_ingress"),
        Side::Egress => (Point::TcxEgress, "link_egress"),
    };
    // Arriving packets are taken away to be queued: the filters of others must have seen them before.
    let behind_others =
        side == Side::Ingress && record.ingress_rate_bps.is_some() && hooks::has_filters(&record.interface, side)?;
    if tcx && !behind_others {
        return hooks::attach(&pins.join(program), record.ifindex, point, &pins.join(link))?
            .doing(|| format!("attaching {program} to {}", record.interface));
    }
    clsact::claim(record)?;
    hooks::set_filter(&record.interface, side, &pins.join(program), "")?;
    if side == Side::Ingress && record.ingress_rate_bps.is_some() && !tcx {
        let to = record.partner.as_ref().map_or_else(|| record.ingress_device(), |partner| partner.interface.clone());
        hooks::set_redirect(&record.interface, &to)?;
    }
    Ok(())
}

/// Detaches the hooks that links hold.
pub(crate) fn remove_links(pins: &Path) -> Result<()> {
    ["link_xdp", "link_ingress", "link_egress"].iter().try_for_each(|link| hooks::detach(&pins.join(link)))
}

/// Takes every hook off the interface.
pub(crate) fn remove_hooks(record: &Record, pins: &Path) -> Result<()> {
    if record.members.is_some() {
        return Ok(());
    }
    remove_links(pins)?;
    remove_links(&record.new_pins(&bpffs::root()?))?;
    hooks::clear_filter(&record.interface, Side::Ingress)?;
    hooks::clear_filter(&record.interface, Side::Egress)?;
    steering_filter::clear(&record.interface)?;
    if record.made_clsact {
        hooks::remove_unused_clsact(&record.interface)?;
    }
    Ok(())
}
