//! `sluice explain`: the class, queue and verdict of a packet, with their reasons.

mod without_root;

use crate::args::Explain;
use crate::failure::Failure;
use crate::{capture, packet, terminal};
use sluice_kernel::explain::{self, Explanation, Fields, ForwardFound, NodeFound, RuleFound};
use sluice_kernel::probe::Metadata;
use sluice_kernel::{Record, require_root};
use sluice_policy::names;
use sluice_policy::network::{Address, Way};
use std::fmt::Write;

/// `enum sl_direction`.
const EGRESS: u32 = 0;
const INGRESS: u32 = 1;

pub fn run(args: &Explain) -> Result<(), Failure> {
    let metadata = Metadata { direction: if args.arriving { INGRESS } else { EGRESS }, ..Metadata::default() };
    let asked = match &args.pcap {
        Some(path) => {
            let capture::Frames { frames, notes } = capture::frames(path, args.count)?;
            notes.iter().for_each(|note| eprintln!("warning: {note}"));
            if frames.is_empty() {
                let what = format!("{} holds no packets", path.display());
                return Err(Failure::input(&what, "capture some: tcpdump -i IFACE -c 10 -w FILE"));
            }
            frames.into_iter().map(|frame| (frame, metadata)).collect()
        }
        None => vec![packet::frame(&args.packet, metadata)?],
    };
    // Records need root; a policy file does not.
    let is_root = require_root().is_ok();
    let managed = is_root && Record::find(&args.target)?.is_some();
    let policy = if managed {
        None
    } else {
        // A name that looks like neither a file nor a profile may be an unmanaged interface.
        if !args.target.contains(['/', '.']) && !sluice_policy::profiles().contains(&args.target) {
            if nix::net::if_::if_nametoindex(args.target.as_str()).is_ok() {
                require_root()?;
            }
            explain::refuse_unmanaged(&args.target)?;
        }
        let (_, file) = sluice_policy::load(&args.target)?;
        let policy = match &args.interface {
            Some(interface) => file.of(interface),
            None => file.one(),
        };
        let policy = policy.map_err(|found| Failure::policy(&found))?;
        let context = sluice_policy::Context::default();
        Some(sluice_policy::resolve(&policy, &context).map_err(|found| Failure::policy(&found))?)
    };
    let answers = match &policy {
        None => {
            let mut answers = explain::by_interface(&args.target, &asked)?;
            explain::find_ways(&args.target, &mut answers)?;
            answers
        }
        Some(policy) if is_root => explain::by_policy(policy, &asked)?,
        Some(policy) => {
            explain::by_answers(policy, &asked, |frame, metadata| Ok(without_root::explained(policy, frame, metadata)))?
        }
    };
    if args.json {
        let text = serde_json::to_string_pretty(&answers).map_err(|error| Failure::system(error.to_string()))?;
        outln!("{text}");
        return Ok(());
    }
    let texts: Vec<String> = answers.iter().map(text).collect();
    out!("{}", texts.join("\n"));
    Ok(())
}

