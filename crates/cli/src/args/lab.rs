//! The options of `sluice lab`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

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
  sluice lab run game-4 --contender cake --contender sluice-gaming --measured 20s --vm
  sluice lab run ./mine.toml --contender ./ours.toml --rate 50mbit
  sluice lab show cake > ours.toml                 a file to start from";

#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Run a plan, or scenarios, and write a report
    Run(Run),
    /// List the built-in plans, scenarios and contenders
    List,
    /// Print a built-in file
    Show {
        /// Of a plan, scenario, contender or topology
        name: String,
    },
    /// Write the report of a run again, from its numbers
    Report {
        /// The directory of a run
        run: PathBuf,
    },
    /// Compare two runs: what has become better or worse beyond the spread; exit code 1 if something is worse
    Compare(Compare),
    /// Check files of your own
    Check {
        /// Scenarios, contenders, plans or topologies; which of these, their directory or their keys tell
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// The share of a run that a virtual machine does
    #[command(hide = true)]
    Guest {
        /// What to do
        job: PathBuf,
        /// Where to leave what was found
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
    #[arg(long = "rate", value_name = "RATE")]
    pub rates: Vec<String>,
    /// How often each trial is done
    #[arg(long, value_name = "N")]
    pub repeats: Option<u32>,
    /// What counts of each trial, such as 10s
    #[arg(long, value_name = "TIME")]
    pub measured: Option<String>,
    /// In virtual machines on a stock kernel, whose clocks count instructions; needs Sluice's source tree
    #[arg(long)]
    pub vm: bool,
    /// Which kernel (vm/kernel --help lists the roles)
    #[arg(long, value_name = "ROLE", default_value = "debian13-backports", requires = "vm")]
    pub kernel: String,
    /// The directory for what is found; without it, a new one below sluice-lab
    #[arg(long, value_name = "DIRECTORY")]
    pub out: Option<PathBuf>,
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
