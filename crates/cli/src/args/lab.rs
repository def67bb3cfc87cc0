//! The options of `sluice lab`.

use super::observe::interval;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Lab {
    #[command(subcommand)]
    pub command: LabCommand,
}

const EXAMPLES: &str = "\
Examples:
  sudo sluice lab run quick                        what this kernel has, natively, in some minutes
  sluice lab run published --vm                    the published tests on a stock kernel, in virtual machines
  sudo sluice lab run telemetry                    the published table of counts and records, natively
  sudo sluice lab run forwarding                   the published table of port forwarding, over 2 to 5 hops
  sluice lab run backpressure                      backpressure by class before a modelled card; without root
  sluice lab run game-4 --contender cake --contender sluice-gaming --measured 20s --vm
  sluice lab run ./mine.toml --contender ./ours.toml --rate 50mbit
  sluice lab show cake > ours.toml                 a file to start from";

#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Run a plan, or scenarios, and write a report
    Run(Run),
    /// List the built-in plans, scenarios, contenders and topologies
    List,
    /// Print a built-in file
    Show {
        /// A plan, scenario, contender or topology
        name: String,
    },
    /// Write the report of a run again, from its numbers
    Report {
        /// The directory of a run
        run: PathBuf,
    },
    /// Compare two runs: changes beyond the spread, for better or worse; exit code 1 if something is worse
    Compare(Compare),
    /// Check files of your own
    Check {
        /// Scenarios, contenders, plans or topologies; their directory or their keys tell which
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Count the instructions that a packet costs, in a virtual machine; wants the source tree
    Cost(Cost),
    /// Send live XDP frames to an interface
    #[command(hide = true)]
    Frames(Frames),
    /// Observe packets that arrive at an interface, as published work does
    #[command(hide = true)]
    Observe(Observe),
    /// Make an end of a veth a slow card
    #[command(hide = true)]
    Card(Card),
    /// Run a virtual machine's share of a job
    #[command(hide = true)]
    Guest {
        /// The job
        job: PathBuf,
        /// The directory for the results
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct Run {
    /// A plan (quick, published, today, full), or scenarios; built-in ones by name, others by the path of their file
    #[arg(required = true)]
    pub what: Vec<String>,
    /// A contender instead of the plan's; may be repeated
    #[arg(long = "contender", value_name = "NAME")]
    pub contenders: Vec<String>,
    /// A rate instead of the plan's, such as 50mbit; may be repeated
    #[arg(long = "rate", value_name = "RATE", allow_hyphen_values = true)]
    pub rates: Vec<String>,
    /// The number of repeats of each trial
    #[arg(long, value_name = "N")]
    pub repeats: Option<u32>,
    /// The measured time of each trial, such as 10s
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub measured: Option<String>,
    /// Run in virtual machines with a stock kernel, whose clocks count instructions; needs Sluice's source tree
    #[arg(long)]
    pub vm: bool,
    /// The kernel's role (vm/kernel --help lists the roles)
    #[arg(long, value_name = "ROLE", default_value = "debian13-backports", requires = "vm")]
    pub kernel: String,
    /// The directory for the results; without it, a new one below sluice-lab
    #[arg(long, value_name = "DIRECTORY")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Frames {
    /// The interface that sends
    pub interface: String,
    /// Bytes of a frame
    #[arg(long, default_value_t = 64)]
    pub bytes: usize,
    /// Source ports that frames have in turn: a power of two
    #[arg(long, default_value_t = 1)]
    pub flows: u32,
    /// Bits a second, such as 1gbit; without it, as many as go
    #[arg(long)]
    pub rate: Option<String>,
    /// Time for which frames are sent
    #[arg(long, value_parser = interval)]
    pub duration: Duration,
}

#[derive(Debug, Args)]
pub struct Observe {
    /// The interface at which packets arrive
    pub interface: String,
    /// The way in which they are observed
    #[arg(long, value_parser = ["drop", "counters", "ring"])]
    pub way: String,
    /// Bytes of the ring
    #[arg(long, default_value_t = 4 << 20)]
    pub ring: u32,
    /// Time for which the reader of the ring sleeps between two looks; 0: it never sleeps
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub wait_ms: u64,
    /// Whether each record is worked on, with a clock, floats and text
    #[arg(long)]
    pub works: bool,
}

#[derive(Debug, Args)]
pub struct Card {
    /// The interface at which the frames arrive that the card sends
    pub interface: String,
    /// Bits a second, such as 100mbit
    #[arg(long)]
    pub rate: String,
    /// Bytes that it adds to each frame
    #[arg(long, default_value_t = 24)]
    pub overhead: u32,
    /// The processor that the card keeps busy, with a thread of its own; /sys must be that of the interface's network namespace
    #[arg(long, value_name = "N")]
    pub processor: Option<usize>,
    /// A file for the frames that were sent, a line for each: the first eight bytes of its UDP payload as a number, when it had left (ns of
    /// CLOCK_MONOTONIC), its length, and its UDP ports, from which and to which
    #[arg(long, value_name = "FILE")]
    pub notes: Option<PathBuf>,
    /// Frames end at the card, else they go on
    #[arg(long)]
    pub drop: bool,
}

#[derive(Debug, Args)]
pub struct Compare {
    /// The directory of the earlier run
    pub before: PathBuf,
    /// The directory of the later run
    pub after: PathBuf,
    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print Markdown
    #[arg(long)]
    pub markdown: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluice lab cost                                  everything, about 15 minutes
  sluice lab cost --only cake,strict_priority      only contenders with one of these in their names
  sluice lab cost --keep                           everything, kept in bench/data
  sluice lab cost --history                        how the main figures changed by kernel and compiler
  sluice lab cost --gate                           a short run against the record: exit code 1 if we became dearer")]
pub struct Cost {
    /// The role of the machine's stock kernel (vm/kernel --help)
    #[arg(long, value_name = "ROLE", default_value = "debian13-backports",
          value_parser = ["debian13-backports", "testing-or-sid", "experimental"])]
    pub kernel: String,
    /// Only contenders whose names contain one of these words, separated by commas
    #[arg(long, value_name = "WORDS", value_delimiter = ',', value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub only: Vec<String>,
    /// The number of measurements of each; medians are shown
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub repeats: u32,
    /// Keep raw results in bench/data and figures in its history, or with --gate in the record
    #[arg(long, conflicts_with = "only")]
    pub keep: bool,
    /// A short run that fails if our cost, as a share of a reference's, is more than 5 % above the record
    #[arg(long, conflicts_with = "only")]
    pub gate: bool,
    /// Show how figures changed by kernel and compiler, and measure nothing
    #[arg(long, conflicts_with_all = ["kernel", "repeats", "keep", "gate", "from"])]
    pub history: bool,
    /// Raw results of an earlier run instead of a new one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kernel", "repeats", "only"])]
    pub from: Option<PathBuf>,
}
