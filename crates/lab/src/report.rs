//! The forms of a run's report: a page, Markdown, CSV, a summary for the terminal, and two runs compared.
//!
//! All forms read the same figures (`figure`), gathered over the repeats (`group`, `spread`) and judged once
//! (`score`, `verdict`).

mod chart;
mod compare;
mod figure;
mod group;
mod html;
mod markdown;
mod measure;
mod model;
mod number;
mod score;
mod spread;
mod table;
mod terminal;
mod tidy;
mod verdict;

pub use compare::{Change, Comparison, Judgement, compare};
pub use html::html;
pub use markdown::markdown;
pub use spread::Spread;
pub use terminal::summary;
pub use tidy::csv;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
