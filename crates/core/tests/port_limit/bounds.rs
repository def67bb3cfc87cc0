//! The limit is within its bounds, and the port has no more than the limit and a packet.

use crate::{
    laws,
    world::{self, Case, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_core::port_limit::LimitCore;

laws! {
    a_limit_keeps_within_its_bounds: world::slow(3).narrow();
    a_packet_goes_beyond_the_limit_at_most: world::slow(3).narrow();
    what_comes_back_is_not_under_way: world::at_once();
}

const LOOKS: usize = 300;

fn a_limit_keeps_within_its_bounds(core: &'static LimitCore, case: &Case) -> TestCaseResult {
    for look in run(core, case, LOOKS).iter().flatten() {
        let bounds = case.bounds.least_bytes..=case.bounds.most_bytes;
        prop_assert!(bounds.contains(&look.limit_bytes), "{look:?}");
    }
    Ok(())
}

/// A port has no more than the limit when the last packet is given; a limit that falls takes nothing back.
fn a_packet_goes_beyond_the_limit_at_most(core: &'static LimitCore, case: &Case) -> TestCaseResult {
    for look in run(core, case, LOOKS).iter().flatten().filter(|look| look.given > 0) {
        prop_assert!(look.held_bytes - look.last_bytes <= look.limit_bytes, "{look:?}");
        prop_assert!(look.held_bytes > look.limit_bytes, "there was room: {look:?}");
    }
    Ok(())
}

/// A port that has sent all has nothing under way at the next look, so it is given a packet at least.
fn what_comes_back_is_not_under_way(core: &'static LimitCore, case: &Case) -> TestCaseResult {
    for two in run(core, case, LOOKS)[0].windows(2) {
        prop_assert!(two[1].given > 0, "{:?}", two);
        prop_assert_eq!(two[1].came_bytes, two[0].held_bytes);
    }
    Ok(())
}
