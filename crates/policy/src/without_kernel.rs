//! Whether an engine that takes packets without the kernel (`sluice-dpdk`) can run a policy.

use crate::diagnostic::{Diagnostic, Diagnostics, Kind};
use crate::link::LinkQueues;
use crate::policy::{ClassFrom, Mode, Policy};

/// A key that such an engine does not have: its place, what is missing, and a change of the policy after which it runs.
struct Lack {
    key: String,
    what: &'static str,
    cure: &'static str,
}

impl Policy {
    /// The errors of keys that an engine without the kernel does not have: all of them. None: it can run the policy.
    pub fn not_without_kernel(&self) -> Option<Diagnostics> {
        let lacks = self.lacks_without_kernel();
        if lacks.is_empty() {
            return None;
        }
        let finding = |lack: Lack| {
            let finding = Diagnostic::error(Kind::Engine, format!("sluice-dpdk has no {}", lack.what));
            finding.at(self.origin.span(&lack.key), "asked for here").help(lack.cure)
        };
        Some(Diagnostics::new(self.origin.source().cloned(), lacks.into_iter().map(finding).collect()))
    }

    fn lacks_without_kernel(&self) -> Vec<Lack> {
        let mut lacks = Vec::new();
        let mut lack = |key: String, what, cure| lacks.push(Lack { key, what, cure });
        if let Some(network) = &self.network {
            match network.class_tree {
                Some(_) => lack("/classes".into(), "class trees", "write the classes without \"parent\""),
                None => lack("/subscribers".into(), "subscribers", "use `sluice wire`, or a policy with flat classes"),
            }
        }
        let cure = "remove it: every packet that arrives at a port is queued for the other one";
        match self.mode {
            Mode::Full | Mode::ScheduleOnly { by: ClassFrom::Dscp } => {}
            Mode::ClassifyOnly => lack("/mode".into(), "mode classify_only", cure),
            Mode::ScheduleOnly { by: ClassFrom::Mark } => {
                lack("/class_from".into(), "firewall marks", "write `\"class_from\": \"dscp\"`, or rules");
            }
        }
        if !self.arrivals_of.is_empty() {
            lack("/arrivals_of".into(), "groups of interfaces", cure);
        }
        if self.link.ingress_rate.is_some() {
            lack("/link/ingress_rate".into(), "rate of arrivals", "remove it, and give --rate A/B for both ways");
        }
        if self.link.queues == LinkQueues::All {
            lack("/link/queues".into(), "several instances of a scheduler", "remove it");
        }
        let limits = [("egress", self.limits.egress.is_some()), ("ingress", self.limits.ingress.is_some())];
        if limits.iter().any(|(_, limited)| *limited) {
            lack("/limits".into(), "buckets before the queues", "remove it, and give --rate");
        }
        if !self.forwards.is_empty() {
            lack("/forwards".into(), "port forwarding", "remove it, or use `sluice up`");
        }
        for (place, class) in self.classes.iter().enumerate().filter(|_| self.network.is_none()) {
            let keys = [("flow_ceil", class.flow_ceil.is_some()), ("shared_ceil", class.shared_ceil.is_some())];
            for (key, _) in keys.iter().filter(|(_, asked)| *asked) {
                let cure = "remove it, or give the class a \"ceil\"";
                lack(format!("/classes/{place}/{key}"), "buckets before the queues", cure);
            }
        }
        for (place, rule) in self.rules.iter().enumerate() {
            if rule.mark.is_some() {
                let cure = "remove it: packets have no marks outside of the kernel";
                lack(format!("/rules/{place}/mark"), "firewall marks", cure);
            }
            if rule.in_interface.is_some() {
                let cure = "remove it: a packet arrives at one of the two ports";
                lack(format!("/rules/{place}/in_interface"), "interfaces", cure);
            }
        }
        lacks
    }
}

#[cfg(test)]
mod tests {
    use crate::{Source, parse};

    fn refusal(text: &str) -> Option<String> {
        let policy = parse(&Source::new("p.json", text)).unwrap_or_else(|errors| panic!("{errors}"));
        policy.not_without_kernel().map(|found| found.to_string())
    }

    #[test]
    fn flat_classes_with_rules_run() {
        let text = r#"{ "scheduler": "strict_priority", "link": { "rate": "10mbit" }, "default_class": 1,
            "classes": [{ "id": 0, "priority": 0, "ceil": "1mbit", "police": true }, { "id": 1, "priority": 1 }],
            "rules": [{ "priority": 1, "protocol": "udp", "dst_port": 53, "vlan_id": 5, "class_id": 0 }] }"#;
        assert_eq!(refusal(text), None);
    }

    #[test]
    fn every_key_that_is_missing_is_named_with_its_line() {
        let class = r#""classes": [{ "id": 0, "priority": 0"#;
        let full = r#"{ "scheduler": "strict_priority",
"#;
        let cases = [
            (format!("{full}\"mode\": \"classify_only\", {class} }}] }}"), "classify_only"),
            (
                format!("{full}\"mode\": \"schedule_only\", \"class_from\": \"mark\", {class}, \"mark\": [5] }}] }}"),
                "marks",
            ),
            (format!("{full}\"arrivals_of\": [\"eth0\"], {class} }}] }}"), "groups"),
            (format!("{full}\"link\": {{ \"ingress_rate\": \"5mbit\" }}, {class} }}] }}"), "arrivals"),
            (format!("{full}\"link\": {{ \"rate\": \"5mbit\", \"queues\": \"all\" }}, {class} }}] }}"), "several"),
            (format!("{full}\"limits\": {{ \"egress\": \"5mbit\" }}, {class} }}] }}"), "buckets"),
            (format!("{full}{class}, \"flow_ceil\": \"1mbit\" }}] }}"), "buckets"),
            (
                format!("{full}\"rules\": [{{ \"priority\": 1, \"mark\": 5, \"class_id\": 0 }}], {class} }}] }}"),
                "firewall marks",
            ),
            (
                format!(
                    "{full}\"rules\": [{{ \"priority\": 1, \"in_interface\": \"eth0\", \"class_id\": 0 }}], {class} }}] }}"
                ),
                "interfaces",
            ),
        ];
        for (text, word) in cases {
            let told = refusal(&text).unwrap_or_else(|| panic!("taken: {text}"));
            assert!(told.contains(word) && told.contains("p.json:2:") && told.contains("help"), "{text}\n{told}");
        }
    }
}
