//! A running contender on the owner's device: its commands, or Sluice.

use std::path::{Path, PathBuf};
use std::{fs, iter};

use crate::format::{Contender, Direction, Fill, SluiceCall, Start};
use crate::run::command;
use crate::tool::sluice;
use sluice_error::{Error, Result};
use sluice_testbed::Namespace;

/// The device on which arrivals are queued.
const IFB: &str = "lab-arrivals";

/// The device and directions that a contender is to own.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The device.
    pub device: &'a str,
    /// The directions to own.
    pub shape: &'a [Direction],
    /// Rate of each direction, bits per second.
    pub rate_bps: u64,
    /// The Sluice binary.
    pub sluice: &'a Path,
    /// A directory for policy files.
    pub scratch: &'a Path,
    /// A callback while commands run; its error ends them.
    pub watch: &'a dyn Fn() -> Result<()>,
}

/// A running contender; dropping ends it.
pub struct Active<'a> {
    host: &'a Namespace,
    contender: &'a Contender,
    task: Task<'a>,
    sluice: Option<PathBuf>,
    changes: usize,
    /// Sluice's engine.
    pub engine: Option<String>,
    /// The commands that were run.
    pub commands: Vec<String>,
}

impl<'a> Active<'a> {
    /// Starts the contender.
    pub fn start(contender: &'a Contender, host: &'a Namespace, task: Task<'a>) -> Result<Active<'a>> {
        let mut active = Active { host, contender, task, sluice: None, changes: 0, engine: None, commands: Vec::new() };
        match &contender.start {
            Start::Commands(commands) => active.start_commands(commands)?,
            Start::Sluice(call) => active.start_sluice(call)?,
            Start::Forward(_) | Start::Observe(_) | Start::Card(_) | Start::Wire(_) => {
                return Err(Error::system("only queues can own a queue"));
            }
        }
        Ok(active)
    }

    fn start_commands(&mut self, commands: &[String]) -> Result<()> {
        for direction in self.task.shape {
            if commands.is_empty() {
                break;
            }
            if *direction == Direction::Ingress {
                let device = self.task.device;
                self.type_command(&format!("ip link add {IFB} type ifb"))?;
                self.type_command(&format!("ip link set {IFB} up"))?;
                self.type_command(&format!("tc qdisc add dev {device} handle ffff: ingress"))?;
                let filter = format!("tc filter add dev {device} parent ffff: protocol all u32 match u32 0 0");
                self.type_command(&format!("{filter} action mirred egress redirect dev {IFB}"))?;
            }
            self.type_filled(commands, *direction)?;
        }
        Ok(())
    }

    fn type_filled(&mut self, commands: &[String], direction: Direction) -> Result<()> {
        let device = if direction == Direction::Ingress { IFB } else { self.task.device };
        let fill = Fill { device, rate_bps: self.task.rate_bps };
        for command in commands {
            let command = fill.command(command).map_err(|blank| Error::system(format!("nothing fills {{{blank}}}")))?;
            self.type_command(&command)?;
        }
        Ok(())
    }

    fn type_command(&mut self, command: &str) -> Result<()> {
        self.commands.push(command.to_owned());
        command::run(self.host, command, self.task.watch).map(drop)
    }

    fn start_sluice(&mut self, call: &SluiceCall) -> Result<()> {
        // From here on, even a failed `up` is followed by `down`.
        self.sluice = Some(self.task.sluice.to_owned());
        let policy = self.policy(&call.policy)?;
        let rate = sluice::rate(self.task.rate_bps);
        let mut arguments = vec!["up", self.task.device, "--policy", &policy];
        for direction in self.task.shape {
            arguments.extend([if *direction == Direction::Ingress { "--ingress-rate" } else { "--rate" }, &rate]);
        }
        if let Some(engine) = &call.engine {
            arguments.extend(["--engine", engine]);
        }
        self.call_sluice(&arguments)?;
        self.engine = Some(sluice::engine_of(self.task.sluice, self.host.name(), self.task.device)?);
        Ok(())
    }

    fn call_sluice(&mut self, arguments: &[&str]) -> Result<()> {
        let typed: Vec<&str> = iter::once("sluice").chain(arguments.iter().copied()).collect();
        let shown = typed.join(" ").replace(&format!("{}/", self.task.scratch.display()), "");
        let name = format!("\"{shown}\"");
        self.commands.push(shown);
        let arguments = [&["--netns", self.host.name()], arguments].concat();
        sluice::call(&name, self.task.sluice, &arguments).map(drop)
    }

    /// The argument for a policy: the path of a file that the contender brought, or the name of a profile.
    fn policy(&self, name: &str) -> Result<String> {
        let Some((_, text)) = self.contender.source.attached.iter().find(|(own, _)| own == name) else {
            return Ok(name.to_owned());
        };
        let path = self.task.scratch.join(name);
        fs::write(&path, text).map_err(|e| Error::system(format!("cannot write {}: {e}", path.display())))?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// Whether the contender can be changed while it works.
    pub fn can_change(&self) -> bool {
        self.contender.is_ours() || !self.contender.change.is_empty()
    }

    /// Changes the configuration; returns the commands.
    pub fn change(&mut self) -> Result<String> {
        self.changes += 1;
        let before = self.commands.len();
        match &self.contender.start {
            Start::Commands(_) => {
                for direction in self.task.shape {
                    self.type_filled(&self.contender.change, *direction)?;
                }
            }
            Start::Sluice(call) => {
                let other = call.change.as_ref().unwrap_or(&call.policy);
                let policy = self.policy(if self.changes % 2 == 1 { other } else { &call.policy })?;
                self.call_sluice(&["apply", self.task.device, &policy, "--quiet"])?;
            }
            Start::Forward(_) | Start::Observe(_) | Start::Card(_) | Start::Wire(_) => {}
        }
        Ok(self.commands.split_off(before).join("; "))
    }

    /// Ends the contender and reports a failure to do so. Qdiscs and devices that its commands made go with the namespace.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.sluice.take().map_or(Ok(()), |program| sluice::down(&program, self.host.name(), self.task.device))
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        // An error here would hide the error that is being returned.
        let _ = self.end();
    }
}
