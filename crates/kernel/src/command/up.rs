//! `up`: the order of steps in which an interface comes under management.
//!
//! Each step is on record before it is done, and packets flow after each: wherever a command dies, `down` finds all parts.

use crate::bpf::object;
use crate::command::change::Done;
use crate::command::down::{remove_orphans, tear_down};
use crate::command::recover::recover;
use crate::engine::features::Features;
use crate::engine::forwarding::checks::Scrutiny;
use crate::engine::managed::half_done;
use crate::engine::options::Options;
use crate::engine::plan;
use crate::engine::tx_queues;
use crate::engine::verify::verify;
use crate::engine::{
    self, Placed, attach, devices, driver, early_leaf, forwarding, members, programs, xsk, xsk_checks, xsk_workers,
};
use crate::fault;
use crate::maps::{arrivals, shared, tables};
use crate::record::origin::Origin;
use crate::record::policy::{Rates, choose_tag, compile, resolve, written};
use crate::record::{Engine, Hook, Partner, Phase, Record, history};
use crate::system::interface::Interface;
use crate::system::lock::Lock;
use crate::system::privilege::require_rights;
use crate::system::{bpffs, clock, memory, netns, offload, qdiscs};
use sluice_abi as abi;
use sluice_error::{Error, Kind, Result};
use sluice_policy::network::Network;
use sluice_policy::{Policy, Rate, Resolved};
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Directory for the dumps of hierarchies that `--force` replaces; a reboot keeps it.
const DUMPS: &str = "/var/lib/sluice";

/// A request to take an interface into management.
#[derive(Debug, Clone)]
pub struct UpRequest {
    /// Name of the interface.
    pub interface: String,
    /// The policy.
    pub policy: Policy,
    /// Source of the policy's text, such as a path.
    pub source: String,
    /// `--rate`: overrides the policy's link rate.
    pub rate: Option<Rate>,
    /// `--ingress-rate`.
    pub ingress_rate: Option<Rate>,
    /// `--engine`; none is `auto`.
    pub engine: Option<Engine>,
    /// `--classifier`; none is `auto`.
    pub hook: Option<Hook>,
    /// The interface on the other side, with engine `xsk`.
    pub partner: Option<String>,
    /// `--workers` of a wire; none: as many as there are receive queues.
    pub workers: Option<u32>,
    /// Replace a hand-made hierarchy of qdiscs, and let forwards take what others have.
    pub force: bool,
    /// The policy was in force before: its forwards were checked when they were new.
    pub restored: bool,
    /// `--message`: reason of the change, for the history.
    pub message: Option<String>,
}

impl UpRequest {
    /// The interface that queued packets leave by: what arrives at a side of a wire leaves by the other one.
    fn departs_by<'a>(&'a self, interface: &'a str) -> &'a str {
        self.partner.as_deref().unwrap_or(interface)
    }
}

/// Takes interfaces into management: all of them, or none.
pub fn up(requests: &[UpRequest]) -> Result<Vec<Done>> {
    require_rights()?;
    recover()?;
    let _lock = Lock::take()?;
    let names: Vec<&str> = requests.iter().map(|request| request.interface.as_str()).collect();
    remove_orphans(&names)?;
    let mut made = Vec::new();
    let done = make_groups(requests, &mut made).and_then(|()| up_all(requests, &names));
    if done.is_err() {
        // The devices of groups that are not up.
        for name in made {
            if Record::find(&name)?.is_none() {
                devices::remove(&name)?;
            }
        }
    }
    done
}

