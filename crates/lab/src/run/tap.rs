//! One trial at a tap: a contender observes what arrives at a device, and loads of frames come one after the other, each alone.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::format::{Load, Monitor, Observing, Rate, Tap, number_at};
use crate::result::results::{Clock, Measured, Observed};
use crate::run::command;
use crate::run::network::{Build, Network, device};
use crate::run::traffic::FINISH_GRACE;
use crate::run::trial::{Setting, TrialResult};
use crate::tool::{frames, offload};
use nix::sys::signal::Signal;
use sluice_error::{Error, Kind, Result};
use sluice_testbed::Namespace;
use sluice_testbed::process::Process;
use tempfile::TempDir;

/// A guess of the time for building the network, and for starting and ending an observer, ms.
const SET_UP_MS: f64 = 3_000.0;
/// Time in which an observer must say that it observes: an emulated processor is slow.
const READY: Duration = Duration::from_secs(120);
/// Time that an observer has for the last packets before it is asked to end.
const SETTLE: Duration = Duration::from_millis(700);
/// Interval of looks at processes.
const POLL: Duration = Duration::from_millis(10);
/// A directory in memory, for what observers write.
const MEMORY: &str = "/dev/shm";

/// The duration of a trial, if the machine is neither slow nor busy.
pub fn nominal(loads: &[Load], measured_ms: f64) -> Duration {
    Duration::from_secs_f64(loads.len() as f64 * (SET_UP_MS + measured_ms) / 1e3)
}

/// Runs a trial. `watch` is called often, and its error ends the trial.
pub fn run(setting: &Setting, tap: &Tap, watch: &dyn Fn() -> Result<()>) -> Result<TrialResult> {
    let Setting { scenario, contender, measured_ms, .. } = *setting;
    let Some(observing) = contender.observing() else {
        return Err(Error::new(Kind::Input, format!("contender {} observes nothing", contender.source.name)));
    };
    let (mut observed, mut raw, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    let (mut commands, mut offloads) = (Vec::new(), String::new());
    for load in &scenario.loads {
        // A network for each load: whatever an observer has left in the kernel is gone.
        let network = Network::build(&scenario.topology, Build { rate_bps: 0, offloads: scenario.offloads })?;
        let trial = Trial { setting, network: &network, tap, observing, load, watch };
        let (seen, text) = trial.run(Duration::from_secs_f64(measured_ms / 1e3))?;
        raw.push((format!("{}.txt", load.name()), text));
        observed.push(seen);
        commands = trial.commands()?;
        offloads = offload::describe(network.host(&tap.monitor)?, &trial.at());
        warnings.extend(network.warnings.iter().cloned());
    }
    warnings.dedup();
    let measured = Measured {
        engine: None,
        commands,
        from_ms: 0.0,
        to_ms: measured_ms,
        offloads,
        delays: Vec::new(),
        flows: Vec::new(),
        bottlenecks: Vec::new(),
        processor: None,
        noise: None,
        events: Vec::new(),
        observed,
        card: None,
    };
    Ok(TrialResult { measured, raw, warnings })
}

/// A load and its observer.
struct Trial<'a> {
    setting: &'a Setting<'a>,
    network: &'a Network,
    tap: &'a Tap,
    observing: &'a Observing,
    load: &'a Load,
    watch: &'a dyn Fn() -> Result<()>,
}

