//! `sluice apply`, `rollback` and `confirm`.

use crate::args::{Apply, Change, Confirm, Rollback};
use crate::assignment::{choose, named};
use crate::check::{print_remarks, rate};
use crate::failure::Failure;
use crate::live::{each, once, report};
use crate::terminal;
use serde_json::json;
use sluice_kernel::confirm::time;
use sluice_kernel::{Done, Preview, RateOption, Request};
use sluice_policy::{Context, Difference};

/// The most changes that are listed after they are done; more are only counted.
const MAX_LINES: usize = 12;

pub fn apply(args: &Apply, color: bool) -> Result<(), Failure> {
    sluice_kernel::require_root()?;
    let link_rate = args.rate.as_deref().map(|text| rate("--rate", text)).transpose()?;
    let ingress_rate = args.ingress_rate.as_deref().map(|text| rate("--ingress-rate", text)).transpose()?;
    // A wrong option is reported before a wrong policy.
    let confirm_time = confirm_time(&args.change)?;
    let (interface, file) = named("apply", &args.words)?;
    let assignments = choose(file, interface, &Context { link_rate, ..Context::default() })?;
    let requests = assignments.into_iter().map(|assignment| Request {
        rate: link_rate.map_or(RateOption::AsBefore, |rate| RateOption::Set(Some(rate))),
        ingress_rate: ingress_rate.map_or(RateOption::AsBefore, |rate| RateOption::Set(Some(rate))),
        confirm: confirm_time,
        message: args.change.message.clone(),
        force: args.force,
        ..Request::from(assignment)
    });
    let requests: Vec<Request> = requests.collect();
    if args.unless_unconfirmed {
        requests.iter().try_for_each(|request| refuse_unconfirmed(&request.interface))?;
    }
    perform(&requests, &args.change, args.at_boot, "has a new policy", color)
}

/// Refuses while a change waits for its confirmation: a reload would confirm a change that was not checked.
fn refuse_unconfirmed(interface: &str) -> Result<(), Failure> {
    match sluice_kernel::confirm::left(interface)? {
        None => Ok(()),
        Some(left) => Err(Failure::input(
            &format!("{interface}: a change waits {} s to be confirmed, and this would confirm it", left.as_secs()),
            &format!("sluice confirm {interface} keeps it, or wait until it is taken back; then try again"),
        )),
    }
}

pub fn rollback(args: &Rollback, color: bool) -> Result<(), Failure> {
    let confirm = confirm_time(&args.change)?;
    let (request, entry) = sluice_kernel::rollback(&args.interface, args.number)?;
    let request = Request { confirm, message: args.change.message.clone(), ..request };
    let what = format!("has the policy of entry {} again", entry.number);
    perform(&[request], &args.change, false, &what, color)
}

pub fn confirm(args: &Confirm) -> Result<(), Failure> {
    sluice_kernel::require_root()?;
    let interfaces = once(&args.interfaces);
    // One wrong name stops all confirmations.
    sluice_kernel::require_known(&interfaces)?;
    each(&interfaces, |interface| {
        let record = sluice_kernel::confirm::confirm(interface)?;
        outln!("{} keeps the policy {}", record.interface, record.policy_name);
        Ok(())
    })
}

pub fn confirm_time(change: &Change) -> Result<Option<std::time::Duration>, Failure> {
    let Some(text) = change.confirm.as_deref() else { return Ok(None) };
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let what = format!("--confirm {text}: the unit is missing");
        return Err(Failure::input(&what, &format!("write --confirm {text}s for seconds, or {text}m for minutes")));
    }
    Ok(Some(time(text)?))
}

fn perform(requests: &[Request], options: &Change, at_boot: bool, what: &str, color: bool) -> Result<(), Failure> {
    if options.dry_run {
        return show_previews(sluice_kernel::preview(requests)?, options.json, color);
    }
    show_done(&sluice_kernel::apply(requests)?, options, at_boot, what, color)
}

/// Reports changes that were made, and keeps them for the next boot where that is asked.
pub fn show_done(all: &[Done], options: &Change, at_boot: bool, what: &str, color: bool) -> Result<(), Failure> {
    for done in all {
        if done.performed {
            print_remarks(&done.remarks, color);
            report(done, what, false);
        } else {
            outln!("{}: nothing changes", done.record.interface);
        }
        if let (Some(difference), false) = (&done.difference, options.quiet || !done.performed) {
            show_briefly(difference, color);
        }
        if at_boot {
            sluice_kernel::boot::save(&done.record)?;
        }
        if let Some(note) = sluice_kernel::boot::note(&done.record) {
            outln!("  {note}");
        }
        if let Some(unconfirmed) = &done.record.unconfirmed {
            outln!(
                "  reverts to policy {} in {} s unless confirmed: sluice confirm {}",
                unconfirmed.former.name,
                unconfirmed.time_s,
                done.record.interface
            );
        }
    }
    Ok(())
}

/// Prints changes that would be made.
pub fn show_previews(previews: Vec<Preview>, as_json: bool, color: bool) -> Result<(), Failure> {
    previews.iter().for_each(|preview| print_remarks(&preview.remarks, color));
    if as_json {
        let objects: Vec<_> = previews.iter().map(as_object).collect();
        // Several previews become a list.
        match &objects[..] {
            [one] => outln!("{one:#}"),
            _ => outln!("{:#}", json!(objects)),
        }
        return Ok(());
    }
    for Preview { interface, old, new, difference, .. } in previews {
        if difference.is_empty() {
            outln!("{interface}: nothing changes");
        } else {
            outln!("{interface}: policy {old} -> {new} would change");
            show(&difference, color);
        }
    }
    Ok(())
}

fn as_object(preview: &Preview) -> serde_json::Value {
    json!({
        "interface": preview.interface,
        "old": preview.old,
        "new": preview.new,
        "changes": !preview.difference.is_empty(),
        "difference": preview.difference,
    })
}

/// Prints a line for each change.
fn show(difference: &Difference, color: bool) {
    difference.lines().iter().for_each(|line| outln!("  {}", terminal::change(line, color)));
}

/// Prints a line for each change, or a summary of many.
pub fn show_briefly(difference: &Difference, color: bool) {
    if difference.lines().len() <= MAX_LINES && !difference.is_empty() {
        show(difference, color);
    } else {
        outln!("  {}", difference.summary());
    }
}
