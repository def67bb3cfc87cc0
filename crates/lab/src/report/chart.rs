//! Pictures of a group as SVG inside the page; colours and dashes are classes of the page's style sheet.

mod canvas;
mod curves;
mod over_time;
mod rows;
mod scale;
mod steps;
mod style;

pub use curves::{Curves, curves};
pub use over_time::{Panel, panels};
pub use rows::{costs, fetches, shares};
pub use steps::{Line, Steps, steps};
pub use style::Style;
