//! The parts that a managed interface should have, and which of them are gone: devices, queues, hooks. Other programs remove
//! parts by mistake.

use crate::bpf::hooks::{self, Side};
use crate::engine::xsk_process::WireProcess;
use crate::engine::{attach, driver, early_leaf, forwarding, is_ours, members, steering, xsk_checks, xsk_workers};
use crate::maps::workers::Workers;
use crate::record::{Hook, Partner, Record};
use crate::system::bpffs;
use crate::system::interface::Interface;
use crate::system::qdiscs::{self, Qdisc};
use crate::system::steering_filter;
use sluice_error::{Error, Result};
use std::fmt;
use std::os::fd::AsRawFd;
use std::path::Path;

/// A part that should be there, and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Missing {
    /// A device of ours was deleted.
    Device(String),
    /// A device of ours is down: packets sent there are lost.
    Down(String),
    /// The root qdisc of a device is not ours. `default`: the kernel has put it there by itself.
    Root { device: String, found: String, default: bool },
    /// The children of mq at these queues are not ours.
    Children(Vec<u32>),
    /// More queues of mq are in use than have a scheduler: these have none.
    Beyond(Vec<u32>),
    /// The filter that sends packets through the splitter is gone.
    Splitter,
    /// The filter that leads packets to the tx queue of their tree is gone.
    Steering,
    /// The hook of a side is gone.
    Hook(Side),
    /// An interface of a group has no hook of the group.
    Member(String),
    /// An interface of a group is not in the network namespace any more: its hook may be in another.
    Left(String),
    /// The XDP program is gone; tc classifies instead.
    Xdp,
    /// A hook or a table of port forwarding is gone.
    Forwarding,
    /// No process moves packets between this interface and the one on the other side, `to`: they pass as they come. `process`: one that is there, and does
    /// not answer.
    Worker { to: String, process: Option<WireProcess> },
    /// Some workers of a wire are away, by their receive queues: what arrives there goes to the interface on the other side as it comes.
    Workers(Vec<u32>, String),
    /// The interface has so many receive queues, and the wire so many workers.
    ReceiveQueues { interface: String, queues: u32, workers: u32 },
    /// The interface lets through frames of up to so many bytes, which a wire cannot take.
    LongFrames { interface: String, bytes: u32 },
    /// The interface on the other side of a wire is gone.
    Partner(String),
    /// The hook that drops early is not at the arrivals of this interface.
    EarlyDrop(String),
}

impl Missing {
    /// Whether all that arrives at a side of a wire passes by its queue.
    pub fn lets_all_pass_by(&self) -> bool {
        matches!(self, Missing::Worker { .. } | Missing::Xdp | Missing::Hook(Side::Ingress) | Missing::Partner(_))
    }

