//! The options of the demo.

use std::path::PathBuf;

use sluice_error::{Error, Kind, Result};

/// The options of the demo.
#[derive(Debug, Clone)]
pub struct Options {
    /// The Sluice binary that is called.
    pub sluice: PathBuf,
    /// The value of `--engine`.
    pub engine: Option<String>,
    /// Measured time of each run, seconds.
    pub seconds: u32,
    /// Rate of the slow link, Mbit/s.
    pub rate_mbit: u32,
    /// A profile or a policy file.
    pub policy: String,
    /// The file for all numbers.
    pub json: Option<PathBuf>,
    /// The file for the picture.
    pub svg: Option<PathBuf>,
    /// Whether texts may carry colours.
    pub color: bool,
}

impl Options {
    /// The default demo with this binary.
    pub fn new(sluice: impl Into<PathBuf>) -> Options {
        Options {
            sluice: sluice.into(),
            engine: None,
            seconds: 12,
            rate_mbit: 20,
            policy: "gaming".to_owned(),
            json: None,
            svg: Some(PathBuf::from("sluice-demo.svg")),
            color: false,
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let input = |what: String| Err(Error::new(Kind::Input, what));
        if !(1..=600).contains(&self.seconds) {
            return input(format!("{} s per run is not possible: 1 to 600 s are", self.seconds));
        }
        if !(1..=1_000).contains(&self.rate_mbit) {
            return input(format!("a line of {} Mbit/s is not possible: 1 to 1000 Mbit/s are", self.rate_mbit));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_options_are_refused() {
        let seconds = Options { seconds: 0, ..Options::new("sluice") };
        assert_eq!(seconds.check().unwrap_err().kind, Kind::Input);
        let rate = Options { rate_mbit: 0, ..Options::new("sluice") };
        assert!(rate.check().unwrap_err().what.contains("0 Mbit/s"));
    }
}
