//! The plan of `up`: a pure function of the policy, the interface, the kernel and the options of the caller.

use crate::engine::features::Features;
use crate::engine::options::Options;
use crate::engine::tx_queues::TxQueues;
use crate::engine::{several_trees, tx_queues};
use crate::record::{Engine, Hook};
use crate::system::interface::Interface;
use sluice_error::{Error, Result};
use sluice_policy::{Mode, Rate, Resolved, Scheduler, SplitGso};

/// Below this rate a super-packet of 64 KiB holds the link for more than half a millisecond, and is split.
const SPLIT_BELOW: Rate = Rate(1_000_000_000);

/// Kernel that engine `qdisc` needs, for error texts.
const NEWER_KERNEL: &str = "a kernel from 6.17 with CONFIG_NET_SCH_BPF (Debian 13's backports have one)";

/// The decisions for an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Engine that queues.
    pub engine: Engine,
    /// Hook that classifies on arrival.
    pub hook: Hook,
    /// Whether super-packets are split on their way out.
    pub split: bool,
    /// Number of queues with a scheduler each; 0: one scheduler for all.
    pub queues: u32,
    /// Whether merging of arriving packets is turned off.
    pub gro_off: bool,
    /// Whether a separate hook marks departing packets; where there is a splitter, its hook marks them.
    pub marks: bool,
    /// Whether a separate hook finds the class of departing packets inside their subscribers; where there is a splitter, its hook does.
    pub classifies: bool,
    /// Whether classes can have fq_codel.
    pub fq_codel: bool,
    /// Whether classes can have codel.
    pub codel: bool,
    /// Notes that the caller can act on.
    pub notes: Vec<String>,
    /// Other decisions, for people.
    pub details: Vec<String>,
}

/// Makes the plan. Fails where the kernel lacks what the policy or the options need.
pub fn plan(
    policy: &Resolved,
    interface: &Interface,
    features: &Features,
    options: &Options,
    root: &str,
) -> Result<Plan> {
    let (mut notes, mut details) = (Vec::new(), Vec::new());
    if !features.btf {
        return Err(Error::unsupported("this kernel does not describe its types (/sys/kernel/btf/vmlinux is missing)")
            .help("use a kernel with CONFIG_DEBUG_INFO_BTF, as Debian's are from version 11 on"));
    }
    let engine = choose_engine(policy, features, options, &mut details)?;
    if !policy.arrivals_of.is_empty() && options.ingress_rate.is_none() {
        return Err(Error::input("a group of interfaces without a rate of arrivals queues nothing")
            .help("give --ingress-rate, or write \"ingress_rate\" into \"link\""));
    }
    if options.ingress_rate.is_some() && engine != Engine::Xsk {
        check_ingress_rate(engine, features)?;
    }
    let split = splits(policy, engine, features, &mut notes);
    let ingress_slow =
        options.ingress_rate.is_some_and(|rate| rate <= SPLIT_BELOW) && policy.split_gso != SplitGso::Off;
    let TxQueues { queues, why_one } = tx_queues::choose(policy, engine, interface, (features, options), root)?;
    match (queues, policy.link_rate) {
        (0, _) => {}
        (_, None) => details.push(format!(
            "nothing is shaped, so each of the {queues} queues has a scheduler of its own, below mq: weights hold within a queue"
        )),
        (_, Some(rate)) if policy.network.is_some() => {
            notes.extend(policy.network.as_ref().map(|network| several_trees::note(network, queues, rate)));
        }
        (_, Some(rate)) => notes.push(format!(
            "each of the {queues} tx queues has a scheduler, below mq, and all of them share {rate}: rate, ceilings, guarantees and weights hold \
             for all together; limits and fairness between flows hold in each"
        )),
    }
    let is_flat = policy.network.is_none();
    if queues > 0 && is_flat && policy.link_rate.is_some() && policy.scheduler == Scheduler::STRICT_PRIORITY {
        notes.push(
            "an urgent packet waits until other queues have sent what they have drawn: a batch each, and up to 0.8 ms at high rates"
                .to_owned(),
        );
    }
    if queues > 0 && queues < interface.tx_queues {
        notes.push(format!(
            "{} can have {} tx queues, and {queues} of them are in use: if more are taken into use (ethtool -L), `sluice ensure` says so",
            interface.name, interface.tx_queues
        ));
    }
    let takes_places = engine.has_qdiscs() && queues == 0 && root == "mq";
    notes.extend(why_one.filter(|_| takes_places).map(|why| tx_queues::one_lock(interface.tx_queues, &why)));
    if policy.link_rate.is_none() && engine.has_qdiscs() && policy.arrivals_of.is_empty() {
        notes.push(
            "no link rate: the queue forms here only while the driver pushes back; `--rate` owns the bottleneck"
                .to_owned(),
        );
    }
    Ok(Plan {
        engine,
        hook: choose_hook(policy, interface, options, &mut notes),
        split,
        queues,
        marks: engine == Engine::Qdisc && !split && policy.marks(),
        classifies: engine.has_qdiscs() && !split && policy.has_leaf_classes(),
        fq_codel: engine == Engine::Tc && features.fq_codel,
        codel: engine == Engine::Tc && features.codel,
        // Merged packets have no room in the frames of engine `xsk`.
        gro_off: (ingress_slow || engine == Engine::Xsk) && interface.kind.is_none(),
        notes,
        details,
    })
}