/// Makes the devices of groups that are missing.
fn make_groups(requests: &[UpRequest], made: &mut Vec<String>) -> Result<()> {
    for request in requests.iter().filter(|request| !request.policy.arrivals_of.is_empty()) {
        let twice = |other: &&UpRequest| {
            let is_member = request.policy.arrivals_of.contains(&other.interface);
            is_member && other.interface != request.interface && other.ingress_rate.is_some()
        };
        if let Some(other) = requests.iter().find(twice) {
            let what = format!(
                "--ingress-rate is for {0} too, whose arrivals are queued in {1}",
                other.interface, request.interface
            );
            return Err(Error::input(what).help("write \"ingress_rate\" into the \"link\" of the group"));
        }
        // The device of an earlier group was deleted.
        if let Some(mut gone) = Record::find(&request.interface)?
            && gone.members.is_some()
            && !Interface::is_there(&gone.interface, gone.ifindex)
        {
            let pins = gone.pins(&bpffs::root()?);
            tear_down(&mut gone, &pins)?;
        }
        let fresh = members::make_device(&request.interface);
        if fresh.map_err(|error| error.of_several(&request.interface, requests.len()))? {
            made.push(request.interface.clone());
        }
    }
    fault::step("group", "made")
}

fn up_all(requests: &[UpRequest], names: &[&str]) -> Result<Vec<Done>> {
    let features = Features::known()?;
    let starts: Result<Vec<Start>> = requests
        .iter()
        .map(|request| {
            let start = Start::prepare(request, features.clone(), names);
            start.map_err(|error| error.of_several(&request.interface, names.len()))
        })
        .collect();
    let mut done: Vec<Done> = Vec::new();
    for ((start, request), name) in starts?.into_iter().zip(requests).zip(names) {
        match start.perform_or_fall_back(request, &features, names) {
            Ok(one) => done.push(one),
            Err(error) => return Err(give_back(done, error.of_several(name, names.len()))),
        }
    }
    Ok(done)
}

/// Takes down the interfaces that are up already, after a failure.
fn give_back(done: Vec<Done>, mut error: Error) -> Error {
    for Done { mut record, .. } in done.into_iter().rev() {
        history::note_undone(&record, &error.what);
        let pins = bpffs::root().map(|root| record.pins(&root));
        error.what += &match (pins.and_then(|pins| tear_down(&mut record, &pins)), &record.replaced) {
            (Ok(()), None) => format!("\n  {} is as it was", record.interface),
            (Ok(()), Some(dump)) => {
                format!(
                    "\n  {} is given back; the dump of its former hierarchy is {}",
                    record.interface,
                    dump.display()
                )
            }
            (Err(rest), _) => format!("\n  and giving back {} failed: {}", record.interface, rest.what),
        };
    }
    error
}

/// An interface that has been checked and can be managed.
struct Start {
    interface: Interface,
    policy: Resolved,
    record: Record,
    tcx: bool,
    /// Whether a hand-made hierarchy is replaced, with `--force`.
    replaces: bool,
    /// Whether queues of ours without a record are removed first, with `--force`.
    remains: bool,
    notes: Vec<String>,
    details: Vec<String>,
}

/// A note, if an ingress qdisc is in the place of clsact, which the features lack then. Fails if the kernel has no other hook.
fn place_of_clsact(interface: &Interface, features: &mut Features) -> Result<Option<String>> {
    if qdiscs::list(&interface.name)?.iter().all(|qdisc| qdisc.kind != "ingress") {
        return Ok(None);
    }
    if !features.tcx {
        let what = format!("{} has an ingress qdisc, in the place of the clsact that is needed", interface.name);
        let cure = format!("remove it (tc qdisc del dev {} ingress), or use clsact for its purpose", interface.name);
        return Err(Error::input(what).help(cure));
    }
    features.clsact = false;
    Ok(Some("an ingress qdisc is in the place of clsact, which the splitter needs".to_owned()))
}

/// Fails where queues are in the way that only `--force` removes: remains of ours without a record, or others' qdiscs.
fn refuse_foreign_queues(interface: &Interface, remains: bool, replaced: Option<&qdiscs::Qdisc>) -> Result<()> {
    let name = &interface.name;
    if remains {
        return Err(Error::input(format!("{name} has queues of sluice, and no record of them"))
            .help("use --force, which removes them first"));
    }
    let Some(root) = replaced else { return Ok(()) };
    let what = format!("{name} has a hand-made qdisc at its root: {} {}", root.kind, root.handle);
    let cure = format!("remove it (tc qdisc del dev {name} root), or use --force, which saves a dump of it first");
    Err(Error::input(what).help(cure))
}

