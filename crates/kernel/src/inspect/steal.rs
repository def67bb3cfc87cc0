//! Takes arriving packets of interfaces from the host, while a command runs: AF_XDP sockets get them, and nothing else does.
//!
//! The program goes with the process, however that ends, and packets reach the host again.

mod checks;
mod port;

pub use checks::{Checked, check};

use crate::inspect::telemetry::{Request, Totals};
use crate::system::{clock, interface, privilege};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use port::Port;
use sluice_error::{Doing, Result};
use std::os::fd::AsFd;
use std::time::Duration;

/// Packets that a socket hands over in a turn.
const TURN: u32 = 1024;

/// A packet that was taken.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// When it arrived, CLOCK_MONOTONIC; when it was read, where the driver has no metadata.
    pub at_ns: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// The packets that are in no file though the host has not got them, by the kernel's reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lost {
    /// No frame was free, or the packet is longer than one.
    pub dropped: u64,
    /// The ring was full.
    pub ring_full: u64,
    /// Times that no frame was free.
    pub no_frame: u64,
}

/// Programs and sockets that take packets of interfaces of this network namespace, until it is dropped.
pub struct Steal {
    ports: Vec<Port>,
    totals: Vec<Totals>,
    stopped: bool,
}

impl Steal {
    /// Begins to take packets of interfaces that were checked. From all of them, or from none.
    ///
    /// # Errors
    ///
    /// The kernel refuses the program, or a socket.
    pub fn start(checked: &[Checked], request: &Request) -> Result<Steal> {
        privilege::require_root()?;
        let mut ports = checked.iter().map(|one| Port::open(one, request)).collect::<Result<Vec<Port>>>()?;
        ports.iter_mut().try_for_each(Port::begin)?;
        let totals = vec![Totals::default(); ports.len()];
        Ok(Steal { ports, totals, stopped: false })
    }

    /// How an interface's packets come here, in words.
    pub fn way(&self, interface: usize) -> String {
        self.ports[interface].way()
    }

    /// Hands over the packets that have come, or come within this time: the number of their interface, the packet, and what was seen until now.
    pub fn poll(&mut self, limit: Duration, take: &mut dyn FnMut(usize, Packet<'_>, &[Totals])) -> Result<usize> {
        if limit.is_zero() || self.ports.iter().any(Port::has_waiting) {
            return self.turn(take);
        }
        self.wait(limit)?;
        self.turn(take)
    }

    fn turn(&mut self, take: &mut dyn FnMut(usize, Packet<'_>, &[Totals])) -> Result<usize> {
        // Counts that are read after this have every packet that is handed over below.
        let waiting: Vec<Vec<u32>> = self.ports.iter().map(|port| port.waiting(TURN)).collect();
        self.count()?;
        let now_ns = clock::monotonic().as_nanos() as u64;
        let mut packets = 0;
        for (interface, (port, waiting)) in self.ports.iter_mut().zip(&waiting).enumerate() {
            let totals = &self.totals;
            packets += port.receive(waiting, now_ns, &mut |packet| take(interface, packet, totals));
        }
        Ok(packets as usize)
    }

    fn count(&mut self) -> Result<()> {
        for (totals, port) in self.totals.iter_mut().zip(&self.ports) {
            *totals = port.totals(self.stopped)?;
        }
        Ok(())
    }

    fn wait(&self, limit: Duration) -> Result<()> {
        let sockets = self.ports.iter().flat_map(|port| port.sockets());
        let mut fds: Vec<PollFd<'_>> = sockets.map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
        match poll(&mut fds, PollTimeout::try_from(limit).unwrap_or(PollTimeout::ZERO)) {
            Err(nix::errno::Errno::EINTR) | Ok(_) => Ok(()),
            Err(error) => Err(error).doing(|| "waiting for packets".to_owned()),
        }
    }

    /// Gives packets to the host again. What was taken before can still be polled.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.ports.iter_mut().for_each(Port::detach);
        // Programs that run at this moment, and their sockets' rings, are done within it.
        crate::maps::tables::wait_for_readers();
    }

    /// The packets that were seen on an interface. Missed: taken from the host, and not handed over here. While packets are taken, those that the kernel
    /// counts; afterwards, and when all were polled, every one.
    pub fn totals(&self, interface: usize) -> Result<Totals> {
        self.ports[interface].totals(self.stopped)
    }

    /// Why packets of an interface were lost, as the kernel counts them.
    pub fn lost(&self, interface: usize) -> Result<Lost> {
        self.ports[interface].lost()
    }

    /// The fate of the first interface that is not there any more, as a sentence; None: all are there.
    pub fn gone(&self) -> Option<String> {
        self.ports.iter().find_map(|one| interface::fate(&one.interface, one.ifindex))
    }
}
