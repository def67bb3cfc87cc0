//! The options of `sluice capture`.

use super::observed::Observed;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Packets are copied, and go on as they would otherwise. Each has a comment: class, rule and verdict, where there is a policy.
What found no room is counted in the file (interface statistics) and at the end.
With --steal packets are not copied but taken: those that match never reach the host. It is for a mirror port, and asks first.

Examples:
  sluice capture eth0 -o x.pcapng --for 10s
  sluice capture eth0 -o x.pcapng --only \"udp dport 3074\" --packets 1000
  sluice capture eth0 -o x.pcapng --snap 96 --rotate 100M --files 10    x-1.pcapng, x-2.pcapng ...
  sluice capture mirror0 -o x.pcapng --steal")]
pub struct Capture {
    #[command(flatten)]
    pub observed: Observed,
    /// The file
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub force: bool,
    /// Take arriving packets from the host by AF_XDP, for a mirror port whose packets nothing else needs; asks first
    #[arg(long)]
    pub steal: bool,
    /// Answer yes to what --steal asks, but not where the interface carries the default route
    #[arg(long, requires = "steal")]
    pub yes: bool,
    /// Bytes that are kept of each packet
    #[arg(long, value_name = "BYTES", default_value_t = 65_536)]
    pub snap: u32,
    /// Capture one in N packets, at random
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "adaptive")]
    pub one_in: u32,
    /// Capture one in 2, 4, 8 ... packets while the ring is more than half full
    #[arg(long)]
    pub adaptive: bool,
    /// Bytes of the ring of each processor, or with --steal of the memory of each receive queue: a power of two, such as 64M
    #[arg(long, value_name = "BYTES", default_value = "16M")]
    pub ring: String,
    /// End after this time, such as 30s
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true)]
    pub time: Option<String>,
    /// End after so many packets
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub packets: Option<u64>,
    /// Begin another file after so many bytes, such as 100M
    #[arg(long, value_name = "BYTES")]
    pub rotate: Option<String>,
    /// Keep so many files, and remove older ones
    #[arg(long, value_name = "N", requires = "rotate")]
    pub files: Option<u64>,
}
