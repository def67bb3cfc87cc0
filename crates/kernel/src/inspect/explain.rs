//! `sluice explain`: the class, the token buckets and the verdict of a packet, with the reasons.

mod forward;
mod subscriber;

pub use crate::engine::forwarding::{Leaving, Queued};
pub use forward::{ForwardFound, TargetFound};
pub use subscriber::{NodeFound, SubscriberFound};

use crate::engine::parts::Missing;
use crate::engine::{managed, parts};
use crate::inspect::probe::{Metadata, Probe};
use crate::maps::{schedulers, tables};
use crate::record::{Engine, Record, policy};
use crate::system::{bpffs, clock, interface};
use crate::{command, status};
use serde::Serialize;
use sluice_abi as abi;
use sluice_error::Result;
use sluice_policy::network::Way;
use sluice_policy::{ClassId, Exceed, Malformed, Mode, Rate, Resolved, ResolvedClass};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// The explanation of one packet.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// Outcome of parsing: a kind of `sluice status`.
    pub parsed: &'static str,
    /// Header fields that the parser has read.
    pub fields: Fields,
    /// The rule that chose the class.
    pub rule: RuleFound,
    /// The class of the packet.
    pub class: ClassFound,
    /// The subscriber of the packet, where the policy has subscribers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscriber: Option<SubscriberFound>,
    /// The forward that listens where the packet goes.
    pub forward: Option<ForwardFound>,
    /// Entry of the packet's flow in the flow table, on a managed interface.
    pub flow: Option<FlowFound>,
    /// Token buckets that the packet must pass.
    pub buckets: Vec<BucketFound>,
    /// Verdict on the packet, with its reason.
    pub verdict: String,
}

/// The header fields that the classifier may look at.
#[derive(Debug, Clone, Serialize)]
pub struct Fields {
    /// `enum sl_proto_index`: an IP protocol number; 256 and above: another protocol.
    pub protocol: u16,
    /// Source address.
    pub src: Option<IpAddr>,
    /// Destination address.
    pub dst: Option<IpAddr>,
    /// Source port.
    pub src_port: Option<u16>,
    /// Destination port.
    pub dst_port: Option<u16>,
    /// Length as the IP header has it, bytes.
    pub length_bytes: Option<u16>,
    /// DSCP.
    pub dscp: Option<u8>,
    /// Id of the outer VLAN.
    pub vlan: Option<u16>,
    /// Priority (PCP) of the outer VLAN.
    pub pcp: Option<u8>,
    /// TCP flags, where a rule asks for them.
    pub tcp_flags: Option<u8>,
    /// ICMP type.
    pub icmp_type: Option<u8>,
    /// Firewall mark, if it is not 0.
    pub mark: Option<u32>,
    /// Kind of fragment: whole, first or later.
    pub fragment: &'static str,
}

/// The rule that chose a class.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RuleFound {
    /// A rule of the policy.
    Own {
        /// Priority of the rule.
        priority: u32,
        /// Name of the rule.
        name: Option<String>,
        /// Line of the rule in the policy file.
        line: Option<u32>,
    },
    /// A built-in rule.
    Builtin {
        /// ARP, neighbour discovery, DHCP or DHCPv6.
        name: &'static str,
    },
    /// No rule matches.
    None,
    /// Rules are not consulted: the packet says its class.
    Unasked,
    /// The rule of the packet's first fragment, which has been seen.
    FirstFragment,
}

/// The class of a packet.
#[derive(Debug, Clone, Serialize)]
pub struct ClassFound {
    /// Number of the class.
    pub id: u8,
    /// Name of the class.
    pub name: String,
    /// Packets that wait in the class's queue now, on a managed interface.
    pub backlog_pkts: Option<u64>,
}

/// A flow in the flow table.
#[derive(Debug, Clone, Serialize)]
pub struct FlowFound {
    /// Packets of the flow so far.
    pub pkts: u64,
    /// Bytes of the flow so far.
    pub bytes: u64,
    /// Whether the class of this packet comes from the table, without asking the rules.
    pub remembered: bool,
}

/// A token bucket that a packet must pass.
#[derive(Debug, Clone, Serialize)]
pub struct BucketFound {
    /// Kind of bucket: link, ceil, peak, guarantee, flow, interface or shared.
    pub what: &'static str,
    /// Subject of the verdict on a packet over the rate, such as "its flow is"; None: the packet waits.
    #[serde(skip)]
    drops: Option<&'static str>,
    /// Rate of the bucket, bits per second.
    pub rate_bps: u64,
    /// Fill level, percent of the burst; below 0: debt. None: unknown, as without an interface, or of a queue of engine tc.
    pub full_percent: Option<f64>,
}

