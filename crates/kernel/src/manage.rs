//! `up`, `apply` and `down`: the order of steps in which an interface comes under management, changes, and is given back.
//!
//! What a step will do is on record before it is done, and packets flow after each: whatever dies, `down` finds all.

use crate::attachment as attach;
use crate::error::{Error, Kind, Result};
use crate::features::Features;
use crate::interface::Interface;
use crate::plan::{self, Wishes};
use crate::record::{Engine, Hook, Lock, Phase, Record};
use crate::{bpffs, fault, htb, netns, offload, qdiscs, tables};
use sluice_abi as abi;
use sluice_policy::{Context, Policy, Rate, Resolved};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where hierarchies that `--force` replaces are dumped: a reboot keeps it.
const DUMPS: &str = "/var/lib/sluice";

/// What `up` is asked for.
#[derive(Debug, Clone)]
pub struct UpRequest {
    /// Name of the interface.
    pub interface: String,
    /// The policy.
    pub policy: Policy,
    /// Where it was read from, for people.
    pub source: String,
    /// `--rate`: overrides the policy's link rate.
    pub rate: Option<Rate>,
    /// `--ingress-rate`.
    pub ingress_rate: Option<Rate>,
    /// `--engine`; none is `auto`.
    pub engine: Option<Engine>,
    /// `--classifier`; none is `auto`.
    pub hook: Option<Hook>,
    /// Replace a hand-made hierarchy of qdiscs.
    pub force: bool,
}

/// What was done, and what the caller should know of it.
#[derive(Debug, Clone)]
pub struct Done {
    /// The interface as it is managed now.
    pub record: Record,
    /// Rate that departures are shaped to, whoever asked for it, bits per second.
    pub rate_bps: Option<u64>,
    /// What the policy's author should know.
    pub remarks: sluice_policy::Diagnostics,
    /// What the operator should know.
    pub notes: Vec<String>,
}

/// Checks that the process may do any of this.
pub fn require_root() -> Result<()> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    Err(Error::new(Kind::Privilege, "this needs root").help("run it with sudo"))
}

