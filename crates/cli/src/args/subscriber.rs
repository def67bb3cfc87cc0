//! The options of `sluice subscriber`.

use super::{Change, completion};
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sluice subscriber list --search elm
  sluice subscriber show C-1042
  sluice subscriber set C-1042 --plan gold
  sluice subscriber set C-1042 --ceil 200mbit/40mbit --confirm 60s
  sluice subscriber add C-2001 --addresses 192.0.2.7,2001:db8:7::/56 --plan home --site north
  sluice subscriber move C-1042 south
  sluice subscriber remove C-1042

Subscribers are a part of the policy: these commands edit it and put it into force as `apply` does, on every managed interface whose policy has
subscribers, or on none. Only the subscriber that changes is touched; its queue stays.")]
pub struct Subscriber {
    #[command(subcommand)]
    pub command: SubscriberCommand,
}

#[derive(Debug, Subcommand)]
pub enum SubscriberCommand {
    /// List subscribers with what they have sent, dropped and queued
    List(List),
    /// Show one subscriber: addresses, rates, counters
    Show(Show),
    /// Change the plan, the rates, the site or the addresses of a subscriber
    Set(Set),
    /// Add a subscriber
    Add(Set),
    /// Move a subscriber to another site
    Move(Move),
    /// Remove a subscriber
    Remove(Remove),
}

#[derive(Debug, Args)]
pub struct List {
    /// Only this managed interface
    #[arg(long, value_name = "INTERFACE", add = ArgValueCompleter::new(completion::managed))]
    pub interface: Option<String>,
    /// Only subscribers whose key, name, site, plan or address has this text
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// The order: name, sent, dropped, queued, wait
    #[arg(long, value_name = "BY", default_value = "name")]
    pub sort: Order,
    /// At most so many of each interface
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    Name,
    Sent,
    Dropped,
    Queued,
    Wait,
}

#[derive(Debug, Args)]
pub struct Show {
    /// The subscriber's key
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Set {
    /// The subscriber's key
    pub name: String,
    /// Its plan; an empty text: none
    #[arg(long, value_name = "PLAN")]
    pub plan: Option<String>,
    /// Its site; an empty text: right below the link
    #[arg(long, value_name = "SITE")]
    pub site: Option<String>,
    /// Its guarantee instead of its plan's, for both directions or as DOWN/UP; an empty text: its plan's
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Its ceiling instead of its plan's, for both directions or as DOWN/UP; an empty text: its plan's
    #[arg(long, value_name = "RATE")]
    pub ceil: Option<String>,
    /// Its addresses and prefixes, between commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub addresses: Option<Vec<String>>,
    #[command(flatten)]
    pub options: EditOptions,
}

#[derive(Debug, Args)]
pub struct Move {
    /// The subscriber's key
    pub name: String,
    /// The site; an empty text: right below the link
    pub site: String,
    #[command(flatten)]
    pub options: EditOptions,
}

#[derive(Debug, Args)]
pub struct Remove {
    /// The subscriber's key
    pub name: String,
    #[command(flatten)]
    pub options: EditOptions,
}

/// Options of all changes of subscribers.
#[derive(Debug, Args)]
pub struct EditOptions {
    /// Change the policy of this interface alone, instead of all that have subscribers; may be repeated
    #[arg(long = "interface", value_name = "INTERFACE", add = ArgValueCompleter::new(completion::managed))]
    pub interfaces: Vec<String>,
    /// Keep the policy for the next boot: the unit sluice@INTERFACE brings it up instead of the configured one
    #[arg(long, conflicts_with_all = ["confirm", "dry_run"])]
    pub at_boot: bool,
    #[command(flatten)]
    pub change: Change,
}