/// Explains packets by a policy alone: no interface is touched.
pub fn by_policy(policy: &Resolved, packets: &[(Vec<u8>, Metadata)]) -> Result<Vec<Explanation>> {
    let probe = Probe::of_policy(policy, &interface::indices()?)?;
    by_answers(policy, packets, |frame, metadata| probe.explain(frame, metadata))
}

/// Explains packets by the answers of another classifier than the loaded one.
pub fn by_answers(
    policy: &Resolved,
    packets: &[(Vec<u8>, Metadata)],
    answer: impl Fn(&[u8], Metadata) -> Result<Box<abi::sl_explanation>>,
) -> Result<Vec<Explanation>> {
    let lines: Vec<u32> = policy.rules.iter().map(|rule| rule.rule.line).collect();
    // A classifier that counts nothing remembers nothing: choices of first fragments, for later ones to follow, are kept here.
    let mut firsts: HashMap<([u32; 4], [u32; 4], u32), u64> = HashMap::new();
    let mut one = |(frame, metadata): &(Vec<u8>, Metadata)| {
        let mut explanation = answer(frame, *metadata)?;
        let of = (explanation.headers.src, explanation.headers.dst, explanation.headers.fragment_id);
        match u32::from(explanation.headers.fragment) {
            abi::SL_FIRST_FRAGMENT => _ = firsts.insert(of, explanation.choice),
            abi::SL_LATER_FRAGMENT => {
                if let Some(choice) = firsts.get(&of) {
                    (explanation.by_fragment, explanation.choice) = (*choice | FOLLOWED, *choice);
                }
            }
            _ => {}
        }
        Ok(compose(policy, &explanation, &lines, metadata.direction, None))
    };
    packets.iter().map(&mut one).collect()
}

/// Bit that tells a choice of the first rule and class from no choice.
const FOLLOWED: u64 = 1 << 63;

/// Explains packets by the classifier and the state of a managed interface.
pub fn by_interface(name: &str, packets: &[(Vec<u8>, Metadata)]) -> Result<Vec<Explanation>> {
    crate::require_root()?;
    let record = managed::managed(name)?;
    let policy = policy::resolved(&record)?;
    let probe = Probe::of_interface(&record)?;
    let live = tables::live(&record.pins(&bpffs::root()?))?;
    let lines: Vec<u32> = live.rule.iter().map(|rule| rule.line.into()).collect();
    let status = command::status::of(name)?;
    let parts = match record.engine {
        Engine::Xsk => parts::missing(&record, &record.pins(&bpffs::root()?))?,
        _ => Vec::new(),
    };
    let addresses = if policy.forwards.is_empty() { Vec::new() } else { interface::addresses()? };
    let one = |(frame, metadata): &(Vec<u8>, Metadata)| {
        let explanation = probe.explain(frame, *metadata)?;
        let state = state(&record, metadata.direction)?;
        let running = Running {
            status: &status,
            state,
            engine: record.engine,
            way: record.way,
            addresses: &addresses,
            parts: &parts,
        };
        Ok(compose(&policy, &explanation, &lines, metadata.direction, Some(&running)))
    };
    packets.iter().map(one).collect()
}

/// Adds the ways to targets of forwards that take packets, for which the kernel's routes are asked.
pub fn find_ways(name: &str, explanations: &mut [Explanation]) -> Result<()> {
    let record = managed::managed(name)?;
    let policy = policy::resolved(&record)?;
    let forwards = explanations.iter_mut().filter_map(|one| one.forward.as_mut());
    forwards.filter(|forward| forward.takes).try_for_each(|forward| forward::find_ways(forward, &record, &policy))
}

/// The error of an interface that is there, but not managed; a name that no interface has passes.
pub fn refuse_unmanaged(name: &str) -> Result<()> {
    match interface::Interface::find(name) {
        Ok(_) => Err(managed::absent(name)),
        Err(_) => Ok(()),
    }
}

/// The state of a managed interface.
struct Running<'a> {
    status: &'a status::Status,
    /// State of the direction's first scheduler, with engine `qdisc`.
    state: Option<Box<abi::sl_sched>>,
    engine: Engine,
    /// Direction of what is queued, where the policy has subscribers.
    way: Option<Way>,
    /// Addresses of this host.
    addresses: &'a [(String, IpAddr)],
    /// Parts of a side of a wire that are not in place.
    parts: &'a [Missing],
}