/// The interface on the other side of a request's, if there is one.
fn partner(request: &UpRequest) -> Result<Option<Partner>> {
    let Some(name) = &request.partner else { return Ok(None) };
    let found = Interface::find(name)?;
    Ok(Some(Partner { interface: found.name, ifindex: found.ifindex, made_promiscuous: false }))
}

/// The record of an interface that is about to be managed.
fn record_of(request: &UpRequest, interface: &Interface, policy: &Resolved, plan: &plan::Plan) -> Result<Record> {
    Ok(Record {
        abi_version: abi::SL_ABI_VERSION,
        program: Some(object::digest()),
        key: Record::new_key(&interface.name)?,
        interface: interface.name.clone(),
        ifindex: interface.ifindex,
        netns: netns::inode()?,
        netns_cookie: Some(netns::cookie()?),
        phase: Phase::Starting,
        engine: plan.engine,
        hook: plan.hook,
        qdisc: String::new(),
        way: policy.network.as_ref().map(|network| network.way(request.departs_by(&interface.name))),
        class_tree: policy.network.as_ref().is_some_and(Network::is_class_tree),
        queues: plan.queues,
        tag: 0,
        generation: 1,
        policy: written(&request.policy),
        policy_name: policy.name.clone(),
        policy_source: request.source.clone(),
        rate_bps: request.rate.map(|rate| rate.0),
        ingress_rate_bps: policy.ingress_rate.map(|rate| rate.0),
        ingress_rate_of_policy: request.ingress_rate.is_none(),
        ingress_ifindex: None,
        partner: partner(request)?,
        members: (!policy.arrivals_of.is_empty()).then(Vec::new),
        split: plan.split,
        split_ifindex: None,
        marks: plan.marks,
        classifies: plan.classifies,
        fq_codel: plan.fq_codel,
        codel: plan.codel,
        made_clsact: false,
        gro_was_on: plan.gro_off && offload::gro(&interface.name)?,
        replaced: None,
        applied_s: clock::now_s(),
        what: Origin::Up,
        message: request.message.clone(),
        repeats: None,
        rule_starts: crate::record::rule_starts::RuleStarts::default(),
        unconfirmed: None,
        before: None,
    })
}

