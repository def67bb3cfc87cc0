//! `sluice doctor`: the abilities of this kernel, driver and machine, engine by engine, and what to install or enable.

use crate::bpf::object::Loader;
use crate::engine::features::Features;
use crate::engine::forwarding::{self, Leaving, SharedWay};
use crate::engine::{self, parts, xsk_workers};
use crate::record::{Engine, Hook, Phase, Record, policy};
use crate::system::card_shaping::{DevlinkRates, NetShaper};
use crate::system::driver::SocketFrames;
use crate::system::interface::Interface;
use crate::system::{bpffs, iproute, netns, paths, privilege, qdiscs};
use serde::Serialize;
use sluice_error::Result;
use sluice_policy::{Rank, Scheduler};

/// State of a feature or part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// There and working.
    Good,
    /// Missing, and something else takes its place.
    Lacking,
    /// Missing, and something does not work without.
    Bad,
    /// Neither the kernel nor the driver tells.
    Unknown,
}

/// One check and its result.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// Area of the check: kernel, engine qdisc, engine tc, machine, or the name of an interface.
    pub area: String,
    /// Name of the checked feature or part.
    pub what: String,
    /// State of the feature or part.
    pub verdict: Verdict,
    /// Detail of the result.
    pub detail: String,
    /// Remedy, such as a module to load.
    pub cure: Option<String>,
}

struct Findings(Vec<Finding>);

/// A feature, present or absent, with the text for each case.
struct Feature<'a> {
    area: &'a str,
    what: &'a str,
    there: bool,
    missing: Verdict,
    yes: &'a str,
    no: &'a str,
    cure: &'a str,
}

impl Findings {
    fn add(&mut self, area: &str, what: &str, verdict: Verdict, detail: impl Into<String>, cure: &str) {
        self.0.push(Finding {
            area: area.to_owned(),
            what: what.to_owned(),
            verdict,
            detail: detail.into(),
            cure: (verdict != Verdict::Good && !cure.is_empty()).then(|| cure.to_owned()),
        });
    }

    fn feature(&mut self, f: &Feature<'_>) {
        let (verdict, detail) = if f.there { (Verdict::Good, f.yes) } else { (f.missing, f.no) };
        self.add(f.area, f.what, verdict, detail, f.cure);
    }

    /// Adds the result of an attempt: its text, or its error.
    fn attempt(&mut self, area: &str, what: &str, result: Result<String>) {
        match result {
            Ok(said) => self.add(area, what, Verdict::Good, said, ""),
            Err(error) => self.add(area, what, Verdict::Bad, error.what, error.cure.as_deref().unwrap_or_default()),
        }
    }
}

/// Makes every check. Loads the programs for a moment, and leaves nothing behind.
pub fn examine() -> Result<Vec<Finding>> {
    privilege::require_rights()?;
    let features = Features::probe()?;
    let mut f = Findings(Vec::new());
    f.add("kernel", "version", Verdict::Good, features.release.clone(), "");
    f.attempt("kernel", "BPF file system", bpffs::root().map(|root| root.display().to_string()));
    for feature in &kernel_features(&features) {
        f.feature(feature);
    }
    let accepted = || "the verifier accepts it".to_owned();
    f.attempt("kernel", "classifier", loads(Loader::classifier(), &["sl_ingress", "sl_split"]).map(|()| accepted()));
    f.feature(&Feature {
        area: "engine qdisc",
        what: "BPF qdisc",
        there: features.bpf_qdisc,
        missing: Verdict::Lacking,
        yes: "there",
        no: &format!("not there: engine tc is used, which has no {}", only_of_qdisc().join(", ")),
        cure: "use a kernel from 6.17 with CONFIG_NET_SCH_BPF=y: Debian 13 has one in its backports \
               (linux-image-amd64/trixie-backports)",
    });
    if features.bpf_qdisc {
        f.attempt("engine qdisc", "scheduler", loads(Loader::qdisc(), &[]).map(|()| accepted()));
    }
    f.feature(&Feature {
        area: "engine xsk",
        what: "AF_XDP sockets",
        there: sluice_xsk::is_supported(),
        missing: Verdict::Lacking,
        yes: "there: `sluice wire` makes two interfaces a wire",
        no: "not there: `sluice wire` does not run here",
        cure: "use a kernel with CONFIG_XDP_SOCKETS=y, as Debian's have",
    });
    for feature in &htb_features(&features) {
        f.feature(feature);
    }
    f.attempt("machine", "iproute2", iproute::run("tc", &["-V"]).map(|version| version.trim().to_owned()));
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    f.add("machine", "processors", Verdict::Good, format!("{cpus}, {}", std::env::consts::ARCH), "");
    let own = netns::inode()?;
    let records: Vec<Record> = Record::all()?.into_iter().filter(|record| record.netns == own).collect();
    for record in records.iter().filter(|record| record.phase == Phase::Active) {
        parts_of(&mut f, record)?;
        if Interface::is_there(&record.interface, record.ifindex) {
            forwards_of(&mut f, record);
            arrivals_of(&mut f, record);
        }
    }
    for name in Interface::names()? {
        if let Ok(interface) = Interface::find(&name) {
            describe(&mut f, &interface, &records);
        }
    }
    Ok(f.0)
}

