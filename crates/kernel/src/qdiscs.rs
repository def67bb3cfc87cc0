//! The qdiscs that an interface has, and whether they are the kernel's defaults.

use crate::error::Result;
use crate::iproute;
use serde::Deserialize;

/// A qdisc as `tc -j` shows it.
#[derive(Debug, Clone, Deserialize)]
pub struct Qdisc {
    /// fq_codel, htb, mq ...
    pub kind: String,
    /// `8001:`; `0:` for one that the kernel chose by default.
    pub handle: String,
    /// Whether it is the root.
    #[serde(default)]
    pub root: bool,
    /// `5100:1`, the class that it serves.
    #[serde(default)]
    pub parent: String,
}

/// All of an interface's qdiscs, those of its hooks too.
pub fn list(interface: &str) -> Result<Vec<Qdisc>> {
    iproute::json("tc", &format!("-j qdisc show dev {interface}"))
}

/// The interfaces whose root is mq, and how many queues each has.
pub fn below_mq() -> Result<Vec<(String, u32)>> {
    #[derive(Deserialize)]
    struct Shown {
        dev: String,
        #[serde(flatten)]
        qdisc: Qdisc,
    }
    let all: Vec<Shown> = iproute::json("tc", "-j qdisc show")?;
    let roots = all.iter().filter(|one| one.qdisc.root && one.qdisc.kind == "mq");
    let queues = |dev: &str| all.iter().filter(|one| one.dev == dev && one.qdisc.parent.contains(':')).count();
    Ok(roots.map(|root| (root.dev.clone(), queues(&root.dev) as u32)).collect())
}

/// The root, if there is one.
pub fn root(interface: &str) -> Result<Option<Qdisc>> {
    Ok(list(interface)?.into_iter().find(|qdisc| qdisc.root))
}

impl Qdisc {
    /// Whether the kernel put it there by itself: then removing what replaces it brings it back.
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
