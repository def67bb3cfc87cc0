//! The plan of `up`: a pure function of the policy, the interface, the kernel and the options of the caller.

use crate::engine::features::Features;
use crate::engine::several_trees;
use crate::record::{Engine, Hook};
use crate::system::channels;
use crate::system::interface::Interface;
use crate::system::qdiscs::{self, Qdisc};
use sluice_abi as abi;
use sluice_error::{Error, Result};
use sluice_policy::{LinkQueues, Mode, Rate, Resolved, Scheduler, SplitGso};

/// Below this rate a super-packet of 64 KiB holds the link for more than half a millisecond, and is split.
const SPLIT_BELOW: Rate = Rate(1_000_000_000);

/// Kernel that engine `qdisc` needs, for error texts.
const NEWER_KERNEL: &str = "a kernel from 6.17 with CONFIG_NET_SCH_BPF (Debian 13's backports have one)";

/// The most queues that have a scheduler each where nothing is shaped.
const MOST_QUEUES: u32 = 64;
/// The most schedulers that share a rate: their instances have numbers of 6 bits, and there is one instance for arrivals, and one spare.
pub(crate) const MOST_SHARING: u32 = abi::SL_SHARED_INSTANCES - 2;
/// Up to this rate one lock is enough: it lets some two million packets a second through, and of the smallest frames 1.5 million fill the link.
const ONE_LOCK_UP_TO: Rate = SPLIT_BELOW;

/// Options of the caller.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// `--engine`; none: the best engine there is.
    pub engine: Option<Engine>,
    /// `--classifier`; none: the hook that suits the interface.
    pub hook: Option<Hook>,
    /// `--ingress-rate`.
    pub ingress_rate: Option<Rate>,
    /// The number of queues with a scheduler each, of an interface that is managed; 0: one scheduler serves all.
    pub running: Option<u32>,
    /// The tx queues in use, where the interface may have more of them than schedulers.
    pub in_use: Option<u32>,
    /// Bytes of memory that the machine has left. None: not known.
    pub available_bytes: Option<u64>,
}

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
    let queues = several_queues(policy, engine, interface, (features, options), root)?;
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
    let one_for_all = one_queue_for_all(policy, engine, interface.tx_queues).or_else(|| {
        let trees = options.in_use.map_or(interface.tx_queues, |in_use| in_use.min(interface.tx_queues));
        let why = several_trees::why_one(policy, trees, features, options)?;
        Some(one_lock(interface.tx_queues, &why))
    });
    notes.extend(one_for_all.filter(|_| takes_places));
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

/// The number of queues that get a scheduler each; 0: one scheduler serves all. Fails where the policy asks for all, and cannot have them.
fn several_queues(
    policy: &Resolved,
    engine: Engine,
    interface: &Interface,
    (features, options): (&Features, &Options),
    root: &str,
) -> Result<u32> {
    let there = options.in_use.map_or(interface.tx_queues, |in_use| in_use.min(interface.tx_queues));
    if interface.tx_queues <= 1 || !engine.has_qdiscs() {
        return Ok(0);
    }
    let runs_several = options.running.is_some_and(|queues| queues > 0);
    let why = why_one_queue(policy, engine, there, runs_several)
        .or_else(|| several_trees::why_one(policy, there, features, options));
    if policy.queues == LinkQueues::All {
        let fails = |why: &str, cure: &str| {
            let what = format!("{}: the policy asks for all {there} tx queues: {why}", interface.name);
            Err(Error::input(what).help(cure.to_owned()))
        };
        if let Some(why) = why {
            let cure = match engine {
                Engine::Tc => "write `\"queues\": \"auto\"`, or use engine qdisc".to_owned(),
                _ if policy.network.is_some() && !features.skbedit => {
                    "load the module act_skbedit, or write `\"queues\": \"auto\"`".to_owned()
                }
                _ => format!(
                    "use fewer (ethtool -L {} combined N, or tx N), or write `\"queues\": \"auto\"`",
                    interface.name
                ),
            };
            return fails(&why, &cure);
        }
        if options.running.is_none() && !can_be_below_mq(root) {
            return fails(
                &format!("its root qdisc is {root}, and no mq"),
                "bring the interface up first, or write `\"queues\": \"auto\"`",
            );
        }
    }
    Ok(match options.running {
        _ if why.is_some() => 0,
        Some(0) if policy.queues != LinkQueues::All => 0,
        Some(queues) if queues > 0 => queues,
        _ if options.running.is_none() && !can_be_below_mq(root) => 0,
        _ => there,
    })
}

