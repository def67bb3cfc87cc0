//! The tx queues of an interface: whether each has a scheduler, or a tree of classes, and which of them share a rate.

use crate::engine::features::Features;
use crate::engine::options::Options;
use crate::engine::several_trees;
use crate::record::Engine;
use crate::system::channels;
use crate::system::interface::Interface;
use crate::system::qdiscs::{self, Qdisc};
use sluice_abi as abi;
use sluice_error::{Error, Result};
use sluice_policy::{LinkQueues, Mode, Rate, Resolved, Scheduler, SplitGso};

/// The most queues that have a scheduler each where nothing is shaped.
const MOST_QUEUES: u32 = 64;
/// The most schedulers that share a rate: their instances have numbers of 6 bits, and there is one instance for arrivals, and one spare.
pub(super) const MOST_SHARING: u32 = abi::SL_SHARED_INSTANCES - 2;
/// Up to this rate one lock is enough: it lets some two million packets a second through, and of the smallest frames 1.5 million fill the link.
const ONE_LOCK_UP_TO: Rate = Rate(1_000_000_000);

/// The queues of an interface that have schedulers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TxQueues {
    /// How many have a scheduler each; 0: one scheduler serves all.
    pub queues: u32,
    /// The reason why one serves all, if it is the policy's or the machine's.
    pub why_one: Option<String>,
}

/// Chooses how many queues get a scheduler each. Fails where the policy asks for all, and cannot have them.
pub(super) fn choose(
    policy: &Resolved,
    engine: Engine,
    interface: &Interface,
    (features, options): (&Features, &Options),
    root: &str,
) -> Result<TxQueues> {
    let there = options.in_use.map_or(interface.tx_queues, |in_use| in_use.min(interface.tx_queues));
    if interface.tx_queues <= 1 || !engine.has_qdiscs() {
        return Ok(TxQueues { queues: 0, why_one: None });
    }
    let runs_several = options.running.is_some_and(|queues| queues > 0);
    let why = why_one_queue(policy, engine, there, runs_several)
        .or_else(|| several_trees::why_one(policy, there, features, (options.available_bytes, runs_several)));
    if policy.queues == LinkQueues::All {
        let fails = |why: &str, cure: &str| {
            let what = format!("{}: the policy asks for all {there} tx queues: {why}", interface.name);
            Err(Error::input(what).help(cure.to_owned()))
        };
        if let Some(why) = &why {
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
            return fails(why, &cure);
        }
        if options.running.is_none() && !can_be_below_mq(root) {
            return fails(
                &format!("its root qdisc is {root}, and no mq"),
                "bring the interface up first, or write `\"queues\": \"auto\"`",
            );
        }
    }
    let queues = match options.running {
        _ if why.is_some() => 0,
        Some(0) if policy.queues != LinkQueues::All => 0,
        Some(queues) if queues > 0 => queues,
        _ if options.running.is_none() && !can_be_below_mq(root) => 0,
        _ => there,
    };
    Ok(TxQueues { queues, why_one: why })
}

/// The tx queues in use, of an interface that can have more than may share a rate. None: each may have a scheduler, or the number is not known.
pub(crate) fn in_use(policy: &Resolved, interface: &Interface, root: Option<&Qdisc>) -> Result<Option<u32>> {
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

/// The note on one queue with one lock.
pub(super) fn one_lock(tx_queues: u32, why: &str) -> String {
    format!(
        "one queue with one lock takes the place of mq with {tx_queues} queues: {why}. All processors send through it, one at a time"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_policy::Source;

    fn several(text: &str, tx_queues: u32, options: Options, root: &str) -> Result<u32> {
        let policy = sluice_policy::parse(&Source::new("test.json", text)).expect("a valid policy");
        let policy = sluice_policy::resolve(&policy, &sluice_policy::Context::default()).expect("resolves");
        let interface = Interface { tx_queues, ..Interface::example() };
        choose(
            &policy,
            Engine::Qdisc,
            &interface,
            (&Features { skbedit: true, ..Features::by_types() }, &options),
            root,
        )
        .map(|chosen| chosen.queues)
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
}
