//! The tests, by subject.

mod apply;
mod bad_input;
mod boot;
mod booted;
mod capture;
mod class_tree;
mod classification;
mod commands;
mod confirm;
mod congestion;
mod count;
mod crash;
mod deadlines;
mod disciplines;
mod dry_run;
mod each_host;
mod early;
mod events;
mod explain;
mod features;
mod flow_queues;
mod flows;
mod forward;
mod groups;
mod gso;
mod hand_over;
mod healing;
mod history;
mod ingress;
mod lifecycle;
mod limits;
mod measuring;
mod metrics;
mod model;
mod modes;
mod mq;
mod neighbours;
mod peaks;
mod programs;
mod radius;
mod rights;
mod serve;
mod sets;
mod shaping;
mod shared_queues;
mod shared_trees;
mod shares;
mod subscribers;
mod top;
mod trees;
mod twin;
mod upgrade;
mod vanishing;
mod watch;
mod wire;
mod xdp;

use crate::suite::{Case, Suite};

/// Which of the tests run that no kernel makes a difference to (`Suite::alike_everywhere`); the others always do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlikeEverywhere {
    All,
    /// Those that run with each engine.
    ByEngine,
    None,
}

/// All tests that are to run.
pub fn all(alike_everywhere: AlikeEverywhere) -> Vec<Case> {
    let runs = |suite: &Suite, case: &Case| match alike_everywhere {
        AlikeEverywhere::All => true,
        AlikeEverywhere::ByEngine => !suite.alike_everywhere || case.is_of_engine(),
        AlikeEverywhere::None => !suite.alike_everywhere,
    };
    let of = |mut suite: Suite| {
        let cases = std::mem::take(&mut suite.cases);
        cases.into_iter().filter(move |case| runs(&suite, case))
    };
    suites().into_iter().flat_map(of).collect()
}

fn suites() -> Vec<Suite> {
    vec![
        bad_input::suite(),
        commands::suite(),
        boot::suite(),
        booted::suite(),
        lifecycle::suite(),
        healing::suite(),
        forward::suite(),
        forward::decisions(),
        healing::commands(),
        neighbours::suite(),
        programs::suite(),
        rights::suite(),
        vanishing::suite(),
        upgrade::suite(),
        upgrade::commands(),
        classification::suite(),
        modes::suite(),
        hand_over::suite(),
        shares::suite(),
        subscribers::suite(),
        class_tree::suite(),
        disciplines::suite(),
        deadlines::suite(),
        flow_queues::suite(),
        congestion::suite(),
        events::suite(),
        shaping::suite(),
        limits::suite(),
        peaks::suite(),
        each_host::suite(),
        early::suite(),
        apply::suite(),
        sets::suite(),
        dry_run::suite(),
        confirm::suite(),
        history::suite(),
        watch::suite(),
        ingress::suite(),
        wire::suite(),
        groups::suite(),
        groups::commands(),
        vanishing::commands(),
        gso::suite(),
        mq::suite(),
        shared_queues::suite(),
        shared_trees::suite(),
        xdp::suite(),
        crash::suite(),
        twin::suite(),
        trees::suite(),
        model::suite(),
        explain::suite(),
        top::suite(),
        flows::suite(),
        count::suite(),
        capture::suite(),
        features::suite(),
        measuring::suite(),
        serve::suite(),
        serve::hostile::suite(),
        serve::pages::suite(),
        radius::suite(),
        metrics::suite(),
    ]
}

/// Asserts that two numbers differ by at most a part of the wanted one.
#[track_caller]
pub fn assert_near(what: &str, got: f64, wanted: f64, part: f64) {
    eprintln!("    {what}: {got:.4e}, wanted {wanted:.4e} ({:+.3} %)", (got / wanted - 1.0) * 100.0);
    assert!((got / wanted - 1.0).abs() <= part, "{what}: {got} is not within {} % of {wanted}", part * 100.0);
}