    /// Whether a part of what arrives at a side of a wire passes by its queue.
    pub fn lets_some_pass_by(&self) -> bool {
        matches!(self, Missing::Workers(..) | Missing::ReceiveQueues { .. } | Missing::LongFrames { .. })
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Device(name) => write!(f, "the device {name} was deleted"),
            Missing::Down(name) => write!(f, "the device {name} is down"),
            Missing::Root { device, found, .. } => write!(f, "the root qdisc of {device} is {found}"),
            Missing::Children(queues) => {
                let numbers: Vec<String> = queues.iter().map(u32::to_string).collect();
                write!(f, "the scheduler of queue {} of mq was replaced", numbers.join(", "))
            }
            Missing::Beyond(queues) => {
                let numbers: Vec<String> = queues.iter().map(u32::to_string).collect();
                write!(
                    f,
                    "queue {} of mq is in use and has no scheduler, so what it sends is not shaped",
                    numbers.join(", ")
                )
            }
            Missing::Splitter => write!(f, "nothing sends super-packets through the splitter"),
            Missing::Steering => write!(
                f,
                "the filter that leads packets to the tx queue of their subscriber or class is gone: ceilings, guarantees and weights hold in each queue alone"
            ),
            Missing::Hook(Side::Ingress) => write!(f, "the hook that classifies arriving packets is gone"),
            Missing::Hook(Side::Egress) => write!(f, "the hook on departing packets is gone"),
            Missing::Member(name) => write!(f, "the hook that sends arrivals of {name} to the group is gone"),
            Missing::Left(name) => write!(f, "{name} of the group is not here any more"),
            Missing::Xdp => write!(f, "the XDP program is gone"),
            Missing::Forwarding => write!(f, "a hook of port forwarding is gone"),
            Missing::Worker { to, process: None } => {
                write!(f, "no `sluice wire` runs: packets go to {to} as they come")
            }
            Missing::Worker { to, process: Some(process) } => write!(f, "{process}: packets go to {to} as they come"),
            Missing::Workers(queues, name) => {
                let numbers: Vec<String> = queues.iter().map(u32::to_string).collect();
                let (whose, do_not) = match queues[..] {
                    [_] => ("worker of receive queue", "does not"),
                    _ => ("workers of receive queues", "do not"),
                };
                write!(
                    f,
                    "the {whose} {} {do_not} answer: what arrives there goes to {name} unshaped",
                    numbers.join(", ")
                )
            }
            Missing::ReceiveQueues { interface, queues, workers } => {
                let (own, all) = (xsk_workers::count(*queues, "receive queue"), xsk_workers::count(*workers, "worker"));
                let effect = if queues > workers {
                    "what arrives on the others passes unshaped"
                } else {
                    "some workers get nothing"
                };
                write!(f, "{interface} has {own} and the wire {all}, so {effect}")
            }
            Missing::LongFrames { interface, bytes } => write!(
                f,
                "{interface} takes frames of up to {bytes} bytes, and those longer than {} pass unshaped: its MTU may be {} at most",
                sluice_xsk::FrameBytes::Small.packet_bytes(),
                xsk_checks::LONGEST_MTU
            ),
            Missing::Partner(name) => write!(f, "{name}, on the other side, is gone: what arrives is lost"),
            Missing::EarlyDrop(name) => write!(f, "the hook that drops early what arrives at {name} is gone"),
        }
    }
}

/// The missing parts of an interface that is wholly up.
pub(crate) fn missing(record: &Record, pins: &Path) -> Result<Vec<Missing>> {
    let mut found = Vec::new();
    let there = record.members.is_none() || is_up(&record.interface, &mut found)?;
    if record.engine.has_qdiscs() && there {
        queues(record, &record.interface, &mut found)?;
    }
    if record.members.is_some() {
        let wanted = crate::record::policy::resolved(record)?.arrivals_of;
        found.extend(members::left(record).into_iter().map(Missing::Left));
        found.extend(members::lacking(record, &wanted, pins).into_iter().map(Missing::Member));
        return Ok(found);
    }
    if let Some(partner) = &record.partner {
        if Interface::name_of(partner.ifindex).is_none() {
            found.push(Missing::Partner(partner.interface.clone()));
        } else {
            workers(record, partner, pins, &mut found)?;
        }
    } else if record.ingress_rate_bps.is_some() {
        let device = record.ingress_device();
        if is_up(&device, &mut found)? {
            queues(record, &device, &mut found)?;
        }
    }
    if record.split {
        is_up(&record.split_device(), &mut found)?;
        if !hooks::has_own_filter(&record.interface, Side::Egress)? {
            found.push(Missing::Splitter);
        }
    }
    if steering::is_wanted(record) && !steering_filter::is_there(&record.interface)? {
        found.push(Missing::Steering);
    }
    if record.hook == Hook::Xdp && !hooks::is_attached(&pins.join("link_xdp")) {
        found.push(Missing::Xdp);
    }
    let egress = attach::program(record, Side::Egress).is_some();
    for (side, wanted, link) in [(Side::Ingress, true, "link_ingress"), (Side::Egress, egress, "link_egress")] {
        if wanted && !hooks::is_attached(&pins.join(link)) && !hooks::has_own_filter(&record.interface, side)? {
            found.push(Missing::Hook(side));
        }
    }
    if !forwarding::is_in_place(record)? {
        found.push(Missing::Forwarding);
    }
    found.extend(early_leaf::lacking(record, pins)?.into_iter().map(Missing::EarlyDrop));
    Ok(found)
}

