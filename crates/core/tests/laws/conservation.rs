//! Nothing is lost and nothing is made: what comes in leaves, is dropped and counted, or is queued.

use crate::{
    cases::Case,
    laws, traces,
    world::{CLASSES, Event, World, members, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::{Core, Packet, Scheduler, Verdict};

laws! {
    nothing_is_lost: traces::of(traces::KINDS).by_flow().ceilings().peaks().guarantees().policing().limits().framing().changes().lateness();
    wiped_is_as_good_as_new: traces::of(traces::KINDS).by_flow().ceilings().peaks().guarantees().policing().limits().framing();
    every_refusal_has_its_reason: traces::of(traces::KINDS).by_flow().ceilings().peaks().policing().limits().framing().changes();
}

#[derive(Clone, Copy, Default, Debug, PartialEq)]
struct Count {
    pkts: u64,
    bytes: u64,
}

impl Count {
    fn add(&mut self, len: u32) {
        self.pkts += 1;
        self.bytes += u64::from(len);
    }
}

/// The account of a class.
#[derive(Clone)]
struct Account {
    sent: Count,
    marked: u64,
    dropped: Count,
    /// Packets, by reason.
    reasons: [u64; abi::SL_DROPS as usize],
    peak_bytes: u64,
    /// Packets sent, by their time in queue.
    sojourns: [u64; abi::SL_SOJOURN_BUCKETS as usize],
}

/// In = sent + dropped + queued, in packets and in bytes, for each class, whatever policy takes force while packets are
/// queued, and when the queues are cleared. No slot is given twice. In the end all packets have left. All counters are true.
fn nothing_is_lost(core: &'static Core, case: &Case) -> TestCaseResult {
    let new = Account {
        sent: Count::default(),
        marked: 0,
        dropped: Count::default(),
        reasons: [0; abi::SL_DROPS as usize],
        peak_bytes: 0,
        sojourns: [0; abi::SL_SOJOURN_BUCKETS as usize],
    };
    let mut accounts = vec![new; CLASSES];
    // The classes of which packets have been dropped to make room.
    let mut robbed = 0u64;
    run(core, case, |world, event| {
        match event {
            Event::Arrived(packet, Ok(())) => {
                let account = &mut accounts[packet.class];
                let bytes = world.queues[packet.class].iter().map(|queued| u64::from(queued.len)).sum();
                account.peak_bytes = account.peak_bytes.max(bytes);
                let taken = world.queues.iter().flatten().filter(|queued| queued.slot == packet.slot).count();
                prop_assert_eq!(taken, 1, "packets in slot {}", packet.slot);
                prop_assert!(packet.slot < abi::SL_SLOTS);
                // Other events change no class but this one and that which sends.
                let changed = std::mem::take(&mut robbed) | 1 << packet.class;
                return members(changed).try_for_each(|class| agrees(world, class, &accounts[class]));
            }
            Event::Arrived(packet, Err(reason)) => {
                accounts[packet.class].drops(packet.len, *reason);
                let changed = std::mem::take(&mut robbed) | 1 << packet.class;
                return members(changed).try_for_each(|class| agrees(world, class, &accounts[class]));
            }
            Event::Dropped(packet, reason) => {
                accounts[packet.class].drops(packet.len, *reason);
                robbed |= 1 << packet.class;
                return Ok(());
            }
            Event::Sent(packet) => {
                let account = &mut accounts[packet.class];
                account.sent.add(packet.len);
                account.marked += u64::from(packet.marked);
                robbed = 0;
                account.sojourns[sluice_core::sojourn_bucket(world.now - packet.arrived_ns)] += 1;
                return agrees(world, packet.class, account);
            }
            Event::Cleared(queues) => {
                let packets = queues.iter().flatten();
                packets.for_each(|packet| accounts[packet.class].drops(packet.len, abi::SL_DROP_RESET));
            }
            Event::Idle => prop_assert!(world.queues.iter().all(|queue| queue.is_empty()), "idle with packets"),
            Event::Configured => {}
            Event::Arriving(_) | Event::Asking | Event::Waits(_) => return Ok(()),
        }
        (0..CLASSES).try_for_each(|class| agrees(world, class, &accounts[class]))?;
        let queued: usize = world.queues.iter().map(|queue| queue.len()).sum();
        prop_assert_eq!(world.core.state().backlog_pkts as usize, queued);
        Ok(())
    })
}

impl Account {
    fn drops(&mut self, len: u32, reason: u32) {
        self.dropped.add(len);
        self.reasons[reason as usize] += 1;
    }
}

fn agrees(world: &World, class: usize, account: &Account) -> TestCaseResult {
    let state = &world.core.state().classes[class];
    let mut queued = Count::default();
    world.queues[class].iter().for_each(|packet| queued.add(packet.len));
    let backlog = Count { pkts: state.backlog_pkts.into(), bytes: state.backlog_bytes.into() };
    prop_assert_eq!(backlog, queued, "queued of class {}", class);
    prop_assert_eq!(state.peak_backlog_bytes, account.peak_bytes, "most bytes queued of class {}", class);
    let counted = Count { pkts: state.sent_pkts, bytes: state.sent_bytes };
    prop_assert_eq!(counted, account.sent, "sent of class {}", class);
    let counted = Count { pkts: state.dropped_pkts.iter().sum(), bytes: state.dropped_bytes };
    prop_assert_eq!(counted, account.dropped, "dropped of class {}", class);
    prop_assert_eq!(state.dropped_pkts, account.reasons, "dropped of class {}, by reason", class);
    prop_assert_eq!(state.marked_pkts, account.marked, "marked of class {}", class);
    prop_assert_eq!(world.core.state().sojourn[class].count, account.sojourns, "times in queue of class {}", class);
    Ok(())
}

/// A scheduler that has served, and was wiped, does what a new one does, and counts the same.
fn wiped_is_as_good_as_new(core: &'static Core, case: &Case) -> TestCaseResult {
    let mut new = Scheduler::of(core, &case.policy.conf(), case.start_ns);
    let mut used = Scheduler::of(core, &case.policy.conf(), case.start_ns);
    play(&mut used, case);
    used.wipe();
    prop_assert_eq!((used.state().generation, used.state().backlog_pkts), (0, 0));
    used.configure(&case.policy.conf(), case.start_ns);
    let (does, should) = (play(&mut used, case), play(&mut new, case));
    for (step, (does, should)) in does.iter().zip(&should).enumerate() {
        prop_assert_eq!(does, should, "in step {}", step);
    }
    for class in 0..CLASSES {
        let of = |scheduler: &Scheduler| {
            let (state, times) = (&scheduler.state().classes[class], &scheduler.state().sojourn[class]);
            let counts = [state.sent_pkts, state.sent_bytes];
            let dropped = (state.dropped_pkts, state.dropped_bytes, state.marked_pkts);
            (counts, dropped, state.peak_backlog_bytes, times.count)
        };
        prop_assert_eq!(of(&used), of(&new), "counters of class {}", class);
    }
    Ok(())
}

/// The answers of a scheduler: to each packet of a case, to a request for one after each, and the packets dropped then.
fn play(scheduler: &mut Scheduler, case: &Case) -> Vec<(Result<u32, u32>, Verdict, Vec<u32>)> {
    let (mut now, pace) = (case.start_ns, case.pace(&case.policy));
    let arrivals = case.phases.iter().flat_map(|phase| &phase.arrivals);
    let packets = arrivals.flat_map(|arrival| (0..arrival.copies).map(move |_| arrival));
    let answers = packets.map(|packet| {
        now += pace.time_ns(u64::from(packet.len));
        let packet = Packet {
            class: packet.class,
            len_bytes: packet.len,
            segments: packet.segments,
            flow_hash: packet.flow.hash,
            src_host: packet.flow.src,
            dst_host: packet.flow.dst,
            ecn: packet.flow.ecn.into(),
        };
        let answer = scheduler.enqueue_packet(&packet, now);
        let mut dropped: Vec<_> = std::iter::from_fn(|| scheduler.reap()).collect();
        let verdict = scheduler.dequeue(now);
        dropped.extend(std::iter::from_fn(|| scheduler.reap()));
        (answer, verdict, dropped)
    });
    answers.collect()
}

/// A packet is refused if its class is policed and has no tokens, of its ceiling or of its peak, holds as many packets or bytes as it may, or no slot is
/// free; for the first reason that applies, and never without.
fn every_refusal_has_its_reason(core: &'static Core, case: &Case) -> TestCaseResult {
    // The bucket without tokens before the packet came, if the class is policed; and the most slots that were taken at once.
    let (mut over, mut most) = (None, 0);
    // Packets that were dropped to make room: their slots are not free yet.
    let mut dropped = 0;
    run(core, case, |world, event| {
        let (packet, answer) = match event {
            Event::Arriving(class) => {
                let (ceil, peak) = (world.ceil[*class].open(world.now), world.peak[*class].open(world.now));
                over = if !ceil { Some(abi::SL_DROP_POLICED) } else { (!peak).then_some(abi::SL_DROP_PEAK) };
                dropped = 0;
                return Ok(());
            }
            Event::Dropped(..) => {
                dropped += 1;
                return Ok(());
            }
            Event::Cleared(_) => {
                most = 0;
                return Ok(());
            }
            Event::Arrived(packet, answer) => (packet, answer),
            _ => return Ok(()),
        };
        let class = packet.class;
        let (limit_pkts, limit_bytes) =
            world.policy.classes.get(class).map_or((0, 0), |policy| (policy.limit_pkts, policy.limit_bytes));
        // The world has queued the packet already if it was accepted.
        let others = world.queues[class].iter().filter(|queued| queued.number != packet.number);
        let (pkts, bytes) = others.fold((0, 0), |(pkts, bytes), queued| (pkts + 1, bytes + u64::from(queued.len)));
        let queued = world.queues.iter().flatten().filter(|queued| queued.number != packet.number).count();
        let taken = queued + dropped;
        let expected = if let (Some(reason), true) = (over, world.policed(class)) {
            Err(reason)
        } else if pkts >= limit_pkts {
            Err(abi::SL_DROP_LIMIT_PKTS)
        } else if bytes + u64::from(packet.len) > limit_bytes.into() {
            Err(abi::SL_DROP_LIMIT_BYTES)
        } else if taken >= most.max(world.policy.slots as usize) {
            // Slots that were taken before their number was reduced can be taken again.
            Err(abi::SL_DROP_NO_SLOT)
        } else if *answer == Err(abi::SL_DROP_NO_SLOT) {
            // Few slots are left, and they are not for the class that holds most, if it has one FIFO.
            let slots = world.policy.slots as usize;
            let by_flow = world.policy.classes[class].flows.is_some() && world.policy.kind != abi::SL_PIFO;
            let own = !by_flow && pkts >= 32 && queued + (slots / 4).min(64) >= slots;
            if own { Err(abi::SL_DROP_NO_SLOT) } else { Ok(()) }
        } else {
            Ok(())
        };
        prop_assert_eq!(*answer, expected, "of {:?}", packet);
        most = most.max(taken + usize::from(answer.is_ok()));
        Ok(())
    })
}
