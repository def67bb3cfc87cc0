//! The option table, from which help, man pages and completions are made.

pub mod capture;
pub mod count;
pub mod features;
pub mod forward;
pub mod lab;
pub mod maintain;
pub mod observe;
pub mod observed;
pub mod serve;
pub mod subscriber;
pub mod wire;

use crate::completion;
use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use clap_complete::engine::ArgValueCompleter;
use std::path::PathBuf;

/// Low latency on a full link: programmable packet scheduling and quality of service for Linux.
///
/// One policy file says which traffic matters; `sluice up` puts real queues for it on an interface.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, propagate_version = true, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Work in this network namespace, as `ip netns` names it
    #[arg(long, global = true, value_name = "NAME")]
    pub netns: Option<String>,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: When,
}

const EXAMPLES: &str = "\
Examples:
  sluice check gaming                              look at a profile before it is used
  sluice up eth0 --policy gaming --rate 19mbit     own the bottleneck of a 20 Mbit/s line
  sluice status eth0                               the counters of every class
  sluice apply eth0 my.json --dry-run              the changes that another policy would make
  sluice apply eth0 my.json --confirm 60s          change it, and back unless confirmed in time
  sluice down eth0                                 give the interface back

Exit codes: 0 done; 1 the system refused; 2 bad input, nothing was changed;
3 this kernel or machine cannot do it; 4 root is needed.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check a policy and print what it means, or every error in it
    Check(Check),
    /// Put a policy on an interface
    Up(Up),
    /// Replace the policy of a managed interface; no packet is classified by a mixture of two
    Apply(Apply),
    /// Forward ports of a managed interface to other hosts: a part of its policy
    Forward(forward::Forward),
    /// List, show and change the subscribers of a provider's network: a part of the policy
    Subscriber(subscriber::Subscriber),
    /// Keep a change that `apply --confirm` has made
    Confirm(Confirm),
    /// Go back to an earlier policy of a managed interface
    Rollback(Rollback),
    /// Show the policies that were put into force on an interface, when and why; or print one of them
    History(History),
    /// Apply a policy file again whenever it changes, until stopped
    Watch(Watch),
    /// Make two interfaces a wire: a process queues what arrives at one, and sends it out of the other, until it is stopped
    Wire(wire::Wire),
    /// Show the state of managed interfaces and their classes
    Status(Status),
    /// Watch classes, queues, rules and flows live
    Top(observe::Top),
    /// Show the flows on the link: their rates, classes, rules and anomalies
    Flows(observe::Flows),
    /// Capture packets into a pcapng file, with class, rule and verdict
    Capture(capture::Capture),
    /// Count packets and bytes by key: protocols, ports, networks, classes
    Count(count::Count),
    /// Write a record of each packet, or of each flow: CSV, JSON lines, Arrow, Parquet
    Features(features::Features),
    /// Show managed interfaces in a browser, change their policies there, and give metrics to Prometheus
    Serve(serve::Serve),
    /// Explain the treatment of a packet: its rule, class, buckets, queue
    Explain(Explain),
    /// Report important events: drops that begin, buckets that run empty, queues that are late, changes
    Events(Events),
    /// Trace packets: rule, class, wait, verdict and reason
    Trace(Trace),
    /// Give an interface back as it was found
    Down(Down),
    /// Load the programs of this version in place of those of another, without giving the interface back
    Upgrade(maintain::Upgrade),
    /// Restore parts of managed interfaces that were removed: devices, queues, hooks
    Ensure(maintain::Ensure),
    /// Check what this kernel, driver and machine support, and what to install or enable
    Doctor(Doctor),
    /// Show the difference on real traffic, in network namespaces of its own
    Demo(Demo),
    /// Measure anything against anything: scenarios, contenders, reports
    Lab(lab::Lab),
    /// List the profiles that can be named without a path
    Profiles,
    /// Print the JSON Schema of policy files
    Schema,
    /// Print the completions for a shell
    Completions {
        /// bash, zsh, fish ...
        shell: Shell,
    },
    /// Wait for the confirmation of a change, and take it back
    #[command(hide = true, name = sluice_kernel::confirm::WAITING)]
    AwaitConfirmation {
        /// The path of the record
        key: String,
        /// The deadline, milliseconds since boot
        deadline_ms: u64,
    },
    /// Write the man pages
    #[command(hide = true)]
    Man {
        /// The directory
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct Events {
    /// Managed interfaces; without any, all, also those that are put under management later
    #[arg(add = ArgValueCompleter::new(completion::managed))]
    pub interfaces: Vec<String>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
    /// End after this time, such as 30s
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true)]
    pub time: Option<String>,
}

