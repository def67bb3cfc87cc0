//! A modelled network card that shapes: transmit queues with a bounded number of descriptors, and one link that they share.
//!
//! A packet that is posted takes a descriptor of its queue until the link has sent it. A queue without a free descriptor refuses. The link sends one
//! packet after the other at the rate of the port; between packets it chooses a queue, by strict priority or by weighted round robin. A queue may have
//! a rate of its own, and is passed by until its next packet is due. A card without queues for classes is one with a single queue: a ring in which
//! all packets keep the order in which they came.
//!
//! Times are ns, those inside are ps: at 100 Gbit/s a packet takes some 100 ns, and rounding each would change the rate by up to 1 %.

use std::collections::VecDeque;

/// Picoseconds in a nanosecond.
const PS: u64 = 1000;

/// The choice among queues that have packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// The first one.
    Strict,
    /// Weighted round robin: in its turn, a queue sends as many packets as its weight says. Each queue has a weight, of 1 at least.
    Weighted(Vec<u32>),
}

/// A transmit queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CardQueue {
    /// Packets that it holds, the one that is being sent included.
    pub descriptors: u32,
    /// A rate of its own, bits per second, at most that of the port; none: that of the port.
    pub bits_per_second: Option<u64>,
}

/// The properties of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardConf {
    /// The rate of the port.
    pub bits_per_second: u64,
    /// Bytes that the link adds to each packet.
    pub overhead_bytes: u32,
    /// Its queues, the most urgent first.
    pub queues: Vec<CardQueue>,
    /// The choice among them.
    pub order: Order,
}

impl CardConf {
    /// A card without queues for classes: one ring.
    pub fn ring(bits_per_second: u64, overhead_bytes: u32, descriptors: u32) -> CardConf {
        CardConf::strict(bits_per_second, overhead_bytes, 1, descriptors)
    }

    /// A card with so many queues of so many descriptors each, by strict priority.
    pub fn strict(bits_per_second: u64, overhead_bytes: u32, queues: u32, descriptors: u32) -> CardConf {
        let queue = CardQueue { descriptors, bits_per_second: None };
        CardConf { bits_per_second, overhead_bytes, queues: vec![queue; queues as usize], order: Order::Strict }
    }
}

/// A packet that the link has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion<P> {
    /// When its last bit was sent.
    pub at_ns: u64,
    /// The queue that it was in.
    pub queue: usize,
    /// Its length, without what the link adds.
    pub bytes: u32,
    /// The packet.
    pub packet: P,
}

/// A queue, with the packets that wait in it.
struct Queue<P> {
    conf: CardQueue,
    packets: VecDeque<(u32, P)>,
    /// The link is sending a packet of it.
    sends: bool,
    /// Its own rate allows its next packet from this time on.
    due_ps: u64,
}

/// A card. Times must not decrease from call to call.
pub struct Card<P> {
    bits_per_second: u64,
    overhead_bytes: u32,
    order: Order,
    queues: Vec<Queue<P>>,
    /// The queue whose turn it is, and the packets that it may still send in it; of weighted round robin.
    turn: (usize, u32),
    /// The packet on the link, and when it will have been sent.
    sending: Option<(u64, Completion<P>)>,
    done: VecDeque<Completion<P>>,
    now_ps: u64,
}

impl<P> Card<P> {
    /// An idle card.
    pub fn new(conf: &CardConf) -> Card<P> {
        assert!(conf.bits_per_second > 0 && !conf.queues.is_empty(), "a port has a rate and queues");
        if let Order::Weighted(weights) = &conf.order {
            assert!(weights.len() == conf.queues.len() && weights.iter().all(|weight| *weight > 0), "a weight each");
        }
        let queue = |conf: &CardQueue| Queue { conf: *conf, packets: VecDeque::new(), sends: false, due_ps: 0 };
        Card {
            bits_per_second: conf.bits_per_second,
            overhead_bytes: conf.overhead_bytes,
            order: conf.order.clone(),
            queues: conf.queues.iter().map(queue).collect(),
            turn: (0, 0),
            sending: None,
            done: VecDeque::new(),
            now_ps: 0,
        }
    }

    /// The number of packets that a queue takes now.
    pub fn room(&self, queue: usize) -> usize {
        (self.queues[queue].conf.descriptors as usize).saturating_sub(self.held(queue))
    }

    /// The packets that a queue holds, the one that is being sent included.
    pub fn held(&self, queue: usize) -> usize {
        self.queues[queue].packets.len() + usize::from(self.queues[queue].sends)
    }

    /// Packets are posted to a queue at this time: their lengths and themselves. It takes the first ones, as many as it has descriptors for. How many.
    pub fn post(&mut self, now_ns: u64, queue: usize, packets: impl IntoIterator<Item = (u32, P)>) -> usize {
        self.advance(now_ns * PS);
        let before = self.queues[queue].packets.len();
        let room = self.room(queue);
        self.queues[queue].packets.extend(packets.into_iter().take(room));
        let taken = self.queues[queue].packets.len() - before;
        self.begin();
        taken
    }

    /// The next packet that has been sent by this time.
    pub fn completed(&mut self, until_ns: u64) -> Option<Completion<P>> {
        if self.done.is_empty() {
            self.advance(until_ns * PS);
        }
        self.done.pop_front()
    }

    /// Whether it holds nothing, and all that it has sent was told.
    pub fn is_idle(&self) -> bool {
        self.done.is_empty() && (0..self.queues.len()).all(|queue| self.held(queue) == 0)
    }

