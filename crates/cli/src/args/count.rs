//! The options of `sluice count`.

use super::observe::interval;
use super::observed::Observed;
use clap::Args;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Keys: direction, proto, class, dscp, verdict, vlan, sport, dport, src, dst. A network has the length of its prefix
for IPv4, and behind a second slash that for IPv6: src/24, dst/16/48.
A key of at most 16 bits, as proto,class or dport, is counted exactly. Of others the heaviest have a place, and
each count says by how much it may be too low: \"missed\". A key that is not shown has sent at most what \"others\" says.

Examples:
  sluice count eth0                                    protocols that arrive, live
  sluice count eth0 --by class,dport --once            one table of a second
  sluice count eth0 --by src/24 --both --top 10        the ten networks that send most, both ways
  sluice count eth0 --by proto --json -n 10s | jq ...  an object for each ten seconds")]
pub struct Count {
    #[command(flatten)]
    pub observed: Observed,
    /// The key that packets are counted by: parts, separated by commas
    #[arg(long, value_name = "KEY", default_value = "proto")]
    pub by: String,
    /// Keys that have a place, on each processor, where not every key can have one
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub keys: u32,
    /// The number of keys that are shown
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,
    /// Count sizes of packets and of keys, too
    #[arg(long)]
    pub sizes: bool,
    /// Time between two tables, such as 500ms or 2s
    #[arg(long, short = 'n', value_name = "TIME", default_value = "1s", value_parser = interval, allow_hyphen_values = true)]
    pub interval: Duration,
    /// Print one table, after one interval, and end
    #[arg(long)]
    pub once: bool,
    /// Print JSON, an object for each interval and interface on a line of its own
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV, a line for each key and interval
    #[arg(long, conflicts_with = "sizes")]
    pub csv: bool,
}