#[derive(Debug, Args)]
pub struct Trace {
    /// The managed interface
    #[arg(add = ArgValueCompleter::new(completion::managed))]
    pub interface: String,
    /// Only packets of this flow: a protocol (udp, tcp, icmp or a number), src ADDRESS, dst ADDRESS, sport PORT, dport PORT
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,
    /// One packet in so many; without it 100, or 1 where a flow is named
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub one_in: Option<u32>,
    /// End after so many packets
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this time, such as 30s
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true)]
    pub time: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
    /// Write the packets to a capture file, with the explanation of each as its comment
    #[arg(long, value_name = "FILE")]
    pub pcapng: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Check {
    /// A policy file, or the name of a profile
    #[arg(add = ArgValueCompleter::new(completion::policies))]
    pub policy: String,
    /// Check against this link rate, such as 19mbit
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub rate: Option<String>,
    /// Check for this engine, and say where its meaning differs
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub engine: EngineArg,
}

#[derive(Debug, Args)]
pub struct Up {
    /// The interface, such as eth0; without it, each that the policy file names under "interfaces"
    #[arg(add = ArgValueCompleter::new(completion::unmanaged))]
    pub interface: Option<String>,
    /// A policy file, or the name of a profile
    #[arg(long, short, value_name = "POLICY", add = ArgValueCompleter::new(completion::policies))]
    pub policy: String,
    /// Shape departing packets to this rate, a little below the line's, so that the queue forms here
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub rate: Option<String>,
    /// Shape arriving packets to this rate, a little below the line's
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub ingress_rate: Option<String>,
    /// The engine: `qdisc` is our scheduler in the kernel, `tc` is the kernel's HTB
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub engine: EngineArg,
    /// The hook that classifies arriving packets
    #[arg(long, value_name = "HOOK", default_value = "auto")]
    pub classifier: HookArg,
    /// Replace a hand-made hierarchy of qdiscs, after saving a dump of it; let forwards take addresses and ports that others have
    #[arg(long)]
    pub force: bool,
    /// Bring up another policy than this one, with its rate, where there is one: what `apply --at-boot` has kept, or the last applied
    #[arg(long, value_name = "WHICH", default_value = "configured")]
    pub restore: RestoreArg,
    /// Print notes too: how the engine was chosen, and where its meaning differs
    #[arg(long, short)]
    pub verbose: bool,
    /// The reason, for `sluice history`
    #[arg(long, short, value_name = "TEXT", value_parser = message)]
    pub message: Option<String>,
}

#[derive(Debug, Args)]
#[command(override_usage = "sluice apply [OPTIONS] [INTERFACE] <POLICY>")]
pub struct Apply {
    /// A managed interface, and a policy file or the name of a profile; without the interface, each that the file names under
    /// "interfaces"
    #[arg(value_names = ["INTERFACE", "POLICY"], num_args = 1..=2, required = true, add = ArgValueCompleter::new(completion::managed_or_policies))]
    pub words: Vec<String>,
    /// Shape what departs to this rate instead of the present one
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub rate: Option<String>,
    /// Keep it for the next boot: the unit sluice@INTERFACE brings it up instead of the configured policy
    #[arg(long, conflicts_with_all = ["confirm", "dry_run"])]
    pub at_boot: bool,
    /// Refuse while an earlier change waits to be confirmed, instead of confirming it
    #[arg(long)]
    pub unless_unconfirmed: bool,
    /// Let new forwards take ports that sockets of this host have, and packets to addresses that are not this host's; let more than half of the
    /// subscribers go
    #[arg(long)]
    pub force: bool,
    /// Shape what arrives to this rate instead of the present one
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub ingress_rate: Option<String>,
    #[command(flatten)]
    pub change: Change,
}

