//! The bucket and what instances have of it, at single atomic operations: no credit is made, none is lost, and the rate holds.

use crate::{
    builds::{Call, FILL, GIVE_BACK, Stepped},
    cases::{self, Case, FRAME, Random, START_NS, most_ahead},
    laws,
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::shared_credit::rate;
use std::cell::UnsafeCell;

laws! {
    no_window_has_more_than_its_bound: cases::of(64);
    no_credit_is_made_or_lost: cases::of(64);
}

/// An instance: its credit, from when it may be spent, and the call that is under way.
struct Drawer {
    credit: Box<i32>,
    from: u64,
    call: Box<Call>,
    under_way: bool,
}

/// Instances that draw, spend and give back at random, one bucket, and a clock.
struct Drawers {
    stepped: &'static Stepped,
    random: Random,
    rate: Box<abi::sl_shared_rate>,
    bucket: Box<UnsafeCell<u64>>,
    drawers: Vec<Drawer>,
    /// In 1/64 ns.
    now: u64,
    /// The clock stands still.
    still: bool,
    spent: Vec<(u64, u32)>,
    drawn: u64,
    returned: u64,
}

impl Drawers {
    fn new(stepped: &'static Stepped, case: &Case, burst_ns: u64) -> Drawers {
        let drawer = || Drawer { credit: Box::new(0), from: 0, call: Box::default(), under_way: false };
        Drawers {
            stepped,
            random: Random::new(case.seed),
            rate: Box::new(rate(case.rate, burst_ns, FRAME)),
            bucket: Box::new(UnsafeCell::new(START_NS << 6)),
            drawers: (0..case.instances).map(|_| drawer()).collect(),
            now: START_NS << 6,
            still: false,
            spent: Vec::new(),
            drawn: 0,
            returned: 0,
        }
    }

    fn begin(&mut self, n: usize, kind: u32, bytes: u32) {
        let ahead = u64::from(abi::SL_SHARED_AHEAD_NS) << 6;
        let ahead = if self.random.one_in(2) { self.random.below(ahead) } else { 0 };
        let drawer = &mut self.drawers[n];
        *drawer.call = Call {
            kind,
            now: self.now,
            ahead,
            bytes,
            bucket: self.bucket.get(),
            rate: &*self.rate,
            credit: &mut *drawer.credit,
            ..Call::default()
        };
        // SAFETY: all that the call points at is in boxes, and is left alone until it has ended.
        unsafe { self.stepped.calls.begin(n, &mut *drawer.call) };
        drawer.under_way = true;
    }

    fn go_on(&mut self, n: usize) {
        if !self.stepped.calls.go_on(n) {
            return;
        }
        let drawer = &mut self.drawers[n];
        drawer.under_way = false;
        if drawer.call.kind == GIVE_BACK {
            self.returned += (u64::from(drawer.call.bytes) * self.rate.cost) >> 14;
        } else if drawer.call.answer <= drawer.call.now + drawer.call.ahead {
            drawer.from = drawer.call.answer;
            let bytes = *drawer.credit - drawer.call.bytes as i32;
            self.drawn += (bytes as u64 * self.rate.cost).div_ceil(1 << 14);
        }
    }

    /// An instance does something at random.
    fn act(&mut self) {
        let n = self.random.below(self.drawers.len() as u64) as usize;
        let credit = *self.drawers[n].credit;
        if self.drawers[n].under_way {
            self.go_on(n);
        } else if credit <= 0 {
            self.begin(n, FILL, credit as u32);
        } else if self.random.one_in(20) {
            *self.drawers[n].credit = 0;
            self.begin(n, GIVE_BACK, credit as u32);
        } else if self.drawers[n].from <= self.now {
            let bytes = 64 + self.random.below(1437) as u32;
            *self.drawers[n].credit -= bytes as i32;
            self.spent.push((self.now >> 6, bytes));
        }
        if !self.still && self.random.one_in(4) {
            let step = self.rate.batch / 8;
            self.now += self.random.below(step);
        }
    }

    fn end(&mut self) {
        for n in 0..self.drawers.len() {
            while self.drawers[n].under_way {
                self.go_on(n);
            }
        }
    }
}

/// In any window all instances together spend no more than rate * t + burst + a batch for each of them.
fn no_window_has_more_than_its_bound(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut world = Drawers::new(stepped, case, case.burst_ns);
    for _ in 0..20_000 {
        world.act();
    }
    world.end();
    let burst = world.rate.burst as f64 / 64.0 * case.rate as f64 / 8e9;
    let bound = burst + f64::from(case.instances) * f64::from(world.rate.batch_bytes);
    let ahead = most_ahead(world.spent.iter().copied(), case.rate);
    prop_assert!(!world.spent.is_empty(), "nothing was spent");
    // Times are rounded down to a ns.
    let rounding = case.rate as f64 / 8e9 + 1.0;
    prop_assert!(ahead <= bound + rounding, "{} bytes ahead, the bound is {}", ahead, bound);
    Ok(())
}

/// While the clock stands still, the word says to the unit what was drawn and not given back, in whichever order instances did so.
fn no_credit_is_made_or_lost(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    // The burst is never used up, so that instances meet at the word all the time.
    let mut world = Drawers::new(stepped, case, 1 << 40);
    world.still = true;
    for _ in 0..20_000 {
        world.act();
    }
    world.end();
    // SAFETY: no call is under way.
    let word = unsafe { *world.bucket.get() };
    prop_assert_eq!(word - (START_NS << 6), world.drawn - world.returned);
    Ok(())
}
