//! The options of `sluice forward`.

use super::{Change, completion};
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluice forward add eth0 web --port 443 --to 10.0.0.5:8443
  sluice forward add eth0 game --protocol udp --port 27015-27020 --to 10.0.0.9 --class 1
  sluice forward add eth0 api --port 80 --to 10.0.0.5 --to 10.0.0.6 --masquerade --confirm 60s
  sluice forward list eth0
  sluice forward remove eth0 web

A forward is a part of the interface's policy: these commands edit its text, and put it into force as `apply` does.")]
pub struct Forward {
    #[command(subcommand)]
    pub command: ForwardCommand,
}

#[derive(Debug, Subcommand)]
pub enum ForwardCommand {
    /// Add a forward to the policy in force
    Add(Box<Add>),
    /// Remove forwards from the policy in force
    Remove(Remove),
    /// List the forwards of an interface, with what they have counted
    List(List),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TransportArg {
    Tcp,
    Udp,
    Both,
}

#[derive(Debug, Args)]
pub struct Add {
    /// The managed interface where clients connect
    #[arg(add = ArgValueCompleter::new(completion::managed))]
    pub interface: String,
    /// The forward's name
    pub name: String,
    /// The protocol
    #[arg(long, value_name = "PROTOCOL", default_value = "tcp")]
    pub protocol: TransportArg,
    /// The port that clients use, or a range of ports such as 8000-8099
    #[arg(long, value_name = "PORT")]
    pub port: String,
    /// Where connections go, such as 10.0.0.5, 10.0.0.5:8443 or [2001:db8::5]:8443; several share them
    #[arg(long = "to", value_name = "TARGET", required = true)]
    pub targets: Vec<String>,
    /// The address that clients use; without it, every address of the interface
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// Have targets see an address of this host instead of the client's
    #[arg(long)]
    pub masquerade: bool,
    /// Take a port that a socket of this host has, or packets to an address that is not this host's
    #[arg(long)]
    pub force: bool,
    /// The class of the forward's packets, by its number; without it, the rules choose
    #[arg(long, value_name = "ID")]
    pub class: Option<u8>,
    #[command(flatten)]
    pub change: Change,
}

#[derive(Debug, Args)]
pub struct Remove {
    /// The managed interface
    #[arg(add = ArgValueCompleter::new(completion::managed))]
    pub interface: String,
    /// The names of the forwards
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
    #[command(flatten)]
    pub change: Change,
}

#[derive(Debug, Args)]
pub struct List {
    /// The managed interface
    #[arg(add = ArgValueCompleter::new(completion::managed))]
    pub interface: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
