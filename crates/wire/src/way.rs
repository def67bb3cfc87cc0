//! One way of a worker: what arrives at a receive queue of one interface, its scheduler, and what leaves by the other interface.

use crate::handed::Handed;
use crate::queue::Queue;
use crate::under_way::UnderWay;
use sluice_core::Verdict;
use sluice_error::Result;
use sluice_kernel::wire::{End, Side, Terms};
use sluice_xsk::{Frame, Pool, Port};

/// Packets of a turn of one way.
const BATCH: u32 = 64;
/// Until a port that has enough is asked again, ns.
const ROOM_NS: u64 = 50_000;

/// One way.
pub struct Way {
    pub side: Side,
    queue: Queue,
    /// The frame of the packet of each slot.
    held: Vec<Option<Frame>>,
    /// The packets of a turn, between their arrival and their queues: empty outside of `take_in`.
    arrived: Vec<(Frame, Option<Handed>)>,
    terms: Terms,
    /// Since when packets wait for the port, ns; none: they do not.
    waiting_ns: Option<u64>,
    /// The word that says which configuration is in force, as `terms` has it.
    live: u64,
}

impl Way {
    /// Takes over the queue of what arrives at a receive queue of an interface. What a former process held is lost.
    ///
    /// # Errors
    ///
    /// The maps are of another version.
    pub fn open(end: &End, receive_queue: u32, now_ns: u64) -> Result<Way> {
        let (side, queue) = Side::open(end, receive_queue)?;
        let mut queue = Queue::open(queue);
        side.count_lost(queue.clear(now_ns));
        let live = side.live();
        let terms = side.terms(live)?;
        queue.follow(&terms, now_ns)?;
        while queue.catch_up(now_ns) {}
        let held = (0..queue.slots()).map(|_| None).collect();
        Ok(Way { side, queue, held, arrived: Vec::with_capacity(BATCH as usize), terms, waiting_ns: None, live })
    }

    /// Takes up the configuration in force, if it is another one, and some of the changes that wait. Whether more wait.
    pub fn follow(&mut self, now_ns: u64) -> Result<bool> {
        let live = self.side.live();
        if live != self.live {
            self.terms = self.side.terms(live)?;
            self.live = live;
            self.queue.follow(&self.terms, now_ns)?;
        }
        Ok(self.queue.catch_up(now_ns))
    }

    /// Queues packets that have arrived. Returns how many.
    pub fn take_in(&mut self, port: &mut Port, pool: &mut Pool, now_ns: u64) -> Result<u32> {
        let mut arrived = std::mem::take(&mut self.arrived);
        // Another processor has written what the hook has found. All of it is read before any packet is queued, so that the waits for memory overlap.
        let count = port.receive(BATCH, pool, |frame, pool| {
            let handed = Handed::read(pool.bytes(&frame).0, frame.length_bytes());
            arrived.push((frame, handed));
        });
        let mut failure = Ok(());
        for (frame, handed) in arrived.drain(..) {
            let Some(handed) = handed else {
                pool.give_back(frame);
                self.side.count_lost(1);
                continue;
            };
            if handed.tag != self.terms.tag {
                // The policy has changed since the turn began, or since the packet arrived.
                if let Err(error) = self.follow(now_ns) {
                    failure = Err(error);
                }
            }
            match self.queue.enqueue(&handed, &self.terms, pool.bytes(&frame).1, now_ns) {
                Some(slot) => {
                    if let Some(left) = self.held[slot as usize].replace(frame) {
                        pool.give_back(left);
                    }
                }
                None => pool.give_back(frame),
            }
            self.drop_listed(pool);
        }
        self.arrived = arrived;
        failure.map(|()| count)
    }

    /// The frames of packets that the scheduler has dropped from within.
    fn drop_listed(&mut self, pool: &mut Pool) {
        while let Some(slot) = self.queue.reap() {
            if let Some(frame) = self.held[slot as usize].take() {
                pool.give_back(frame);
            }
        }
    }

    /// Writes packets that may leave into the ring of a port, which the caller submits. Returns how many, and when to ask again, ns; none: when a packet
    /// comes.
    pub fn let_go(
        &mut self,
        port: &mut Port,
        under_way: &mut UnderWay,
        pool: &mut Pool,
        now_ns: u64,
    ) -> (u32, Option<u64>) {
        if let Some(since_ns) = self.waiting_ns.take() {
            self.side.count_port_wait(now_ns.saturating_sub(since_ns));
        }
        if self.queue.backlog_pkts() == 0 {
            self.queue.rest(now_ns);
            return (0, None);
        }
        let room = port.room();
        let mut count = 0;
        let mut again_ns = Some(now_ns);
        while count < BATCH {
            if count >= room || !under_way.has_room() {
                // A packet that leaves the scheduler now would wait where an urgent one cannot pass it.
                self.waiting_ns = Some(now_ns);
                again_ns = Some(now_ns + ROOM_NS);
                break;
            }
            match self.queue.dequeue(now_ns) {
                Verdict::Send { slot, mark, .. } => {
                    let Some(frame) = self.held[slot as usize].take() else { continue };
                    if mark {
                        sluice_ecn::mark(pool.bytes(&frame).1);
                    }
                    under_way.give(frame.length_bytes());
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

    /// Whether packets wait since the port has enough under way.
    pub fn waits_for_port(&self) -> bool {
        self.waiting_ns.is_some()
    }

    /// Forgets all packets that wait, since later ones have passed them by. Returns how many.
    pub fn forget(&mut self, port: &mut Port, pool: &mut Pool, now_ns: u64) -> u64 {
        let mut lost = self.queue.clear(now_ns);
        for frame in self.held.iter_mut().filter_map(Option::take) {
            pool.give_back(frame);
        }
        lost += u64::from(port.receive(u32::MAX, pool, |frame, pool| pool.give_back(frame)));
        self.side.count_lost(lost);
        lost
    }
}