/// The disciplines that engine `tc` lacks.
fn only_of_qdisc() -> Vec<&'static str> {
    let replaced = |scheduler: &Scheduler| scheduler.instead_on_tc(Rank::default()).is_some();
    Scheduler::all().filter(replaced).map(Scheduler::name).collect()
}

fn kernel_features(features: &Features) -> [Feature<'static>; 4] {
    let kernel = |what, there, missing, yes, no, cure| Feature { area: "kernel", what, there, missing, yes, no, cure };
    [
        kernel(
            "types (BTF)",
            features.btf,
            Verdict::Bad,
            "/sys/kernel/btf/vmlinux",
            "missing: no program can be loaded",
            "use a kernel with CONFIG_DEBUG_INFO_BTF",
        ),
        kernel(
            "tcx",
            features.tcx,
            Verdict::Lacking,
            "tc programs attach by links",
            "not there (from 6.6): clsact filters are used",
            "",
        ),
        kernel(
            "clsact",
            features.clsact,
            Verdict::Bad,
            "there",
            "missing: super-packets are not split",
            "load sch_ingress, or enable CONFIG_NET_SCH_INGRESS",
        ),
        kernel(
            "ifb",
            features.ifb,
            Verdict::Bad,
            "there",
            "missing: no --ingress-rate, super-packets are not split",
            "load ifb, or enable CONFIG_IFB",
        ),
    ]
}

fn htb_features(features: &Features) -> [Feature<'static>; 3] {
    [
        Feature {
            area: "engine tc",
            what: "HTB",
            there: features.htb,
            missing: if features.bpf_qdisc { Verdict::Lacking } else { Verdict::Bad },
            yes: "there",
            no: "missing",
            cure: "load sch_htb, or enable CONFIG_NET_SCH_HTB",
        },
        Feature {
            area: "engine tc",
            what: "fq_codel",
            there: features.fq_codel,
            missing: Verdict::Lacking,
            yes: "there",
            no: "missing: classes that queue by flow are plain FIFOs",
            cure: "load sch_fq_codel, or enable CONFIG_NET_SCH_FQ_CODEL",
        },
        Feature {
            area: "engine tc",
            what: "codel",
            there: features.codel,
            missing: Verdict::Lacking,
            yes: "there",
            no: "missing: one queue with CoDel is a plain FIFO",
            cure: "load sch_codel, or enable CONFIG_NET_SCH_CODEL",
        },
    ]
}

fn loads(loader: Result<Loader>, programs: &[&str]) -> Result<()> {
    let mut loader = loader?;
    if !programs.is_empty() {
        loader.only(programs);
    }
    loader.load(paths::run()).map(drop)
}

/// Checks the parts of a managed interface, which other programs may have removed.
fn parts_of(f: &mut Findings, record: &Record) -> Result<()> {
    if !Interface::is_there(&record.interface, record.ifindex) {
        let cure = format!("sluice down {} removes it", record.interface);
        f.add(
            &record.interface,
            "parts",
            Verdict::Bad,
            "the interface has gone; the devices and pins that were made for it are left",
            &cure,
        );
        return Ok(());
    }
    let missing = parts::missing(record, &record.pins(&bpffs::root()?))?;
    let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let (verdict, detail) = if missing.is_empty() {
        (Verdict::Good, "devices, queues and hooks are in place".to_owned())
    } else {
        (Verdict::Bad, missing.join("; "))
    };
    f.add(
        &record.interface,
        "parts",
        verdict,
        detail,
        &format!("sluice ensure {} puts it back, or says how to", record.interface),
    );
    Ok(())
}

