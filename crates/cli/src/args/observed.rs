//! The options that say which packets a command observes: of `sluice count`, `features` and `capture`.

use super::HookArg;
use crate::completion;
use crate::failure::Failure;
use crate::filter;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use sluice_kernel::telemetry::{Direction, Request};

#[derive(Debug, Args)]
pub struct Observed {
    /// Interfaces, with or without a policy
    #[arg(value_name = "INTERFACE", required = true, add = ArgValueCompleter::new(completion::interfaces))]
    pub interfaces: Vec<String>,
    /// Observe departing packets instead of arriving ones; from Linux 6.6
    #[arg(long, conflicts_with = "both")]
    pub departing: bool,
    /// Observe packets of both directions; from Linux 6.6
    #[arg(long)]
    pub both: bool,
    /// The hook of arriving packets, on an interface without a policy
    #[arg(long, value_name = "HOOK", default_value = "auto")]
    pub hook: HookArg,
    /// Observe only these packets: a protocol, and any of src ADDRESS, dst ADDRESS, sport PORT, dport PORT
    #[arg(long, value_name = "FILTER")]
    pub only: Option<String>,
}

impl Observed {
    /// A request for these packets.
    pub fn request(&self) -> Result<Request, Failure> {
        let direction = match (self.departing, self.both) {
            (true, _) => Direction::Departing,
            (_, true) => Direction::Both,
            _ => Direction::Arriving,
        };
        let only = self.only.as_deref().map(filter::parse).transpose()?;
        let filter = only.as_ref().map(Into::into).unwrap_or_default();
        Ok(Request { direction, hook: self.hook.hook(), filter, ..Request::default() })
    }
}
