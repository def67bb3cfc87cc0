//! The options of `sluice features`.

use super::observed::Observed;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Packets are copied, and go on as they would otherwise. The columns are described in docs/features.md.
Records that found no room are counted in the records after them, in the last row, and at the end.

Examples:
  sluice features eth0 -o x.parquet --for 60s
  sluice features eth0 -o flows.csv --flows --both --only \"tcp dport 443\"
  sluice features eth0 -o x.parquet --one-in 100 --hash-addresses
  sluice features eth0 -o - --format jsonl --adaptive | jq .length_bytes")]
pub struct Features {
    #[command(flatten)]
    pub observed: Observed,
    /// The output: a path, - for standard output, tcp:HOST:PORT or unix:PATH
    #[arg(long, short = 'o', value_name = "OUTPUT", allow_hyphen_values = true)]
    pub output: String,
    /// The format; without it that of the path's extension
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<FormatArg>,
    /// Replace the file if it is there
    #[arg(long)]
    pub force: bool,
    /// Write a record of each flow when it ends, instead of each packet
    #[arg(long)]
    pub flows: bool,
    /// End a flow after so long without a packet, such as 60s
    #[arg(long, value_name = "TIME", default_value = "60s", requires = "flows", allow_hyphen_values = true)]
    pub idle: String,
    /// Flows that are open at once; another one ends the one that was silent for longest
    #[arg(long, value_name = "N", default_value_t = 65_536, requires = "flows", value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    pub open_flows: u32,
    /// Record one in N packets, at random
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with_all = ["one_in_flows", "adaptive"])]
    pub one_in: u32,
    /// Record every packet of one in N flows
    #[arg(long, value_name = "N", conflicts_with = "adaptive")]
    pub one_in_flows: Option<u32>,
    /// Record one in 2, 4, 8 ... packets while the ring is more than half full
    #[arg(long)]
    pub adaptive: bool,
    /// Write keyed hashes in place of addresses; the key is drawn at random
    #[arg(long)]
    pub hash_addresses: bool,
    /// The key of the hashes, 32 hexadecimal digits, so that several outputs have the same ones
    #[arg(long, value_name = "FILE", requires = "hash_addresses")]
    pub key: Option<PathBuf>,
    /// Bytes of the ring of each processor: a power of two, such as 64M
    #[arg(long, value_name = "BYTES", default_value = "16M")]
    pub ring: String,
    /// End after this time, such as 30s
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true)]
    pub time: Option<String>,
    /// End after records of so many packets
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub packets: Option<u64>,
}

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Comma-separated values
    Csv,
    /// A JSON object a line
    Jsonl,
    /// An Arrow IPC file; the stream in a pipe or socket
    Arrow,
    /// An Arrow IPC stream
    ArrowStream,
    /// Parquet; files only
    Parquet,
}

impl FormatArg {
    /// As the records have it.
    pub fn format(self) -> sluice_records::Format {
        use sluice_records::Format;
        match self {
            FormatArg::Csv => Format::Csv,
            FormatArg::Jsonl => Format::JsonLines,
            FormatArg::Arrow => Format::Arrow,
            FormatArg::ArrowStream => Format::ArrowStream,
            FormatArg::Parquet => Format::Parquet,
        }
    }
}