/// Tells where arrivals are dropped that their queue has no room for, and what each has cost by then.
fn arrivals_of(f: &mut Findings, record: &Record) {
    if record.ingress_rate_bps.is_none() {
        return;
    }
    let virtual_queues = match record.engine {
        Engine::Tc => {
            ", by a virtual queue for each class: HTB's own cannot be seen, and classes that queue by flow have none"
        }
        _ => "",
    };
    let (verdict, detail) = match record.hook {
        Hook::Xdp => (Verdict::Good, "XDP drops what the queue of a class has no room for"),
        Hook::Tc => (
            Verdict::Lacking,
            "tc drops what the queue of a class has no room for: each such packet has cost its socket buffer by then",
        ),
    };
    let cure = "sluice down, then sluice up --classifier xdp, if the driver has XDP: they are dropped before that";
    f.add(&record.interface, "arrivals", verdict, format!("{detail}{virtual_queues}"), cure);
}

/// Tells by which ways the packets of a managed interface's forwards leave, and why.
fn forwards_of(f: &mut Findings, record: &Record) {
    let ways = policy::resolved(record).and_then(|policy| Ok((forwarding::ways_of(record, &policy)?, policy)));
    let (ways, policy) = match ways {
        Ok(found) => found,
        Err(error) => return f.attempt(&record.interface, "forwards", Err(error)),
    };
    let named = policy.forwards.iter().map(|forward| forward.name.as_str());
    for shared in SharedWay::of(named.zip(ways.iter().map(Vec::as_slice))) {
        let (verdict, cure) = match &shared.way {
            Leaving::Unrouted => (Verdict::Bad, "`ip route get TARGET` says why; add a route to it".to_owned()),
            Leaving::Disabled { sysctl } => (Verdict::Bad, format!("sysctl -w {sysctl}=1")),
            Leaving::Peer { passes: Some(_), .. } => (
                Verdict::Lacking,
                format!("sluice apply {} with the policy in force has the ways chosen anew", record.interface),
            ),
            _ => (Verdict::Good, String::new()),
        };
        f.add(&record.interface, "forwards", verdict, shared.to_string(), &cure);
    }
}

fn describe(f: &mut Findings, interface: &Interface, records: &[Record]) {
    if interface.name == "lo" {
        return;
    }
    let kind = interface.kind.as_deref();
    let detail = match kind {
        Some("veth") => "veth: classified by tc; XDP is possible, and turns off TSO at the peer".to_owned(),
        Some("bridge") => {
            "bridge: packets between its ports pass below it; put sluice on the port that leads to the bottleneck"
                .to_owned()
        }
        Some("bond" | "team") => {
            format!("{}: shaped as a whole, above its members; classified by tc", kind.unwrap_or_default())
        }
        Some("ifb") => "ifb: a device that queues for others".to_owned(),
        Some(kind) => format!("{kind}: classified by tc"),
        None if !interface.ethernet => {
            "no Ethernet header: packets are parsed from the network layer, by tc".to_owned()
        }
        None => "a device with a driver: XDP is tried where packets may be dropped on arrival, else tc".to_owned(),
    };
    let root = qdiscs::root(&interface.name).ok().flatten();
    let managed = records.iter().find(|record| record.ifindex == interface.ifindex);
    let queues = match (interface.tx_queues, managed) {
        (0 | 1, _) => String::new(),
        (_, Some(record)) if record.partner.is_some() => {
            format!("; a side of a wire with {}", xsk_workers::count(record.workers(), "worker"))
        }
        (_, Some(record)) if record.queues > 0 => {
            match policy::resolved(record).ok().and_then(|policy| policy.link_rate) {
                Some(rate) => format!("; {} queues have a scheduler each, and share {rate}", record.queues),
                None => format!("; {} queues have a scheduler each, and share no rate", record.queues),
            }
        }
        (many, Some(record)) if record.engine.has_qdiscs() => {
            format!("; one queue with one lock serves its {many} queues")
        }
        (many, _) => format!(
            "; {many} queues: a link shaped to more than 1 Gbit/s shares its rate over them (\"queues\" of \"link\"), a slower one has one queue with one lock in place of them"
        ),
    };
    let ours = |root: &qdiscs::Qdisc| {
        let on = |record: &&Record| record.ifindex == interface.ifindex || record.ingress_device() == interface.name;
        records.iter().filter(on).any(|record| engine::is_ours(record, root))
    };
    let (verdict, queueing, cure) = match root {
        Some(root) if ours(&root) => (Verdict::Good, format!("; root qdisc {} of sluice", root.kind), ""),
        Some(root) if !root.is_default() && !root.kind.starts_with("sluice") => (
            Verdict::Lacking,
            format!("; root qdisc {} {} was made by hand", root.kind, root.handle),
            "sluice up refuses to replace it without --force",
        ),
        Some(root) => (Verdict::Good, format!("; root qdisc {}", root.kind), ""),
        None => (Verdict::Good, String::new(), ""),
    };
    f.add(&interface.name, "kind", verdict, detail + &queueing + &queues, cure);
    if interface.ethernet && matches!(kind, None | Some("veth")) {
        frames_of(f, interface);
    }
    if interface.ethernet && kind.is_none() {
        for (verdict, detail) in shaping_of(NetShaper::of(interface.ifindex), DevlinkRates::of(interface.ifindex)) {
            f.add(&interface.name, "shaping", verdict, detail, "");
        }
    }
}