impl Trial<'_> {
    /// The device where frames arrive.
    fn at(&self) -> String {
        device(&(self.tap.monitor.clone(), self.tap.source.clone()))
    }

    /// Fills the blanks of a command; the files that it names come into `directory`.
    fn filled(&self, monitor: &Monitor, command: &str, directory: &Path) -> Result<String> {
        let mut failed = None;
        let filled = monitor.command(command, |name| {
            let path = directory.join(name);
            let attached = &self.setting.contender.source.attached;
            let text = attached.iter().find(|(own, _)| own == name).map_or("", |(_, text)| text);
            failed = failed.take().or(fs::write(&path, text).err().map(|error| (path.clone(), error)));
            path.to_string_lossy().into_owned()
        });
        match failed {
            Some((path, error)) => Err(Error::system(format!("cannot write {}: {error}", path.display()))),
            None => filled.map_err(|blank| Error::system(format!("nothing fills {{{blank}}}"))),
        }
    }

    fn monitor(&self, out: &Path) -> Result<Monitor> {
        Ok(Monitor {
            device: self.at(),
            namespace: self.network.host(&self.tap.monitor)?.name().to_owned(),
            sluice: self.setting.sluice.to_string_lossy().into_owned(),
            out: out.to_string_lossy().into_owned(),
            rate_bps: self.setting.rate_bps,
        })
    }

    /// The commands as files have them, with the device's name.
    fn commands(&self) -> Result<Vec<String>> {
        let shown = Monitor {
            sluice: "sluice".to_owned(),
            namespace: "MONITOR".to_owned(),
            ..self.monitor(Path::new("FILE"))?
        };
        let all = self.observing.start.iter().chain(&self.observing.run).chain(&self.observing.after);
        all.map(|command| {
            shown.command(command, str::to_owned).map_err(|blank| Error::system(format!("nothing fills {{{blank}}}")))
        })
        .collect()
    }

    fn run(&self, length: Duration) -> Result<(Observed, String)> {
        let out = output_directory()?;
        let monitor = self.monitor(&out.path().join("observed"))?;
        let (source, host) = (self.network.host(&self.tap.source)?, self.network.host(&self.tap.monitor)?);
        // Without GRO or an XDP program, a veth takes no frames.
        command::run(host, &format!("ethtool -K {} gro on", self.at()), self.watch)?;
        for command in &self.observing.start {
            let command = self.filled(&monitor, command, out.path())?;
            command::require(&command)?;
            command::run(host, &command, self.watch)?;
        }
        let begin = |command: &String| self.start(&self.filled(&monitor, command, out.path())?, host);
        let observer = self.observing.run.as_ref().map(begin).transpose()?;
        let before = self.received(host)?;
        let to = device(&(self.tap.source.clone(), self.tap.monitor.clone()));
        let sender = frames::start(source, self.setting.sluice, &to, self.load, length)?;
        let sent = frames::parse(&sender.finish(length + FINISH_GRACE, self.watch)?.expect_success()?.stdout)?;
        self.pause(SETTLE)?;
        let arrived = self.received(host)? - before;
        let mut text = String::new();
        if let Some(observer) = observer {
            observer.signal(Signal::SIGINT)?;
            let output = observer.finish(FINISH_GRACE, self.watch)?.expect_success()?;
            text = format!("{}{}", output.stdout, output.stderr);
        }
        if let Some(command) = &self.observing.after {
            text += &command::run(host, &self.filled(&monitor, command, out.path())?, self.watch)?.stdout;
        }
        let number = |pattern: &Option<String>| match pattern {
            None => Ok(None),
            Some(pattern) => number_at(pattern, &text)
                .map(Some)
                .ok_or_else(|| Error::system(format!("the contender has not printed \"{pattern}\": {}", text.trim()))),
        };
        let records = number(&self.observing.delivered)?;
        let missed = number(&self.observing.missed)?.unwrap_or(0);
        let dropped = number(&self.observing.dropped)?;
        let seen = number(&self.observing.seen)?;
        let (delivered, missed) = match (seen, records) {
            (Some(seen), Some(records)) => represented(seen, records, missed),
            (_, records) => (records.unwrap_or(arrived), missed),
        };
        let fast = !matches!(self.load.rate, Some(Rate::Bps(_)));
        let counted = self.setting.clock == Clock::Instructions && fast && arrived > 0;
        let observed = Observed {
            load: self.load.name().to_owned(),
            sent: sent.frames,
            arrived,
            delivered,
            missed,
            records: seen.and(records),
            dropped,
            seconds: sent.seconds,
            instructions: counted.then(|| sent.seconds * 1e9 / arrived as f64),
        };
        Ok((observed, text))
    }

    /// Starts the observer, and waits until it says that it observes.
    fn start(&self, command: &str, host: &Namespace) -> Result<Process> {
        command::require(command)?;
        let mut observer = command::start(host, command)?;
        let ready = self.observing.ready.as_deref().unwrap_or_default();
        let deadline = Instant::now() + READY;
        while !observer.written().concat().contains(ready) {
            (self.watch)()?;
            if !observer.running()? {
                return Err(observer.finish(FINISH_GRACE, self.watch)?.failure());
            }
            if Instant::now() > deadline {
                return Err(Error::system(format!("\"{command}\" has not printed \"{ready}\"")));
            }
            thread::sleep(POLL);
        }
        Ok(observer)
    }

    /// Packets that the monitor's device has received.
    fn received(&self, host: &Namespace) -> Result<u64> {
        let command = format!("ip -json -statistics link show dev {}", self.at());
        let text = command::run(host, &command, self.watch)?.stdout;
        let links: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let packets = links[0]["stats64"]["rx"]["packets"].as_u64();
        packets.ok_or_else(|| Error::system(format!("\"{command}\" tells no packets: {text}")))
    }

    fn pause(&self, length: Duration) -> Result<()> {
        let deadline = Instant::now() + length;
        while Instant::now() < deadline {
            (self.watch)()?;
            thread::sleep(POLL);
        }
        Ok(())
    }
}

/// A directory for what is observed, which goes with its handle.
fn output_directory() -> Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("sluice-lab-observed-");
    let made = if Path::new(MEMORY).is_dir() { builder.tempdir_in(MEMORY) } else { builder.tempdir() };
    made.map_err(|e| Error::system(format!("cannot make a directory for what is observed: {e}")))
}

/// The packets of `seen` for which a sample's records stand, and those for which the records stood that were missed.
fn represented(seen: u64, records: u64, missed: u64) -> (u64, u64) {
    let share = records as f64 / (records + missed).max(1) as f64;
    let delivered = if records + missed == 0 { 0 } else { (seen as f64 * share).round() as u64 };
    (delivered, if missed == 0 { 0 } else { seen - delivered })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_stands_for_what_was_seen() {
        assert_eq!(represented(1000, 10, 0), (1000, 0));
        assert_eq!(represented(1000, 9, 1), (900, 100));
        assert_eq!(represented(5, 0, 0), (0, 0));
    }
}
