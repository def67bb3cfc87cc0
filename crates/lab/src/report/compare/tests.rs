//! Tests of comparisons of made-up runs.

use super::super::fixture;
use super::{Judgement, compare};
use crate::result::results::{Clock, Outcome};

#[test]
fn only_the_planted_regression_is_found() {
    let before = fixture::results();
    let same = compare(&before, &before);
    assert!(!same.is_worse() && same.changes.len() > 30);
    assert!(same.changes.iter().all(|change| change.judgement == Judgement::Same));
    assert!(same.warnings.is_empty() && same.only_in_a.is_empty() && same.only_in_b.is_empty());

    let mut after = before.clone();
    let trials = after.trials.iter_mut().filter(|t| (t.scenario.as_str(), t.contender.as_str()) == ("game", "sluice"));
    for trial in trials.filter(|trial| trial.rate_bps == 20_000_000) {
        let Outcome::Measured(measured) = &mut trial.outcome else { panic!("measured") };
        measured.delays[0].one_way.as_mut().unwrap().p99_ms += 5.0;
    }
    after.clock = Clock::Instructions;
    let worse = compare(&before, &after);
    let found: Vec<_> = worse.regressions().collect();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].scenario.as_str(), found[0].contender.as_str()), ("game", "sluice"));
    assert_eq!(
        (found[0].load.as_str(), found[0].figure.as_str(), found[0].rate_bps),
        ("game", "added_p99", 20_000_000)
    );
    assert!((found[0].difference - 5.0).abs() < 1e-9);
    assert_eq!(worse.warnings.len(), 1, "the clock");
    assert!(worse.text(false).contains("1 regression,") && worse.text(true).contains("\x1b[1;31mWorse (1)"));
    assert!(worse.markdown().contains("## Worse"));
    let json: serde_json::Value = serde_json::from_str(&worse.json().unwrap()).unwrap();
    assert_eq!(json["changes"].as_array().unwrap().iter().filter(|c| c["judgement"] == "worse").count(), 1);
    assert_eq!(compare(&after, &before).regressions().count(), 0);
}

#[test]
fn missing_figure_counts_as_worse() {
    let (before, mut after) = (fixture::results(), fixture::results());
    after.trials.iter_mut().filter(|t| t.contender == "cake").for_each(|t| t.outcome = Outcome::Failed("gone".into()));
    after.trials.retain(|trial| trial.contender != "tbf");
    let comparison = compare(&before, &after);
    assert!(comparison.is_worse());
    assert_eq!((comparison.broken.len(), comparison.only_in_a.len(), comparison.only_in_b.len()), (6, 6, 0));
    assert!(comparison.text(false).contains("gone"));
}
