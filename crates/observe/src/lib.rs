//! What schedulers do, over time: pure values, and one reader that makes them.
//!
//! A [`Source`] reads a [`Sample`]: what was counted until one moment, of every interface that is looked at. Two samples make
//! [`Rates`]: what happened between them. Rates, one after another, make a [`History`]. A [`flows::Tracker`] follows who sends it all.

pub mod flows;
pub mod history;
pub mod rates;
pub mod sample;

pub use history::{Columns, History, Point, Series};
pub use rates::Rates;
pub use sample::{Event, Sample, Source};
pub use sluice_kernel::reader::News;
