//! The measurements as tables, beside what the model says, and the model for up to 64 processors.

use crate::Raw;
use crate::contenders::{CLASSES, OUTSIDE};
use sluice_simulator::scaling::{Costs, Design, packets_per_second};
use std::fmt::Write;

/// The numbers of processors of the tables.
pub const PROCESSORS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Lengths of frames, without what the wire adds.
pub const FRAMES: [u32; 2] = [64, 1514];
/// The rate that is shared.
pub const LINK_BPS: u64 = 100_000_000_000;

/// ns of an instruction: one in a cycle of 3 GHz. The kernel's network code does about as many; nothing here measures it.
const INSTRUCTION_NS: f64 = 1.0 / 3.0;
/// Instructions with which a router forwards a packet of 64 bytes without a queueing discipline, and those that one adds
/// (`bench/run forward`, `bench/data/forward-20261123-linux-7.3.4.csv`).
const FORWARDING: f64 = 1850.0;
const HTB_AND_FQ_CODEL: f64 = 3907.0 - FORWARDING;
const CAKE: f64 = 4541.0 - FORWARDING;
/// Sluice's own, and the most that shared credit may add.
const SLUICE: f64 = 3366.0 - FORWARDING + 60.0;
/// How often an instance of cake_mq looks at the others (`net/sched/sch_cake.c`, `cake_configure_rates`).
const CAKE_MQ_PERIOD_NS: f64 = 200_000.0;
/// Lines that come with a lock: its own, those of the scheduler's head, of the class, and of the last packet in its queue.
const LOCK_LINES: f64 = 4.0;
/// Lines of a visit: the bucket, the active classes, and each class.
const VISIT_LINES: f64 = 2.0 + CLASSES as f64;

/// A curve of the model.
pub struct Curve {
    /// The design, as a reader knows it.
    pub name: &'static str,
    /// Packets a second by the number of processors, up to what the link takes.
    pub points: Vec<(u32, f64)>,
}

fn median(raw: &Raw, what: &str, parameter: u32, processors: u32) -> f64 {
    let mut values = raw.get(&(what.to_owned(), parameter, processors)).cloned().unwrap_or_default();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The median of the speed-ups of runs that followed each other: packets of two processors by those of one.
fn speed_up(raw: &Raw, what: &str, outside: u32) -> f64 {
    let of = |processors| raw.get(&(what.to_owned(), outside, processors)).cloned().unwrap_or_default();
    let mut ratios: Vec<f64> = of(1).iter().zip(of(2)).map(|(one, two)| 2.0 * one / two).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The time in which a line goes from one processor to the other, ns: it comes and goes for each change.
fn line_ns(raw: &Raw) -> f64 {
    median(raw, "line", 0, 2) / 2.0
}

/// The most frames of this length that the link takes, packets a second.
pub fn link_pps(frame_bytes: u32) -> f64 {
    LINK_BPS as f64 / 8.0 / f64::from(frame_bytes + 24)
}

/// The curves of a frame length.
pub fn curves(raw: &Raw, frame_bytes: u32) -> Vec<Curve> {
    let costs = |apart: f64, locked: f64| Costs {
        apart_ns: apart * INSTRUCTION_NS,
        locked_ns: locked * INSTRUCTION_NS,
        line_ns: line_ns(raw),
    };
    let curve = |name, costs: Costs, design: &dyn Fn(u32) -> Design| Curve {
        name,
        points: PROCESSORS.map(|n| (n, packets_per_second(design(n), costs, n).min(link_pps(frame_bytes)))).to_vec(),
    };
    vec![
        curve("Sluice, one rate", costs(FORWARDING + SLUICE, 0.0), &|n| Design::Shared {
            visits: median(raw, "visits", frame_bytes, n),
            lines: VISIT_LINES,
        }),
        curve("cake_mq, a part of the rate each", costs(FORWARDING + CAKE, 0.0), &|_| Design::Parts {
            period_ns: CAKE_MQ_PERIOD_NS,
        }),
        curve("HTB + fq_codel, one lock", costs(FORWARDING, HTB_AND_FQ_CODEL), &|_| Design::Locked {
            lines: LOCK_LINES,
        }),
    ]
}

/// The speed-up of two processors that the model predicts for a contender that was measured.
fn predicted(raw: &Raw, what: &str, outside: u32) -> f64 {
    let (one, alone) = (median(raw, what, outside, 1), median(raw, what, 0, 1));
    let (design, costs) = match what {
        "locked" => {
            let costs = Costs { apart_ns: one - alone, locked_ns: alone, line_ns: line_ns(raw) };
            (Design::Locked { lines: LOCK_LINES }, costs)
        }
        _ => {
            let costs = Costs { apart_ns: one, locked_ns: 0.0, line_ns: line_ns(raw) };
            // A batch is 64 frames, and while the rate is not reached, a visit is to the bucket alone.
            let visits = if what == "shared" { 1.0 / 64.0 } else { 0.0 };
            (Design::Shared { visits, lines: 1.0 }, costs)
        }
    };
    packets_per_second(design, costs, 2) / packets_per_second(design, costs, 1)
}

/// The tables of a run, in Markdown.
pub fn tables(raw: &Raw) -> String {
    let mut text = format!("A line goes from one processor to the other in {:.0} ns.\n\n", line_ns(raw));
    text += "| contender | work outside, steps | one processor, ns a packet | two, each | times one | the model says |\n|---|---:|---:|---:|---:|---:|\n";
    for what in ["apart", "shared", "locked"] {
        for outside in OUTSIDE {
            let _ = writeln!(
                text,
                "| {what} | {outside} | {:.1} | {:.1} | {:.2} | {:.2} |",
                median(raw, what, outside, 1),
                median(raw, what, outside, 2),
                speed_up(raw, what, outside),
                predicted(raw, what, outside),
            );
        }
    }
    for frame_bytes in FRAMES {
        let curves = curves(raw, frame_bytes);
        let _ = writeln!(
            text,
            "\nModel, frames of {frame_bytes} bytes, 100 Gbit/s ({:.1} million packets a second), million packets a second:\n",
            link_pps(frame_bytes) / 1e6
        );
        let names: Vec<&str> = curves.iter().map(|curve| curve.name).collect();
        let _ = writeln!(text, "| processors | {} | visits a packet |", names.join(" | "));
        let _ = writeln!(text, "|---:|{}---:|", "---:|".repeat(names.len()));
        for (row, processors) in PROCESSORS.iter().enumerate() {
            let cells: Vec<String> = curves.iter().map(|curve| format!("{:.2}", curve.points[row].1 / 1e6)).collect();
            let visits = median(raw, "visits", frame_bytes, *processors);
            let _ = writeln!(text, "| {processors} | {} | {visits:.4} |", cells.join(" | "));
        }
    }
    text
}
