//! One trial before a real port: a wire between two veths, whose far end is a card that takes the time of a rate for each frame (`sluice lab card`). Packets are
//! UDP datagrams with the time at which they were made; the card notes when each has left.

use std::collections::HashMap;
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::format::{Model, WireUse};
use crate::run::model;
use crate::run::network::PREFIX;
use crate::run::traffic::FINISH_GRACE;
use crate::run::trial::{Setting, TrialResult};
use crate::tool::sluice;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use serde_json::{Value, json};
use sluice_error::{Error, Kind, Result};
use sluice_simulator::pipes::{Fate, Outcome, Record};
use sluice_testbed::{Namespace, Process, veth};

/// A guess of the time for building the network and for starting and ending programs, ms.
const SET_UP_MS: f64 = 6_000.0;
/// Bytes of Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 42;
/// The bytes that a port adds to a frame, as in models.
const OVERHEAD_BYTES: u32 = 24;
/// The rate of the wire, which the port never reaches.
const WIRE_RATE: &str = "10gbit";
/// Class n has the n-th port from here on, and flow n sends from the n-th port from there on.
const FIRST_PORT: u16 = 5000;
const FIRST_FLOW: u16 = 20_000;
/// As many as scenarios may have.
const MOST_CLASSES: u16 = 12;
const MOST_FLOWS: u16 = 1_000;
const NEAR: &str = "10.98.0.1";
const FAR: &str = "10.98.0.2";
const FAR_MAC: &str = "02:00:00:00:98:02";
/// Packets that a class holds; the last class has one for each flow, as in models.
const LIMIT_PKTS: u32 = 1000;
/// Time in which a program must be ready.
const READY: Duration = Duration::from_secs(60);
/// Time that is left for the packets of the window when no more are sent.
const SETTLE: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(10);
/// The sender's priority: below that of the wire's process, and above other programs'.
const NICENESS: nix::libc::c_int = -19;

/// The duration of a trial without delays.
pub fn nominal(warm_ms: f64, measured_ms: f64) -> Duration {
    Duration::from_secs_f64((SET_UP_MS + warm_ms + measured_ms) / 1e3)
}

/// Runs a trial. `watch` is called often, and its error ends the trial.
pub fn run(setting: &Setting, watch: &dyn Fn() -> Result<()>) -> Result<TrialResult> {
    let (Some(model), Some(wire)) = (&setting.scenario.model, setting.contender.wire()) else {
        return Err(Error::new(Kind::Input, "a port needs a contender that is a wire"));
    };
    let processors = Processors::of_this_machine()?;
    let network = Network::build()?;
    let notes = setting.scratch.join("left");
    let card = network.card(setting, processors.last, &notes, watch)?;
    let (process, commands) = processors.beside(|| network.wire(setting, model, wire, watch))?;
    let length = Duration::from_secs_f64((setting.scenario.warm_up.0 + setting.measured_ms) / 1e3);
    let load = Load::of(setting, model, length);
    let sent = processors.beside(|| network.near.inside(|| load.send()).unwrap_or_else(Err))?;
    wait(SETTLE, watch)?;
    let status =
        sluice::call("sluice status", setting.sluice, &["--netns", network.machine.name(), "status", "m0", "--json"])?;
    card.signal(Signal::SIGINT)?;
    let card = card.finish(FINISH_GRACE, watch)?.expect_success()?;
    let left = read_notes(&notes)?;
    process.signal(Signal::SIGTERM)?;
    process.finish(FINISH_GRACE, watch)?.expect_success()?;
    let outcome = outcome(setting, model, &sent, &left)?;
    let seen = seen_by_the_hook(&status)?;
    let unseen = sent.len() as u64 - seen.min(sent.len() as u64);
    let unseen_percent = 100.0 * unseen as f64 / sent.len().max(1) as f64;
    let mut result = model::result(setting, &outcome, unseen_percent);
    result.measured.engine = Some("xsk".to_owned());
    result.measured.commands = commands;
    result.raw = vec![("status.json".to_owned(), status), ("card.json".to_owned(), card.stdout)];
    Ok(result)
}