/// Options of `apply` and `rollback` for changing a policy.
#[derive(Debug, Args)]
pub struct Change {
    /// Print what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Take the change back unless `sluice confirm` comes within this time, such as 60s or 5m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "dry_run")]
    pub confirm: Option<String>,
    /// The reason, for `sluice history`
    #[arg(long, short, value_name = "TEXT", value_parser = message)]
    pub message: Option<String>,
    /// Print JSON
    #[arg(long, requires = "dry_run")]
    pub json: bool,
    /// Do not print the changes
    #[arg(long, short, conflicts_with = "dry_run")]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub struct Confirm {
    /// The interface, or several
    #[arg(required = true, value_name = "INTERFACE", add = ArgValueCompleter::new(completion::managed))]
    pub interfaces: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Rollback {
    /// The interface
    #[arg(add = ArgValueCompleter::new(completion::managed))]
    pub interface: String,
    /// The number that `sluice history` shows; without it, the last policy that differs from the present one
    pub number: Option<u32>,
    #[command(flatten)]
    pub change: Change,
}

#[derive(Debug, Args)]
pub struct History {
    /// The interface
    #[arg(add = ArgValueCompleter::new(completion::managed))]
    pub interface: String,
    /// Print the policy of this number
    pub number: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(override_usage = "sluice watch [OPTIONS] [INTERFACE] <FILE>")]
pub struct Watch {
    /// A managed interface, and the policy file; without the interface, each that the file names under "interfaces"
    #[arg(value_names = ["INTERFACE", "FILE"], num_args = 1..=2, required = true, add = ArgValueCompleter::new(completion::managed_or_policies))]
    pub words: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Status {
    /// The interface, or the key of a subscriber; without it, all interfaces of this network namespace
    #[arg(add = ArgValueCompleter::new(completion::managed))]
    pub interface: Option<String>,
    /// Show each tx queue, or worker of a wire, that has a scheduler of its own; JSON always has them
    #[arg(long)]
    pub queues: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluice explain gaming udp 192.0.2.1:5000 to 198.51.100.2:3074
  sluice explain eth0 tcp [2001:db8:1::9]:5000 to [2001:db8:2::1]:443 dscp ef flags syn
  sluice explain eth0 --pcap game.pcap --arriving

An address of IPv6 stands in brackets before a port. A policy file or profile needs no root.

A packet is PROTOCOL SOURCE to DESTINATION [KEY VALUE]..., where PROTOCOL is tcp, udp, icmp, a number,
or arp alone, and KEY is dscp, vlan, pcp, length (bytes, from the IP header on), flags (of TCP),
type (of ICMP), mark, or in (the interface where it came in).")]
pub struct Explain {
    /// A managed interface; or a policy file or profile, and then no interface is touched
    #[arg(add = ArgValueCompleter::new(completion::managed_or_policies))]
    pub target: String,
    /// The interface whose policy counts, for a policy file with "interfaces"
    #[arg(long, value_name = "INTERFACE")]
    pub interface: Option<String>,
    /// The packet in the packet language
    #[arg(required_unless_present = "pcap", conflicts_with = "pcap")]
    pub packet: Vec<String>,
    /// Explain the packets of a capture (pcap or pcapng) instead
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// The most packets to read from the capture
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub count: usize,
    /// The packet arrives; without this, it departs
    #[arg(long)]
    pub arriving: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Down {
    /// The interface, or several
    #[arg(required = true, value_name = "INTERFACE", add = ArgValueCompleter::new(completion::managed))]
    pub interfaces: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Demo {
    /// The engine that queues packets
    #[arg(long, value_name = "ENGINE", default_value = "auto")]
    pub engine: EngineArg,
    /// Length of each of the two runs, seconds
    #[arg(long, value_name = "S", default_value_t = 12, value_parser = clap::value_parser!(u32).range(4..=600))]
    pub seconds: u32,
    /// Rate of the bottleneck, Mbit/s
    #[arg(long, value_name = "MBIT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub rate: u32,
    /// Write the numbers to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the plot to this file
    #[arg(long, value_name = "FILE", default_value = "sluice-demo.svg")]
    pub svg: PathBuf,
}

/// Refuses control characters in a message, since terminals show it again.
fn message(text: &str) -> Result<String, String> {
    const MAX_BYTES: usize = 200;
    if text.len() > MAX_BYTES {
        return Err(format!("a message has at most {MAX_BYTES} bytes, not {}", text.len()));
    }
    if text.chars().any(char::is_control) {
        return Err("a message has no control characters, and one line".to_owned());
    }
    Ok(text.to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineArg {
    /// The best supported engine
    Auto,
    /// Our scheduler as a BPF qdisc, from Linux 6.17
    Qdisc,
    /// The kernel's HTB with a BPF classifier, from Linux 6.1
    Tc,
}

impl EngineArg {
    pub fn engine(self) -> Option<sluice_kernel::Engine> {
        match self {
            EngineArg::Auto => None,
            EngineArg::Qdisc => Some(sluice_kernel::Engine::Qdisc),
            EngineArg::Tc => Some(sluice_kernel::Engine::Tc),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RestoreArg {
    /// The policy that is named
    Configured,
    /// The policy that `sluice apply --at-boot` has kept
    Saved,
    /// The last policy that was applied and not taken back
    Last,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HookArg {
    /// The best supported hook for the interface
    Auto,
    /// XDP in the driver
    Xdp,
    /// tcx; before Linux 6.6 clsact, for policies only
    Tc,
}

impl HookArg {
    pub fn hook(self) -> Option<sluice_kernel::Hook> {
        match self {
            HookArg::Auto => None,
            HookArg::Xdp => Some(sluice_kernel::Hook::Xdp),
            HookArg::Tc => Some(sluice_kernel::Hook::Tc),
        }
    }
}