/// Fails where `--ingress-rate` cannot be kept.
fn check_ingress_rate(engine: Engine, features: &Features) -> Result<()> {
    if !engine.queues() {
        return Err(Error::input("a policy that only classifies does not shape arriving packets")
            .help("leave --ingress-rate away, or remove \"mode\": \"classify_only\" from the policy"));
    }
    if !features.ifb {
        return Err(Error::unsupported("this kernel has no ifb device, which --ingress-rate needs")
            .help("load the module ifb, or use a kernel with CONFIG_IFB"));
    }
    Ok(())
}

/// Whether super-packets are split. A note says why they are not, if they should be.
fn splits(policy: &Resolved, engine: Engine, features: &Features, notes: &mut Vec<String>) -> bool {
    let wanted = match policy.split_gso {
        SplitGso::On => true,
        SplitGso::Off => false,
        SplitGso::Auto => policy.link_rate.is_some_and(|rate| rate <= SPLIT_BELOW),
    } && engine.has_qdiscs();
    let split = wanted && features.ifb && features.clsact;
    if wanted && !split {
        notes.push(format!(
            "super-packets are not split, since this kernel has no {}: one can hold the link for {}",
            if features.ifb { "clsact" } else { "ifb" },
            policy.link_rate.map_or("long".to_owned(), |rate| format!("{:.1} ms", 65_536.0 * 8e3 / rate.0 as f64))
        ));
    }
    split
}

/// The error of a policy that the engines of this machine cannot run, on any interface; none if they can.
pub fn refusal(policy: &Resolved, engine: Option<Engine>) -> Option<Error> {
    // Probing the kernel needs root.
    let features = Features::probe().unwrap_or_else(|_| Features::by_types());
    let options = Options { engine, ..Options::default() };
    choose_engine(policy, &features, &options, &mut Vec::new()).err()
}

fn choose_engine(
    policy: &Resolved,
    features: &Features,
    options: &Options,
    details: &mut Vec<String>,
) -> Result<Engine> {
    if policy.mode == Mode::ClassifyOnly {
        details.push("the policy only classifies: nothing is queued, so no engine runs".to_owned());
        return Ok(Engine::None);
    }
    let instead_on_tc = policy.scheduler.instead_on_tc(policy.rank);
    match options.engine {
        Some(Engine::Qdisc) if !features.bpf_qdisc => Err(Error::unsupported(format!(
            "kernel {} has no BPF qdisc that reads packets, which engine `qdisc` needs",
            features.release
        ))
        .help(match instead_on_tc {
            None => format!("use {NEWER_KERNEL}, or --engine tc"),
            Some(instead) => format!("use {NEWER_KERNEL}, or --engine tc and `\"scheduler\": \"{instead}\"`"),
        })),
        Some(Engine::Tc) if !features.htb => Err(no_htb(features)),
        Some(engine) => Ok(engine),
        None if features.bpf_qdisc => {
            details.push("engine qdisc: this kernel has BPF qdiscs".to_owned());
            Ok(Engine::Qdisc)
        }
        None => match &policy.not_on_tc {
            Some(why) => Err(Error::input(why.render(false)).help(format!(
                "engine auto has only tc to choose: kernel {} has no BPF qdisc that reads packets",
                features.release
            ))),
            None if features.htb => {
                details.push("engine tc: this kernel has no BPF qdisc (from 6.17, CONFIG_NET_SCH_BPF)".to_owned());
                Ok(Engine::Tc)
            }
            None => Err(no_htb(features)),
        },
    }
}