/// The processors: the card keeps one busy, all other programs have the others.
struct Processors {
    all: CpuSet,
    others: CpuSet,
    last: usize,
}

impl Processors {
    fn of_this_machine() -> Result<Processors> {
        let failed = |error| Error::system(format!("processors of this process: {error}"));
        let all = sched_getaffinity(Pid::from_raw(0)).map_err(failed)?;
        let numbers: Vec<usize> = (0..CpuSet::count()).filter(|cpu| all.is_set(*cpu).unwrap_or(false)).collect();
        let Some((last, rest)) = numbers.split_last().filter(|(_, rest)| !rest.is_empty()) else {
            let what = "a port needs two processors: one is the card, the other one has the wire and the sender";
            return Err(Error::new(Kind::Unsupported, what));
        };
        let mut others = CpuSet::new();
        rest.iter().try_for_each(|cpu| others.set(*cpu)).map_err(failed)?;
        Ok(Processors { all, others, last: *last })
    }

    /// Has work, and the programs and threads that it starts, keep off the card's processor.
    fn beside<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let keep = |to: &CpuSet| {
            sched_setaffinity(Pid::from_raw(0), to)
                .map_err(|error| Error::system(format!("choosing processors: {error}")))
        };
        keep(&self.others)?;
        let done = work();
        keep(&self.all)?;
        done
    }
}

/// A host that sends, the machine of the wire, and the host behind the port.
struct Network {
    near: Namespace,
    machine: Namespace,
    far: Namespace,
}

impl Network {
    fn build() -> Result<Network> {
        let make = |role| Namespace::create(PREFIX, role);
        let network = Network { near: make("near")?, machine: make("machine")?, far: make("far")? };
        let end = |namespace, device: &str, mac: &str| veth::End {
            namespace,
            device: device.to_owned(),
            options: format!("numtxqueues 1 numrxqueues 1 {mac}"),
        };
        let (near, machine, far) = (&network.near, &network.machine, &network.far);
        veth::connect(&[
            [end(near, "n0", ""), end(machine, "m0", "")],
            [end(far, "f0", &format!("address {FAR_MAC}")), end(machine, "m1", "")],
        ])?;
        let up = |device: &str| format!("link set {device} up");
        near.ip_batch(&[
            up("n0"),
            format!("addr add {NEAR}/24 dev n0"),
            format!("neigh add {FAR} dev n0 lladdr {FAR_MAC} nud permanent"),
        ])?;
        machine.ip_batch(&[up("m0"), up("m1")])?;
        far.ip_batch(&[up("f0")])?;
        // The wire computes no checksums, and takes no super-packets.
        near.run("ethtool", &["-K", "n0", "tx", "off", "tso", "off", "gso", "off"])?;
        // A veth refuses frames only where a qdisc would keep them; frames of AF_XDP pass it by.
        machine.tc(&["qdisc", "replace", "dev", "m1", "root", "pfifo_fast"])?;
        Ok(network)
    }

    /// The card behind the port, on a processor of its own.
    fn card(
        &self,
        setting: &Setting,
        processor: usize,
        notes: &Path,
        watch: &dyn Fn() -> Result<()>,
    ) -> Result<Process> {
        let (sluice, notes) = (setting.sluice.to_string_lossy(), notes.to_string_lossy());
        let (rate, overhead) = (format!("{}kbit", setting.rate_bps / 1000), OVERHEAD_BYTES.to_string());
        let processor = processor.to_string();
        // The namespace's own /sys is there alone.
        let mut card = Process::start(
            "sluice lab card",
            "ip",
            &[
                "netns",
                "exec",
                self.far.name(),
                &sluice,
                "lab",
                "card",
                "f0",
                "--rate",
                &rate,
                "--overhead",
                &overhead,
                "--processor",
                &processor,
                "--notes",
                &notes,
                "--drop",
            ],
        )?;
        await_words(&mut card, "sending", watch)?;
        Ok(card)
    }