/// The tx queues in use, of an interface that can have more than may share a rate. None: each may have a scheduler, or the number is not known.
pub(crate) fn tx_queues_in_use(policy: &Resolved, interface: &Interface, root: Option<&Qdisc>) -> Result<Option<u32>> {
    let Some(root) = root.filter(|root| interface.tx_queues > most_sharing(policy) && root.is_default()) else {
        return Ok(None);
    };
    let in_use = match root.kind.as_str() {
        // The kernel shows those queues of a default mq that are in use.
        "mq" => qdiscs::list(&interface.name)?.iter().filter(|qdisc| qdisc.parent.starts_with(':')).count() as u32,
        "noqueue" => channels::transmit_queues(interface)?,
        _ => return Ok(None),
    };
    Ok(Some(in_use).filter(|in_use| *in_use > 0))
}

/// The most queues whose schedulers, or trees, share a rate.
fn most_sharing(policy: &Resolved) -> u32 {
    if policy.network.is_some() { abi::SL_SHARED_TREES } else { MOST_SHARING }
}

/// Whether a root qdisc is of a device with several queues, which mq can take.
fn can_be_below_mq(root: &str) -> bool {
    matches!(root, "mq" | "mqprio" | "noqueue")
}

/// The reason why one scheduler serves all of an interface's tx queues. None: each has a scheduler. `runs`: each has one now.
fn why_one_queue(policy: &Resolved, engine: Engine, tx_queues: u32, runs: bool) -> Option<String> {
    if engine == Engine::Tc {
        return Some("HTB has one".to_owned());
    }
    if policy.queues == LinkQueues::One {
        return Some("the policy asks for one".to_owned());
    }
    if let Some(needs) = policy.needs_one_queue() {
        return Some(needs.why);
    }
    let is_ordered = policy.network.is_none() && policy.is_limited() && policy.scheduler == Scheduler::STRICT_PRIORITY;
    if is_ordered && policy.queues != LinkQueues::All {
        return Some("there an urgent packet waits for no other queue".to_owned());
    }
    if !policy.is_limited() {
        return (tx_queues > MOST_QUEUES).then(|| format!("at most {MOST_QUEUES} queues have a scheduler each"));
    }
    let most = most_sharing(policy);
    if tx_queues > most {
        return Some(format!("at most {most} share a rate"));
    }
    if policy.queues == LinkQueues::All || runs {
        return None;
    }
    if policy.link_rate.is_none_or(|rate| rate <= ONE_LOCK_UP_TO) {
        return Some(format!("up to {ONE_LOCK_UP_TO} one is enough"));
    }
    (policy.split_gso == SplitGso::On).then(|| "the device that splits super-packets has one".to_owned())
}

/// A note on the cost of one queue of ours in place of mq. None: there is one queue, or a scheduler for each, or nothing queues.
pub fn one_queue_for_all(policy: &Resolved, engine: Engine, tx_queues: u32) -> Option<String> {
    if tx_queues <= 1 || policy.mode == Mode::ClassifyOnly {
        return None;
    }
    let why = why_one_queue(policy, engine, tx_queues, false)?;
    Some(one_lock(tx_queues, &why))
}

