//! `sluice demo`: the main job on real traffic.

use crate::args::Demo;
use crate::failure::Failure;
use sluice_lab::Options;

pub fn run(args: &Demo, color: bool) -> Result<(), Failure> {
    let sluice = std::env::current_exe().map_err(|error| Failure::system(format!("finding this program: {error}")))?;
    let options = Options {
        engine: args.engine.engine().map(|engine| engine.name().to_owned()),
        seconds: args.seconds,
        rate_mbit: args.rate,
        json: args.json.clone(),
        svg: Some(args.svg.clone()),
        color,
        ..Options::new(sluice)
    };
    let report = sluice_lab::run_demo(&options)?;
    out!("{}", report.text(color));
    outln!("\nThe plot is in {}.", args.svg.display());
    Ok(())
}