impl Start {
    /// Checks a request. `together`: the interfaces of the same command.
    fn prepare(request: &UpRequest, mut features: Features, together: &[&str]) -> Result<Start> {
        let interface = Interface::find(&request.interface)?;
        let mut notes = refuse_managed(&interface, request.force)?;
        notes.extend(place_of_clsact(&interface, &mut features)?);
        let rates = Rates { departures: request.rate, arrivals: request.ingress_rate };
        let root = qdiscs::root(&interface.name)?;
        let root_kind = root.as_ref().map_or("none", |root| root.kind.as_str());
        let first = request.engine.unwrap_or(Engine::Qdisc);
        let departs_by = request.departs_by(&interface.name);
        let policy = resolve(&request.policy, rates, first)?.at(departs_by);
        let options = Options {
            engine: request.engine,
            hook: request.hook,
            ingress_rate: policy.ingress_rate,
            running: None,
            in_use: tx_queues::in_use(&policy, &interface, root.as_ref())?,
            available_bytes: memory::available_bytes(),
        };
        let plan = plan::plan(&policy, &interface, &features, &options, root_kind)?;
        // The engine limits what a policy may ask for.
        let policy = match plan.engine == first {
            true => policy,
            false => resolve(&request.policy, rates, plan.engine)?.at(departs_by),
        };
        let mut record = record_of(request, &interface, &policy, &plan)?;
        notes.extend(plan.notes);
        if let Some(partner) = &request.partner {
            let workers = xsk_checks::check_new(&interface, partner, &policy, request.workers)?;
            record.queues = if workers > 1 { workers } else { 0 };
            notes.extend(xsk_workers::notes(workers, &policy));
        }
        let mut details = plan.details;
        members::refuse(&interface.name, &policy, &[])?;
        members::refuse_member(&interface.name, &policy, &[])?;
        shared::refuse_other_rates(&record, &request.policy, together)?;
        let scrutiny = if request.restored { Scrutiny::Restored } else { Scrutiny::forced(request.force) };
        notes.extend(forwarding::checks::check(&interface.name, &[], &policy.forwards, scrutiny)?);
        notes.extend(forwarding::note_of_translation(&policy));
        let pins = record.pins(&bpffs::root()?);
        let at = Placed { record: &record, policy: &policy, interface: &interface, pins: &pins };
        details.extend(driver(&record).details(&at));
        notes.extend(driver(&record).notes(&record, &policy));
        let remains = root.as_ref().is_some_and(engine::is_made_by_us);
        let replaced = root.filter(|root| plan.engine.has_qdiscs() && !root.is_default() && !remains);
        if !request.force {
            refuse_foreign_queues(&interface, remains, replaced.as_ref())?;
        }
        Ok(Start {
            interface,
            policy,
            record,
            tcx: features.tcx,
            replaces: replaced.is_some(),
            remains,
            notes,
            details,
        })
    }

    /// Brings the interface up. If the kernel refuses the programs of engine `qdisc`, and `--engine` is not given, engine `tc` serves.
    fn perform_or_fall_back(self, request: &UpRequest, features: &Features, together: &[&str]) -> Result<Done> {
        let may = request.engine.is_none() && self.record.engine == Engine::Qdisc;
        let mut refused = match self.perform() {
            Err(error) if may && error.kind == Kind::Unsupported => error,
            done => return done,
        };
        let instead = UpRequest { engine: Some(Engine::Tc), ..request.clone() };
        match Start::prepare(&instead, features.clone(), together).and_then(Start::perform) {
            Ok(mut done) => {
                let why = refused.what.lines().next().unwrap_or_default().trim_end_matches(':').to_owned();
                done.notes.insert(0, format!("engine tc instead of qdisc: {why}"));
                Ok(done)
            }
            Err(error) => {
                refused.what += &format!("\n  and engine tc instead fails: {}", error.what.trim_end());
                Err(refused)
            }
        }
    }

    fn perform(self) -> Result<Done> {
        let Start { interface, policy, mut record, tcx, replaces, remains, mut notes, mut details } = self;
        record.tag = choose_tag(&record)?;
        if replaces {
            record.replaced = Some(save_dump(&record)?);
        }
        let pins = record.pins(&bpffs::root()?);
        let compiled = compile(&policy, &record, &interface, 0)?;
        record.save()?;
        fault::point("up-recorded");

        let cleared = if remains { engine::remove_remains(&record, &pins) } else { Ok(()) };
        let installed = cleared.and_then(|()| {
            install(&mut record, &interface, &policy, &compiled, &pins, tcx, (&mut notes, &mut details))
        });
        match installed {
            Ok(()) => {
                record.phase = Phase::Active;
                record.save()?;
                notes.extend(history::note_change(&record));
                if remains {
                    notes.push("queues of sluice were there without a record, and were removed first".to_owned());
                }
                if let Some(dump) = &record.replaced {
                    notes.push(format!("the hand-made hierarchy that was replaced is saved in {}", dump.display()));
                }
                let rate_bps = policy.link_rate.map(|rate| rate.0);
                Ok(Done {
                    record,
                    performed: true,
                    rate_bps,
                    difference: None,
                    remarks: policy.remarks,
                    notes,
                    details,
                })
            }
            Err(mut error) => {
                if let Err(rest) = tear_down(&mut record, &pins) {
                    error.what += &format!("\n  and cleaning up failed: {}", rest.what);
                }
                if let Some(dump) = &record.replaced {
                    error.what += &format!("\n  the hand-made hierarchy may be gone; its dump is {}", dump.display());
                }
                Err(error)
            }
        }
    }
}

