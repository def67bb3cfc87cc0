//! One trial over a chain: hops that forward a port, and loads that pass them one after the other, each alone.

use std::time::{Duration, SystemTime};

use crate::format::{Chain, Load, LoadKind};
use crate::result::results::Measured;
use crate::run::hops::{Forwarding, Means};
use crate::run::network::{Build, Network, device};
use crate::run::traffic::{Measurements, Runner, Window, since_ms};
use crate::run::trial::{Setting, TrialResult};
use crate::tool::offload;
use sluice_error::{Error, Kind, Result};
use sluice_testbed::interrupt::Interrupt;

/// A guess of the time for building the network and starting the hops, ms.
const SET_UP_MS: f64 = 3_000.0;
/// A guess of the time for a load's server to start and end, ms.
const SERVER_MS: f64 = 200.0;
/// A guess of the rate at which pages pass, bytes a millisecond.
const BYTES_PER_MS: f64 = 400_000.0;
/// A guess of the time for a connection and a request, ms.
const REQUEST_MS: f64 = 1.0;

/// The duration of a trial, if the machine is neither slow nor busy.
pub fn nominal(loads: &[Load], warm_up_ms: f64, measured_ms: f64) -> Duration {
    let each = |load: &Load| match load.kind {
        LoadKind::Siege => {
            let page_ms = f64::from(load.bytes.unwrap_or_default()) / BYTES_PER_MS + REQUEST_MS;
            SERVER_MS + f64::from(load.requests.unwrap_or_default()) * page_ms
        }
        LoadKind::Wrk => SERVER_MS + measured_ms,
        _ => SERVER_MS + warm_up_ms + measured_ms,
    };
    Duration::from_secs_f64((SET_UP_MS + loads.iter().map(each).sum::<f64>()) / 1e3)
}

/// Runs a trial. `watch` is called often, and its error ends the trial.
pub fn run(
    setting: &Setting,
    chain: &Chain,
    interrupt: &Interrupt,
    watch: &dyn Fn() -> Result<()>,
) -> Result<TrialResult> {
    let Setting { scenario, contender, measured_ms, .. } = *setting;
    let topology = &scenario.topology;
    let Some(forwarder) = contender.forwarder() else {
        return Err(Error::new(Kind::Input, format!("contender {} forwards nothing", contender.source.name)));
    };
    let network = Network::build(topology, Build { rate_bps: 0, offloads: scenario.offloads })?;
    let means = Means { sluice: setting.sluice, scratch: setting.scratch, watch };
    let forwarding = Forwarding::start(contender, forwarder, (topology, chain), &network, means)?;
    let first = (chain.hops[0].clone(), chain.client.clone());
    let offloads = offload::describe(network.host(&first.0)?, &device(&first));

    let window = Window { from_ms: scenario.warm_up.0, to_ms: scenario.warm_up.0 + measured_ms };
    let mut answers = Measurements::default();
    let zero = SystemTime::now();
    for (number, runner) in Runner::all(&scenario.loads, topology, &network, 0)?.into_iter().enumerate() {
        let runner = runner.over(&forwarding.address, setting.scratch);
        let length = match scenario.loads[number].kind {
            LoadKind::Tcp => Duration::from_secs_f64(window.to_ms / 1e3),
            _ => Duration::from_secs_f64(measured_ms / 1e3),
        };
        // The server ends with its load: the next one listens at the same port.
        let server = runner.serve(setting.scratch, interrupt)?;
        let begin = SystemTime::now();
        let client = runner.start(length)?;
        runner.finish((number, client), length, (begin, window), watch, &mut answers)?;
        drop(server);
    }
    let (engine, commands) = (forwarding.engine.clone(), forwarding.commands.clone());
    let to_ms = since_ms(zero, SystemTime::now());
    forwarding.stop()?;
    let measured = Measured {
        engine,
        commands,
        from_ms: 0.0,
        to_ms,
        offloads,
        delays: answers.delays,
        flows: answers.flows,
        bottlenecks: Vec::new(),
        processor: None,
        noise: None,
        events: Vec::new(),
        observed: Vec::new(),
        card: None,
    };
    Ok(TrialResult { measured, raw: answers.raw, warnings: network.warnings.clone() })
}
