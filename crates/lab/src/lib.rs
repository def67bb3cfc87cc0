//! The lab: networks in namespaces of their own, real traffic through them, what that traffic felt, and reports.
//!
//! Files (`format`) say which traffic (scenario) runs over which network (topology), and who owns its bottleneck (contender).
//! A trial (`experiment`) builds the network (`network`), puts the contender to work (`contender`), runs the traffic (`traffic`, by
//! `irtt`, `iperf3`, `ping` and `web`) and looks at queues and processors meanwhile (`looks`). `sluice demo` is two trials with a
//! report of its own (`demo`, `report`).

pub mod campaign;
mod contender;
pub mod cost;
mod demo;
mod environment;
mod experiment;
pub mod format;
mod irtt;
pub mod job;
mod looks;
mod measurement;
mod network;
mod offload;
mod options;
pub mod page;
mod ping;
mod progress;
mod qdisc;
mod report;
pub mod results;
mod sluice;
mod statistics;
pub mod store;
mod traffic;
mod tree;
mod virtual_machine;
mod web;

pub use demo::run;
pub use environment::Environment;
pub use measurement::{Bulk, ModemQueue, Probe, Run, Sample};
pub use options::Options;
pub use report::{Parameters, Report};
pub use sluice_error::{Error, Kind};
pub use statistics::Distribution;
