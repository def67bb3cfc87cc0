//! `sluice lab cost`: the cost of a packet in instructions.

use crate::args::lab::Cost;
use crate::failure::Failure;
use sluice_lab::cost::{self, Options};

pub fn run(args: &Cost, color: bool) -> Result<(), Failure> {
    if args.history {
        out!("{}", cost::past(&args.only)?);
        return Ok(());
    }
    let sluice = std::env::current_exe().map_err(|error| Failure::system(format!("finding this program: {error}")))?;
    let options = Options {
        sluice,
        compiler: sluice_kernel::compiler(),
        role: args.kernel.clone(),
        only: args.only.clone(),
        repeats: args.repeats,
        keep: args.keep,
        gate: args.gate,
        from: args.from.clone(),
        color,
    };
    let outcome = cost::run(&options)?;
    out!("{}", outcome.text);
    outcome.failure.map_or(Ok(()), |failure| Err(failure.into()))
}
