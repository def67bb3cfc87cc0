//! How often instances that share a rate go to shared words, in simulated time.

use crate::contenders::{CLASSES, configuration};
use sluice_core::shared_credit::{Class, Conf, Instance};
use sluice_simulator::{Link, Port, Simulation, Source};

/// Bytes that Ethernet adds to a frame on the wire: preamble, checksum and gap.
const WIRE_BYTES: u32 = 24;
/// The least number of packets of a run, for each instance.
const PACKETS: u64 = 4_000;

/// Visits for a packet, of instances that all have packets of all classes.
pub fn per_packet(instances: u32, bits_per_second: u64, frame_bytes: u32) -> f64 {
    let longest = crate::model::FRAMES.into_iter().max().unwrap_or(frame_bytes) + WIRE_BYTES;
    let classes = [Class::default(); CLASSES as usize];
    let conf = Conf::new(instances, bits_per_second, 0, longest, &classes);
    let port = Port {
        link: Link { bits_per_second: 2 * bits_per_second, delay_ns: 1_000 },
        ring_packets: 256,
        timer_late_ns: (conf.raw().link.batch >> 6) / 4,
    };
    let scheduler = configuration(longest);
    let own = (0..instances).map(|number| Instance::new(number, &scheduler, 0)).collect();
    let sources = (0..instances as usize)
        .flat_map(|queue| (0..CLASSES).map(move |class| Source::backlogged(queue, class, frame_bytes + WIRE_BYTES)))
        .collect();
    let mut run = Simulation::new(port, own, conf, sources, 23);
    let packet_ns = u64::from(frame_bytes + WIRE_BYTES) * 8_000_000_000 / bits_per_second;
    run.run_until((PACKETS * u64::from(instances) * packet_ns).max(1_000_000));
    let draws: u64 = (0..instances as usize).map(|queue| run.instance(queue).own().draws).sum();
    draws as f64 / run.deliveries().len() as f64
}
