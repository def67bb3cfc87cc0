//! One trial: a network, a contender that owns its bottleneck, traffic from silence through warm-up to the window's end.

use std::thread;
use std::time::{Duration, SystemTime};

use crate::format::{NOISE_PORT, Owned, Queue, Scenario, Shaped};
use crate::result::results::{Bottleneck, EventDone, Measured};
use crate::result::statistics::Distribution;
use crate::run::chain;
use crate::run::contender::{Active, Task};
use crate::run::model;
use crate::run::network::{Build, Network, device};
use crate::run::port;
use crate::run::sampler::{self, Snapshot};
use crate::run::tap;
use crate::run::traffic::{FINISH_GRACE, Measurements, Runner, Window, since_ms};
use crate::run::trial::{Setting, TrialResult};
use crate::tool::irtt::{self, Stream};
use crate::tool::offload;
use sluice_error::{Error, Kind, Result};
use sluice_testbed::interrupt::Interrupt;
use sluice_testbed::process::Process;

/// Time for which the bulk traffic continues after the window, ms.
const TAIL_MS: f64 = 500.0;
/// Interval of snapshots, ms.
const SNAPSHOT_INTERVAL_MS: f64 = 500.0;
/// Interval of checks of the clock.
const POLL: Duration = Duration::from_millis(5);
/// The probe of the delay that the harness adds.
const NOISE: Stream = Stream { port: NOISE_PORT, interval_us: 20_000, payload_bytes: 100, tos: 0 };

/// The duration of a trial without delays.
pub fn nominal(scenario: &Scenario, measured_ms: f64) -> Duration {
    const SET_UP_MS: f64 = 1_500.0;
    if scenario.model.as_ref().is_some_and(|model| model.real) {
        return port::nominal(scenario.warm_up.0, measured_ms);
    }
    if let Some(of) = &scenario.model {
        return model::nominal(of, scenario.warm_up.0 + measured_ms);
    }
    if scenario.topology.chain().is_some() {
        return chain::nominal(&scenario.loads, scenario.warm_up.0, measured_ms);
    }
    if scenario.topology.tap().is_some() {
        return tap::nominal(&scenario.loads, measured_ms);
    }
    Duration::from_secs_f64((SET_UP_MS + scenario.idle.0 + scenario.warm_up.0 + measured_ms + TAIL_MS) / 1e3)
}

/// Starts and stops a contender, so that errors are known before anything is measured.
pub fn rehearse(setting: &Setting) -> Result<()> {
    let network = build(setting)?;
    let Some(queue) = setting.scenario.topology.queue() else { return Ok(()) };
    let owner = network.host(&queue.owner.get_ref().0)?;
    Active::start(setting.contender, owner, task(setting, &own_device(queue), &|| Ok(())))?.stop()
}

fn build(setting: &Setting) -> Result<Network> {
    let how = Build { rate_bps: setting.rate_bps, offloads: setting.scenario.offloads };
    Network::build(&setting.scenario.topology, how)
}

fn own_device(queue: &Queue) -> String {
    device(queue.owner.get_ref())
}

fn task<'a>(setting: &'a Setting, own: &'a str, watch: &'a dyn Fn() -> Result<()>) -> Task<'a> {
    Task {
        device: own,
        shape: &setting.scenario.shape,
        rate_bps: setting.rate_bps,
        sluice: setting.sluice,
        scratch: setting.scratch,
        watch,
    }
}

/// Runs a trial. `tick` is called often.
pub fn run(setting: &Setting, interrupt: &Interrupt, tick: &dyn Fn()) -> Result<TrialResult> {
    let watch = || {
        tick();
        interrupt.check()
    };
    match &setting.scenario.topology.owned {
        Owned::Queue(queue) => run_queue(setting, queue, interrupt, &watch),
        Owned::Hops(chain) => chain::run(setting, chain, interrupt, &watch),
        Owned::Tap(tap) => tap::run(setting, tap, &watch),
        Owned::Card if setting.scenario.model.as_ref().is_some_and(|model| model.real) => port::run(setting, &watch),
        Owned::Card => watch().and_then(|()| model::run(setting)),
    }
}

