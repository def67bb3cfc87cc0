//! Events by their time; those of one time come in the order in which they were added.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

/// Events of kind `E`.
pub(crate) struct Events<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    added: u64,
}

struct Entry<E> {
    at_ns: u64,
    number: u64,
    event: E,
}

impl<E> Entry<E> {
    fn key(&self) -> (u64, u64) {
        (self.at_ns, self.number)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<E> Default for Events<E> {
    fn default() -> Self {
        Events { heap: BinaryHeap::new(), added: 0 }
    }
}

impl<E> Events<E> {
    pub(crate) fn add(&mut self, at_ns: u64, event: E) {
        self.added += 1;
        self.heap.push(Reverse(Entry { at_ns, number: self.added, event }));
    }

    /// The next event, if it is not later than this.
    pub(crate) fn next_until(&mut self, until_ns: u64) -> Option<(u64, E)> {
        if self.heap.peek()?.0.at_ns > until_ns {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.at_ns, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::Events;

    #[test]
    fn events_come_by_time_and_then_in_their_order() {
        let mut events = Events::default();
        for (at_ns, name) in [(5, "c"), (1, "a"), (5, "d"), (3, "b"), (9, "e")] {
            events.add(at_ns, name);
        }
        let order: Vec<_> = std::iter::from_fn(|| events.next_until(5)).collect();
        assert_eq!(order, [(1, "a"), (3, "b"), (5, "c"), (5, "d")]);
        assert_eq!(events.next_until(9), Some((9, "e")));
    }
}
