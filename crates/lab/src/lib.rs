//! The lab: networks in namespaces of their own, real traffic through them, measurements on that traffic, and reports.
//!
//! Files (`format`) say which traffic (scenario) runs over which network (topology), and who owns its bottleneck (contender). They become
//! a job, whose trials (`run`) build networks, put contenders to work, start traffic by `tool` and look at queues and processors meanwhile.
//! Their `result` is values, of which every `report` is a function. `sluice demo` is two trials with a report of its own (`demo`);
//! `cost` counts the instructions of a packet.

pub mod cost;
mod demo;
pub mod format;
pub mod report;
mod result;
mod run;
mod tool;

pub use demo::measurement::{Bulk, ModemQueue, Probe, Run, Sample};
pub use demo::options::Options;
pub use demo::report::{Parameters, Report};
pub use demo::run as run_demo;
pub use result::environment::Environment;
pub use result::results;
pub use result::statistics::Distribution;
pub use run::{campaign, job, store};
pub use sluice_error::{Error, Kind};
