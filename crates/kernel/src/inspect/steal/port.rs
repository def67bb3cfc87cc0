//! The program and the sockets of an interface whose packets are taken.

use super::checks::Checked;
use super::{Lost, Packet};
use crate::bpf::hooks::{self, Passing};
use crate::bpf::mapped::Mapped;
use crate::bpf::object::Loader;
use crate::inspect::telemetry::attachment::{map, program};
use crate::inspect::telemetry::{Request, Totals, possible_cpus};
use crate::system::paths;
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use sluice_abi as abi;
use sluice_error::{Doing, Error, Result};
use sluice_xsk::{Binding, Copying, Refusal, Socket, Step, Umem};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// An interface whose packets are taken. Dropping it ends that.
pub(super) struct Port {
    pub interface: String,
    pub ifindex: u32,
    native: bool,
    zero_copy: bool,
    /// One for each receive queue.
    sockets: Vec<Socket>,
    /// Keeps the program on its hook.
    link: Option<OwnedFd>,
    seen: Mapped<abi::sl_telemetry_cpu>,
    /// Where the program finds the sockets.
    table: MapHandle,
    /// The mark of this run in front of packets.
    mark: u32,
    /// Packets that were handed over.
    received: u64,
    /// Keeps program and maps alive.
    _object: Object,
}

impl Port {
    /// Loads the program, attaches it and binds the sockets. Packets still go to the host.
    pub fn open(checked: &Checked, request: &Request) -> Result<Port> {
        let (name, ifindex) = (&checked.interface.name, checked.interface.ifindex);
        let mark = RandomState::new().build_hasher().finish() as u32 | 1;
        let object = load(checked, request, mark)?;
        let (link, native) = attach(&object, checked)?;
        let sockets = bind(checked, request.ring_bytes, native)?;
        let zero_copy = match sockets.first() {
            Some(socket) => socket.is_zero_copy().doing(|| format!("AF_XDP on {name}"))?,
            None => false,
        };
        Ok(Port {
            interface: name.clone(),
            ifindex,
            native,
            zero_copy,
            sockets,
            link: Some(link),
            seen: Mapped::of_this_version(&map(&object, "seen_by_cpu")?)?,
            table: map(&object, "sockets")?,
            mark,
            received: 0,
            _object: object,
        })
    }

    /// Has the program find the sockets: from now on packets are taken.
    pub fn begin(&mut self) -> Result<()> {
        for (queue, socket) in self.sockets.iter().enumerate() {
            let fd = socket.as_fd().as_raw_fd().to_ne_bytes();
            self.table
                .update(&(queue as u32).to_ne_bytes(), &fd, MapFlags::ANY)
                .doing(|| format!("handing queue {queue} of {} to its socket", self.interface))?;
        }
        Ok(())
    }

    pub fn way(&self) -> String {
        let hook = if self.native { "native XDP" } else { "generic XDP, since the driver has none" };
        let copying = if self.zero_copy { "zero-copy" } else { "by copy" };
        let queues = if self.sockets.len() == 1 { "queue" } else { "queues" };
        format!("{hook}, {copying}, {} {queues}", self.sockets.len())
    }

    pub fn sockets(&self) -> &[Socket] {
        &self.sockets
    }

    pub fn has_waiting(&self) -> bool {
        self.sockets.iter().any(|socket| socket.waiting() > 0)
    }

    /// Packets that wait at each socket.
    pub fn waiting(&self, most: u32) -> Vec<u32> {
        self.sockets.iter().map(|socket| socket.waiting().min(most)).collect()
    }

