//! Calls of instances, interleaved at random down to single accesses to shared words, while time goes on at random.

use crate::builds::{Call, Stepped};
use crate::cases::{Random, START_NS};
use proptest::{prelude::*, test_runner::TestCaseError};
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

/// Instances of a link, each of which has one call at a time.
pub trait Instances {
    /// How many there are.
    fn count(&self) -> usize;
    /// The call by which an instance is asked for a packet, or another kind of call.
    fn call(&mut self, n: usize, kind: u32, now_ns: u64) -> Call;
    /// A call for a packet has ended. Returns when the instance is to be asked again; none: when it gets packets.
    fn ended(&mut self, n: usize, call: &Call, now_ns: u64, random: &mut Random) -> Option<u64>;
}

/// Instances of a link, and their calls.
pub struct World<I> {
    of: I,
    stepped: &'static Stepped,
    /// The kind of the calls for a packet.
    asks: u32,
    pub random: Random,
    calls: Box<[Call]>,
    under_way: Vec<usize>,
    /// When each instance is to be asked; none: when it gets packets.
    wakes_ns: Vec<Option<u64>>,
    pub now_ns: u64,
    /// Instances whose device takes nothing.
    pub stopped: u64,
    ready: VecDeque<usize>,
}

impl<I> Deref for World<I> {
    type Target = I;

    fn deref(&self) -> &I {
        &self.of
    }
}

impl<I> DerefMut for World<I> {
    fn deref_mut(&mut self) -> &mut I {
        &mut self.of
    }
}

impl<I: Instances> World<I> {
    /// These instances, each of which is to be asked at once, by calls of a kind.
    pub fn of(stepped: &'static Stepped, of: I, asks: u32, random: Random) -> World<I> {
        let n = of.count();
        World {
            of,
            stepped,
            asks,
            random,
            calls: vec![Call::default(); n].into(),
            under_way: Vec::new(),
            wakes_ns: vec![Some(START_NS); n],
            now_ns: START_NS,
            stopped: 0,
            ready: VecDeque::new(),
        }
    }

    /// The call of an instance goes on by one access to a shared word. Whether it has ended.
    fn go_on(&mut self, n: usize) -> bool {
        if !self.stepped.calls.go_on(n) {
            return false;
        }
        self.under_way.retain(|other| *other != n);
        self.wakes_ns[n] = self.of.ended(n, &self.calls[n], self.now_ns, &mut self.random);
        true
    }

    /// The call of an instance ends, if one is under way, so that what it is about may be touched.
    pub fn finish(&mut self, n: usize) {
        if self.under_way.contains(&n) {
            while !self.go_on(n) {}
        }
    }

    /// The instances, and the random numbers of the case.
    pub fn touch<T>(&mut self, with: impl FnOnce(&mut I, &mut Random) -> T) -> T {
        with(&mut self.of, &mut self.random)
    }

    /// An instance is to be asked now.
    pub fn wake(&mut self, n: usize) {
        self.wakes_ns[n] = Some(self.now_ns);
    }

    /// A call of this kind for each instance, interleaved at random.
    pub fn call_all(&mut self, kind: u32) {
        (0..self.of.count()).for_each(|n| self.begin(n, kind));
        while !self.under_way.is_empty() {
            let n = self.under_way[self.random.below(self.under_way.len() as u64) as usize];
            if self.stepped.calls.go_on(n) {
                self.under_way.retain(|other| *other != n);
            }
        }
    }

    fn begin(&mut self, n: usize, kind: u32) {
        let call = &mut self.calls[n];
        *call = self.of.call(n, kind, self.now_ns);
        // SAFETY: calls and what they are about stay where they are, and are left alone until the call has ended.
        unsafe { self.stepped.calls.begin(n, call) };
        self.under_way.push(n);
        self.wakes_ns[n] = None;
    }

    /// Runs until this time: calls of instances that are due are interleaved at random, and time goes on at random.
    pub fn run_until(&mut self, until_ns: u64) -> Result<(), TestCaseError> {
        let mut rounds = 0;
        while self.now_ns < until_ns {
            self.ready.clear();
            for n in 0..self.of.count() {
                let due = self.wakes_ns[n].is_some_and(|at| at <= self.now_ns) && self.stopped >> n & 1 == 0;
                if due && !self.under_way.contains(&n) {
                    self.ready.push_back(n);
                }
            }
            let choices = self.ready.len() + self.under_way.len();
            if choices == 0 {
                let wakes = (0..self.of.count()).filter(|n| self.stopped >> n & 1 == 0);
                let next = wakes.filter_map(|n| self.wakes_ns[n]).min().unwrap_or(until_ns);
                self.now_ns = next.clamp(self.now_ns + 1, until_ns);
                continue;
            }
            let choice = self.random.below(choices as u64) as usize;
            if choice < self.ready.len() {
                self.begin(self.ready[choice], self.asks);
            } else {
                let n = self.under_way[choice - self.ready.len()];
                // Often several steps of one, so that calls end while others stand still.
                for _ in 0..=self.random.below(12) {
                    if self.go_on(n) {
                        break;
                    }
                }
            }
            // A clock goes on while calls are under way.
            if self.random.one_in(16) {
                self.now_ns += self.random.below(500);
            }
            rounds += 1;
            prop_assert!(rounds < 20_000_000, "calls do not end");
        }
        while let Some(n) = self.under_way.first().copied() {
            self.finish(n);
        }
        Ok(())
    }
}
