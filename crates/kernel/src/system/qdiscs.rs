//! The qdiscs that an interface has, and whether they are the kernel's defaults.

use crate::system::interface::Interface;
use crate::system::{iproute, netlink};
use sluice_error::Result;

const TC_H_ROOT: u32 = u32::MAX;

/// A qdisc, in the words of `tc`.
#[derive(Debug, Clone)]
pub struct Qdisc {
    /// Kind of the qdisc: fq_codel, htb, mq ...
    pub kind: String,
    /// Handle, such as `8001:`; `0:` for one that the kernel chose by default.
    pub handle: String,
    /// Whether the qdisc is the root.
    pub root: bool,
    /// Class that the qdisc serves, such as `5100:1`; empty for a root.
    pub parent: String,
}

impl From<netlink::Qdisc> for Qdisc {
    fn from(qdisc: netlink::Qdisc) -> Qdisc {
        let root = qdisc.parent == TC_H_ROOT;
        let parent = if root { String::new() } else { number(qdisc.parent) };
        Qdisc { kind: qdisc.kind, handle: number(qdisc.handle & 0xffff_0000), root, parent }
    }
}

/// The number of a qdisc or class as `tc` writes it.
fn number(number: u32) -> String {
    match (number >> 16, number & 0xffff) {
        (major, 0) => format!("{major:x}:"),
        (0, minor) => format!(":{minor:x}"),
        (major, minor) => format!("{major:x}:{minor:x}"),
    }
}

/// All of an interface's qdiscs, those of its hooks too.
pub fn list(interface: &str) -> Result<Vec<Qdisc>> {
    let Ok(ifindex) = nix::net::if_::if_nametoindex(interface) else {
        return Err(crate::system::interface::no_such(interface));
    };
    Ok(netlink::qdiscs()?.into_iter().filter(|qdisc| qdisc.ifindex == ifindex).map(Qdisc::from).collect())
}

/// The interfaces whose root is mq, and how many queues each has.
pub fn below_mq() -> Result<Vec<(String, u32)>> {
    let all = netlink::qdiscs()?;
    let roots = all.iter().filter(|one| one.parent == TC_H_ROOT && one.kind == "mq");
    let queues = |ifindex| all.iter().filter(|one| one.ifindex == ifindex && one.parent != TC_H_ROOT).count() as u32;
    Ok(roots.filter_map(|root| Some((Interface::name_of(root.ifindex)?, queues(root.ifindex)))).collect())
}

/// The root qdisc of an interface, if there is one.
pub fn root(interface: &str) -> Result<Option<Qdisc>> {
    Ok(list(interface)?.into_iter().find(|qdisc| qdisc.root))
}

/// The kind of the root qdisc of an interface, without a list of all, which is long where each subscriber has one.
pub fn root_kind(ifindex: u32) -> Result<Option<String>> {
    Ok(netlink::link(ifindex)?.map(|link| link.root_qdisc))
}

impl Qdisc {
    /// Whether the kernel has put the qdisc there by itself: the kernel brings it back when its replacement is removed.
    pub fn is_default(&self) -> bool {
        self.handle == "0:"
    }
}

/// Whether the interface has the hook qdisc that filters on arrival and departure attach to.
pub fn has_clsact(interface: &str) -> Result<bool> {
    Ok(list(interface)?.iter().any(|qdisc| qdisc.kind == "clsact"))
}

/// A dump that a person can rebuild a hierarchy from.
pub fn dump(interface: &str) -> Result<String> {
    let mut text = String::new();
    for what in ["qdisc show", "class show", "filter show"] {
        text += &format!("# tc {what} dev {interface}\n");
        text += &iproute::tc(&format!("{what} dev {interface}"))?;
    }
    // `filter show` asks the root alone; other qdiscs and classes have filters of their own.
    let holders = text.lines().filter_map(|line| line.strip_prefix("qdisc ").or(line.strip_prefix("class ")));
    let handles: Vec<String> = holders.filter_map(|line| line.split_whitespace().nth(1).map(str::to_owned)).collect();
    for handle in handles.iter().filter(|handle| *handle != "0:") {
        let filters = iproute::tc(&format!("filter show dev {interface} parent {handle}"))?;
        if !filters.trim().is_empty() {
            text += &format!("# tc filter show dev {interface} parent {handle}\n{filters}");
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_tc_writes_them() {
        for (given, written) in
            [(0, "0:"), (0x8001_0000, "8001:"), (0x5100_0001, "5100:1"), (2, ":2"), (0xffff_fff1, "ffff:fff1")]
        {
            assert_eq!(number(given), written);
        }
    }
}
