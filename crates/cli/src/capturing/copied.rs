//! A capture by copy: packets go on as they would without it.

use super::Source;
use crate::failure::Failure;
use crate::observation;
use crate::pcapng::{Comment, Packet};
use sluice_abi as abi;
use sluice_kernel::telemetry::{Observer, Request, Totals};
use std::collections::HashMap;
use std::time::Duration;

/// Packets of interfaces, copied by programs into a ring for each processor.
pub struct Copied {
    observer: Observer,
    interfaces: usize,
    comments: Comments,
}

impl Copied {
    pub fn start(interfaces: &[String], request: &Request) -> Result<Copied, Failure> {
        let observer = observation::begin(interfaces, request)?;
        Ok(Copied { observer, interfaces: interfaces.len(), comments: Comments::default() })
    }
}

impl Source for Copied {
    fn poll(
        &mut self,
        limit: Duration,
        unix_less_monotonic_ns: i64,
        take: &mut dyn FnMut(&Packet<'_>, &[Totals]),
    ) -> Result<usize, Failure> {
        let records = self.observer.collect(limit)?;
        let totals: Vec<Totals> = (0..self.interfaces).map(|interface| self.observer.totals(interface)).collect();
        let (observer, comments) = (&self.observer, &mut self.comments);
        observer.collected(&mut |interface, record| {
            let (head, bytes) = record.split_at(record.len().min(size_of::<abi::sl_captured>()));
            let Some(head) = abi::read_small::<abi::sl_captured>(head) else { return };
            let tag = (head.has_vlan != 0 && observer.is_ethernet(interface)).then(|| {
                let tci = head.vlan_tci.to_be_bytes();
                [0x81, 0x00, tci[0], tci[1]]
            });
            let packet = Packet {
                interface,
                at_ns: head.at_ns.saturating_add_signed(unix_less_monotonic_ns),
                length: head.length + if tag.is_some() { 4 } else { 0 },
                bytes: &bytes[..bytes.len().min(head.captured as usize)],
                tag,
                comment: comments.of(observer, interface, &head),
            };
            take(&packet, &totals);
        });
        Ok(records)
    }

    fn stop(&mut self) {
        self.observer.stop();
    }

    fn totals(&self) -> Result<Vec<Totals>, Failure> {
        Ok((0..self.interfaces).map(|interface| self.observer.totals(interface)).collect())
    }

    fn gone(&self) -> Option<String> {
        self.observer.gone()
    }

    fn losses(&self, totals: &Totals, surplus: u64) -> Result<String, Failure> {
        observation::tell_gap(&self.observer);
        let surplus = if surplus > 0 { format!("; {surplus} are not written") } else { String::new() };
        Ok(format!(
            "{} found no room in the ring; {} are cut to --snap{surplus}",
            totals.missed_pkts, totals.truncated_pkts
        ))
    }
}

/// The parts of a packet's comment.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Subject {
    interface: usize,
    policy: u64,
    direction: u8,
    class: u8,
    rule: u16,
    verdict: u8,
    weight: u32,
}

/// Comments of packets: a capture has few of them, and mostly the last one again.
#[derive(Default)]
struct Comments {
    numbers: HashMap<Subject, usize>,
    comments: Vec<Comment>,
    last: Option<(Subject, usize)>,
}

impl Comments {
    fn of(&mut self, observer: &Observer, interface: usize, head: &abi::sl_captured) -> &Comment {
        let &abi::sl_captured { direction, class, rule, verdict, weight, .. } = head;
        let policy = observer.policy(interface);
        let subject = Subject { interface, policy, direction, class, rule, verdict, weight };
        let number = match self.last {
            Some((last, number)) if last == subject => number,
            _ => *self.numbers.entry(subject).or_insert_with(|| {
                self.comments.push(Comment::new(&text(observer, interface, head)));
                self.comments.len() - 1
            }),
        };
        self.last = Some((subject, number));
        &self.comments[number]
    }
}

fn text(observer: &Observer, interface: usize, head: &abi::sl_captured) -> String {
    let direction = if u32::from(head.direction) == abi::SL_EGRESS { "departing" } else { "arriving" };
    let name = observer.class_names(interface).get(usize::from(head.class)).filter(|name| !name.is_empty());
    let class = match (head.class, name) {
        (0xff, _) => "no class".to_owned(),
        (number, Some(name)) => format!("class {number} {name}"),
        (number, None) => format!("class {number}"),
    };
    let rule = match observer.rules(interface).get(usize::from(head.rule)) {
        Some(rule) => format!("rule {rule}"),
        None if observer.rules(interface).is_empty() => "no policy".to_owned(),
        None => "no rule of the policy".to_owned(),
    };
    format!("{direction} | {class} | {rule} | {}{}", abi::verdict_name(head.verdict), super::weight(head.weight))
}
