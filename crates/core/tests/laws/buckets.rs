//! Token buckets never let more through than they may.

use crate::{
    cases::{Case, ClassPolicy, Rate},
    laws, traces,
    world::{CLASSES, Event, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_core::Core;

laws! {
    the_link_is_never_exceeded: traces::of(traces::KINDS).by_flow().ceilings().peaks().guarantees().policing().framing().lateness();
    no_packet_leaves_without_tokens: traces::of(traces::KINDS).by_flow().ceilings().peaks().guarantees().policing().framing().changes().lateness();
    no_ceiling_is_exceeded: traces::of(traces::KINDS).by_flow().ceilings().peaks().guarantees().policing().limits().framing().lateness();
    no_peak_is_exceeded: traces::of(traces::KINDS).by_flow().ceilings().peaks().guarantees().policing().limits().framing().lateness();
}

/// The packets through a bucket: over every window [t1, t2] in which packets i to j go,
///
///   (bytes of i to j - 1) / rate <= t2 - t1 + burst,
///
/// so with the last of them at most rate * t + burst + one packet (ITU-T I.371, with a bucket that sends while it has any
/// credit). With S the time that all before j have taken at the rate, the windows that end at j hold if
/// S_j - t_j <= min over i <= j of (S_i - t_i) + burst: one running minimum. All in 2^-20 ns; clocks are whole ns.
#[derive(Clone, Copy, Default)]
struct Window {
    taken: i128,
    least: Option<i128>,
}

impl Window {
    fn goes(&mut self, rate: Rate, wire: u32, now_ns: u64) -> TestCaseResult {
        let ahead = self.taken - (i128::from(now_ns) << 20);
        let least = self.least.map_or(ahead, |least| least.min(ahead));
        let over = (ahead - least) - (i128::from(rate.burst_ns) << 20);
        prop_assert!(over < 1 << 20, "{} ns over the burst, {:?}", over >> 20, rate);
        self.least = Some(least);
        self.taken += i128::from(wire) * i128::from(rate.cost);
        Ok(())
    }
}

/// In no window does the link carry more than rate * t + burst + one packet, on the wire.
fn the_link_is_never_exceeded(core: &'static Core, case: &Case) -> TestCaseResult {
    let mut window = Window::default();
    run(core, case, |world, event| match (event, world.policy.link) {
        (Event::Sent(packet), Some(link)) => window.goes(link, packet.wire, world.now),
        _ => Ok(()),
    })
}

/// In no window does a class with a ceiling send more than rate * t + burst + one packet, on the wire; a policed class is
/// not let in with more.
fn no_ceiling_is_exceeded(core: &'static Core, case: &Case) -> TestCaseResult {
    no_bucket_is_exceeded(core, case, |class| class.ceil)
}

/// In no window does a class with a peak send more than its peak allows. With the law of ceilings: no more than
/// min(peak * t + burst of the peak, ceil * t + burst) + one packet.
fn no_peak_is_exceeded(core: &'static Core, case: &Case) -> TestCaseResult {
    no_bucket_is_exceeded(core, case, |class| class.peak)
}

fn no_bucket_is_exceeded(core: &'static Core, case: &Case, bucket: fn(&ClassPolicy) -> Option<Rate>) -> TestCaseResult {
    let mut windows = [Window::default(); CLASSES];
    run(core, case, |world, event| {
        let packet = match event {
            Event::Sent(packet) if !world.policed(packet.class) => packet,
            Event::Arrived(packet, Ok(())) if world.policed(packet.class) => packet,
            _ => return Ok(()),
        };
        match bucket(&world.policy.classes[packet.class]) {
            Some(rate) => windows[packet.class].goes(rate, packet.wire, world.now),
            None => Ok(()),
        }
    })
}

/// No packet is sent unless the link and its class have tokens. A debt from before another policy came is owed, in bytes.
fn no_packet_leaves_without_tokens(core: &'static Core, case: &Case) -> TestCaseResult {
    let (mut link, mut ready) = (false, 0u64);
    run(core, case, |world, event| {
        match event {
            Event::Asking => (link, ready) = (world.link.open(world.now), world.ready),
            Event::Sent(packet) => {
                prop_assert!(link, "the link has no tokens");
                prop_assert!(ready >> packet.class & 1 == 1, "class {} has no tokens", packet.class);
            }
            _ => {}
        }
        Ok(())
    })
}
