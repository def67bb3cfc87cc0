//! `sluice check`: the meaning of a policy, or all of its errors.

use crate::args::{Check, EngineArg};
use crate::failure::Failure;
use sluice_policy::network::Way;
use sluice_policy::{Context, Diagnostics, Engine, Rate, Resolved, network};

pub fn run(args: &Check, color: bool) -> Result<(), Failure> {
    let link_rate = args.rate.as_deref().map(|text| rate("--rate", text)).transpose()?;
    let engine = args.engine.engine().unwrap_or_default();
    let context = Context { link_rate, engine, ..Context::default() };
    let policies = sluice_policy::load_for(&args.policy, &context)?.1.policies();
    let mut resolved: Vec<(Option<String>, Resolved)> = Vec::new();
    let mut refused = Vec::new();
    for (interface, policy) in policies {
        match sluice_policy::resolve(&policy, &context) {
            Ok(one) => resolved.push((interface, one)),
            Err(found) => refused.push(found),
        }
    }
    if !refused.is_empty() {
        return Err(Failure::policies(&refused));
    }
    for (i, (interface, resolved)) in resolved.iter().enumerate() {
        if let Some(interface) = interface {
            outln!("{}{interface}:\n", if i > 0 { "\n" } else { "" });
        }
        show(resolved, engine, color);
        note_single_queues(interface.as_deref(), resolved, engine);
        warn_of_refusal(resolved, args.engine, color);
    }
    Ok(())
}

/// Warns if `sluice up` on this machine would refuse a policy that is valid in itself.
fn warn_of_refusal(resolved: &Resolved, engine: EngineArg, color: bool) {
    if let Some(why) = sluice_kernel::refusal(resolved, engine.engine()) {
        let warning = if color { "\x1b[1;33mwarning\x1b[0m" } else { "warning" };
        eprintln!("\n{warning}: on this machine `sluice up` refuses this policy:");
        why.to_string().lines().for_each(|line| eprintln!("  {line}"));
    }
}

fn show(resolved: &Resolved, engine: Engine, color: bool) {
    print_remarks(&resolved.remarks, color);
    if let Some(network) = &resolved.network {
        out!("{}", network::summary(network));
        if engine == Engine::Tc {
            tell_differences(&sluice_kernel::tc_tree_differences(network, Way::Down, 14));
        }
        return;
    }
    let resolution = sluice_tables::rank_resolution(resolved);
    out!("{}", sluice_policy::table(resolved, resolution.as_deref()));
    if engine == Engine::Tc {
        tell_differences(&sluice_kernel::tc_differences(resolved, resolved.link_rate, None, 14));
    }
}

fn tell_differences(differences: &[String]) {
    outln!("\nOn engine tc the meaning differs:");
    differences.iter().for_each(|difference| outln!("  - {difference}"));
}

/// Names the interfaces of this machine on which one queue would replace several.
fn note_single_queues(only: Option<&str>, resolved: &Resolved, engine: Engine) {
    // Without tc the policy is still checked.
    let all = sluice_kernel::below_mq().unwrap_or_default();
    for (name, queues) in all.iter().filter(|(name, _)| only.is_none_or(|only| only == name)) {
        if let Some(note) = sluice_kernel::one_queue_for_all(resolved, engine, *queues) {
            outln!("\non {name}, {note}");
        }
    }
}

/// Parses a rate of the command line.
pub fn rate(option: &str, text: &str) -> Result<Rate, Failure> {
    match text.parse::<Rate>() {
        Ok(rate) if rate < Rate::MIN => Err(Failure::input(
            &format!("{option} {text}: no packet passes at this rate"),
            "give a rate of 8bit or more, such as 19mbit",
        )),
        Ok(rate) => Ok(rate),
        Err(error) => Err(Failure::input(&format!("{option} {text}: {}", error.cause), &error.cure)),
    }
}

/// Prints warnings and notes on standard error.
pub fn print_remarks(remarks: &Diagnostics, color: bool) {
    if !remarks.is_empty() {
        eprintln!("{}", remarks.render(color).trim_end());
    }
}
