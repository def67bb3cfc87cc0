//! The `sluice` command.

mod args;
#[macro_use]
mod terminal;

mod assignment;
mod capturing;
mod change;
mod check;
mod clock;
mod completion;
mod cost;
mod count;
mod demo;
mod doctor;
mod ensure;
mod events;
mod explain;
mod features;
mod filter;
mod flows;
mod forward;
mod history;
mod humanize;
mod interrupt;
mod lab;
mod live;
mod manual;
mod observation;
mod pcapng;
mod restore;
mod serve;
mod size;
mod status;
mod subscriber;
mod top;
mod trace;
mod upgrade;
mod watch;
mod wire;

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;
use sluice_cli::failure::Failure;
use sluice_cli::{capture, failure, packet};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    terminal::restore_sigpipe();
    // A shell that completes a word asks here; the process ends with the answer.
    CompleteEnv::with_factory(Cli::command).var(completion::COMPLETE_VARIABLE).complete();
    let cli = Cli::parse();
    let color = terminal::colors(cli.color);
    match run(&cli, color).and_then(|()| terminal::write_failure().map_or(Ok(()), Err)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // A failure to write to standard error has nowhere to be reported.
            let _ = std::io::stderr().write_all(failure.render(color).as_bytes());
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
        Command::Apply(args) => change::apply(args, color),
        Command::Forward(args) => forward::run(args, color),
        Command::Subscriber(args) => subscriber::run(args, color),
        Command::Confirm(args) => change::confirm(args),
        Command::Rollback(args) => change::rollback(args, color),
        Command::History(args) => history::run(args),
        Command::Watch(args) => watch::run(args, color),
        Command::Wire(args) => wire::run(args, color),
        Command::AwaitConfirmation { key, deadline_ms } => Ok(sluice_kernel::confirm::wait(key, *deadline_ms)?),
        Command::Status(args) => status::run(args, color),
        Command::Serve(args) => serve::run(args),
        Command::Top(args) => top::run(args, color),
        Command::Flows(args) => flows::run(args, color),
        Command::Capture(args) => capturing::run(args),
        Command::Count(args) => count::run(args),
        Command::Features(args) => features::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Events(args) => events::run(args, color),
        Command::Trace(args) => trace::run(args),
        Command::Down(args) => live::down(args),
        Command::Ensure(args) => ensure::run(args),
        Command::Upgrade(args) => upgrade::run(args),
        Command::Doctor(args) => doctor::run(args, color),
        Command::Demo(args) => demo::run(args, color),
        Command::Lab(args) => lab::run(args, color),
        Command::Profiles => {
            sluice_policy::profiles().iter().for_each(|name| outln!("{name}"));
            Ok(())
        }
        Command::Schema => {
            out!("{}", sluice_policy::SCHEMA);
            Ok(())
        }
        Command::Completions { shell } => completion::print(*shell),
        Command::Man { directory } => manual::write(Cli::command(), directory),
    }
}
