//! The workers of a wire: as many as receive queues of each of its interfaces, if the policy holds over so many.

use crate::record::Record;
use crate::system::channels;
use crate::system::interface::Interface;
use sluice_abi as abi;
use sluice_error::{Error, Result};
use sluice_policy::{LinkQueues, Resolved, Scheduler};

/// The queues of one side that are in use.
#[derive(Debug, Clone)]
struct Side {
    name: String,
    receive: u32,
    transmit: u32,
    /// The most of both that it can be given.
    most: u32,
}

impl Side {
    fn of(interface: &Interface) -> Result<Side> {
        let (receive, transmit) = (channels::receive_queues(interface)?, channels::transmit_queues(interface)?);
        Ok(Side { name: interface.name.clone(), receive, transmit, most: channels::most(interface)? })
    }

    /// The command that gives it so many queues.
    fn with(&self, queues: u32) -> String {
        format!("ethtool -L {} combined {queues} (or rx {queues} tx {queues})", self.name)
    }
}

/// The commands that give each side queues for so many workers. Empty: both have them.
fn give(sides: &[Side; 2], workers: u32) -> String {
    let lacks = |side: &&Side| side.receive != workers || side.transmit < workers;
    sides.iter().filter(lacks).map(|side| side.with(workers)).collect::<Vec<_>>().join(", and ")
}

/// `--workers` with this number, and the commands that it needs.
fn ask_for(sides: &[Side; 2], workers: u32) -> String {
    match give(sides, workers) {
        needed if needed.is_empty() => format!("--workers {workers}"),
        needed => format!("--workers {workers}, and {needed}"),
    }
}

/// A reason for one worker, and a change of the policy after which it holds over several.
struct OneWorker {
    why: String,
    cure: &'static str,
}

fn why_one_worker(policy: &Resolved) -> Option<OneWorker> {
    if let Some(needs) = policy.needs_one_worker() {
        return Some(OneWorker { why: needs.why, cure: needs.cure });
    }
    let asked = policy.queues == LinkQueues::One;
    asked.then(|| OneWorker {
        why: "the policy has `\"queues\": \"one\"`".to_owned(),
        cure: "write `\"queues\": \"auto\"`",
    })
}

