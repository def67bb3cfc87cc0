//! The options of `sluice wire`.

use crate::completion;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use sluice_wire::Most;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluice wire eth0 eth1 --policy gaming --rate 95mbit/38mbit
  sluice wire eth0 eth1
  sluice wire eth0 eth1 --policy gaming --rate 8gbit --workers 4

The second one goes on with a wire whose process has ended. Other commands see each interface as a managed one whose arrivals are queued: sluice status \
eth0, sluice apply eth0 POLICY, sluice top.")]
pub struct Wire {
    /// The two interfaces, such as eth0 and eth1, which need no addresses: packets that arrive at one leave by the other
    #[arg(num_args = 2, required = true, value_names = ["INTERFACE", "INTERFACE"], add = ArgValueCompleter::new(completion::unmanaged))]
    pub interfaces: Vec<String>,
    /// A policy file, or the name of a profile; without it, the wire is there already
    #[arg(long, short, value_name = "POLICY", add = ArgValueCompleter::new(completion::policies))]
    pub policy: Option<String>,
    /// Shape what arrives at the first interface to this rate, and what arrives at the second one to the rate behind the slash
    #[arg(long, value_name = "RATE[/RATE]", requires = "policy", allow_hyphen_values = true)]
    pub rate: Option<String>,
    /// The threads that move packets, 1 to 8, each with a receive queue of both interfaces; auto: as many as there are receive queues
    #[arg(long, value_name = "N", default_value = "auto", value_parser = workers)]
    pub workers: Workers,
    /// Ask the drivers for packets while there are any (SO_PREFER_BUSY_POLL); takes more processor time
    #[arg(long)]
    pub busy_poll: bool,
    /// The most packets that an interface has to send at a time, 1 to 2048; auto: as few as keep it busy, which is found out
    #[arg(long, value_name = "N", default_value = "auto", value_parser = port_limit)]
    pub port_limit: Most,
    /// Print notes too
    #[arg(long, short)]
    pub verbose: bool,
}

fn port_limit(text: &str) -> Result<Most, String> {
    if text == "auto" {
        return Ok(Most::Found);
    }
    match text.parse() {
        Ok(number) if (1..=sluice_wire::PLACES).contains(&number) => Ok(Most::Packets(number)),
        _ => Err(format!("write auto, or a number of packets from 1 to {}", sluice_wire::PLACES)),
    }
}

/// The threads of a wire; none: as many as there are receive queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers(pub Option<u32>);

fn workers(text: &str) -> Result<Workers, String> {
    if text == "auto" {
        return Ok(Workers(None));
    }
    match text.parse() {
        Ok(number) if (1..=sluice_abi::SL_WIRE_WORKERS).contains(&number) => Ok(Workers(Some(number))),
        _ => Err(format!("write auto, or a number from 1 to {}", sluice_abi::SL_WIRE_WORKERS)),
    }
}