fn text(explanation: &Explanation) -> String {
    let mut text = String::new();
    let mut line = |what: &str, value: String| {
        let _ = writeln!(text, "{what:<9} {value}");
    };
    line("packet", packet_line(explanation));
    line("rule", rule_line(explanation));
    let falls_back = explanation.subscriber.as_ref().is_some_and(|own| own.falls_back);
    let aside = if falls_back { ", which its subscriber does not have" } else { "" };
    let has_none = explanation.subscriber.as_ref().is_some_and(|own| own.is_class && own.id.is_none());
    if !has_none {
        line("class", format!("{} {}{aside}", explanation.class.id, explanation.class.name));
    }
    if let Some(subscriber) = &explanation.subscriber {
        let (way, end) = if subscriber.way == Way::Down { ("down", "destination") } else { ("up", "source") };
        let plan = subscriber.plan.as_ref().map_or(String::new(), |plan| format!(", plan {plan}"));
        let who = match &subscriber.id {
            Some(_) if subscriber.is_class => None,
            None if subscriber.is_class => {
                Some("unclassified, as ARP, neighbour discovery, DHCP and packets with broken headers are".to_owned())
            }
            Some(id) => {
                let class = subscriber.class.as_ref().map_or(String::new(), |class| format!(", class {class}"));
                let by = match subscriber.by {
                    Some(Address::Vlan(vlan)) => format!("VLAN {vlan}"),
                    Some(Address::Mark(mark)) => format!("mark {mark}"),
                    Some(Address::Prefix(_)) | None => end.to_owned(),
                };
                Some(format!("{id}{plan}{class}; {way}, by its {by}"))
            }
            None => Some(format!("none has its {end}: it shares the link beside the sites, with a weight of 1")),
        };
        let what = if subscriber.is_class { "class" } else { "owner" };
        who.into_iter().for_each(|who| line(what, who));
        subscriber.path.iter().for_each(|node| line("passes", node_line(node)));
    }
    if let Some(forward) = &explanation.forward {
        line("forward", forward_line(forward, explanation));
    }
    if let Some(flow) = &explanation.flow {
        let from = if flow.remembered { "; its class comes from there" } else { "; the rules were asked all the same" };
        line("flow", format!("known: {} packets, {} so far{from}", flow.pkts, terminal::bytes(flow.bytes)));
    }
    for bucket in &explanation.buckets {
        let full = bucket.full_percent.map_or(String::new(), |full| match full {
            full if full < 0.0 => ", in debt: packets wait or are dropped".to_owned(),
            full if full >= 99.5 => ", unused: its whole burst is left".to_owned(),
            full => format!(", {full:.0} % of its burst left"),
        });
        line(bucket.what, format!("{}{full}", terminal::rate(bucket.rate_bps)));
    }
    line("verdict", explanation.verdict.clone());
    text
}

fn node_line(node: &NodeFound) -> String {
    let rate = |what: &str, bps: Option<u64>| bps.map(|bps| format!("{what} {}", terminal::rate(bps)));
    let left = node.full_percent.map(|left| match left {
        left if left >= 99.5 => "its burst is unused".to_owned(),
        left if left < 0.5 => "its burst is used up: packets wait".to_owned(),
        left => format!("{left:.0} % of its burst left"),
    });
    let limits = [rate("guarantee", node.rate_bps), rate("ceiling", node.ceil_bps), left];
    let values: Vec<String> = limits.into_iter().flatten().chain(node.share.clone()).collect();
    format!("{}: {}", node.name, values.join(", "))
}

pub fn packet_line(explanation: &Explanation) -> String {
    let Fields {
        protocol,
        src,
        dst,
        src_port,
        dst_port,
        length_bytes,
        dscp,
        vlan,
        pcp,
        tcp_flags,
        icmp_type,
        mark,
        fragment,
    } = &explanation.fields;
    let mut text = match protocol {
        1 => "icmp".to_owned(),
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        58 | 256 => "icmpv6".to_owned(),
        257 => "arp".to_owned(),
        258 => "not IP".to_owned(),
        number => format!("protocol {number}"),
    };
    if let (Some(src), Some(dst)) = (src, dst) {
        let end = |address: &std::net::IpAddr, port: &Option<u16>| match port {
            Some(port) => std::net::SocketAddr::new(*address, *port).to_string(),
            None => address.to_string(),
        };
        let _ = write!(text, " {} to {}", end(src, src_port), end(dst, dst_port));
    }
    let mut add = |what: String| {
        let _ = write!(text, ", {what}");
    };
    length_bytes.iter().for_each(|length| add(format!("{length} bytes")));
    let dscp = dscp.filter(|dscp| *dscp > 0);
    dscp.iter()
        .for_each(|dscp| add(format!("DSCP {}", names::dscp_name(*dscp).map_or(dscp.to_string(), str::to_owned))));
    vlan.iter().for_each(|id| add(format!("VLAN {id}")));
    pcp.iter().for_each(|pcp| add(format!("priority {pcp}")));
    tcp_flags.iter().for_each(|flags| add(format!("flags {flags:#04x}")));
    icmp_type.iter().for_each(|kind| add(format!("type {kind}")));
    mark.iter().for_each(|mark| add(format!("mark {mark}")));
    if *fragment != "whole" {
        add(format!("{fragment} fragment"));
    }
    format!("{text} (parsed as {})", explanation.parsed)
}