fn state(record: &Record, direction: u32) -> Result<Option<Box<abi::sl_sched>>> {
    if !matches!(record.engine, Engine::Qdisc | Engine::Xsk) || record.way.is_some() {
        return Ok(None);
    }
    let device = if direction == abi::SL_INGRESS { record.arrivals_are_queued_on() } else { record.interface.clone() };
    let mut all = schedulers::of_device(&record.pins(&bpffs::root()?), &device)?.into_iter();
    Ok(all.next().map(|(_, state)| state))
}

fn compose(
    policy: &Resolved,
    explanation: &abi::sl_explanation,
    lines: &[u32],
    direction: u32,
    running: Option<&Running>,
) -> Explanation {
    let by_fragment = explanation.by_fragment != 0;
    let (rule, class) = ((explanation.choice & 0xffff) as u32, (explanation.choice >> 16) as u8);
    let kind = abi::parse_kinds().nth(explanation.headers.kind.into());
    let malformed = kind.as_ref().is_some_and(|kind| kind.malformed);
    let known = policy.classes.iter().find(|known| known.id.0 == class);
    let rule = match rule {
        _ if by_fragment => RuleFound::FirstFragment,
        _ if matches!(policy.mode, Mode::ScheduleOnly { .. }) => RuleFound::Unasked,
        abi::SL_RULE_ARP..abi::SL_RULE_NONE => {
            RuleFound::Builtin { name: status::BUILTIN[(rule - abi::SL_RULE_ARP) as usize] }
        }
        own => match policy.rules.get(own as usize) {
            Some(found) => RuleFound::Own {
                priority: found.rule.priority,
                name: found.rule.name.clone(),
                line: lines.get(own as usize).copied().filter(|line| *line > 0),
            },
            None => RuleFound::None,
        },
    };
    let own_direction = running.and_then(|running| {
        let name = if direction == abi::SL_EGRESS { "egress" } else { "ingress" };
        running.status.directions.iter().find(|own| own.direction == name)
    });
    let class = ClassFound {
        id: class,
        name: known.map_or(String::new(), |known| known.name.clone()),
        backlog_pkts: own_direction
            .filter(|own| own.queued)
            .and_then(|own| own.classes.iter().find(|own| own.id == class))
            .map(|own| own.backlog.pkts),
    };
    let is_queued = own_direction.is_none_or(|own| own.queued);
    let buckets = buckets(policy, class.id, explanation, running.map(|running| (running, direction)), is_queued);
    let fields = fields(&explanation.headers);
    let is_local = |address| running.is_some_and(|running| running.addresses.iter().any(|(_, own)| *own == address));
    let is_local: Option<&dyn Fn(IpAddr) -> bool> = if running.is_some() { Some(&is_local) } else { None };
    let forward = forward::of(policy, &fields, direction == abi::SL_INGRESS, is_local);
    // A wire queues what arrives.
    let in_tree = direction
        == if running.is_some_and(|running| running.engine == Engine::Xsk) { abi::SL_INGRESS } else { abi::SL_EGRESS };
    let way = running.and_then(|running| running.way);
    let fills = running.and_then(|running| {
        let link = own_direction.and_then(|own| own.link_fill);
        Some(subscriber::Fills { tree: running.status.tree.as_ref()?, link })
    });
    let subscriber = {
        // The queue does not learn the class of what a built-in rule has chosen.
        let is_own = !malformed && !matches!(rule, RuleFound::Builtin { .. });
        let class = is_own.then_some(ClassId(class.id));
        policy.network.as_ref().filter(|_| in_tree).map(|network| subscriber::of(network, way, class, &fields, fills))
    };
    let queue = match &subscriber {
        Some(subscriber) => behind(subscriber.queue(), subscriber.backlog_pkts),
        None => behind(format!("queued in class {}", class.name), class.backlog_pkts),
    };
    let is_control = matches!(rule, RuleFound::Builtin { .. });
    let verdict = verdict(policy, (&class, queue), malformed, &buckets, (running, is_control), own_direction);
    Explanation {
        parsed: kind.map_or("unknown", |kind| kind.name),
        fields,
        rule,
        class,
        subscriber,
        forward,
        flow: (explanation.flow_pkts > 0).then_some(FlowFound {
            pkts: explanation.flow_pkts,
            bytes: explanation.flow_bytes,
            remembered: explanation.by_flow != 0 && !by_fragment,
        }),
        buckets,
        verdict,
    }
}

