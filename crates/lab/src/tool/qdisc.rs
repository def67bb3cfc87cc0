//! The queues of a device, from `tc -s -j qdisc show`.

use serde::Deserialize;

use sluice_error::{Error, Result};
use sluice_testbed::Namespace;

/// A queue at one moment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Queue {
    /// The discipline's name.
    pub kind: String,
    /// The device.
    #[serde(rename = "dev", default)]
    pub device: String,
    /// Whether the queue is the device's root.
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
    all(host, &["dev", device])?
        .into_iter()
        .find(|queue| queue.root)
        .ok_or_else(|| Error::system(format!("device {device} in namespace {} has no root qdisc", host.name())))
}

/// The root queues of all devices.
pub fn roots(host: &Namespace) -> Result<Vec<Queue>> {
    let mut all = all(host, &[])?;
    all.retain(|queue| queue.root);
    Ok(all)
}

fn all(host: &Namespace, of: &[&str]) -> Result<Vec<Queue>> {
    let show = |options: &[&str]| host.tc(&[options, &["qdisc", "show"], of].concat());
    match parse(&show(&["-s", "-j"])?) {
        Ok(queues) => Ok(queues),
        // iproute2 6.1 writes invalid JSON once there is an hfsc.
        Err(_) => Ok(parse_text(&show(&["-s"])?, of.get(1).copied().unwrap_or_default())),
    }
}

/// Parses the text of `tc -s qdisc show`, which omits the device's name if it was asked for one device.
fn parse_text(text: &str, device: &str) -> Vec<Queue> {
    let mut queues: Vec<Queue> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split([' ', ',', '(', ')']).filter(|word| !word.is_empty()).collect();
        let after = |name: &str| words.iter().skip_while(|word| **word != name).nth(1).copied();
        if let Some(kind) = line.strip_prefix("qdisc ").and_then(|rest| rest.split_whitespace().next()) {
            queues.push(Queue {
                kind: kind.to_owned(),
                device: after("dev").unwrap_or(device).to_owned(),
                root: words.contains(&"root"),
                backlog_bytes: 0,
                dropped_packets: 0,
            });
        }
        let Some(queue) = queues.last_mut() else { continue };
        if line.starts_with(" Sent") {
            queue.dropped_packets = after("dropped").and_then(|drops| drops.parse().ok()).unwrap_or(0);
        } else if line.starts_with(" backlog") {
            queue.backlog_bytes = after("backlog").and_then(size).unwrap_or(0);
        }
    }
    queues
}

/// A size such as "15140b", "12Kb" or "3Mb", in bytes.
fn size(text: &str) -> Option<u64> {
    let number = text.strip_suffix('b')?;
    let scaled = |suffix, unit: u64| number.strip_suffix(suffix).and_then(|n| n.parse::<u64>().ok()).map(|n| n * unit);
    scaled('K', 1 << 10).or_else(|| scaled('M', 1 << 20)).or_else(|| number.parse().ok())
}

fn parse(json: &str) -> Result<Vec<Queue>> {
    serde_json::from_str(json).map_err(|e| Error::system(format!("cannot read the output of tc: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_output_is_parsed() {
        let text = "qdisc hfsc 1: root refcnt 5 default 0x30 \n Sent 24567 bytes 42 pkt (dropped 3, overlimits 11 requeues 0) \n backlog 15140b 10p requeues 0\nqdisc fq_codel 2: parent 1:10 limit 10240p\n Sent 0 bytes 0 pkt (dropped 1, overlimits 0 requeues 0) \n backlog 12Kb 8p requeues 0\n";
        let queue = |kind: &str, root, backlog_bytes, dropped_packets| Queue {
            kind: kind.to_owned(),
            device: "to-home".to_owned(),
            root,
            backlog_bytes,
            dropped_packets,
        };
        assert_eq!(parse_text(text, "to-home"), [queue("hfsc", true, 15_140, 3), queue("fq_codel", false, 12_288, 1)]);
        assert_eq!(parse_text("qdisc noqueue 0: dev lo root refcnt 2 \n", "")[0].device, "lo");
    }

    #[test]
    fn recorded_output_is_parsed() {
        let json = r#"[{"kind":"tbf","handle":"8001:","root":true,"refcnt":5,"options":{"rate":2500000,"burst":2000,"lat":248000},"bytes":24567,"packets":42,"drops":3,"overlimits":11,"requeues":0,"backlog":15140,"qlen":10}]"#;
        let queues = parse(json).unwrap();
        assert_eq!(
            queues,
            [Queue { kind: "tbf".into(), device: String::new(), root: true, backlog_bytes: 15140, dropped_packets: 3 }]
        );
    }
}
