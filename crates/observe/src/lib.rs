//! The activity of schedulers over time: pure values, and one reader that makes them.
//!
//! A [`Source`] reads a [`Sample`]: the counters of every watched interface at one moment. Two samples make [`Rates`]: the counts
//! between them per second. Rates, one after another, make a [`History`]. A [`flows::Tracker`] follows the flows.

pub mod flows;
pub mod history;
pub mod rates;
pub mod sample;

pub use history::{Columns, History, Point, Series};
pub use rates::Rates;
pub use sample::{Event, Sample, Source};
pub use sluice_kernel::reader::News;