fn forward_line(forward: &ForwardFound, explanation: &Explanation) -> String {
    let name = &forward.name;
    let dst = explanation.fields.dst.map_or(String::new(), |dst| dst.to_string());
    let condition = if forward.if_local { format!(", if {dst} is an address of this host") } else { String::new() };
    if !forward.takes {
        return format!("{name} listens there, and would take it if it arrived{condition} (--arriving)");
    }
    let to = match &forward.targets[..] {
        [only] => format!("{}{}{}", only.to, family(only), way(only)),
        several => {
            let weighted = |target: &explain::TargetFound| match target.weight {
                1 => format!("{}{}{}", target.to, family(target), way(target)),
                weight => format!("{} (weight {weight}){}{}", target.to, family(target), way(target)),
            };
            let all: Vec<String> = several.iter().map(weighted).collect();
            format!("one of {}, chosen by the client's address and port", all.join(", "))
        }
    };
    let source = if forward.source == "keep" {
        "the client's address stays"
    } else {
        "an address of this host replaces the client's"
    };
    let class = match (&forward.class, &forward.class_name) {
        (Some(id), name) => format!("it leaves in class {id} {}", name.as_deref().unwrap_or_default()),
        (None, _) => "rules choose its class where it leaves".to_owned(),
    };
    format!("{name}{condition}: a new connection goes to {to}; {source}; {class}")
}

/// The family into which packets to a target are translated.
fn family(target: &explain::TargetFound) -> &'static str {
    match (target.translated, target.to.is_ipv4()) {
        (false, _) => "",
        (true, true) => " (translated to IPv4)",
        (true, false) => " (translated to IPv6)",
    }
}

/// The way to a target, as a relative clause.
fn way(target: &explain::TargetFound) -> String {
    target.way.as_ref().map_or(String::new(), |way| format!(" {way}"))
}

