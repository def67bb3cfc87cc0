//! Veths between namespaces.

use crate::namespace::{Namespace, ip_batch};
use sluice_error::Result;

/// An end of a veth pair.
pub struct End<'a> {
    /// Namespace of the end.
    pub namespace: &'a Namespace,
    /// Name of the device.
    pub device: String,
    /// More options of `ip link add`, such as `address 02:00:00:00:00:01 numtxqueues 4`.
    pub options: String,
}

/// Join namespaces by veth pairs, all by one command.
pub fn connect(pairs: &[[End<'_>; 2]]) -> Result<()> {
    let commands: Vec<String> = pairs.iter().map(command).collect();
    ip_batch(None, &commands).map_err(|e| e.help("links are veth pairs (CONFIG_VETH, module veth)"))
}

fn command([a, b]: &[End<'_>; 2]) -> String {
    let end = |end: &End<'_>| format!("{} netns {} {}", end.device, end.namespace.name(), end.options);
    format!("link add {} type veth peer name {}", end(a), end(b))
}