    /// The card works until this time.
    fn advance(&mut self, until_ps: u64) {
        let until_ps = until_ps.max(self.now_ps);
        loop {
            let next_ps = match &self.sending {
                Some((end_ps, _)) => Some(*end_ps),
                // Packets wait for the rate of their queue.
                None => self.waiting().map(|queue| queue.due_ps).min(),
            };
            let Some(next_ps) = next_ps.filter(|next_ps| *next_ps <= until_ps) else { break };
            self.now_ps = self.now_ps.max(next_ps);
            if let Some((_, sent)) = self.sending.take() {
                self.queues[sent.queue].sends = false;
                self.done.push_back(sent);
            }
            self.begin();
        }
        self.now_ps = until_ps;
    }

    fn waiting(&self) -> impl Iterator<Item = &Queue<P>> {
        self.queues.iter().filter(|queue| !queue.packets.is_empty())
    }

    /// The link begins to send a packet, if it is free and a queue may send.
    fn begin(&mut self) {
        if self.sending.is_some() {
            return;
        }
        let Some(number) = self.choose() else { return };
        let queue = &mut self.queues[number];
        let Some((bytes, packet)) = queue.packets.pop_front() else { return };
        let wire_bytes = bytes + self.overhead_bytes;
        let end_ps = self.now_ps + sending_ps(wire_bytes, self.bits_per_second);
        if let Some(own) = queue.conf.bits_per_second {
            queue.due_ps = self.now_ps + sending_ps(wire_bytes, own);
        }
        queue.sends = true;
        self.sending = Some((end_ps, Completion { at_ns: end_ps.div_ceil(PS), queue: number, bytes, packet }));
    }

    /// The queue that sends next.
    fn choose(&mut self) -> Option<usize> {
        let may = |queue: &Queue<P>| !queue.packets.is_empty() && queue.due_ps <= self.now_ps;
        let Order::Weighted(weights) = &self.order else { return self.queues.iter().position(may) };
        let (own, left) = self.turn;
        if left > 0 && may(&self.queues[own]) {
            self.turn = (own, left - 1);
            return Some(own);
        }
        let count = self.queues.len();
        let next = (1..=count).map(|n| (own + n) % count).find(|queue| may(&self.queues[*queue]))?;
        self.turn = (next, weights[next] - 1);
        Some(next)
    }
}

/// The time that a link of this rate takes for so many bytes; never less.
fn sending_ps(bytes: u32, bits_per_second: u64) -> u64 {
    (u128::from(bytes) * 8_000_000_000_000).div_ceil(u128::from(bits_per_second)) as u64
}

#[cfg(test)]
mod tests {
    use super::{Card, CardConf, CardQueue, Order};

    /// The queues of packets in the order in which they are sent, and when.
    fn sent(card: &mut Card<u32>) -> Vec<(u64, usize)> {
        std::iter::from_fn(|| card.completed(u64::MAX / 1000)).map(|done| (done.at_ns, done.queue)).collect()
    }

    fn posted(conf: &CardConf, counts: &[usize]) -> Card<u32> {
        let mut card = Card::new(conf);
        for (queue, count) in counts.iter().enumerate() {
            assert_eq!(card.post(0, queue, (0..*count).map(|n| (1250, n as u32))), *count);
        }
        card
    }

    #[test]
    fn a_queue_refuses_when_its_descriptors_are_used_up() {
        // 10 Gbit/s: a packet of 1,250 bytes takes a microsecond.
        let mut card = Card::new(&CardConf::strict(10_000_000_000, 0, 2, 4));
        assert_eq!(card.post(0, 1, (0..6).map(|n| (1250, n))), 4);
        assert_eq!((card.room(1), card.room(0)), (0, 4));
        // A packet keeps its descriptor until it has been sent.
        assert_eq!(card.post(999, 1, [(1250, 9)]), 0);
        assert_eq!(card.post(1000, 1, [(1250, 9), (1250, 10)]), 1);
        assert_eq!(sent(&mut card).len(), 5);
        assert!(card.is_idle());
    }

    #[test]
    fn strict_priority_waits_for_one_packet() {
        let mut card = Card::new(&CardConf::strict(10_000_000_000, 0, 2, 4));
        card.post(0, 1, [(1250, 0), (1250, 1)]);
        card.post(10, 0, [(1250, 2), (1250, 3)]);
        assert_eq!(sent(&mut card), [(1000, 1), (2000, 0), (3000, 0), (4000, 1)]);
    }

    #[test]
    fn weights_are_packets_of_a_turn() {
        let conf = CardConf { order: Order::Weighted(vec![3, 1]), ..CardConf::strict(10_000_000_000, 0, 2, 16) };
        let order: Vec<usize> = sent(&mut posted(&conf, &[6, 4])).into_iter().map(|(_, queue)| queue).collect();
        // The first packet went when the other queue was empty.
        assert_eq!(order, [0, 0, 0, 1, 0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn a_queue_keeps_to_its_own_rate_and_others_go_on() {
        let mut conf = CardConf::strict(10_000_000_000, 0, 2, 16);
        conf.queues[0] = CardQueue { descriptors: 16, bits_per_second: Some(2_500_000_000) };
        let mut card = posted(&conf, &[3, 3]);
        assert_eq!(sent(&mut card), [(1000, 0), (2000, 1), (3000, 1), (4000, 1), (5000, 0), (9000, 0)]);
        assert!(card.is_idle());
    }

    #[test]
    fn rounding_does_not_change_the_rate() {
        // 1,424 bytes at 98 Gbit/s are 116.245 ns.
        let mut card = posted(&CardConf::ring(98_000_000_000, 174, 10_000), &[10_000]);
        assert_eq!(sent(&mut card).last().map(|(at_ns, _)| *at_ns), Some(1_162_450));
    }
}
