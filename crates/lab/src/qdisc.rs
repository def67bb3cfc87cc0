//! What `tc -s -j qdisc show` says of a device's queues.

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::netns::Namespace;

/// A queue at one moment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Queue {
    /// The discipline's name.
    pub kind: String,
    /// The device.
    #[serde(rename = "dev", default)]
    pub device: String,
    /// Whether it is the device's root.
    #[serde(default)]
    pub root: bool,
    /// Bytes waiting.
    #[serde(rename = "backlog", default)]
    pub backlog_bytes: u64,
    /// Packets dropped so far.
    #[serde(rename = "drops", default)]
    pub dropped_packets: u64,
}

/// The root queue of a device.
pub fn root(host: &Namespace, device: &str) -> Result<Queue> {
    parse(&host.tc(&["-s", "-j", "qdisc", "show", "dev", device])?)?
        .into_iter()
        .find(|queue| queue.root)
        .ok_or_else(|| Error::system(format!("device {device} in namespace {} has no root qdisc", host.name())))
}

/// The root queues of all devices.
pub fn roots(host: &Namespace) -> Result<Vec<Queue>> {
    let mut all = parse(&host.tc(&["-s", "-j", "qdisc", "show"])?)?;
    all.retain(|queue| queue.root);
    Ok(all)
}

fn parse(json: &str) -> Result<Vec<Queue>> {
    serde_json::from_str(json).map_err(|e| Error::system(format!("cannot read what tc wrote: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_answer_is_read() {
        let json = r#"[{"kind":"tbf","handle":"8001:","root":true,"refcnt":5,"options":{"rate":2500000,"burst":2000,"lat":248000},"bytes":24567,"packets":42,"drops":3,"overlimits":11,"requeues":0,"backlog":15140,"qlen":10}]"#;
        let queues = parse(json).unwrap();
        assert_eq!(
            queues,
            [Queue { kind: "tbf".into(), device: String::new(), root: true, backlog_bytes: 15140, dropped_packets: 3 }]
        );
    }
}
