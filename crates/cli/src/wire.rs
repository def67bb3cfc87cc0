//! `sluice wire`: two interfaces as a wire, until it is stopped.

use crate::args::wire::Wire as Arguments;
use crate::assignment::choose;
use crate::check::{self, print_remarks};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::live::{report, visible};
use sd_notify::NotifyState;
use sluice_kernel::{Done, Engine, UpRequest, wire};
use sluice_policy::network::Way;
use sluice_policy::{Context, Diagnostics, Rate};
use sluice_wire::{Ended, Most, Noticed, Wire};

pub fn run(args: &Arguments, color: bool) -> Result<(), Failure> {
    sluice_kernel::require_root()?;
    let [first, second] = &args.interfaces[..] else { unreachable!("clap takes two") };
    if first == second {
        return Err(Failure::input(&format!("{first} is named twice"), "name the interfaces on both sides"));
    }
    let rates = rates(args.rate.as_deref())?;
    let interrupt = Interrupt::new()?;
    let names = [first.as_str(), second.as_str()];
    let claim = wire::Claim::take(names)?;
    match &args.policy {
        Some(policy) => {
            let requests = [request(policy, first, second, rates[0])?, request(policy, second, first, rates[1])?];
            let requests = requests.map(|request| UpRequest { workers: args.workers.0, ..request });
            match claim.make(&requests)? {
                Some(all) => {
                    for done in once_each(all) {
                        print_remarks(&visible(&done.remarks, args.verbose), color);
                        report(&done, "is up", args.verbose);
                    }
                }
                None => {
                    outln!(
                        "{first} and {second} are a wire already: their policies and rates stay as they are; `sluice apply` changes them"
                    )
                }
            }
        }
        None => claim.require(names, args.workers.0)?,
    }
    let ended = move_packets(names, args.busy_poll, args.port_limit, &interrupt);
    match ended {
        Ok(Ended::Asked) => {
            claim.unmake()?;
            outln!("{first} and {second} are as they were");
            Ok(())
        }
        Ok(Ended::Gone(name)) => {
            claim.unmake()?;
            Err(Failure::system(format!("{name} is gone, and with it the wire")))
        }
        Ok(Ended::Unmade) => {
            claim.unmake()?;
            outln!("the wire was taken down by another command");
            Ok(())
        }
        Err(failure) => {
            // The wire is taken down: nothing passes until it is made again.
            claim.unmake()?;
            Err(failure)
        }
    }
}

fn move_packets(names: [&str; 2], busy_poll: bool, most: Most, interrupt: &Interrupt) -> Result<Ended, Failure> {
    let mut wire = Wire::open(names, busy_poll, most)?;
    for (name, zero_copy) in names.iter().zip(wire.zero_copy()?) {
        let how = if zero_copy {
            "its driver writes packets into our memory"
        } else {
            "the kernel copies packets between the driver and this process"
        };
        outln!("{name}: {how}");
    }
    if wire.workers() > 1 {
        outln!("{} workers, each with a receive queue of both interfaces, share the rate", wire.workers());
    }
    let workers = wire.workers();
    Ok(wire.run(&interrupt.flag(), || tell_systemd(&[NotifyState::Watchdog]), |noticed| tell(noticed, workers))?)
}

/// The results of both sides, of which the second says no more what the first has said: notes and remarks that are about the wire.
fn once_each(mut all: Vec<Done>) -> Vec<Done> {
    if let [first, others @ ..] = &mut all[..] {
        for other in others {
            other.notes.retain(|note| !first.notes.contains(note));
            other.details.retain(|detail| !first.details.contains(detail));
            if other.remarks.render(false) == first.remarks.render(false) {
                other.remarks = Diagnostics::default();
            }
        }
    }
    all
}

/// Tells that packets pass, and of queues that have come or gone meanwhile. Packets of queues without a worker pass unshaped.
fn tell(noticed: &Noticed, workers: usize) {
    match noticed {
        Noticed::Begun => {
            outln!("packets pass; stop with Ctrl-C");
            tell_systemd(&[NotifyState::Ready]);
        }
        Noticed::ReceiveQueues(name, queues) => eprintln!(
            "{name} has {queues} receive queues now, and the wire {workers} workers: what arrives on a queue without a worker passes \
             unshaped; ethtool -L {name} combined {workers} (or rx {workers} tx {workers}), or start the wire again"
        ),
        Noticed::QueuesMatch(name) => eprintln!("{name} has as many receive queues again as the wire has workers"),
    }
}

/// Tells the service manager, if it has asked (NOTIFY_SOCKET). One that does not listen does no harm.
fn tell_systemd(state: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(state);
}

/// The rates of what arrives at the first and at the second interface.
fn rates(text: Option<&str>) -> Result<[Option<Rate>; 2], Failure> {
    // A unit's file without a rate gives an empty one.
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok([None, None]) };
    let rate = |text: &str| check::rate("--rate", text).map(Some);
    match text.split_once('/') {
        Some((first, second)) => Ok([rate(first)?, rate(second)?]),
        None => Ok([rate(text)?; 2]),
    }
}

fn request(policy: &str, interface: &str, partner: &str, rate: Option<Rate>) -> Result<UpRequest, Failure> {
    let context = Context { engine: Engine::Xsk, ingress_rate: rate, ..Context::default() };
    let mut assignments = choose(policy, Some(interface), &context)?;
    let assignment = assignments.pop().expect("one for the interface");
    let link = &assignment.policy.link;
    // A policy with subscribers or a class tree has a rate for each direction, which stays the policy's.
    let network = assignment.policy.network.as_ref();
    let of_network = network.map(|network| *network.link.rate.of(Way::out_of(partner, &network.subscriber_side)));
    let (ingress_rate, own) = match of_network {
        Some(own) => (rate, own),
        None => (rate.or(link.ingress_rate).or(link.rate), None),
    };
    if ingress_rate.or(own).is_none() {
        return Err(Failure::input(
            &format!("what arrives at {interface} has no rate, so no queue forms here"),
            "give --rate, a little below what the slowest link behind the wire takes",
        ));
    }
    Ok(UpRequest {
        interface: assignment.interface,
        policy: assignment.policy,
        source: assignment.source,
        rate: None,
        ingress_rate,
        engine: Some(Engine::Xsk),
        hook: None,
        partner: Some(partner.to_owned()),
        workers: None,
        force: false,
        restored: false,
        message: None,
    })
}