fn one_lock(tx_queues: u32, why: &str) -> String {
    format!(
        "one queue with one lock takes the place of mq with {tx_queues} queues: {why}. All processors send through it, one at a time"
    )
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

    fn one_queue() -> Interface {
        Interface {
            name: "eth0".to_owned(),
            ifindex: 2,
            mtu_bytes: 1500,
            ethernet: true,
            up: true,
            tx_queues: 1,
            rx_queues: 1,
            kind: None,
            has_xdp: false,
            peer_elsewhere: false,
        }
    }

    fn planned(scheduler: &str, bpf_qdisc: bool, engine: Option<Engine>) -> Result<Plan> {
        let text =
            format!(r#"{{ "name": "mine", "scheduler": "{scheduler}", "classes": [{{ "id": 0, "priority": 0 }}] }}"#);
        let policy = sluice_policy::parse(&Source::new("test.json", text)).expect("a valid policy");
        let policy = sluice_policy::resolve(&policy, &sluice_policy::Context::default()).expect("resolves");
        let interface = one_queue();
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

    fn several(text: &str, tx_queues: u32, options: Options, root: &str) -> Result<u32> {
        let policy = sluice_policy::parse(&sluice_policy::Source::new("test.json", text)).expect("a valid policy");
        let policy = sluice_policy::resolve(&policy, &sluice_policy::Context::default()).expect("resolves");
        let interface = Interface { tx_queues, ..one_queue() };
        several_queues(
            &policy,
            Engine::Qdisc,
            &interface,
            (&Features { skbedit: true, ..Features::by_types() }, &options),
            root,
        )
    }

    fn weighted(link: &str) -> String {
        format!(r#"{{ "scheduler": "weighted_fair_queuing", "link": {{ {link} }}, "classes": [{{ "id": 0 }}] }}"#)
    }

    #[test]
    fn high_rates_are_shared_by_all_queues() {
        let new = Options::default();
        let on_mq = |link: &str, queues: u32| several(&weighted(link), queues, new, "mq").ok();
        assert_eq!(on_mq(r#""rate": "2gbit""#, 8), Some(8));
        assert_eq!(on_mq(r#""rate": "1gbit""#, 8), Some(0), "one lock is enough");
        assert_eq!(on_mq(r#""rate": "1gbit", "queues": "all""#, 8), Some(8));
        assert_eq!(on_mq(r#""rate": "2gbit", "queues": "one""#, 8), Some(0));
        assert_eq!(on_mq(r#""rate": "2gbit", "split_gso": "on""#, 8), Some(0), "the splitter has one queue");
        assert_eq!([1, 62, 63].map(|queues| on_mq(r#""rate": "2gbit""#, queues)), [Some(0), Some(62), Some(0)]);
        let some_in_use = Options { in_use: Some(16), ..new };
        assert_eq!(several(&weighted(r#""rate": "2gbit""#), 128, some_in_use, "mq").ok(), Some(16));
        let text = weighted(r#""rate": "2gbit""#);
        assert_eq!(
            ["noqueue", "mqprio", "pfifo"].map(|root| several(&text, 8, new, root).ok()),
            [Some(8), Some(8), Some(0)]
        );
        let priorities =
            text.replace("weighted_fair_queuing", "strict_priority").replace("\"id\": 0", "\"id\": 0, \"priority\": 0");
        assert_eq!(several(&priorities, 8, new, "mq").ok(), Some(0));
        let all = priorities.replace("2gbit\"", "2gbit\", \"queues\": \"all\"");
        assert_eq!(several(&all, 8, new, "mq").ok(), Some(8), "where it is asked for");
    }

    #[test]
    fn trees_take_a_quarter_of_the_memory_at_most() {
        let text = |queues: &str| {
            format!(
                r#"{{ "link": {{ "rate": "10gbit"{queues} }}, "classes": [{{ "name": "a" }}, {{ "id": 0, "parent": "a" }}, {{ "id": 1 }}] }}"#
            )
        };
        let had = |queues: &str, mb: Option<u64>| {
            let options = Options { available_bytes: mb.map(|mb| mb * 1_000_000), ..Options::default() };
            several(&text(queues), 8, options, "mq").ok()
        };
        assert_eq!([Some(2000), Some(1000), None].map(|mb| had("", mb)), [Some(8), Some(0), Some(8)]);
        assert_eq!(had(r#", "queues": "all""#, Some(1000)), Some(8), "where it is asked for");
        let many = several(&text(""), 24, Options::default(), "mq").ok();
        assert_eq!(many, Some(0), "16 trees are the most");
    }

    #[test]
    fn all_queues_are_had_or_refused() {
        let all = weighted(r#""rate": "2gbit", "queues": "all""#);
        let refused = |queues: u32, root: &str| several(&all, queues, Options::default(), root).expect_err("no queues");
        let many = refused(63, "mq");
        assert!(many.what.contains("all 63 tx queues: at most 62 share a rate"), "{many}");
        assert!(many.cure.is_some_and(|cure| cure.contains("ethtool -L")));
        assert!(refused(8, "noop").what.contains("its root qdisc is noop"));
    }

    #[test]
    fn a_running_interface_keeps_its_queues() {
        let at = |link: &str, running: u32| {
            let options = Options { running: Some(running), ..Options::default() };
            several(&weighted(link), 8, options, if running > 0 { "mq" } else { "sluice0" }).ok()
        };
        assert_eq!(at(r#""rate": "500mbit""#, 8), Some(8), "a lower rate does not take the queues away");
        assert_eq!(at(r#""rate": "2gbit""#, 0), Some(0));
        assert_eq!(at(r#""rate": "2gbit", "queues": "one""#, 8), Some(0));
        assert_eq!(at(r#""rate": "2gbit", "queues": "all""#, 0), Some(8));
    }

    #[test]
    fn one_queue_in_place_of_many_is_noted() {
        let policy = |link: &str| {
            let text = format!(r#"{{ "scheduler": "round_robin", {link} "classes": [{{ "id": 0 }}] }}"#);
            let policy = sluice_policy::parse(&Source::new("test.json", text)).expect("a valid policy");
            sluice_policy::resolve(&policy, &sluice_policy::Context::default()).expect("resolves")
        };
        let (free, shaped) = (policy(""), policy(r#""link": { "rate": "1gbit" },"#));
        assert_eq!([1, 2, 64].map(|queues| one_queue_for_all(&free, Engine::Qdisc, queues)), [None, None, None]);
        assert!(one_queue_for_all(&free, Engine::Qdisc, 65).is_some_and(|note| note.contains("65 queues: at most 64")));
        assert!(
            one_queue_for_all(&shaped, Engine::Qdisc, 4)
                .is_some_and(|note| note.contains("4 queues: round_robin counts"))
        );
        assert!(one_queue_for_all(&free, Engine::Tc, 4).is_some_and(|note| note.contains("HTB")));
        assert_eq!(one_queue_for_all(&shaped, Engine::Tc, 1), None);
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