    /// Hands over so many packets of each socket.
    pub fn receive(&mut self, counts: &[u32], now_ns: u64, take: &mut dyn FnMut(Packet<'_>)) -> u32 {
        let mark = self.mark;
        let mut packets = 0;
        for (socket, &count) in self.sockets.iter_mut().zip(counts) {
            packets += socket.receive(count, &mut |front, bytes| {
                take(Packet { at_ns: stamped(front, mark).unwrap_or(now_ns), bytes });
            });
        }
        self.received += u64::from(packets);
        packets
    }

    pub fn totals(&self, stopped: bool) -> Result<Totals> {
        let totals = Totals::of(&self.seen);
        let missed_pkts = if stopped {
            totals.sampled_pkts.saturating_sub(self.received)
        } else {
            let lost = self.lost()?;
            lost.dropped + lost.ring_full
        };
        Ok(Totals { missed_pkts, ..totals })
    }

    pub fn lost(&self) -> Result<Lost> {
        let mut lost = Lost::default();
        for socket in &self.sockets {
            let statistics = socket.statistics().doing(|| format!("AF_XDP on {}", self.interface))?;
            lost.dropped += statistics.rx_dropped;
            lost.ring_full += statistics.rx_ring_full;
            lost.no_frame += statistics.rx_fill_ring_empty;
        }
        Ok(lost)
    }

    /// Takes the program off its hook. The sockets stay.
    pub fn detach(&mut self) {
        self.link = None;
    }
}

/// The time in front of a packet (`struct sl_stamp`), if the program has written it there. The mark goes, so that the next packet in the frame
/// has its own or none.
fn stamped(front: &mut [u8], mark: u32) -> Option<u64> {
    const AT: usize = std::mem::offset_of!(abi::sl_stamp, at_ns);
    const MARK: usize = std::mem::offset_of!(abi::sl_stamp, mark);
    let begin = front.len().checked_sub(size_of::<abi::sl_stamp>())?;
    let stamp = &mut front[begin..];
    if stamp[MARK..MARK + size_of::<u32>()] != mark.to_ne_bytes() {
        return None;
    }
    let at_ns = stamp[AT..AT + size_of::<u64>()].try_into().ok().map(u64::from_ne_bytes);
    stamp.fill(0);
    at_ns
}

fn load(checked: &Checked, request: &Request, mark: u32) -> Result<Object> {
    let cpus = possible_cpus()?;
    let mut loader = Loader::steal()?;
    let mut conf = request.conf(false);
    // Records come through sockets, not through rings.
    conf.records = abi::SL_NO_RECORDS;
    loader.constant("sl_l3_type", 0)?;
    loader.constant("sl_stamp_mark", mark)?;
    loader.constant("sl_most_bytes", checked.frame.packet_bytes())?;
    loader.constant_struct("sl_conf", &conf)?;
    loader.entries("seen_by_cpu", cpus)?;
    loader.entries("sockets", checked.queues)?;
    loader.own_flow_table(0)?;
    loader.load(paths::run())
}

/// Attaches the program in the driver, else in the stack. Whether it is in the driver.
fn attach(object: &Object, checked: &Checked) -> Result<(OwnedFd, bool)> {
    let (name, ifindex) = (&checked.interface.name, checked.interface.ifindex);
    let fd = program(object, "sl_steal")?;
    // SAFETY: the object, which has the program, is alive.
    let program = unsafe { BorrowedFd::borrow_raw(fd) };
    let native = match hooks::attach_while_open(program, ifindex, Passing::Xdp) {
        Ok(link) => return Ok((link, true)),
        Err(error) => error,
    };
    match hooks::attach_while_open(program, ifindex, Passing::GenericXdp) {
        Ok(link) => Ok((link, false)),
        Err(generic) => Err(Error::unsupported(format!(
            "{name} takes no XDP program (in the driver: {native}; in the stack: {generic})"
        ))
        .help(format!("another program may be attached: ip link show {name}; or capture by copy, without --steal"))),
    }
}

/// Binds a socket to each receive queue. All have one memory, and each has as many bytes of it as were asked for.
fn bind(checked: &Checked, ring_bytes: u32, native: bool) -> Result<Vec<Socket>> {
    let frames = (ring_bytes / checked.frame.get()).max(1);
    let ifindex = checked.interface.ifindex;
    let copying = if native { Copying::WhereNeeded } else { Copying::Always };
    let umem = Umem::new(checked.frame, frames * checked.queues).map_err(|error| refused(checked, 0, &error))?;
    let umem = Arc::new(umem);
    let mut sockets = Vec::<Socket>::new();
    for queue in 0..checked.queues {
        let binding = Binding { ifindex, queue, frames: queue * frames..(queue + 1) * frames, copying };
        // SAFETY: each socket has frames of its own, and all were made here with this memory.
        let socket = unsafe { Socket::bind(&umem, &binding, sockets.first()) };
        let socket = socket.map_err(|error| refused(checked, queue, &error))?;
        sockets.push(socket);
    }
    Ok(sockets)
}

fn refused(checked: &Checked, queue: u32, refusal: &Refusal) -> Error {
    let name = checked.name();
    let what = format!("AF_XDP on {name}, queue {queue}: {refusal}");
    match (refusal.step, refusal.error.raw_os_error()) {
        (Step::Bind, Some(libc::EBUSY)) => Error::input(what)
            .help(format!("another program has a socket on the queue: end it (ss --xdp shows it), or capture {name} by copy, without --steal")),
        (Step::Memory, Some(libc::ENOBUFS)) => {
            Error::input(what).help("the process may not lock so much memory: raise `ulimit -l`, or take less, such as --ring 1M")
        }
        (Step::Memory | Step::Rings, Some(libc::ENOMEM)) => {
            Error::input(what).help("there is not so much memory: take less, such as --ring 1M")
        }
        (Step::Socket, _) => Error::unsupported(what).help("capture by copy, without --steal"),
        _ => Error::system(what).help(format!("the interface must be up (ip link set {name} up); or capture by copy, without --steal")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_counts_once_and_only_with_its_mark() {
        let stamp = abi::sl_stamp { at_ns: 7_000_000_000, mark: 0x1234_5679, pad: 0 };
        let mut front = [vec![9; 240], abi::bytes_of(&stamp).to_vec()].concat();
        assert_eq!(stamped(&mut front.clone(), 0x1234_5677), None);
        assert_eq!(stamped(&mut front, stamp.mark), Some(stamp.at_ns));
        assert_eq!(stamped(&mut front, stamp.mark), None, "it was read");
        assert_eq!(stamped(&mut [0; 8], 0), None, "too short");
    }
}
