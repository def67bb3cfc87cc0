//! The loop over the events of a port: packets arrive, instances are asked, the link is free, packets are delivered.

use crate::{Packet, Port, Source, events::Events, port::Rings};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sluice_core::{
    Verdict,
    shared_credit::{Conf, Instance, Link as SharedLink},
};

/// A packet that has arrived at the other end of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Delivery {
    /// When.
    pub at_ns: u64,
    /// When its instance let it go, into a ring.
    pub let_go_ns: u64,
    /// When the link began to send it.
    pub sent_ns: u64,
    /// The tx queue that it came through.
    pub queue: usize,
    /// The packet.
    pub packet: Packet,
}

enum Event {
    /// A source sends.
    Sends(usize),
    /// The watchdog of a tx queue is due.
    Wakes(usize),
    /// The link has sent a packet of this tx queue.
    Sent(usize),
    Delivered(Delivery),
}

/// An instance, the packets of its slots, and its watchdog.
struct TxQueue {
    instance: Instance,
    slots: Vec<Option<Packet>>,
    wakes_ns: Option<u64>,
}

/// A port, its instances and its sources.
pub struct Simulation {
    port: Port,
    rings: Rings,
    queues: Vec<TxQueue>,
    shared: SharedLink,
    conf: Conf,
    sources: Vec<Source>,
    events: Events<Event>,
    random: ChaCha8Rng,
    now_ns: u64,
    deliveries: Vec<Delivery>,
    dropped: u64,
}

/// Simulated time begins here: in the core, 0 is a time that has not been.
const START_NS: u64 = 1_000_000_000;

impl Simulation {
    /// A port whose tx queues have an instance each, under one shared configuration. All randomness comes from the seed.
    pub fn new(port: Port, instances: Vec<Instance>, conf: Conf, sources: Vec<Source>, seed: u64) -> Simulation {
        let mut events = Events::default();
        let queues: Vec<TxQueue> =
            instances.into_iter().map(|instance| TxQueue { instance, slots: Vec::new(), wakes_ns: None }).collect();
        for (n, source) in sources.iter().enumerate() {
            assert!(source.queue < queues.len(), "source {n}: there is no tx queue {}", source.queue);
            events.add(START_NS + source.from_ns, Event::Sends(n));
        }
        Simulation {
            port,
            rings: Rings::new(queues.len(), port.ring_packets),
            queues,
            shared: SharedLink::default(),
            conf,
            sources,
            events,
            random: ChaCha8Rng::seed_from_u64(seed),
            now_ns: START_NS,
            deliveries: Vec::new(),
            dropped: 0,
        }
    }

    /// Runs until this time, ns from the beginning.
    pub fn run_until(&mut self, until_ns: u64) {
        while let Some((at_ns, event)) = self.events.next_until(START_NS + until_ns) {
            self.now_ns = at_ns;
            match event {
                Event::Sends(source) => self.send(source),
                Event::Wakes(queue) if self.queues[queue].wakes_ns == Some(at_ns) => {
                    self.queues[queue].wakes_ns = None;
                    self.run(queue);
                }
                Event::Wakes(_) => {}
                Event::Sent(queue) => {
                    self.rings.busy = false;
                    self.transmit();
                    self.run(queue);
                }
                Event::Delivered(delivery) => self.deliveries.push(delivery),
            }
        }
        self.now_ns = START_NS + until_ns;
    }

    /// All deliveries, by time; ns from the beginning.
    pub fn deliveries(&self) -> &[Delivery] {
        &self.deliveries
    }

    /// Packets that instances have refused.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The instance of a tx queue.
    pub fn instance(&self, queue: usize) -> &Instance {
        &self.queues[queue].instance
    }

    fn since_start(at_ns: u64) -> u64 {
        at_ns - START_NS
    }

    /// A source sends what is due, and is asked again later.
    fn send(&mut self, n: usize) {
        let source = self.sources[n];
        let now = Self::since_start(self.now_ns);
        if !source.sends_at(now) {
            let next = source.goes_on_ns(now);
            if next < source.until_ns {
                self.events.add(START_NS + next, Event::Sends(n));
            }
            return;
        }
        let (packets, again_ns) = source.next(&mut self.random);
        for _ in 0..packets {
            self.arrive(n);
        }
        match again_ns {
            Some(after) => self.events.add(self.now_ns + after, Event::Sends(n)),
            // One that always has packets begins again after each pause.
            None if source.on_off_ns.1 > 0 => {
                self.events.add(START_NS + source.goes_on_ns(now), Event::Sends(n));
            }
            None => {}
        }
        self.run(source.queue);
    }

    /// A packet of a source comes to its tx queue.
    fn arrive(&mut self, n: usize) {
        let source = self.sources[n];
        let bytes = source.next_bytes(&mut self.random);
        let queue = &mut self.queues[source.queue];
        match queue.instance.scheduler().enqueue(source.class, bytes, 1, self.now_ns) {
            Ok(slot) => {
                let slot = slot as usize;
                if queue.slots.len() <= slot {
                    queue.slots.resize(slot + 1, None);
                }
                let arrived_ns = Self::since_start(self.now_ns);
                queue.slots[slot] = Some(Packet { source: n, class: source.class, bytes, arrived_ns });
            }
            Err(_) => self.dropped += 1,
        }
    }

    /// Asks the instance of a tx queue for packets while its ring has room.
    fn run(&mut self, n: usize) {
        while self.rings.has_room(n) {
            let queue = &mut self.queues[n];
            match queue.instance.dequeue(&self.shared, &self.conf, self.now_ns) {
                Verdict::Send { slot, .. } => {
                    let packet = queue.slots[slot as usize].take().expect("a slot that is sent has a packet");
                    self.rings.push(n, self.now_ns, packet);
                    let source = self.sources[packet.source];
                    let backlogged = matches!(source.pattern, crate::Pattern::Backlogged { .. });
                    if backlogged && source.sends_at(Self::since_start(self.now_ns)) {
                        self.arrive(packet.source);
                    }
                    self.transmit();
                }
                Verdict::Wait(wakes_ns) => {
                    let late = self.random.random_range(0..=self.port.timer_late_ns);
                    let wakes_ns = wakes_ns.max(self.now_ns + 1) + late;
                    queue.wakes_ns = Some(wakes_ns);
                    self.events.add(wakes_ns, Event::Wakes(n));
                    break;
                }
                Verdict::Idle => {
                    queue.wakes_ns = None;
                    break;
                }
            }
        }
        while let Some(slot) = self.queues[n].instance.scheduler().reap() {
            self.queues[n].slots[slot as usize] = None;
            self.dropped += 1;
        }
    }

    /// The link takes the next packet of the rings, if it is free.
    fn transmit(&mut self) {
        if self.rings.busy {
            return;
        }
        let Some((queue, let_go_ns, packet)) = self.rings.take() else { return };
        self.rings.busy = true;
        let link = self.port.link;
        let sent_ns = self.now_ns + link.sending_ns(packet.bytes);
        self.events.add(sent_ns, Event::Sent(queue));
        let delivery = Delivery {
            at_ns: Self::since_start(sent_ns + link.delay_ns),
            let_go_ns: Self::since_start(let_go_ns),
            sent_ns: Self::since_start(self.now_ns),
            queue,
            packet,
        };
        self.events.add(sent_ns + link.delay_ns, Event::Delivered(delivery));
    }
}