/// Adds what a side of a wire lacks: workers that run, the right number of queues, frames that a wire can take.
fn workers(record: &Record, partner: &Partner, pins: &Path, found: &mut Vec<Missing>) -> Result<()> {
    let workers = Workers::open(pins)?;
    let away = workers.away(record.workers());
    if away.len() == record.workers() as usize {
        let process = WireProcess::find([record.ifindex, partner.ifindex])?;
        found.push(Missing::Worker { to: partner.interface.clone(), process });
    } else if !away.is_empty() {
        found.push(Missing::Workers(away, partner.interface.clone()));
    }
    let Some(name) = Interface::name_of(record.ifindex) else { return Ok(()) };
    let interface = Interface::find(&name)?;
    if let Some(queues) = xsk_workers::other_number(record, &interface)? {
        found.push(Missing::ReceiveQueues { interface: name.clone(), queues, workers: record.workers() });
    }
    if let Some(bytes) = xsk_checks::too_long(&interface) {
        found.push(Missing::LongFrames { interface: name, bytes });
    }
    Ok(())
}

/// Whether a device of ours is there and up; if not, adds it to `found`.
fn is_up(device: &str, found: &mut Vec<Missing>) -> Result<bool> {
    let flags = flags(device)?;
    match flags {
        None => found.push(Missing::Device(device.to_owned())),
        Some(flags) if flags & libc::IFF_UP == 0 => found.push(Missing::Down(device.to_owned())),
        Some(_) => return Ok(true),
    }
    Ok(false)
}

fn queues(record: &Record, device: &str, found: &mut Vec<Missing>) -> Result<()> {
    let all = qdiscs::list(device)?;
    let root = all.iter().find(|qdisc| qdisc.root);
    if !root.is_some_and(|root| is_ours(record, root)) {
        found.push(Missing::Root {
            device: device.to_owned(),
            found: root.map_or("none".to_owned(), |root| format!("{} {}", root.kind, root.handle)),
            default: root.is_none_or(Qdisc::is_default),
        });
    } else if device == record.interface && !driver(record).is_whole(&record.pins(&bpffs::root()?)) {
        found.push(Missing::Root {
            device: device.to_owned(),
            found: "ours, and was not made to its end".to_owned(),
            default: true,
        });
    } else if device == record.interface && !driver(record).has_its_classes(record, &record.pins(&bpffs::root()?))? {
        found.push(Missing::Root {
            device: device.to_owned(),
            found: "ours, and lacks some of its classes".to_owned(),
            default: true,
        });
    } else if record.queues > 0 && device == record.interface {
        let place = |qdisc: &Qdisc| u32::from_str_radix(qdisc.parent.rsplit(':').next()?, 16).ok();
        let ours: Vec<u32> = all.iter().filter(|qdisc| qdisc.kind == record.qdisc).filter_map(place).collect();
        let others: Vec<u32> = (1..=record.queues).filter(|queue| !ours.contains(queue)).collect();
        if !others.is_empty() {
            found.push(Missing::Children(others));
        }
        let children = all.iter().filter(|qdisc| !qdisc.root && qdisc.kind != record.qdisc);
        let own = |qdisc: &&Qdisc| qdisc.parent.starts_with(super::qdisc::MQ_HANDLE);
        let mut beyond: Vec<u32> = children.filter(own).filter_map(place).filter(|n| *n > record.queues).collect();
        beyond.sort_unstable();
        if !beyond.is_empty() {
            found.push(Missing::Beyond(beyond));
        }
    }
    Ok(())
}

/// The flags of a device (IFF_UP and others). None: there is no such device.
fn flags(device: &str) -> Result<Option<libc::c_int>> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    let failed = |error: &dyn fmt::Display| Error::system(format!("asking for the flags of {device}: {error}"));
    let socket =
        socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).map_err(|e| failed(&e))?;
    // SAFETY: an ifreq of zeroes is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if device.len() >= request.ifr_name.len() {
        return Err(failed(&"the name is too long"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the request names a device, and the kernel writes its flags into it.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS as _, &mut request) };
    let error = std::io::Error::last_os_error();
    if result >= 0 {
        // SAFETY: the kernel has written this member.
        return Ok(Some(libc::c_int::from(unsafe { request.ifr_ifru.ifru_flags })));
    }
    if error.raw_os_error() == Some(libc::ENODEV) { Ok(None) } else { Err(failed(&error)) }
}
