//! Pictures of a group as SVG inside the page; colours and dashes are classes of the page's style sheet.

mod canvas;
mod curves;
mod over_time;
mod rows;
mod scale;
mod style;

pub use curves::{Curves, curves};
pub use over_time::{Panel, panels};
pub use rows::{costs, fetches, shares};
pub use style::Style;