/// Runs a trial whose contender owns a queue.
fn run_queue(
    setting: &Setting,
    queue: &Queue,
    interrupt: &Interrupt,
    watch: &dyn Fn() -> Result<()>,
) -> Result<TrialResult> {
    let Setting { scenario, contender, rate_bps, measured_ms, clock, .. } = *setting;
    let topology = &scenario.topology;
    let network = build(setting)?;
    let owner = network.host(&queue.owner.get_ref().0)?;
    let own = own_device(queue);
    let mut active = Active::start(contender, owner, task(setting, &own, watch))?;
    check_event(setting, &active)?;
    let offloads = offload::describe(owner, &own);
    let shaped: Vec<&Shaped> =
        queue.shaped.iter().filter(|shaped| scenario.shape.contains(&shaped.direction)).collect();

    let loads = Runner::all(&scenario.loads, topology, &network, rate_bps)?;
    let _servers = serve(setting, (&network, queue), &loads, interrupt)?;

    let window = Window { from_ms: scenario.warm_up.0, to_ms: scenario.warm_up.0 + measured_ms };
    let probing = Duration::from_secs_f64((scenario.idle.0 + window.to_ms) / 1e3);
    let bulking = Duration::from_secs_f64((window.to_ms + TAIL_MS) / 1e3);
    let silence = SystemTime::now();
    let near = &queue.noise.get_ref().0;
    let noise = irtt::start_client(network.host(near)?, &noise_address(setting, queue)?, &NOISE, probing)?;
    let mut clients = start_clients(&loads, true, probing)?;
    stay_idle(setting, silence, watch)?;
    let zero = SystemTime::now();
    clients.extend(start_clients(&loads, false, bulking)?);

    let (snapshots, events) = observe(setting, (&network, queue, &shaped), &mut active, (zero, window), watch)?;
    let mut answers = Measurements::default();
    // Results are in the order of the scenario's loads; loads without an end are stopped first.
    clients.sort_by_key(|(number, _)| *number);
    for (number, client) in clients {
        let load = &loads[number];
        let length = if load.is_probe() { probing } else { bulking };
        load.finish((number, client), length, (zero, window), watch, &mut answers)?;
    }
    let noise = noise.finish(FINISH_GRACE, watch)?.expect_success()?;
    let (engine, commands) = (active.engine.clone(), active.commands.clone());
    active.stop()?;

    let noise = irtt::parse(&noise.stdout, 0)?;
    let bottlenecks = bottlenecks(setting, &shaped, &snapshots, window);
    let measured = Measured {
        engine,
        commands,
        from_ms: window.from_ms,
        to_ms: window.to_ms,
        offloads,
        delays: answers.delays,
        flows: answers.flows,
        bottlenecks,
        processor: Some(sampler::processor(&snapshots, window, clock)),
        noise: Distribution::of(noise.iter().filter_map(|trip| trip.whole_ms)),
        events,
        observed: Vec::new(),
        card: None,
    };
    Ok(TrialResult { measured, raw: answers.raw, warnings: network.warnings.clone() })
}

/// Fails where the scenario reconfigures a contender that has no commands for that.
fn check_event(setting: &Setting, active: &Active) -> Result<()> {
    if setting.scenario.event.is_none() || active.can_change() {
        return Ok(());
    }
    let name = &setting.contender.source.name;
    let what = format!("contender {name} has nothing under \"change\", so it cannot be reconfigured");
    Err(Error::new(Kind::Unsupported, what))
}