/// A number of things of this name.
pub(crate) fn count(number: u32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The number of workers of a wire between two interfaces. `wanted`: `--workers`; none: as many as there are receive queues.
///
/// # Errors
///
/// The interfaces have other numbers of queues, or the policy does not hold over so many workers.
pub(crate) fn choose(interfaces: [&Interface; 2], policy: &Resolved, wanted: Option<u32>) -> Result<u32> {
    let [first, second] = interfaces.map(Side::of);
    chosen(&[first?, second?], why_one_worker(policy).as_ref(), wanted)
}

fn chosen(sides: &[Side; 2], one: Option<&OneWorker>, wanted: Option<u32>) -> Result<u32> {
    let most = abi::SL_WIRE_WORKERS;
    if let (Some(workers), Some(one)) = (wanted.filter(|workers| *workers > 1), one) {
        return Err(Error::input(format!("{workers} workers cannot share this policy: {}", one.why)).help(format!(
            "{}; or {}",
            one.cure,
            ask_for(sides, 1)
        )));
    }
    let workers = match (wanted, one) {
        (Some(workers), _) => workers,
        (None, Some(_)) => 1,
        (None, None) => sides[0].receive.min(sides[1].receive).min(most),
    };
    // The number that both can be given, where it is not the one that is asked for.
    let limit = sides.iter().min_by_key(|side| side.most).filter(|side| side.most < workers);
    let cure = || match (limit, one) {
        (Some(side), _) => format!("{} can have {} at most: {}", side.name, side.most, ask_for(sides, side.most)),
        (None, Some(one)) => format!("{}, or let the policy hold over several: {}", give(sides, workers), one.cure),
        (None, None) => {
            let now = sides[0].receive.min(sides[1].receive).min(most);
            let or = wanted.filter(|wanted| *wanted != now).map(|_| format!(", or {}", ask_for(sides, now)));
            give(sides, workers) + &or.unwrap_or_default()
        }
    };
    for side in sides {
        let own = count(side.receive, "receive queue");
        if side.receive > workers {
            let because = match (one, wanted) {
                (Some(one), None) => format!(", since {}", one.why),
                (None, None) if workers == most => ", which is the most".to_owned(),
                (None, None) => ", as many as the other side has queues".to_owned(),
                _ => String::new(),
            };
            let what = format!(
                "{} has {own}, and the wire {}{because}: what arrives on the others would reach none",
                side.name,
                count(workers, "worker")
            );
            return Err(Error::input(what).help(cure()));
        }
        if side.receive < workers {
            let what = format!("{} has {own}, and {workers} workers need as many", side.name);
            return Err(Error::input(what).help(cure()));
        }
        if side.transmit < workers {
            let own = count(side.transmit, "transmit queue");
            let what = format!("{} has {own}, and {workers} workers send by as many", side.name);
            return Err(Error::input(what).help(cure()));
        }
    }
    Ok(workers)
}

/// Fails where a wire runs with several workers that cannot share a policy.
///
/// # Errors
///
/// They cannot.
pub(crate) fn check_policy(was: &Record, policy: &Resolved) -> Result<()> {
    let Some(one) = why_one_worker(policy).filter(|_| was.workers() > 1) else { return Ok(()) };
    let what =
        format!("{}: the wire has {} workers, which cannot share this policy: {}", was.interface, was.queues, one.why);
    let other = was.departs_by();
    Err(Error::input(what).help(format!(
        "{}; or stop the wire, give {1} and {other} one receive queue each (ethtool -L {1} combined 1), and start it with the policy",
        one.cure, was.interface
    )))
}

/// Receive queues that an interface has now, if they are not as many as workers.
pub(crate) fn other_number(record: &Record, interface: &Interface) -> Result<Option<u32>> {
    let queues = channels::receive_queues(interface)?;
    Ok(Some(queues).filter(|queues| *queues != record.workers()))
}

/// The notes on several workers of a wire.
pub(crate) fn notes(workers: u32, policy: &Resolved) -> Vec<String> {
    if workers == 1 {
        return Vec::new();
    }
    let mut notes = vec![format!(
        "each of the {workers} receive queues has a worker with a scheduler, and all of them share the rate: rate, ceilings, guarantees and weights \
         hold for all together; limits and fairness between flows hold in each"
    )];
    if policy.scheduler == Scheduler::STRICT_PRIORITY {
        notes.push(
            "an urgent packet waits until other workers have sent what they have drawn: a batch each, and up to 0.8 ms at high rates"
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(first: u32, second: u32) -> [Side; 2] {
        [("eth0", first), ("eth1", second)].map(|(name, queues)| Side {
            name: name.to_owned(),
            receive: queues,
            transmit: queues,
            most: 16,
        })
    }

    fn ranked() -> OneWorker {
        OneWorker { why: "ranks hold within a queue only".to_owned(), cure: "use fair queuing" }
    }

    fn refused(sides: &[Side; 2], one: Option<&OneWorker>, wanted: Option<u32>) -> (String, String) {
        let error = chosen(sides, one, wanted).expect_err("refused");
        assert_eq!(error.kind, sluice_error::Kind::Input);
        (error.what, error.cure.expect("a cure"))
    }

    #[test]
    fn there_are_as_many_workers_as_receive_queues() {
        for queues in 1..=8 {
            assert_eq!(chosen(&sides(queues, queues), None, None).ok(), Some(queues));
            assert_eq!(chosen(&sides(queues, queues), None, Some(queues)).ok(), Some(queues));
        }
        assert_eq!(chosen(&sides(1, 1), Some(&ranked()), None).ok(), Some(1));
        assert_eq!(chosen(&sides(1, 1), Some(&ranked()), Some(1)).ok(), Some(1));
    }

    #[test]
    fn another_number_of_queues_is_refused_with_its_cure() {
        let (what, cure) = refused(&sides(2, 2), None, Some(4));
        assert!(what.contains("eth0 has 2 receive queues, and 4 workers need as many"), "{what}");
        assert!(cure.contains("ethtool -L eth0 combined 4") && cure.contains("--workers 2"), "{cure}");
        let (what, cure) = refused(&sides(4, 4), None, Some(1));
        assert!(what.contains("eth0 has 4 receive queues, and the wire 1 worker"), "{what}");
        assert!(cure.contains("ethtool -L eth0 combined 1") && cure.contains("--workers 4"), "{cure}");
        let (what, cure) = refused(&sides(16, 16), None, None);
        assert!(what.contains("16 receive queues, and the wire 8 workers, which is the most"), "{what}");
        assert_eq!(cure, "ethtool -L eth0 combined 8 (or rx 8 tx 8), and ethtool -L eth1 combined 8 (or rx 8 tx 8)");
        let (what, cure) = refused(&sides(2, 4), None, None);
        assert!(what.contains("eth1 has 4 receive queues, and the wire 2 workers"), "{what}");
        assert!(cure.starts_with("ethtool -L eth1 combined 2"), "{cure}");
        let few_to_send = sides(2, 2).map(|side| Side { transmit: 1, ..side });
        let (what, _) = refused(&few_to_send, None, None);
        assert!(what.contains("eth0 has 1 transmit queue, and 2 workers send by as many"), "{what}");
    }

    #[test]
    fn a_cure_names_all_that_is_to_be_done_and_can_be() {
        let (_, cure) = refused(&sides(1, 2), None, Some(3));
        assert_eq!(
            cure,
            "ethtool -L eth0 combined 3 (or rx 3 tx 3), and ethtool -L eth1 combined 3 (or rx 3 tx 3), or --workers 1, and ethtool -L eth1 combined 1 (or rx 1 tx 1)"
        );
        let small = |most: u32| {
            let [first, second] = sides(1, 2);
            [Side { most, ..first }, second]
        };
        let (_, cure) = refused(&small(1), None, Some(3));
        assert_eq!(cure, "eth0 can have 1 at most: --workers 1, and ethtool -L eth1 combined 1 (or rx 1 tx 1)");
        let (_, cure) = refused(&small(2), None, Some(3));
        assert_eq!(cure, "eth0 can have 2 at most: --workers 2, and ethtool -L eth0 combined 2 (or rx 2 tx 2)");
        let (_, cure) = refused(&sides(2, 4), Some(&ranked()), Some(2));
        assert!(
            cure.contains("--workers 1, and ethtool -L eth0 combined 1") && cure.contains("ethtool -L eth1"),
            "{cure}"
        );
    }

    #[test]
    fn a_policy_of_one_queue_has_one_worker() {
        let (what, cure) = refused(&sides(4, 4), Some(&ranked()), Some(4));
        assert!(what.contains("4 workers cannot share this policy: ranks hold"), "{what}");
        assert!(cure.contains("use fair queuing; or --workers 1, and ethtool -L eth0 combined 1"), "{cure}");
        let (what, cure) = refused(&sides(4, 4), Some(&ranked()), None);
        assert!(what.contains("eth0 has 4 receive queues, and the wire 1 worker, since ranks hold"), "{what}");
        assert!(cure.contains("combined 1") && cure.contains("use fair queuing"), "{cure}");
    }
}
