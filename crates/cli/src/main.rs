//! The `sluice` command.

mod args;
mod check;
mod demo;
mod doctor;
mod failure;
mod live;
mod manual;
mod status;
mod terminal;

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    terminal::end_quietly_when_nobody_reads();
    let cli = Cli::parse();
    let color = terminal::colors(cli.color);
    match run(&cli, color) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprint!("{}", failure.render(color));
            ExitCode::from(failure.exit_code)
        }
    }
}

fn run(cli: &Cli, color: bool) -> Result<(), Failure> {
    if let Some(name) = &cli.netns {
        sluice_kernel::require_root()?;
        sluice_kernel::netns::enter(name)?;
    }
    match &cli.command {
        Command::Check(args) => check::run(args, color),
        Command::Up(args) => live::up(args, color),
        Command::Apply(args) => live::apply(args, color),
        Command::Status(args) => status::run(args, color),
        Command::Down(args) => live::down(args),
        Command::Doctor(args) => doctor::run(args, color),
        Command::Demo(args) => demo::run(args, color),
        Command::Profiles => {
            sluice_policy::profiles().iter().for_each(|name| println!("{name}"));
            Ok(())
        }
        Command::Schema => {
            print!("{}", sluice_policy::SCHEMA);
            Ok(())
        }
        Command::Completions { shell } => {
            clap_complete::generate(*shell, &mut Cli::command(), "sluice", &mut std::io::stdout());
            Ok(())
        }
        Command::Man { directory } => manual::write(Cli::command(), directory),
    }
}