fn install(
    record: &mut Record,
    interface: &Interface,
    policy: &Resolved,
    compiled: &sluice_tables::Compiled,
    pins: &Path,
    tcx: bool,
    (notes, details): (&mut Vec<String>, &mut Vec<String>),
) -> Result<()> {
    programs::remove_pins(pins)?;
    devices::make(record)?;
    fault::step("up", "devices")?;
    programs::load(record, interface, policy, tcx, pins)?;
    record.save()?;
    fault::step("up", "loaded")?;
    tables::stage(pins, compiled, 0)?;
    fault::step("up", "staged")?;
    tables::flip(pins, 0, compiled.tables.generation)?;
    fault::step("up", "live")?;
    if record.members.is_none() {
        driver(record).install(&Placed { record, policy, interface, pins })?;
    }
    fault::step("up", "queued")?;
    engine::install_arrivals(&Placed { record, policy, interface, pins })?;
    fault::step("up", "ingress-queued")?;
    if record.split {
        attach::install_splitter(record, pins)?;
    }
    fault::step("up", "split")?;
    if record.members.is_some() {
        members::follow(record, &policy.arrivals_of, tcx, pins, notes)?;
    } else {
        attach::install_hooks(record, tcx, pins, notes)?;
        arrivals::add(record.netns, record.ifindex)?;
    }
    fault::step("up", "hooked")?;
    if let Some(partner) = &mut record.partner {
        partner.made_promiscuous = xsk::make_promiscuous(&record.interface)?;
        record.save()?;
    }
    forwarding::follow(record, Some(policy))?;
    fault::step("up", "forwarding")?;
    early_leaf::follow(record, true)?;
    fault::step("up", "early-drop")?;
    if record.gro_was_on {
        offload::set_gro(&record.interface, false)?;
        details.push(
            "merging of arriving packets (GRO) is off, so that they are queued as frames; `down` turns it on again"
                .to_owned(),
        );
    }
    verify(&Placed { record, policy, interface, pins }, &[])
}

/// Refuses an interface that is managed already. Removes the parts of a former interface of this name, and with `force` those
/// that an interrupted command has left of this one.
fn refuse_managed(interface: &Interface, force: bool) -> Result<Vec<String>> {
    let Some(mut record) = Record::find(&interface.name)? else { return Ok(Vec::new()) };
    if record.ifindex != interface.ifindex {
        let pins = record.pins(&bpffs::root()?);
        tear_down(&mut record, &pins)?;
        return Ok(vec![format!(
            "an earlier {} had gone without `sluice down`: its remains were removed",
            interface.name
        )]);
    }
    if record.phase != Phase::Active {
        if !force {
            return Err(half_done(&record));
        }
        let pins = record.pins(&bpffs::root()?);
        tear_down(&mut record, &pins)?;
        return Ok(vec!["the remains of an interrupted command were removed".to_owned()]);
    }
    Err(Error::input(format!("{} is managed already, with the policy {}", interface.name, record.policy_name))
        .help(format!("sluice apply {0} POLICY changes it, sluice down {0} gives it back", interface.name)))
}

fn save_dump(record: &Record) -> Result<std::path::PathBuf> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let path =
        Path::new(DUMPS).join(format!("{}-replaced-{}.{:09}.txt", record.key, now.as_secs(), now.subsec_nanos()));
    let dump = qdiscs::dump(&record.interface)?;
    fs::create_dir_all(DUMPS)
        .and_then(|()| fs::write(&path, dump))
        .map_err(|error| Error::system(format!("saving {}: {error}", path.display())))?;
    Ok(path)
}
