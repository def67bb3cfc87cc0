//! Options of the commands that maintain managed interfaces.

use clap::Args;

#[derive(Debug, Args)]
pub struct Ensure {
    /// Managed interfaces; without any, all of this network namespace, and then only repairs are reported
    pub interfaces: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Upgrade {
    /// The interface, or several
    #[arg(required = true, value_name = "INTERFACE")]
    pub interfaces: Vec<String>,
}