/// What the card can shape by itself, in lines.
fn shaping_of(shapers: Option<NetShaper>, rates: Option<DevlinkRates>) -> Vec<(Verdict, String)> {
    let mut lines = Vec::new();
    lines.extend(shapers.map(|shapers| match shapers {
        NetShaper::NoFamily => (
            Verdict::Unknown,
            "the kernel does not tell what the card can shape by itself (net-shaper, from 6.13)".to_owned(),
        ),
        NetShaper::NoShapers => {
            (Verdict::Unknown, "the driver tells of no shapers of the card (net-shaper)".to_owned())
        }
        NetShaper::Has(all) => {
            let each: Vec<String> =
                all.iter().map(|shapers| format!("{} ({})", shapers.scope, shapers.can.join(", "))).collect();
            let what =
                format!("the card can shape {} (net-shaper); sluice does not have it do so yet", each.join("; "));
            (Verdict::Good, what)
        }
    }));
    lines.extend(rates.map(|DevlinkRates { device, leaves, nodes }| {
        let (functions, groups) = (xsk_workers::count(leaves, "function"), xsk_workers::count(nodes, "group"));
        let what = format!(
            "{device} has rates for {functions} and {groups} of them (devlink-rate); sluice does not set them yet"
        );
        (Verdict::Good, what)
    }));
    lines
}

/// Adds the way of frames to the process of a wire.
fn frames_of(f: &mut Findings, interface: &Interface) {
    let (verdict, detail) = match SocketFrames::of(interface.ifindex) {
        Some(SocketFrames::Lent) => {
            (Verdict::Good, "the driver can share frames with the process of `sluice wire`, and copies none then")
        }
        Some(SocketFrames::Copied) => {
            (Verdict::Good, "the kernel copies each frame to the process of `sluice wire`, and from it")
        }
        Some(SocketFrames::Never) => (
            Verdict::Lacking,
            "the driver runs no XDP programs, and `sluice wire` needs one: it does not take this interface",
        ),
        None => return,
    };
    f.add(&interface.name, "AF_XDP", verdict, detail, "");
}

#[cfg(test)]
mod tests {
    use super::{Verdict, shaping_of};
    use crate::system::card_shaping::{DevlinkRates, NetShaper, Scope, Shapers};

    #[test]
    fn the_abilities_of_a_card_are_told_in_words() {
        let shapers = |scope, can: &[&'static str]| Shapers { scope, can: can.to_vec() };
        let has = NetShaper::Has(vec![
            shapers(Scope::Device, &["bits a second", "ceiling"]),
            shapers(Scope::Queue, &["bits a second", "ceiling", "weight"]),
        ]);
        let rates = DevlinkRates { device: "pci/0000:01:00.0".to_owned(), leaves: 8, nodes: 1 };
        assert_eq!(
            shaping_of(Some(has), Some(rates)),
            [
                "the card can shape the interface (bits a second, ceiling); each tx queue (bits a second, ceiling, weight) \
                 (net-shaper); sluice does not have it do so yet",
                "pci/0000:01:00.0 has rates for 8 functions and 1 group of them (devlink-rate); sluice does not set them yet",
            ]
            .map(|detail| (Verdict::Good, detail.to_owned()))
        );
        for none in [NetShaper::NoFamily, NetShaper::NoShapers] {
            let lines = shaping_of(Some(none), None);
            assert_eq!(lines.len(), 1);
            assert_eq!(lines[0].0, Verdict::Unknown, "{}", lines[0].1);
        }
        assert!(shaping_of(None, None).is_empty());
    }
}