/// Takes an interface into management.
pub fn up(request: &UpRequest) -> Result<Done> {
    require_root()?;
    let _lock = Lock::take()?;
    let interface = Interface::find(&request.interface)?;
    remove_orphans()?;
    let mut notes = refuse_managed(&interface)?;
    let mut features = Features::probe()?;
    if qdiscs::list(&interface.name)?.iter().any(|qdisc| qdisc.kind == "ingress") {
        if !features.tcx {
            return Err(Error::input(format!(
                "{} has an ingress qdisc, in the place of the clsact that is needed",
                interface.name
            ))
            .help("remove it (tc qdisc del dev IFACE ingress), or use clsact for what it does"));
        }
        notes.push("an ingress qdisc is in the place of clsact, which the splitter needs".to_owned());
        features.clsact = false;
    }
    let wishes = Wishes { engine: request.engine, hook: request.hook, ingress_rate: request.ingress_rate };
    let root = qdiscs::root(&interface.name)?;
    let root_kind = root.as_ref().map_or("none", |root| root.kind.as_str());
    let policy = resolve(&request.policy, request.rate, request.engine.unwrap_or(Engine::Qdisc))?;
    let plan = plan::plan(&policy, &interface, &features, &wishes, root_kind)?;
    // Which engine it is decides how much a policy may ask for.
    let policy = resolve(&request.policy, request.rate, plan.engine)?;
    notes.extend(plan.notes);

    let mut record = Record {
        abi_version: abi::SL_ABI_VERSION,
        key: Record::new_key(&interface.name)?,
        interface: interface.name.clone(),
        ifindex: interface.ifindex,
        netns: netns::inode()?,
        phase: Phase::Starting,
        engine: plan.engine,
        hook: plan.hook,
        qdisc: String::new(),
        queues: plan.queues,
        tag: 0,
        generation: 1,
        policy: sluice_policy::print(&request.policy),
        policy_name: policy.name.clone(),
        policy_source: request.source.clone(),
        rate_bps: request.rate.map(|rate| rate.0),
        ingress_rate_bps: request.ingress_rate.map(|rate| rate.0),
        split: plan.split,
        fq_codel: plan.engine == Engine::Tc && features.fq_codel,
        made_clsact: false,
        gro_was_on: plan.gro_off && offload::gro(&interface.name)?,
        replaced: None,
        applied_s: now_s(),
        before: None,
    };
    record.tag = choose_tag(&record)?;
    if plan.engine == Engine::Tc {
        notes.extend(
            htb::differences(&policy, policy.link_rate, Some(record.fq_codel), interface.header_bytes())
                .into_iter()
                .map(|difference| format!("engine tc: {difference}")),
        );
    }
    if let Some(root) = root.filter(|root| plan.engine != Engine::None && !root.is_default()) {
        if !request.force {
            return Err(Error::input(format!(
                "{} has a hand-made qdisc at its root: {} {}",
                interface.name, root.kind, root.handle
            ))
            .help("remove it (tc qdisc del dev IFACE root), or use --force, which saves a dump of it first"));
        }
        record.replaced = Some(save_dump(&record)?);
    }
    let pins_root = bpffs::root()?;
    let pins = record.pins(&pins_root);
    let compiled = compile(&policy, &record, &interface, 0)?;
    record.save()?;
    fault::point("up-recorded");

    match install(&mut record, &interface, &policy, &compiled, &pins, features.tcx, &mut notes) {
        Ok(()) => {
            record.phase = Phase::Active;
            record.save()?;
            if let Some(dump) = &record.replaced {
                notes.push(format!("the hand-made hierarchy that was replaced is saved in {}", dump.display()));
            }
            Ok(Done { record, rate_bps: policy.link_rate.map(|rate| rate.0), remarks: policy.remarks, notes })
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

fn install(
    record: &mut Record,
    interface: &Interface,
    policy: &Resolved,
    compiled: &sluice_tables::Compiled,
    pins: &Path,
    tcx: bool,
    notes: &mut Vec<String>,
) -> Result<()> {
    attach::remove_pins(pins)?;
    attach::make_devices(record)?;
    fault::point("up-devices");
    attach::load(record, interface, policy.flows, tcx, pins)?;
    record.save()?;
    fault::point("up-loaded");
    tables::stage(pins, compiled, 0)?;
    fault::point("up-staged");
    tables::flip(pins, 0, compiled.tables.generation)?;
    fault::point("up-live");
    attach::install_queues(record, policy, pins, interface.header_bytes())?;
    fault::point("up-queued");
    attach::install_ingress_queues(record, policy, pins, interface.header_bytes())?;
    fault::point("up-ingress-queued");
    if record.split {
        attach::install_splitter(record, pins)?;
    }
    fault::point("up-split");
    attach::install_hooks(record, tcx, pins, notes)?;
    fault::point("up-hooked");
    if record.gro_was_on {
        offload::set_gro(&record.interface, false)?;
        notes.push(
            "merging of arriving packets (GRO) is off, so that they are queued as frames; `down` turns it on again"
                .to_owned(),
        );
    }
    verify(record, pins)
}

/// What has been installed is what runs.
fn verify(record: &Record, pins: &Path) -> Result<()> {
    let live = tables::live(pins)?;
    if live.generation != record.generation || live.tag != record.tag {
        return Err(Error::system(format!(
            "{}: the tables in force are not those that were written",
            record.interface
        )));
    }
    if record.engine == Engine::None {
        return Ok(());
    }
    match qdiscs::root(&record.interface)? {
        Some(root) if attach::is_ours(record, &root) => Ok(()),
        root => Err(Error::system(format!(
            "{}: the root qdisc is {}, not ours",
            record.interface,
            root.map_or("none".to_owned(), |root| format!("{} {}", root.kind, root.handle))
        ))
        .help("something else (NetworkManager, systemd-networkd, another script) sets qdiscs on it: stop that first")),
    }
}

/// Replaces the policy of a managed interface. No packet is lost or classified by a mixture of two policies.
pub fn apply(interface: &str, policy: &Policy, source: &str, rate: Option<Rate>) -> Result<Done> {
    require_root()?;
    let _lock = Lock::take()?;
    let mut record = managed(interface)?;
    let found = Interface::find(interface)?;
    let pins = record.pins(&bpffs::root()?);
    let rate = rate.or(record.rate_bps.map(Rate));
    let before = resolve(&parse_recorded(&record)?, record.rate_bps.map(Rate), record.engine)?;
    let now = resolve(policy, rate, record.engine)?;
    let features = Features::probe()?;
    let wishes = Wishes {
        engine: Some(record.engine).filter(|engine| *engine != Engine::None),
        hook: Some(record.hook),
        ingress_rate: record.ingress_rate_bps.map(Rate),
    };
    let root = qdiscs::root(interface)?.map_or_else(String::new, |root| root.kind);
    let plan = plan::plan(&now, &found, &features, &wishes, &root)?;
    let mut changes = Vec::new();
    if plan.engine != record.engine {
        changes.push("whether packets are queued");
    }
    if (before.flows > 0) != (now.flows > 0) || before.flows != now.flows {
        changes.push("the size of the flow table");
    }
    if record.queues > 0 && plan.queues == 0 && plan.engine == Engine::Qdisc {
        changes.push("one scheduler for all queues instead of one for each");
    }
    if !changes.is_empty() {
        return Err(Error::input(format!(
            "{interface}: this policy changes {}, which a running interface cannot",
            changes.join(" and ")
        ))
        .help(format!("sluice down {interface}, then sluice up {interface} with the new policy")));
    }
    if record.engine != Engine::None
        && !matches!(qdiscs::root(interface)?, Some(root) if attach::is_ours(&record, &root))
    {
        return Err(Error::input(format!(
            "{interface}: its root qdisc is not ours any more: something has replaced it"
        ))
        .help(format!("sluice down {interface}, then sluice up {interface}")));
    }

    if plan.split && !record.split {
        return Err(Error::input(format!(
            "{interface}: at this rate super-packets must be split, which a running interface cannot begin"
        ))
        .help(format!("sluice down {interface}, then sluice up {interface} with the new policy")));
    }

    let live = tables::live_buffer(&pins)?;
    let buffer = (live + 1) % abi::SL_BUFFERS;
    let was = record.clone();
    record.generation = tables::live(&pins)?.generation.wrapping_add(1).max(1);
    record.policy = sluice_policy::print(policy);
    record.policy_name = now.name.clone();
    record.policy_source = source.to_owned();
    record.rate_bps = rate.map(|rate| rate.0);
    record.applied_s = now_s();
    record.tag = choose_tag(&record)?;
    let compiled = compile(&now, &record, &found, buffer)?;
    let header_bytes = found.header_bytes();
    let changed = (|| {
        if record.engine == Engine::Tc {
            attach::change_htb(&record, &now, header_bytes)?;
        }
        tables::stage(&pins, &compiled, buffer)?;
        fault::point("apply-staged");
        record.before = Some(Box::new(was.clone()));
        record.save()?;
        tables::flip(&pins, buffer, compiled.tables.generation)
    })();
    if let Err(mut error) = changed {
        if record.engine == Engine::Tc {
            if let Err(rest) = attach::change_htb(&was, &before, header_bytes) {
                error.what += &format!("\n  and restoring the previous classes failed: {}", rest.what);
            }
        }
        was.save()?;
        return Err(error);
    }
    fault::point("apply-live");
    record.before = None;
    record.save()?;
    tables::forget(&pins, live)?;
    if record.engine == Engine::Tc {
        attach::prune_htb(&record, &before, &now)?;
    }
    verify(&record, &pins)?;
    Ok(Done { record, rate_bps: now.link_rate.map(|rate| rate.0), remarks: now.remarks, notes: Vec::new() })
}

/// Gives an interface back as it was found.
pub fn down(interface: &str) -> Result<Record> {
    require_root()?;
    let _lock = Lock::take()?;
    let Some(mut record) = Record::find(interface)? else { return Err(not_managed(interface)) };
    let pins = record.pins(&bpffs::root()?);
    record.phase = Phase::Stopping;
    record.save()?;
    fault::point("down-recorded");
    tear_down(&mut record, &pins)?;
    Ok(record)
}

/// Removes all there is of a record, in the order in which packets keep flowing.
fn tear_down(record: &mut Record, pins: &Path) -> Result<()> {
    if Interface::is_there(&record.interface, record.ifindex) {
        attach::remove_hooks(record, pins)?;
        fault::point("down-hooks");
        attach::remove_queues(record)?;
        if record.gro_was_on {
            offload::set_gro(&record.interface, true)?;
        }
    }
    fault::point("down-queues");
    attach::remove_device(&record.ingress_device())?;
    attach::remove_device(&record.split_device())?;
    fault::point("down-devices");
    attach::remove_pins(pins)?;
    fault::point("down-pins");
    record.remove()
}

/// The record of an interface that is wholly up.
pub(crate) fn managed(interface: &str) -> Result<Record> {
    match Record::find(interface)? {
        None => Err(not_managed(interface)),
        Some(record) if record.phase != Phase::Active => Err(half_done(&record)),
        Some(record) if !Interface::is_there(interface, record.ifindex) => {
            Err(Error::input(format!("{interface} has gone since it was taken into management"))
                .help(format!("sluice down {interface} removes what is left of it")))
        }
        Some(record) => settled(record),
    }
}

/// An `apply` that was killed has left the record of both policies: the tables tell which one is in force.
fn settled(mut record: Record) -> Result<Record> {
    if let Some(before) = record.before.take() {
        if tables::live(&record.pins(&bpffs::root()?))?.generation != record.generation {
            return Ok(*before);
        }
    }
    Ok(record)
}

/// Whether the queues of a managed interface are still in place.
pub(crate) fn in_place(record: &Record) -> Result<bool> {
    let root = qdiscs::root(&record.interface)?;
    Ok(record.engine == Engine::None || root.is_some_and(|root| attach::is_ours(record, &root)))
}

fn not_managed(interface: &str) -> Error {
    let names: Vec<String> = Record::all().unwrap_or_default().into_iter().map(|record| record.interface).collect();
    let managed = if names.is_empty() { "none is".to_owned() } else { format!("managed: {}", names.join(", ")) };
    Error::input(format!("{interface} is not managed by sluice"))
        .help(format!("`sluice up {interface} --policy P` does it; {managed}"))
}

fn half_done(record: &Record) -> Error {
    let command = if record.phase == Phase::Starting { "up" } else { "down" };
    Error::input(format!("{}: a `sluice {command}` was interrupted", record.interface))
        .help(format!("sluice down {} cleans up after it", record.interface))
}

/// What is left of interfaces whose network namespace has gone, where nobody can run `down` any more: records and pins.
/// The number of such a namespace is soon given to another.
fn remove_orphans() -> Result<()> {
    let own = netns::inode()?;
    for record in Record::all()?.into_iter().filter(|record| record.netns != own && !netns::is_kept(record.netns)) {
        if let Err(error) = attach::remove_pins(&record.pins(&bpffs::root()?)).and_then(|()| record.remove()) {
            eprintln!("warning: what a namespace that has gone has left of {}: {error}", record.interface);
        }
    }
    Ok(())
}

/// An interface that is managed already is refused; what is left of one that has gone is removed.
fn refuse_managed(interface: &Interface) -> Result<Vec<String>> {
    let Some(mut record) = Record::find(&interface.name)? else { return Ok(Vec::new()) };
    if record.ifindex != interface.ifindex {
        let pins = record.pins(&bpffs::root()?);
        tear_down(&mut record, &pins)?;
        return Ok(vec![format!(
            "an earlier {} had gone without `sluice down`: what was left of it is removed",
            interface.name
        )]);
    }
    if record.phase != Phase::Active {
        return Err(half_done(&record));
    }
    Err(Error::input(format!("{} is managed already, with the policy {}", interface.name, record.policy_name))
        .help(format!("sluice apply {0} POLICY changes it, sluice down {0} gives it back", interface.name)))
}

fn resolve(policy: &Policy, rate: Option<Rate>, engine: Engine) -> Result<Resolved> {
    let engine = if engine == Engine::Tc { sluice_policy::Engine::Tc } else { sluice_policy::Engine::Core };
    sluice_policy::resolve(policy, &Context { link_rate: rate, engine })
        .map_err(|found| Error::input(found.render(false)))
}

/// The policy that a record holds.
pub(crate) fn parse_recorded(record: &Record) -> Result<Policy> {
    sluice_policy::parse(&sluice_policy::Source::new("the recorded policy", record.policy.as_str()))
        .map_err(|found| Error::system(found.render(false)))
}

fn compile(policy: &Resolved, record: &Record, interface: &Interface, buffer: u32) -> Result<sluice_tables::Compiled> {
    let context = sluice_tables::Context {
        generation: record.generation,
        tag: record.tag,
        buffer,
        egress_rate: policy.link_rate,
        ingress_rate: record.ingress_rate_bps.map(Rate),
        header_bytes: interface.header_bytes(),
    };
    sluice_tables::compile(policy, &context).map_err(|error| Error::input(error.to_string()))
}

/// Equal policies have equal tags, so a class travels between their interfaces; different ones never share a tag. The
/// search starts at a place that depends on the policy, so a tag is not soon used again for another.
fn choose_tag(record: &Record) -> Result<u16> {
    let others: Vec<Record> = Record::all()?
        .into_iter()
        .filter(|other| other.ifindex != record.ifindex || other.netns != record.netns)
        .collect();
    if let Some(equal) = others.iter().find(|other| other.policy == record.policy) {
        return Ok(equal.tag);
    }
    let mut hasher = DefaultHasher::new();
    (&record.policy, record.generation).hash(&mut hasher);
    let tags = abi::SL_TAGS as u16 - 1;
    let start = (hasher.finish() % u64::from(tags)) as u16;
    let own = Record::find(&record.interface)?.map(|own| own.tag);
    (0..tags)
        .map(|n| (start + n) % tags + 1)
        .find(|tag| Some(*tag) != own && others.iter().all(|other| other.tag != *tag))
        .ok_or_else(|| Error::system("more than 1022 different policies are in force"))
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

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
