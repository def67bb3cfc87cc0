//! `sluice up` and `down`.

use crate::args::{Down, RestoreArg, Up};
use crate::assignment::choose;
use crate::check::{print_remarks, rate};
use crate::failure::Failure;
use crate::{restore, terminal};
use sluice_kernel::{Done, Engine, Hook, UpRequest};
use sluice_policy::{Context, Diagnostics};
use std::cell::RefCell;

pub fn up(args: &Up, color: bool) -> Result<(), Failure> {
    sluice_kernel::require_root()?;
    let link_rate = args.rate.as_deref().map(|text| rate("--rate", text)).transpose()?;
    let ingress_rate = args.ingress_rate.as_deref().map(|text| rate("--ingress-rate", text)).transpose()?;
    let engine = args.engine.engine().unwrap_or_default();
    let context = Context { link_rate, engine, ..Context::default() };
    let mut requests = Vec::new();
    for assignment in choose(&args.policy, args.interface.as_deref(), &context)? {
        let (assignment, kept_rate) = restore::choose(assignment, args.restore)?;
        requests.push(UpRequest {
            interface: assignment.interface,
            policy: assignment.policy,
            source: assignment.source,
            rate: kept_rate.or(link_rate),
            ingress_rate,
            engine: args.engine.engine(),
            hook: args.classifier.hook(),
            partner: None,
            workers: None,
            force: args.force,
            restored: args.restore != RestoreArg::Configured,
            message: args.message.clone(),
        });
    }
    for done in sluice_kernel::up(&requests)? {
        print_remarks(&visible(&done.remarks, args.verbose), color);
        report(&done, "is up", args.verbose);
    }
    Ok(())
}

pub fn down(args: &Down) -> Result<(), Failure> {
    sluice_kernel::require_rights()?;
    let interfaces = once(&args.interfaces);
    // One wrong name stops all of them.
    sluice_kernel::require_known(&interfaces)?;
    let with_others = RefCell::new(Vec::new());
    each(&interfaces, |interface| {
        if with_others.borrow().iter().any(|one| one == interface) {
            return Ok(());
        }
        for (nth, record) in sluice_kernel::down(interface)?.into_iter().enumerate() {
            let what = if nth == 0 { "" } else { ", the other side of its wire," };
            outln!("{}{what} is as it was", record.interface);
            if let Some(dump) = record.replaced {
                outln!("  the hierarchy that `up --force` replaced is not restored; its dump is {}", dump.display());
            }
            with_others.borrow_mut().push(record.interface);
        }
        Ok(())
    })
}

/// The interfaces without repeats, in order.
pub fn once(interfaces: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for interface in interfaces {
        if !names.contains(interface) {
            names.push(interface.clone());
        }
    }
    names
}

/// Runs `with` for each interface even if one fails; the first failure is the command's.
pub fn each(interfaces: &[String], with: impl Fn(&str) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut first = Ok(());
    for interface in interfaces {
        match (with(interface), &first) {
            (Err(failure), Ok(())) => first = Err(failure),
            (Err(failure), Err(_)) => eprint!("{}", failure.render(false)),
            (Ok(()), _) => {}
        }
    }
    first
}

/// Warnings, and with `--verbose` also notes on chosen values.
pub fn visible(remarks: &Diagnostics, verbose: bool) -> Diagnostics {
    if verbose { remarks.clone() } else { remarks.without_notes() }
}

/// Prints the state of an interface.
pub fn report(done: &Done, what: &str, verbose: bool) {
    let record = &done.record;
    let engine = match record.engine {
        Engine::Qdisc => format!("engine qdisc ({})", record.qdisc),
        Engine::Tc => "engine tc (HTB)".to_owned(),
        Engine::Xsk => "engine xsk".to_owned(),
        Engine::None => "no queues".to_owned(),
    };
    let hook = match record.hook {
        Hook::Xdp => "XDP",
        Hook::Tc => "tc",
    };
    outln!("{} {what}: policy {}, {engine}, arrivals classified by {hook}", record.interface, record.policy_name);
    if let Some(bps) = done.rate_bps.filter(|_| record.engine.has_qdiscs()) {
        outln!("  departures shaped to {}", terminal::rate(bps));
    }
    if let Some(bps) = record.ingress_rate_bps {
        let rate = terminal::rate(bps);
        match record.member_names() {
            Some(members) if members.is_empty() => outln!("  no interface of the group is there"),
            Some(members) => outln!("  arrivals of {} shaped to {rate}", members.join(", ")),
            None => match &record.partner {
                Some(partner) => outln!("  what arrives is shaped to {rate}, and leaves by {}", partner.interface),
                None => outln!("  arrivals shaped to {rate}, behind {}", record.ingress_device()),
            },
        }
    }
    for note in &done.notes {
        outln!("  note: {note}");
    }
    if !verbose {
        return;
    }
    if record.split {
        outln!("  super-packets are split into frames before they are queued");
    }
    done.details.iter().for_each(|detail| outln!("  {detail}"));
}