pub fn rule_line(explanation: &Explanation) -> String {
    match &explanation.rule {
        RuleFound::Own { priority, name, line } => {
            let name = name.as_ref().map_or(String::new(), |name| format!(" \"{name}\""));
            let line = line.map_or(String::new(), |line| format!(", line {line} of the policy"));
            format!("{priority}{name}{line}")
        }
        RuleFound::Builtin { name } => {
            let way = if explanation.subscriber.is_some() { "has no class" } else { "goes to the most urgent class" };
            format!("built in: {name} {way} unless a rule says otherwise")
        }
        RuleFound::None => "none matches: the default class".to_owned(),
        RuleFound::Unasked => "not asked: the packet says its class (schedule_only)".to_owned(),
        RuleFound::FirstFragment => "that of the packet's first fragment".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::{CommandFactory, Parser};

    #[test]
    fn examples_of_the_help_are_valid() {
        let help = Cli::command().find_subcommand("explain").and_then(|sub| sub.get_after_help().cloned());
        let help = help.expect("examples").to_string();
        let lines: Vec<&str> = help.lines().filter_map(|line| line.trim().strip_prefix("sluice explain")).collect();
        assert!(lines.len() >= 3, "{help}");
        for line in lines {
            let typed = format!("sluice explain{line}");
            let Command::Explain(args) = Cli::parse_from(typed.split_whitespace()).command else { panic!("{typed}") };
            if args.pcap.is_none() {
                let frame = packet::frame(&args.packet, Metadata::default());
                frame.unwrap_or_else(|failure| panic!("{typed}: {}", failure.render(false)));
            }
        }
    }

    /// A forward takes what arrives at its address and ports, and says where it goes.
    #[test]
    fn forwards_take_what_arrives() {
        let text = r#"{ "scheduler": "round_robin", "classes": [{ "id": 0 }, { "id": 1, "name": "games" }], "forwards": [
            { "name": "all", "protocol": "udp", "port": "100-109", "targets": "10.0.0.9:200-209", "class_id": 1 },
            { "name": "own", "protocol": "both", "address": "198.51.100.7", "port": 120, "source": "masquerade",
              "targets": ["10.0.0.5", { "address": "10.0.0.6", "port": 8080, "weight": 3 }] } ] }"#;
        let policy = sluice_policy::parse(&sluice_policy::Source::new("test", text)).expect("a policy");
        let policy = sluice_policy::resolve(&policy, &sluice_policy::Context::default()).expect("it resolves");
        let line = |direction: u32, text: &str| {
            let metadata = Metadata { direction, ..Metadata::default() };
            let asked = packet::frame(&[text.to_owned()], metadata).unwrap_or_else(|_| panic!("{text}"));
            let answer = explain::by_answers(&policy, &[asked], |frame, metadata| {
                Ok(without_root::explained(&policy, frame, metadata))
            });
            let one = answer.expect("an answer").remove(0);
            one.forward.as_ref().map(|forward| forward_line(forward, &one))
        };
        let of_own = line(INGRESS, "tcp 192.0.2.1:9 to 198.51.100.7:120").expect("a forward");
        assert_eq!(
            of_own,
            "own: a new connection goes to one of 10.0.0.5:120, 10.0.0.6:8080 (weight 3), chosen by the client's \
             address and port; an address of this host replaces the client's; rules choose its class where it leaves"
        );
        assert!(line(INGRESS, "udp 192.0.2.1:9 to 198.51.100.7:120").is_some_and(|text| text.starts_with("own: ")));
        assert_eq!(
            line(INGRESS, "udp 192.0.2.1:9 to 198.51.100.8:105").expect("a forward"),
            "all, if 198.51.100.8 is an address of this host: a new connection goes to 10.0.0.9:205; the client's \
             address stays; it leaves in class 1 games"
        );
        let departing = line(EGRESS, "udp 192.0.2.1:9 to 198.51.100.7:120").expect("a forward");
        assert_eq!(departing, "own listens there, and would take it if it arrived (--arriving)");
        for other in [
            "tcp 192.0.2.1:9 to 198.51.100.8:105",
            "udp 192.0.2.1:9 to 198.51.100.8:120",
            "udp 192.0.2.1:9 to 198.51.100.7:110",
            "icmp 192.0.2.1 to 198.51.100.7",
        ] {
            assert_eq!(line(INGRESS, other), None, "{other}");
        }
    }

    /// An explanation without a loaded program gives the packet, rule and class by the policy's text.
    #[test]
    fn explains_without_root_and_fragments_follow_the_first() {
        let policy = sluice_policy::load("gaming").expect("a profile").1.one().expect("one policy");
        let policy = sluice_policy::resolve(&policy, &sluice_policy::Context::default()).expect("it resolves");
        let words =
            |text: &str| packet::frame(&[text.to_owned()], Metadata::default()).unwrap_or_else(|_| panic!("{text}"));
        let game = words("udp 192.0.2.1:5000 to 198.51.100.2:3074");
        let (mut first, mut later) = (game.clone(), game.clone());
        // The packet has More Fragments set; later fragments have an offset, and no ports where ports would be.
        (first.0[20], later.0[21]) = (0x20, 2);
        later.0[34..38].fill(0);
        let asked = [game, words("udp 192.0.2.1:5000 to 198.51.100.2:9"), first, later];
        let explanation = explain::by_answers(&policy, &asked, |frame, metadata| {
            Ok(without_root::explained(&policy, frame, metadata))
        });
        let classes: Vec<String> = explanation.expect("answers").into_iter().map(|one| one.class.name).collect();
        assert_eq!((&classes[0], &classes[2], &classes[3]), (&classes[0], &classes[0], &classes[0]), "{classes:?}");
        assert_ne!(classes[1], classes[0]);
    }
}
