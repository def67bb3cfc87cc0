//! One way of a wire: what arrives at one interface, its scheduler, and what leaves by the other one.

use crate::congestion;
use sluice_abi as abi;
use sluice_core::{Packet, Scheduler, Verdict};
use sluice_error::Result;
use sluice_kernel::wire::{Side, Terms};
use sluice_xsk::{Frame, Pool, Port};
use std::ptr::NonNull;

/// Packets of a turn of one way.
const BATCH: u32 = 64;
/// Until a port without room is asked again, ns.
const ROOM_NS: u64 = 50_000;

/// One way.
pub struct Way {
    pub side: Side,
    scheduler: Scheduler,
    /// The frame of the packet of each slot.
    held: Vec<Option<Frame>>,
    terms: Terms,
    /// The word that says which configuration is in force, as `terms` has it.
    live: u64,
}

/// A packet that the hook has handed over: its class with the tag of its policy, and what the scheduler is to know.
struct Handed {
    tag: u16,
    packet: Packet,
}

impl Handed {
    /// Reads the metadata of the hook in front of a packet of so many bytes.
    fn read(front: &[u8], length_bytes: u32) -> Option<Handed> {
        let meta: Box<abi::sl_wire_meta> = abi::read_pod(front.get(front.len() - size_of::<abi::sl_wire_meta>()..)?)?;
        if meta.meta.magic != abi::SL_XDP_MAGIC {
            return None;
        }
        let packet = Packet {
            class: u32::from(meta.meta.handed) & (abi::SL_CLASSES - 1),
            len_bytes: length_bytes,
            segments: 1,
            flow_hash: meta.flow_hash,
            src_host: meta.src_host,
            dst_host: meta.dst_host,
            ecn: meta.ecn,
        };
        Some(Handed { tag: meta.meta.handed >> abi::SL_CLASS_BITS, packet })
    }
}

impl Way {
    /// Takes over the scheduler of what arrives at an interface. What a former process held is lost.
    ///
    /// # Errors
    ///
    /// The interface is no side of a wire.
    pub fn open(interface: &str, now_ns: u64) -> Result<Way> {
        let side = Side::open(interface)?;
        let state = NonNull::new(side.scheduler()).expect("it is mapped");
        // SAFETY: the state is in a mapping that `side` keeps, and the process has claimed the wire: nothing else writes it.
        let mut scheduler = unsafe { Scheduler::at(state) };
        let lost = scheduler.state().backlog_pkts;
        scheduler.clear();
        side.count_lost(0, u64::from(lost));
        let live = side.live();
        let terms = side.terms(live)?;
        scheduler.configure(&terms.conf, now_ns);
        let held = (0..abi::SL_SLOTS).map(|_| None).collect();
        Ok(Way { side, scheduler, held, terms, live })
    }

    /// Takes up the configuration in force, if it is another one.
    pub fn follow(&mut self, now_ns: u64) -> Result<()> {
        let live = self.side.live();
        if live != self.live {
            self.terms = self.side.terms(live)?;
            self.live = live;
            self.scheduler.configure(&self.terms.conf, now_ns);
        }
        Ok(())
    }

    /// Queues packets that have arrived. Returns how many.
    pub fn take_in(&mut self, port: &mut Port, pool: &mut Pool, now_ns: u64) -> Result<u32> {
        let mut failure = Ok(());
        let count = port.receive(BATCH, pool, |frame, pool| {
            let length_bytes = frame.length_bytes();
            let (front, _) = pool.bytes(&frame);
            let Some(mut handed) = Handed::read(front, length_bytes) else {
                // No hook of ours has handed it over.
                pool.give_back(frame);
                return self.side.count_lost(0, 1);
            };
            if handed.tag != self.terms.tag {
                // The policy has changed since the turn began, or since the packet arrived.
                if let Err(error) = self.follow(now_ns) {
                    failure = Err(error);
                }
                if handed.tag != self.terms.tag {
                    handed.packet.class = u32::from(self.terms.default_class);
                }
            }
            match self.scheduler.enqueue_packet(&handed.packet, now_ns) {
                Ok(slot) => {
                    if let Some(left) = self.held[slot as usize].replace(frame) {
                        pool.give_back(left);
                    }
                }
                Err(_) => pool.give_back(frame),
            }
            self.drop_listed(pool);
        });
        failure.map(|()| count)
    }

    /// The frames of packets that the scheduler has dropped from within.
    fn drop_listed(&mut self, pool: &mut Pool) {
        while let Some(slot) = self.scheduler.reap() {
            if let Some(frame) = self.held[slot as usize].take() {
                pool.give_back(frame);
            }
        }
    }

    /// Writes packets that may leave into the ring of a port, which the caller submits. Returns how many, and when to ask again, ns; none: when a packet
    /// comes.
    pub fn let_go(&mut self, port: &mut Port, pool: &mut Pool, now_ns: u64) -> (u32, Option<u64>) {
        let room = port.room().min(BATCH);
        let mut count = 0;
        let mut again_ns = Some(if room == 0 { now_ns + ROOM_NS } else { now_ns });
        if self.scheduler.state().backlog_pkts == 0 {
            return (0, None);
        }
        while count < room {
            match self.scheduler.dequeue(now_ns) {
                Verdict::Send { slot, mark, .. } => {
                    let Some(frame) = self.held[slot as usize].take() else { continue };
                    if mark {
                        congestion::mark(pool.bytes(&frame).1);
                    }
                    port.write(count, frame);
                    count += 1;
                }
                Verdict::Wait(at_ns) => {
                    again_ns = Some(at_ns);
                    break;
                }
                Verdict::Idle => {
                    again_ns = None;
                    break;
                }
            }
        }
        self.drop_listed(pool);
        (count, again_ns)
    }

    /// Forgets all packets that wait, since later ones have passed them by. Returns how many.
    pub fn forget(&mut self, port: &mut Port, pool: &mut Pool) -> u64 {
        let mut lost = u64::from(self.scheduler.state().backlog_pkts);
        self.scheduler.clear();
        for frame in self.held.iter_mut().filter_map(Option::take) {
            pool.give_back(frame);
        }
        lost += u64::from(port.receive(u32::MAX, pool, |frame, pool| pool.give_back(frame)));
        self.side.count_lost(0, lost);
        lost
    }
}
