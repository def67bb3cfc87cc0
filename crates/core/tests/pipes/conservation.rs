//! Nothing is lost and nothing is made.

use crate::{
    laws, traces,
    traces::Case,
    world::{Event, class_of, is_second, pipe_of, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::pipes::PipesCore;
use std::collections::BTreeMap;

laws! {
    nothing_is_lost: traces::of(150).rates().class_limits().masks().edits();
    queues_refuse_what_is_beyond_their_limits: traces::of(150).small_limits().edits();
    counters_are_true: traces::of(150).small_limits().masks().edits();
}

/// A packet that comes leaves once, in order within its queue, or is refused or dropped; in the end all packets have left. The world checks it.
fn nothing_is_lost(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    let mut held = 0;
    run(core, case, &mut |_, event| {
        match event {
            Event::Arrived { taken: true, .. } => held += 1,
            Event::Sent { .. } | Event::Dropped { .. } => held -= 1,
            _ => {}
        }
        Ok(())
    })?;
    prop_assert_eq!(held, 0);
    Ok(())
}

/// A packet is refused if its queue has as many packets as it may, or as many bytes, or no slot is left; else it is taken.
fn queues_refuse_what_is_beyond_their_limits(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    run(core, case, &mut |world, event| {
        let Event::Arrived { queue, taken, slots_left } = *event else { return Ok(()) };
        if !world.conf.contains_key(&pipe_of(queue)) || !slots_left {
            prop_assert!(!taken);
            return Ok(());
        }
        let profile = world.profile(pipe_of(queue));
        let place = (queue % abi::SL_PIPE_QUEUES) as usize;
        let held = world.queues.get(&queue);
        let pkts = held.map_or(0, |held| held.len() as u32);
        let bytes: u32 = held.map_or(0, |held| held.iter().map(|packet| packet.bytes).sum());
        let room = pkts < profile.limit_pkts[place] && bytes < profile.limit_bytes[place];
        prop_assert_eq!(taken, room, "queue {} holds {} packets and {} bytes", queue, pkts, bytes);
        Ok(())
    })?;
    Ok(())
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Account {
    pkts: u64,
    bytes: u64,
    dropped: u64,
}

/// Counters of subports by class, of pipes and of queues say what has happened.
fn counters_are_true(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    let (mut classes, mut pipes, mut queues) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let world = run(core, case, &mut |_, event| {
        let (queue, add) = match *event {
            Event::Sent { queue, bytes, .. } => (queue, Account { pkts: 1, bytes: u64::from(bytes), dropped: 0 }),
            Event::Arrived { queue, taken: false, .. } | Event::Dropped { queue } => {
                (queue, Account { dropped: 1, ..Account::default() })
            }
            _ => return Ok(()),
        };
        let subport = if is_second(pipe_of(queue)) { 0 } else { 3 };
        for account in [
            classes.entry((subport, class_of(queue))).or_insert_with(Account::default),
            pipes.entry(pipe_of(queue)).or_insert_with(Account::default),
            queues.entry(queue).or_insert_with(Account::default),
        ] {
            account.pkts += add.pkts;
            account.bytes += add.bytes;
            account.dropped += add.dropped;
        }
        Ok(())
    })?;
    let state = world.pipes.state();
    for ((subport, class), account) in classes {
        let (subport, class) = (&state.subport[subport], class as usize);
        let dropped = subport.dropped_pkts[class].iter().sum();
        prop_assert_eq!(
            account,
            Account { pkts: subport.sent_pkts[class], bytes: subport.sent_bytes[class], dropped },
            "class {}",
            class
        );
    }
    for (pipe, account) in pipes {
        prop_assert_eq!(account.pkts, u64::from(state.pipe[pipe as usize].sent_pkts), "pipe {}", pipe);
        prop_assert_eq!(account.dropped, u64::from(state.dropped_pkts[pipe as usize]), "pipe {}", pipe);
    }
    for (queue, account) in queues {
        let of = &state.queue[queue as usize];
        prop_assert_eq!((account.bytes, 0), (u64::from(of.sent_bytes), of.backlog_bytes), "queue {}", queue);
    }
    Ok(())
}
