//! The counters and limits of the queues of classes below HTB.

use super::{ClassStatus, Count, add_drops};
use crate::engine::leaves::{self, Leaf};

pub(super) fn add(classes: &mut [ClassStatus], leaves: &[Leaf]) {
    for class in classes {
        let Some(leaf) = leaves::of_class(leaves, class.id) else { continue };
        describe(class, leaf);
        class.sent.add(Count { pkts: leaf.packets, bytes: leaf.bytes });
        class.backlog.add(Count { pkts: leaf.qlen, bytes: leaf.backlog });
        class.dropped.add_pkts(leaf.drops);
        class.marked.pkts += leaf.ecn_mark;
        add_drops(class, "queue", leaf.drops);
    }
}

/// Shows the queue that is there, which need not be the policy's: a kernel without fq_codel has a FIFO instead.
fn describe(class: &mut ClassStatus, leaf: &Leaf) {
    let option = |name: &str| leaf.options[name].as_u64();
    let limit_pkts = || option("limit").and_then(|limit| u32::try_from(limit).ok());
    let target_us = || leaf.options["target"].as_f64();
    (class.limit_pkts, class.limit_bytes, class.target_us) = match leaf.kind.as_str() {
        "bfifo" => (None, option("limit"), None),
        "codel" => (limit_pkts(), None, target_us()),
        // The memory limit counts the kernel's structures beside the packets: the policy's limit is nearer to the packets.
        "fq_codel" => (limit_pkts(), class.limit_bytes, target_us()),
        _ => (limit_pkts(), None, None),
    };
    class.queue = Some(leaf.kind.clone());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::htb;

    #[test]
    fn the_queue_that_is_there_is_shown() {
        let shown = |kind: &str, options: serde_json::Value| {
            let leaf = serde_json::json!({ "kind": kind, "handle": "1:", "parent": htb::parent_of(0), "options": options,
                "bytes": 0, "packets": 0, "drops": 0 });
            let leaf: Leaf = serde_json::from_value(leaf).expect("a leaf");
            // A class that queues by flow, as a policy has it.
            let mut class = [ClassStatus {
                limit_pkts: Some(16_384),
                limit_bytes: Some(9000),
                target_us: Some(5000.0),
                ..ClassStatus::default()
            }];
            add(&mut class, &[leaf]);
            let [class] = class;
            (class.queue, class.limit_pkts, class.limit_bytes, class.target_us)
        };
        let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(shown("pfifo", json(r#"{"limit":157}"#)), (Some("pfifo".to_owned()), Some(157), None, None));
        assert_eq!(shown("bfifo", json(r#"{"limit":65536}"#)), (Some("bfifo".to_owned()), None, Some(65_536), None));
        let fq_codel = json(r#"{"limit":1000,"memory_limit":33554432,"target":4999,"interval":99999}"#);
        assert_eq!(shown("fq_codel", fq_codel), (Some("fq_codel".to_owned()), Some(1000), Some(9000), Some(4999.0)));
    }
}
