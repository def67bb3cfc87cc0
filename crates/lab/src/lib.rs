//! The lab behind `sluice demo`: a small network in namespaces of its own, real traffic through it, what that traffic
//! felt, and the report.
//!
//! A scenario (`demo`) builds a topology (`line`), lets each contender (`contender`) own a link of it in turn, runs the
//! traffic (`trial`, by `irtt` and `iperf3`) and hands what was measured (`measurement`) to the report (`report`).

mod contender;
mod demo;
mod environment;
mod error;
mod interrupt;
mod iperf3;
mod irtt;
mod line;
mod measurement;
mod netns;
mod offload;
mod options;
mod process;
mod progress;
mod qdisc;
mod report;
pub mod results;
mod statistics;
mod tool;
mod trial;

pub use demo::run;
pub use environment::Environment;
pub use error::{Error, Kind};
pub use measurement::{Bulk, ModemQueue, Probe, Run, Sample};
pub use options::Options;
pub use report::{Parameters, Report};
pub use statistics::Distribution;