    /// The wire, and its command.
    fn wire(
        &self,
        setting: &Setting,
        model: &Model,
        wire: &WireUse,
        watch: &dyn Fn() -> Result<()>,
    ) -> Result<(Process, Vec<String>)> {
        let file = setting.scratch.join("policy.json");
        fs::write(&file, policy(model).to_string())
            .map_err(|error| Error::system(format!("cannot write {}: {error}", file.display())))?;
        let path = file.to_string_lossy();
        let arguments = ["wire", "m0", "m1", "--policy", &path, "--rate", WIRE_RATE, "--port-limit", &wire.port_limit];
        let all = [&["--netns", self.machine.name()][..], &arguments].concat();
        let mut process = Process::start_with_cleanup("sluice wire", setting.sluice, &all)?;
        await_words(&mut process, "packets pass", watch)?;
        let shown = arguments.join(" ").replace(&*path, "POLICY");
        Ok((process, vec![format!("sluice {shown}")]))
    }
}

/// A policy with the classes of a model, by strict priority.
fn policy(model: &Model) -> Value {
    let last = model.classes - 1;
    let class = |id: u32| {
        let limit = if id == last { model.pipes } else { LIMIT_PKTS };
        json!({ "id": id, "name": format!("class {}", id + 1), "priority": id, "queue": "flows", "aqm": "none", "limit": limit })
    };
    let rule = |id: u32| json!({ "priority": id + 1, "protocol": "udp", "dst_port_min": u32::from(FIRST_PORT) + id, "class_id": id });
    json!({
        "version": 1,
        "scheduler": "strict_priority",
        "classes": (0..model.classes).map(class).collect::<Vec<_>>(),
        "default_class": last,
        "rules": (0..model.classes).map(rule).collect::<Vec<_>>(),
    })
}

fn await_words(process: &mut Process, words: &str, watch: &dyn Fn() -> Result<()>) -> Result<()> {
    let deadline = Instant::now() + READY;
    while !process.written().concat().contains(words) {
        watch()?;
        if !process.running()? {
            let [stdout, stderr] = process.written();
            return Err(Error::system(format!("it has ended before \"{words}\": {stdout}{stderr}")));
        }
        if Instant::now() > deadline {
            return Err(Error::system(format!("nothing has printed \"{words}\"")));
        }
        thread::sleep(POLL);
    }
    Ok(())
}

fn wait(length: Duration, watch: &dyn Fn() -> Result<()>) -> Result<()> {
    let deadline = Instant::now() + length;
    while Instant::now() < deadline {
        watch()?;
        thread::sleep(POLL);
    }
    Ok(())
}

/// A packet that was sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    /// When, ns of CLOCK_MONOTONIC, which no other packet has.
    at_ns: u64,
    flow: u32,
    class: u8,
}

/// The packets of a trial: each flow has one in turn, of a random class, and the time between two is random, up to twice its mean.
struct Load {
    flows: u32,
    classes: u32,
    payload_bytes: usize,
    mean_gap_ns: f64,
    length: Duration,
    seed: u64,
}

impl Load {
    fn of(setting: &Setting, model: &Model, length: Duration) -> Load {
        let a_second = setting.rate_bps as f64 * model.load / 100.0 / 8.0 / f64::from(model.bytes + OVERHEAD_BYTES);
        Load {
            flows: model.pipes,
            classes: model.classes,
            payload_bytes: model.bytes as usize - HEADERS,
            mean_gap_ns: 1e9 / a_second,
            length,
            seed: u64::from(setting.repeat),
        }
    }