fn fields(h: &abi::sl_headers) -> Fields {
    let address = |words: &[u32; 4]| {
        let mut octets = [0; 16];
        octets.chunks_exact_mut(4).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_ne_bytes()));
        let v6 = Ipv6Addr::from(octets);
        // IPv6 with a mapped address is kept apart from IPv4: SL_MAPPED_IPV6 of parse.h.
        let mapped = Ipv6Addr::from_bits(v6.to_bits() ^ 1 << 32);
        let v6 = || IpAddr::V6(if mapped.to_ipv4_mapped().is_some() { mapped } else { Ipv6Addr::from(octets) });
        (h.is_ip != 0).then(|| Ipv6Addr::from(octets).to_ipv4_mapped().map_or_else(v6, IpAddr::V4))
    };
    let port = |port: u16| (h.has_ports != 0).then_some(port);
    Fields {
        protocol: h.proto,
        src: address(&h.src),
        dst: address(&h.dst),
        src_port: port(h.sport),
        dst_port: port(h.dport),
        length_bytes: (h.is_ip != 0).then_some(h.length),
        dscp: Some(h.dscp).filter(|dscp| *dscp != u8::MAX),
        vlan: Some(h.vlan).filter(|vlan| *vlan != u16::MAX),
        pcp: Some(h.pcp).filter(|pcp| *pcp != u8::MAX),
        tcp_flags: u8::try_from(h.tcp_flags).ok(),
        mark: Some(h.mark).filter(|mark| *mark != 0),
        icmp_type: Some(h.icmp as u8).filter(|_| h.icmp != u16::MAX),
        fragment: match u32::from(h.fragment) {
            abi::SL_FIRST_FRAGMENT => "first",
            abi::SL_LATER_FRAGMENT => "later",
            _ => "whole",
        },
    }
}

/// The buckets of a packet: those of its queue, if it is queued, then those that police before the queue.
fn buckets(
    policy: &Resolved,
    class: u8,
    explanation: &abi::sl_explanation,
    running: Option<(&Running, u32)>,
    is_queued: bool,
) -> Vec<BucketFound> {
    let state = running.and_then(|(running, _)| running.state.as_deref());
    let now_ns = clock::monotonic().as_nanos() as u64;
    let queued = |bucket: &abi::sl_bucket| {
        let owed_ns = bucket.tat_ns.saturating_sub(now_ns) as f64;
        100.0 * (1.0 - owed_ns / bucket.burst_ns.max(1) as f64)
    };
    let of_queue = |pick: fn(&abi::sl_class) -> &abi::sl_bucket| {
        state.map(|state| queued(pick(&state.classes[usize::from(class)])))
    };
    let policing = |limit: abi::sl_limit| {
        let seen = explanation.buckets[limit as usize];
        let full = 100.0 * (1.0 - seen.owed as f64 / seen.burst.max(1) as f64);
        running.filter(|_| seen.burst > 0).map(|_| full)
    };
    let direction = running.map_or(abi::SL_EGRESS, |(_, direction)| direction);
    let limit = if direction == abi::SL_EGRESS { policy.limits.egress } else { policy.limits.ingress };
    let known = policy.classes.iter().find(|known| known.id.0 == class);
    // A policed class is policed by our scheduler, where there is one.
    let of_class = |limit: abi::sl_limit, pick: fn(&abi::sl_class) -> &abi::sl_bucket| match known {
        Some(known) if known.exceed == Exceed::Police && state.is_none() => policing(limit),
        _ => of_queue(pick),
    };
    let ceil = of_class(abi::SL_LIMIT_CLASS, |class| &class.ceil);
    let peak = of_class(abi::SL_LIMIT_PEAK, |class| &class.peak);
    let polices = |known: &&ResolvedClass| known.exceed == Exceed::Police;
    let policed = known.filter(polices).map(|_| "its class is");
    let peak_of = |known: &ResolvedClass| known.peak.map(|peak| peak.rate);
    let of = |what, drops, rate: Option<Rate>, full_percent| {
        rate.map(|rate| BucketFound { what, drops, rate_bps: rate.0, full_percent })
    };
    let of_queues = [
        of("link", None, policy.link_rate, state.map(|state| queued(&state.link))),
        of("ceil", policed, known.and_then(|known| known.ceil), ceil),
        of("peak", policed, known.and_then(peak_of), peak),
        of("guarantee", None, known.and_then(|known| known.rate), of_queue(|class| &class.rate)),
    ];
    let of_hook = known.filter(polices).filter(|_| !is_queued);
    let of_flow = known.and_then(|known| known.flow_ceil).map(|own| own.rate);
    let shared = known.and_then(|known| known.shared_ceil.as_ref()).map(|own| own.ceiling.rate);
    let of_hooks = [
        of("ceil", policed, of_hook.and_then(|known| known.ceil), ceil),
        of("peak", policed, of_hook.and_then(peak_of), peak),
        of("flow", Some("its flow is"), of_flow, policing(abi::SL_LIMIT_FLOW)),
        of("interface", Some("the interface is"), limit.map(|own| own.rate), policing(abi::SL_LIMIT_INTERFACE)),
        of("shared", Some("the classes that share the rate are"), shared, policing(abi::SL_LIMIT_SHARED)),
    ];
    of_queues.into_iter().filter(|_| is_queued).chain(of_hooks).flatten().collect()
}

