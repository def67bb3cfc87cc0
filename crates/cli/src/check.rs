//! `sluice check`: what a policy means, or all that is wrong with it.

use crate::args::{Check, EngineArg};
use crate::failure::Failure;
use sluice_policy::{Context, Diagnostics, Engine, Rate};

pub fn run(args: &Check, color: bool) -> Result<(), Failure> {
    let link_rate = args.rate.as_deref().map(|text| rate("--rate", text)).transpose()?;
    let (_, policy) = sluice_policy::load(&args.policy)?;
    let engine = if args.engine == EngineArg::Tc { Engine::Tc } else { Engine::Core };
    let resolved =
        sluice_policy::resolve(&policy, &Context { link_rate, engine }).map_err(|found| Failure::policy(&found))?;
    print_remarks(&resolved.remarks, color);
    let resolution = sluice_tables::rank_resolution(&resolved);
    print!("{}", sluice_policy::table(&resolved, resolution.as_deref()));
    if engine == Engine::Tc {
        println!("\nOn engine tc this means something else in that:");
        for difference in sluice_kernel::tc_differences(&resolved, resolved.link_rate, None, 14) {
            println!("  - {difference}");
        }
    }
    Ok(())
}

/// A rate of the command line.
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

/// Warnings and notes, on standard error.
pub fn print_remarks(remarks: &Diagnostics, color: bool) {
    if !remarks.is_empty() {
        eprintln!("{}", remarks.render(color).trim_end());
    }
}