    /// Sends them all, and returns them.
    fn send(&self) -> Result<Vec<Sent>> {
        let failed = |what: &str, error: std::io::Error| Error::system(format!("{what} packets: {error}"));
        // SAFETY: the call takes numbers only; 0 is this thread.
        unsafe { nix::libc::setpriority(nix::libc::PRIO_PROCESS, 0, NICENESS) };
        let mut sockets = Vec::new();
        for flow in 0..self.flows {
            let port = FIRST_FLOW + flow as u16;
            sockets.push(UdpSocket::bind((NEAR, port)).map_err(|error| failed("a socket for", error))?);
        }
        let mut payload = vec![0u8; self.payload_bytes];
        let mut seed = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let (begun_ns, mut last_ns) = (now_ns()?, 0);
        let (mut due_ns, mut sent) = (begun_ns as f64, Vec::new());
        let end_ns = begun_ns + self.length.as_nanos() as u64;
        loop {
            let now = now_ns()?;
            if now >= end_ns {
                return Ok(sent);
            }
            if (now as f64) < due_ns {
                thread::sleep(Duration::from_nanos((due_ns - now as f64) as u64));
                continue;
            }
            due_ns += random() as f64 / u64::MAX as f64 * 2.0 * self.mean_gap_ns;
            let (flow, class) = (sent.len() as u32 % self.flows, (random() % u64::from(self.classes)) as u8);
            last_ns = now.max(last_ns + 1);
            payload[..8].copy_from_slice(&last_ns.to_ne_bytes());
            let to = (FAR, FIRST_PORT + u16::from(class));
            sockets[flow as usize].send_to(&payload, to).map_err(|error| failed("sending", error))?;
            sent.push(Sent { at_ns: last_ns, flow, class });
        }
    }
}

fn now_ns() -> Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(|error| Error::system(format!("the clock: {error}")))?;
    Ok(Duration::from(now).as_nanos() as u64)
}

/// Datagrams that left the card: when each was made, when its last bit had left, and its length. Kernels send frames of their own besides.
fn read_notes(path: &Path) -> Result<Vec<(u64, u64, u32)>> {
    let text =
        fs::read_to_string(path).map_err(|error| Error::system(format!("cannot read {}: {error}", path.display())))?;
    let line = |line: &str| {
        let mut words = line.split(' ').map(str::parse::<u64>);
        let mut next = || words.next().and_then(std::result::Result::ok);
        let (made_ns, left_ns, bytes) = (next()?, next()?, next()? as u32);
        let (from, to) = (next()? as u16, next()? as u16);
        let is_ours = (FIRST_FLOW..FIRST_FLOW + MOST_FLOWS).contains(&from)
            && (FIRST_PORT..FIRST_PORT + MOST_CLASSES).contains(&to);
        Some(is_ours.then_some((made_ns, left_ns, bytes)))
    };
    let all: Option<Vec<_>> = text.lines().map(line).collect();
    all.map(|all| all.into_iter().flatten().collect())
        .ok_or_else(|| Error::system(format!("{} has a line that is none of the card's", path.display())))
}

/// The fates of the packets that were made in the window.
fn outcome(setting: &Setting, model: &Model, sent: &[Sent], left: &[(u64, u64, u32)]) -> Result<Outcome> {
    let begun_ns = sent.first().map_or(0, |first| first.at_ns) + (setting.scenario.warm_up.0 * 1e6) as u64;
    let window_ns = (setting.measured_ms * 1e6) as u64;
    let inside = |at_ns: u64| (begun_ns..begun_ns + window_ns).contains(&at_ns);
    let left_ns: HashMap<u64, u64> = left.iter().map(|(made, at_ns, _)| (*made, *at_ns)).collect();
    if left_ns.len() != left.len() {
        return Err(Error::system("a packet has left the card twice"));
    }
    let record = |one: &Sent| {
        let at_ns = left_ns.get(&one.at_ns);
        Record {
            arrived_ns: (one.at_ns - begun_ns) as u32,
            latency_ns: at_ns.map_or(0, |at_ns| at_ns.saturating_sub(one.at_ns).min(u64::from(u32::MAX)) as u32),
            pipe: one.flow,
            class: one.class,
            fate: if at_ns.is_some() { Fate::Sent } else { Fate::LostInScheduler },
        }
    };
    let records = sent.iter().filter(|one| inside(one.at_ns)).map(record).collect();
    let wire_bytes = left.iter().filter(|one| inside(one.1)).map(|one| u64::from(one.2 + OVERHEAD_BYTES)).sum();
    Ok(Outcome::measured(model.pipes, window_ns, wire_bytes, records))
}