fn no_htb(features: &Features) -> Error {
    Error::unsupported(format!("kernel {} has no HTB, which engine `tc` needs", features.release))
        .help("load the module sch_htb, or use a kernel with CONFIG_NET_SCH_HTB")
}

fn choose_hook(policy: &Resolved, interface: &Interface, options: &Options, notes: &mut Vec<String>) -> Hook {
    // Of a group, the cards among its interfaces decide.
    let is_card = |interface: &Interface| interface.kind.is_none() && interface.ethernet && interface.name != "lo";
    let of_group =
        policy.arrivals_of.iter().filter_map(|name| Interface::find(name).ok()).any(|member| is_card(&member));
    let real = is_card(interface) || of_group;
    match options.hook {
        _ if options.engine == Some(Engine::Xsk) => Hook::Xdp,
        Some(Hook::Xdp) if interface.kind.as_deref() == Some("veth") => {
            notes.push(
                "XDP on a veth turns off segmentation offload at its peer: bulk TCP becomes slower there".to_owned(),
            );
            Hook::Xdp
        }
        Some(hook) => hook,
        // XDP pays where packets are dropped on arrival; a driver may reset the link to attach it.
        None if real && (policy.polices() || options.ingress_rate.is_some()) => Hook::Xdp,
        None => Hook::Tc,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_error::Kind;
    use sluice_policy::Source;

    fn planned(scheduler: &str, bpf_qdisc: bool, engine: Option<Engine>) -> Result<Plan> {
        let text =
            format!(r#"{{ "name": "mine", "scheduler": "{scheduler}", "classes": [{{ "id": 0, "priority": 0 }}] }}"#);
        let policy = sluice_policy::parse(&Source::new("test.json", text)).expect("a valid policy");
        let policy = sluice_policy::resolve(&policy, &sluice_policy::Context::default()).expect("resolves");
        let interface = Interface::example();
        let features = Features {
            release: "6.1.0".to_owned(),
            btf: true,
            bpf_qdisc,
            tcx: false,
            htb: true,
            fq_codel: true,
            codel: true,
            clsact: true,
            ifb: true,
            skbedit: true,
        };
        plan(&policy, &interface, &features, &Options { engine, ..Options::default() }, "noqueue")
    }

    #[test]
    fn the_best_engine_that_has_the_discipline() {
        for scheduler in ["strict_priority", "deficit_round_robin", "weighted_fair_queuing"] {
            assert_eq!(planned(scheduler, true, None).map(|plan| plan.engine).ok(), Some(Engine::Qdisc));
            assert_eq!(planned(scheduler, false, None).map(|plan| plan.engine).ok(), Some(Engine::Tc));
        }
        for (scheduler, instead) in
            [("round_robin", "deficit_round_robin"), ("eevdf", "weighted_fair_queuing"), ("pifo", "strict_priority")]
        {
            assert_eq!(planned(scheduler, true, None).map(|plan| plan.engine).ok(), Some(Engine::Qdisc));
            let error = planned(scheduler, false, None).expect_err(scheduler);
            assert_eq!(error.kind, Kind::Input);
            assert!(error.what.contains(&format!("engine tc has no {scheduler}")), "{error}");
            assert!(error.what.contains("test.json:1:32"), "{error}");
            assert!(error.what.contains("6.17") && error.what.contains(instead), "{error}");
            assert!(error.cure.is_some_and(|cure| cure.contains("6.1.0")), "{scheduler}");
        }
    }

    #[test]
    fn engine_tc_is_proposed_where_it_has_the_discipline() {
        for (scheduler, cure) in [
            ("deficit_round_robin", ", or --engine tc"),
            ("eevdf", ", or --engine tc and `\"scheduler\": \"weighted_fair_queuing\"`"),
        ] {
            let error = planned(scheduler, false, Some(Engine::Qdisc)).expect_err(scheduler);
            assert_eq!(error.kind, Kind::Unsupported);
            assert!(error.cure.is_some_and(|text| text.ends_with(cure)), "{scheduler}");
        }
    }
}