/// Starts the clients of the probes or of the bulk traffic; each has the number of its load.
fn start_clients(loads: &[Runner], probes: bool, length: Duration) -> Result<Vec<(usize, Process)>> {
    let chosen = loads.iter().enumerate().filter(|(_, load)| load.is_probe() == probes);
    chosen.map(|(number, load)| Ok((number, load.start(length)?))).collect()
}

/// Waits until the scenario's time of probes alone has passed since `silence`.
fn stay_idle(setting: &Setting, silence: SystemTime, watch: &dyn Fn() -> Result<()>) -> Result<()> {
    while since_ms(silence, SystemTime::now()) < setting.scenario.idle.0 {
        watch()?;
        thread::sleep(POLL);
    }
    Ok(())
}

/// The address that the probe of the harness's own delay is sent to.
fn noise_address(setting: &Setting, queue: &Queue) -> Result<String> {
    let far = &queue.noise.get_ref().1;
    setting.scenario.topology.address_of(far).ok_or_else(|| Error::system(format!("host {far} has no address")))
}

/// Starts the servers of all loads and of the probe of the harness's own delay. They end when they are dropped.
fn serve(
    setting: &Setting,
    (network, queue): (&Network, &Queue),
    loads: &[Runner],
    interrupt: &Interrupt,
) -> Result<Vec<Option<Process>>> {
    let mut servers: Vec<Option<Process>> = Vec::new();
    for load in loads {
        servers.push(load.serve(setting.scratch, interrupt)?);
    }
    let far = network.host(&queue.noise.get_ref().1)?;
    servers.push(Some(irtt::start_server(far, &noise_address(setting, queue)?, &NOISE)?));
    far.await_listener("udp", NOISE.port, FINISH_GRACE, || interrupt.check())?;
    Ok(servers)
}

/// Takes snapshots and reconfigures the contender until the window has ended.
fn observe(
    setting: &Setting,
    (network, queue, shaped): (&Network, &Queue, &[&Shaped]),
    active: &mut Active,
    (zero, window): (SystemTime, Window),
    watch: &dyn Fn() -> Result<()>,
) -> Result<(Vec<Snapshot>, Vec<EventDone>)> {
    let mut snapshots: Vec<Snapshot> = Vec::new();
    let mut events = Vec::new();
    let end_ms = window.to_ms + TAIL_MS / 2.0;
    let mut due_ms = 0.0;
    let mut change_ms = window.from_ms;
    loop {
        let now_ms = since_ms(zero, SystemTime::now());
        if now_ms >= due_ms {
            snapshots.push(sampler::take(now_ms, (&setting.scenario.topology, queue), shaped, network)?);
            while due_ms <= now_ms {
                due_ms += SNAPSHOT_INTERVAL_MS;
            }
        }
        if let Some(event) = setting.scenario.event.filter(|_| now_ms >= change_ms && change_ms < window.to_ms) {
            let what = active.change()?;
            let took_ms = since_ms(zero, SystemTime::now()) - now_ms;
            events.push(EventDone { at_ms: now_ms, took_ms, what });
            change_ms = (change_ms + event.reconfigure_every.0).max(now_ms + took_ms);
        }
        if now_ms >= end_ms {
            break;
        }
        watch()?;
        thread::sleep(POLL);
    }
    Ok((snapshots, events))
}

/// The figures of each shaped link, by the snapshots.
fn bottlenecks(setting: &Setting, shaped: &[&Shaped], snapshots: &[Snapshot], window: Window) -> Vec<Bottleneck> {
    let rate_bps = setting.rate_bps;
    let line_bps = |shaped: &Shaped| {
        let link = setting.scenario.topology.link_of(shaped.line.get_ref());
        link.and_then(|link| link.rate?.bps(rate_bps)).unwrap_or(rate_bps)
    };
    shaped
        .iter()
        .enumerate()
        .map(|(number, shaped)| sampler::bottleneck(shaped, number, snapshots, window, rate_bps, line_bps(shaped)))
        .collect()
}
