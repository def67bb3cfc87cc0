//! The interfaces whose packets cannot or should not be taken from the host, and why. Nothing is changed here.

use crate::inspect::telemetry::attachment::managed_here;
use crate::inspect::telemetry::{Direction, Request, Sampling};
use crate::record::Hook;
use crate::system::interface::{Interface, TAGGED_HEADER_BYTES};
use crate::system::{channels, privilege, routes};
use sluice_error::{Error, Result};
use sluice_xsk::FrameBytes;

/// Most receive queues, each of which has a socket with memory of its own.
const QUEUES: u32 = 256;

/// An interface whose packets can be taken.
#[derive(Debug, Clone)]
pub struct Checked {
    pub(super) interface: Interface,
    pub(super) queues: u32,
    pub(super) frame: FrameBytes,
    /// Whether the host reaches the world by it, or by a device above it.
    pub default_route: bool,
}

impl Checked {
    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.interface.name
    }
}

/// Checks a request to take packets of interfaces, each of which must be there and free.
///
/// # Errors
///
/// A request that cannot be served, an interface that must keep its packets, a kernel without AF_XDP.
pub fn check(interfaces: &[String], request: &Request) -> Result<Vec<Checked>> {
    privilege::require_root()?;
    request.check()?;
    check_request(request)?;
    if let Some(twice) = interfaces.iter().enumerate().find(|(n, one)| interfaces[..*n].contains(one)) {
        return Err(Error::input(format!("{} is named twice", twice.1)).help("name each interface once"));
    }
    if !sluice_xsk::is_supported() {
        return Err(Error::unsupported("this kernel has no AF_XDP sockets (CONFIG_XDP_SOCKETS)")
            .help("capture by copy, without --steal"));
    }
    let checked = interfaces.iter().map(|name| check_interface(name)).collect::<Result<Vec<_>>>()?;
    let queues: u64 = checked.iter().map(|one| u64::from(one.queues)).sum();
    check_memory(queues, request.ring_bytes)?;
    Ok(checked)
}

fn check_request(request: &Request) -> Result<()> {
    if request.direction != Direction::Arriving {
        return Err(Error::input("--steal takes arriving packets; departing ones never come to AF_XDP")
            .help("leave out --departing and --both, or capture by copy, without --steal"));
    }
    if request.hook == Some(Hook::Tc) {
        return Err(Error::input("--steal works at XDP, before tc").help("leave out --hook tc"));
    }
    if request.sampling == Sampling::Adaptive {
        return Err(Error::input("--adaptive thins records where they are copied; --steal has no such ring")
            .help("take fewer with --one-in N, or give more memory with --ring"));
    }
    Ok(())
}

fn check_interface(name: &str) -> Result<Checked> {
    let interface = Interface::find(name)?;
    if name == "lo" {
        return Err(Error::input("lo carries what this host says to itself; --steal would take all of that")
            .help("name a mirror port, or capture lo by copy, without --steal"));
    }
    if !interface.ethernet {
        return Err(Error::input(format!("{name} has no Ethernet header, which XDP needs"))
            .help("capture it by copy, without --steal"));
    }
    if managed_here(&interface)?.is_some() {
        return Err(Error::input(format!("{name} is managed by sluice, so its packets are needed here"))
            .help(format!("capture it by copy, without --steal, or give it back first: sluice down {name}")));
    }
    if interface.has_xdp {
        return Err(Error::input(format!("{name} has an XDP program already, perhaps of another capture"))
            .help(format!("end what has attached it, another capture perhaps (bpftool net show dev {name}), or capture by copy, without --steal")));
    }
    let queues = channels::receive_queues(&interface)?;
    if queues > QUEUES {
        return Err(Error::input(format!("{name} has {queues} receive queues, and --steal serves {QUEUES} at most"))
            .help(format!("ethtool -L {name} combined {QUEUES}")));
    }
    let most = interface.mtu_bytes + TAGGED_HEADER_BYTES;
    let frame = FrameBytes::holding(most).ok_or_else(|| {
        Error::input(format!("packets of {name} have up to {most} bytes, and a frame of AF_XDP holds 3840"))
            .help(format!("ip link set {name} mtu 3500, or capture by copy, without --steal"))
    })?;
    let default_route = routes::carries_default(name)?;
    Ok(Checked { interface, queues, frame, default_route })
}

/// Refuses memory that would leave the machine little: it is locked.
fn check_memory(queues: u64, ring_bytes: u32) -> Result<()> {
    let wanted = queues * u64::from(ring_bytes);
    let Some(available) = available_memory() else { return Ok(()) };
    if wanted <= available / 2 {
        return Ok(());
    }
    Err(Error::input(format!(
        "{queues} receive queues want {} MiB of locked memory, more than half of the {} MiB that are available",
        wanted >> 20,
        available >> 20
    ))
    .help("take less for each queue, such as --ring 1M, or use fewer queues: ethtool -L"))
}

/// Bytes of memory that can be had without swapping; None where the kernel does not say.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}