/// The packets that the hook before the wire's queue has counted.
fn seen_by_the_hook(status: &str) -> Result<u64> {
    let status: Value =
        serde_json::from_str(status).map_err(|error| Error::system(format!("sluice status: {error}")))?;
    let directions = status["directions"].as_array().into_iter().flatten();
    let classes =
        directions.filter(|one| one["direction"] == "ingress").flat_map(|one| one["classes"].as_array()).flatten();
    let count = |class: &Value, what: &str| class[what]["pkts"].as_u64().unwrap_or_default();
    Ok(classes.map(|class| count(class, "sent") + count(class, "dropped") + count(class, "backlog")).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Contender, Folder, Scenario, read};
    use crate::result::results::Clock;

    #[test]
    fn packets_have_the_fates_that_the_card_has_noted() {
        let scenario = Scenario::of(read(Folder::Scenarios, "port-2-classes").unwrap()).unwrap();
        let contender = Contender::of(read(Folder::Contenders, "wire-limit").unwrap()).unwrap();
        let setting = Setting {
            scenario: &scenario,
            contender: &contender,
            rate_bps: 200_000_000,
            measured_ms: 1_000.0,
            repeat: 1,
            sluice: Path::new("sluice"),
            scratch: Path::new("."),
            clock: Clock::Real,
        };
        let model = scenario.model.as_ref().unwrap();
        let second = 1_000_000_000u64;
        let sent = |at_ns: u64, flow, class| Sent { at_ns: 7 * second + at_ns, flow, class };
        // The window begins 1.5 s behind the first packet.
        let all = [sent(0, 0, 0), sent(2 * second, 1, 1), sent(2 * second + 5, 2, 0), sent(3 * second, 3, 0)];
        let left = [(9 * second, 9 * second + 40_000, 1376), (7 * second, 7 * second + 1, 1376)];
        let outcome = outcome(&setting, model, &all, &left).unwrap();
        let fates: Vec<_> = outcome.records.iter().map(|one| (one.pipe, one.class, one.latency_ns, one.fate)).collect();
        assert_eq!(fates, [(1, 1, 40_000, Fate::Sent), (2, 0, 0, Fate::LostInScheduler)]);
        assert_eq!(outcome.wire_bytes, 1400);
        let twice = [left[0], left[0]];
        assert!(super::outcome(&setting, model, &all, &twice).unwrap_err().what.contains("twice"));
    }

    #[test]
    fn notes_are_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "5 70 1376 20000 5001\n0 75 70 65117 4722\n6 80 60 20001 5000\n").unwrap();
        assert_eq!(read_notes(file.path()).unwrap(), [(5, 70, 1376), (6, 80, 60)]);
        fs::write(file.path(), "5 x\n").unwrap();
        assert!(read_notes(file.path()).is_err());
    }

    #[test]
    fn what_the_hook_has_counted_is_found() {
        let status = r#"{"directions": [{"direction": "egress", "classes": [{"sent": {"pkts": 9}}]},
            {"direction": "ingress", "classes": [{"sent": {"pkts": 3}, "dropped": {"pkts": 2}, "backlog": {"pkts": 1}}, {"sent": {"pkts": 4}}]}]}"#;
        assert_eq!(seen_by_the_hook(status).unwrap(), 10);
    }
}
