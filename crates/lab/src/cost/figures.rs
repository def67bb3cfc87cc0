//! Medians and spreads of a run, and each contender's added cost over no qdisc.

use super::plan::{Case, NONE, State};
use super::rows::Run;
use sluice_error::{Error, Kind, Result};

/// The figures of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The measured case.
    pub case: Case,
    /// The number of measurements.
    pub repeats: usize,
    /// The median above that of no qdisc.
    pub added_instructions: f64,
    /// The greatest value less the least.
    pub spread_instructions: f64,
    /// The median of no qdisc.
    pub none_instructions: f64,
}

/// The figures of a run, in its order.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// No qdisc, idle, one flow: instructions.
    pub none_instructions: f64,
    /// The figures of all cases with a qdisc.
    pub all: Vec<Figure>,
}

impl Figures {
    /// Computes the figures of this run.
    pub fn of(run: &Run) -> Result<Figures> {
        let mut cases: Vec<(&Case, Vec<f64>)> = Vec::new();
        for row in &run.rows {
            match cases.iter_mut().find(|(case, _)| **case == row.case) {
                Some((_, values)) => values.push(row.instructions),
                None => cases.push((&row.case, vec![row.instructions])),
            }
        }
        let medians: Vec<(&Case, f64)> = cases.iter().map(|(case, values)| (*case, median(values))).collect();
        let found = |wanted: &Case| medians.iter().find(|(case, _)| *case == wanted).map(|(_, median)| *median);
        let one_flow = Case { contender: NONE.to_owned(), state: State::Idle, classes: 0, rules: 0, flows: 1 };
        let none = found(&one_flow);
        let all = cases.iter().zip(&medians).filter(|((case, _), _)| case.contender != NONE).map(
            |((case, values), (_, median))| {
                // Former runs have only the base of one flow.
                let base = found(&case.without()).or(none.filter(|_| case.state != State::Backlogged));
                let base = base.ok_or_else(|| {
                    Error::new(Kind::Input, format!("the run has {case}, but not {}, to subtract", case.without()))
                })?;
                let spread =
                    values.iter().copied().fold(f64::MIN, f64::max) - values.iter().copied().fold(f64::MAX, f64::min);
                Ok(Figure {
                    case: (*case).clone(),
                    repeats: values.len(),
                    added_instructions: median - base,
                    spread_instructions: spread,
                    none_instructions: base,
                })
            },
        );
        let all = all.collect::<Result<Vec<Figure>>>()?;
        let none = none.or(medians.first().map(|(_, median)| *median));
        let none = none.ok_or_else(|| Error::new(Kind::Input, "the run has no measurements"))?;
        Ok(Figures { none_instructions: none, all })
    }

    /// The instructions that a case adds.
    pub fn added(&self, case: &Case) -> Option<f64> {
        self.all.iter().find(|figure| figure.case == *case).map(|figure| figure.added_instructions)
    }

    /// The instructions that a case adds, as a share of those that its reference adds.
    pub fn ratio(&self, case: &Case) -> Option<f64> {
        let reference = self.added(&case.reference()).filter(|added| *added > 0.0)?;
        Some(self.added(case)? / reference)
    }
}

/// The median of at least one value.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 }
}

#[cfg(test)]
pub mod tests {
    use super::super::rows::parse;
    use super::*;

    /// A run of these lines.
    pub fn run(lines: &[&str]) -> Run {
        let rows = lines.iter().map(|line| parse(line).unwrap()).collect();
        Run { date: "2026-11-22".to_owned(), kernel: "7.3.4".to_owned(), compiler: "clang 19.1.7".to_owned(), rows }
    }

    #[test]
    fn base_has_the_same_packets() {
        let figures = Figures::of(&run(&[
            "none,idle,0,0,1,1,3000",
            "none,idle,0,0,1,2,2000",
            "none,idle,0,0,1,3,2001",
            "none,backlogged,8,0,8,1,2100",
            "prio+flower,idle,8,8,1,1,4001",
            "sluice-x,idle,8,8,1,1,3001",
            "sluice-x,idle,8,8,1,2,3005",
            "drr+flower+shaper,backlogged,8,8,8,1,4100",
        ]))
        .unwrap();
        assert_eq!(figures.none_instructions, 2001.0);
        let added: Vec<f64> = figures.all.iter().map(|figure| figure.added_instructions).collect();
        assert_eq!(added, [2000.0, 1002.0, 2000.0]);
        assert_eq!(figures.all[1].spread_instructions, 4.0);
        assert_eq!(figures.ratio(&figures.all[1].case), Some(0.501));
        assert_eq!(figures.ratio(&figures.all[2].case), Some(1.0));
    }

    #[test]
    fn missing_base_is_an_error() {
        let error = Figures::of(&run(&["none,idle,0,0,1,1,2000", "x,backlogged,8,8,8,1,3000"])).unwrap_err();
        assert!(error.what.contains("not none,backlogged,8,0,8"), "{error}");
        assert!(Figures::of(&run(&[])).is_err());
    }
}