/// A queue, in words, and the packets in it, if they are known.
fn behind(queue: String, backlog_pkts: Option<u64>) -> String {
    match backlog_pkts {
        None => queue,
        Some(0) => queue + ", which is empty",
        Some(1) => queue + ", behind 1 packet",
        Some(pkts) => format!("{queue}, behind {pkts} packets"),
    }
}

/// `queue`: the packet's, in words. `is_control`: a built-in rule has chosen its class.
fn verdict(
    policy: &Resolved,
    (class, queue): (&ClassFound, String),
    malformed: bool,
    buckets: &[BucketFound],
    (running, is_control): (Option<&Running>, bool),
    direction: Option<&status::DirectionStatus>,
) -> String {
    if malformed && policy.malformed == Malformed::Drop {
        return "dropped: its headers are broken, and the policy says so (\"malformed\": \"drop\")".to_owned();
    }
    let known = policy.classes.iter().find(|known| known.id.0 == class.id);
    let over = |bucket: &&BucketFound| bucket.full_percent.is_some_and(|full| full < 0.0);
    if let Some((whose, bucket)) = buckets.iter().filter(over).find_map(|bucket| Some((bucket.drops?, bucket))) {
        return format!("dropped: {whose} over {} at this moment", Rate(bucket.rate_bps));
    }
    let polices = known.filter(|known| known.exceed == Exceed::Police);
    if let Some(ceil) = polices.and_then(|known| known.ceil) {
        let peak =
            polices.and_then(|known| known.peak).map_or(String::new(), |peak| format!(", and bursts {}", peak.rate));
        return format!(
            "passes while class {} sends less than {ceil}{peak}; packets beyond that are dropped",
            class.name
        );
    }
    if policy.mode == Mode::ClassifyOnly || running.is_some_and(|running| !running.engine.queues()) {
        return "counted, and passed on: this policy queues nothing".to_owned();
    }
    let of_wire = running.filter(|running| running.engine == Engine::Xsk);
    if of_wire.is_some() && direction.is_some_and(|direction| !direction.queued) {
        return "counted, and passed on: a wire queues what arrives (--arriving)".to_owned();
    }
    let find = |lets_pass_by: fn(&Missing) -> bool| of_wire?.parts.iter().find(|missing| lets_pass_by(missing));
    if let Some(missing) = find(Missing::lets_all_pass_by) {
        return format!("passes by the queue: {missing}");
    }
    if of_wire.is_some() && is_control {
        return "passes at once, to the interface on the other side: a wire queues no such packets".to_owned();
    }
    let replaced = running.filter(|running| of_wire.is_none() && !running.status.in_place);
    if let Some(name) = replaced.map(|running| &running.status.interface) {
        return format!(
            "passes by queues that are not ours: something has replaced them; sluice down {name}, then sluice up {name}"
        );
    }
    if direction.is_some_and(|direction| !direction.queued) {
        return "counted, and passed on: arrivals are not queued here (--ingress-rate would)".to_owned();
    }
    let mut text = queue;
    let held_by =
        ["ceil", "peak"].into_iter().find(|what| buckets.iter().filter(over).any(|bucket| bucket.what == *what));
    if let Some(what) = held_by {
        text += &format!("; the class waits for tokens of its {what}");
    }
    if let Some(missing) = find(Missing::lets_some_pass_by) {
        text += &format!("; but {missing}");
    }
    text
}
