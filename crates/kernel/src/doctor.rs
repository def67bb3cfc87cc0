//! What this kernel, driver and machine can do, engine by engine, and what to install or enable.

use crate::error::Result;
use crate::features::Features;
use crate::interface::Interface;
use crate::object::Loader;
use crate::{bpffs, iproute, manage, qdiscs, record};
use serde::Serialize;

/// How a thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// There and working.
    Good,
    /// Missing, and something else takes its place.
    Lacking,
    /// Missing, and something does not work without.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// kernel, engine qdisc, engine tc, machine, or the name of an interface.
    pub area: String,
    /// What was looked at.
    pub what: String,
    /// How it stands.
    pub verdict: Verdict,
    /// What was found.
    pub detail: String,
    /// What to install or enable.
    pub cure: Option<String>,
}

struct Findings(Vec<Finding>);

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

    fn yes_no(&mut self, area: &str, what: &str, there: bool, missing: Verdict, yes: &str, no: &str, cure: &str) {
        let (verdict, detail) = if there { (Verdict::Good, yes) } else { (missing, no) };
        self.add(area, what, verdict, detail, cure);
    }
}

/// Looks at everything. Loads the programs for a moment, and leaves nothing behind.
pub fn examine() -> Result<Vec<Finding>> {
    manage::require_root()?;
    let features = Features::probe()?;
    let mut f = Findings(Vec::new());
    use Verdict::{Bad, Good, Lacking};

    f.add("kernel", "version", Good, features.release.clone(), "");
    f.yes_no(
        "kernel",
        "types (BTF)",
        features.btf,
        Bad,
        "/sys/kernel/btf/vmlinux",
        "missing: no program can be loaded",
        "use a kernel with CONFIG_DEBUG_INFO_BTF",
    );
    match bpffs::root() {
        Ok(root) => f.add("kernel", "BPF file system", Good, root.display().to_string(), ""),
        Err(error) => f.add("kernel", "BPF file system", Bad, error.what, "mount -t bpf bpf /sys/fs/bpf"),
    }
    f.yes_no(
        "kernel",
        "tcx",
        features.tcx,
        Lacking,
        "tc programs attach by links",
        "not there (from 6.6): clsact filters are used",
        "",
    );
    f.yes_no(
        "kernel",
        "clsact",
        features.clsact,
        Bad,
        "there",
        "missing: super-packets are not split",
        "load sch_ingress, or enable CONFIG_NET_SCH_INGRESS",
    );
    f.yes_no(
        "kernel",
        "ifb",
        features.ifb,
        Bad,
        "there",
        "missing: no --ingress-rate, super-packets are not split",
        "load ifb, or enable CONFIG_IFB",
    );
    match loads(Loader::classifier(), &["sl_ingress", "sl_split"]) {
        Ok(()) => f.add("kernel", "classifier", Good, "the verifier accepts it", ""),
        Err(error) => f.add("kernel", "classifier", Bad, error.what, error.cure.as_deref().unwrap_or_default()),
    }

    f.yes_no(
        "engine qdisc", "BPF qdisc", features.bpf_qdisc, Lacking, "there", "not there: engine tc is used",
        "use a kernel from 6.16 with CONFIG_NET_SCH_BPF=y: Debian 13 has one in its backports (linux-image-amd64/trixie-backports)",
    );
    if features.bpf_qdisc {
        match loads(Loader::qdisc(), &[]) {
            Ok(()) => f.add("engine qdisc", "scheduler", Good, "the verifier accepts it", ""),
            Err(error) => {
                f.add("engine qdisc", "scheduler", Bad, error.what, error.cure.as_deref().unwrap_or_default())
            }
        }
    }
    let missing = if features.bpf_qdisc { Lacking } else { Bad };
    f.yes_no(
        "engine tc",
        "HTB",
        features.htb,
        missing,
        "there",
        "missing",
        "load sch_htb, or enable CONFIG_NET_SCH_HTB",
    );
    f.yes_no(
        "engine tc",
        "fq_codel",
        features.fq_codel,
        Lacking,
        "there",
        "missing: queues are plain FIFOs",
        "load sch_fq_codel, or enable CONFIG_NET_SCH_FQ_CODEL",
    );

    match iproute::run("tc", &["-V"]) {
        Ok(version) => f.add("machine", "iproute2", Good, version.trim().to_owned(), ""),
        Err(error) => f.add("machine", "iproute2", Bad, error.what, "install iproute2"),
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    f.add("machine", "processors", Good, format!("{cpus}, {}", std::env::consts::ARCH), "");
    for name in Interface::names()? {
        if let Ok(interface) = Interface::find(&name) {
            describe(&mut f, &interface);
        }
    }
    Ok(f.0)
}

fn loads(loader: Result<Loader>, programs: &[&str]) -> Result<()> {
    let mut loader = loader?;
    if !programs.is_empty() {
        loader.only(programs);
    }
    loader.load(record::directory()).map(drop)
}

fn describe(f: &mut Findings, interface: &Interface) {
    if interface.name == "lo" {
        return;
    }
    let kind = interface.kind.as_deref();
    let detail = match kind {
        Some("veth") => "veth: classified by tc; XDP is possible, and turns off TSO at the peer".to_owned(),
        Some("bridge") => "bridge: what it forwards between its ports passes below it; put sluice on the port that leads to the bottleneck".to_owned(),
        Some("bond" | "team") => format!("{}: shaped as a whole, above its members; classified by tc", kind.unwrap_or_default()),
        Some("ifb") => "ifb: a device that queues for others".to_owned(),
        Some(kind) => format!("{kind}: classified by tc"),
        None if !interface.ethernet => "no Ethernet header: packets are parsed from the network layer, by tc".to_owned(),
        None => "a device with a driver: XDP is tried where the policy polices, else tc".to_owned(),
    };
    let root = qdiscs::root(&interface.name).ok().flatten();
    let (verdict, queueing, cure) = match root {
        Some(root) if !root.is_default() && !root.kind.starts_with("sluice") => (
            Verdict::Lacking,
            format!("; root qdisc {} {} was made by hand", root.kind, root.handle),
            "sluice up refuses to replace it without --force",
        ),
        Some(root) => (Verdict::Good, format!("; root qdisc {}", root.kind), ""),
        None => (Verdict::Good, String::new(), ""),
    };
    f.add(&interface.name, "kind", verdict, detail + &queueing, cure);
}
