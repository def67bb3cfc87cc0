//! Printing a policy and parsing the text gives the same policy; no text makes the parser panic.

use proptest::collection::{hash_set, vec};
use proptest::option;
use proptest::prelude::*;
use sluice_policy::*;
use std::net::IpAddr;

fn name() -> impl Strategy<Value = String> {
    // Quotes, backslashes and letters of several bytes, but short enough for any name.
    "[a-zA-Z \"\\\\/{},:äß漢]{1,10}"
}

fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![Rate::MIN.0..=Rate::MAX.0, (1..1000u64).prop_map(|m| m * 1_000_000)].prop_map(Rate)
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop_oneof![1..=Bytes::MAX.0, (1..1000u64).prop_map(|k| k * 1024)].prop_map(Bytes)
}

fn link() -> impl Strategy<Value = Link> {
    let presets = prop::sample::select(Framing::PRESETS).prop_map(|(_, framing)| framing);
    let cells = prop::sample::select(Cells::NAMES).prop_map(|(_, cells)| cells);
    let custom = (-64..=256i32, 0..=256u32, cells).prop_map(|(overhead_bytes, mpu_bytes, cells)| Framing {
        overhead_bytes,
        mpu_bytes,
        cells,
    });
    let framing = prop_oneof![Just(Framing::default()), presets, custom];
    let split = prop::sample::select(SplitGso::NAMES).prop_map(|(_, split)| split);
    let queues = prop::sample::select(LinkQueues::NAMES).prop_map(|(_, queues)| queues);
    (option::of(rate()), option::of(rate()), framing, option::of(bytes()), split, queues).prop_map(
        |(rate, ingress_rate, framing, burst, split_gso, queues)| Link {
            rate,
            ingress_rate,
            framing,
            burst,
            split_gso,
            queues,
        },
    )
}

fn ceiling() -> impl Strategy<Value = Ceiling> {
    (rate(), option::of(bytes())).prop_map(|(rate, burst)| Ceiling { rate, burst })
}

/// Bits per second above the ceiling, and a burst.
fn peak() -> impl Strategy<Value = (u64, Option<Bytes>)> {
    (0..=Rate::MAX.0, option::of((1514..2 * 1514u64).prop_map(Bytes)))
}

fn limits() -> impl Strategy<Value = Limits> {
    (option::of(ceiling()), option::of(ceiling())).prop_map(|(ingress, egress)| Limits { ingress, egress })
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (1..=MAX_QUEUED_PKTS).prop_map(Limit::Pkts),
        bytes().prop_map(Limit::Bytes),
        (1_000..=10_000_000_000u64).prop_map(Limit::TimeNs),
    ]
}

fn queue() -> impl Strategy<Value = Queue> {
    let hosts = prop::sample::select(Hosts::NAMES).prop_map(|(_, hosts)| hosts);
    let quantum = prop_oneof![Just(Flows::default().quantum_bytes), Flows::QUANTA_BYTES];
    let flows =
        (hosts, quantum, option::of(0..=Flows::MAX_ALLOWANCE.0)).prop_map(|(hosts, quantum_bytes, allowance)| {
            let allowance = allowance.map_or(Flows::default().allowance, Bytes).max(Bytes(quantum_bytes.into()));
            Queue::Flows(Flows { hosts, quantum_bytes, allowance })
        });
    prop_oneof![Just(Queue::Fifo), Just(Queue::Flows(Flows::default())), flows]
}

fn codel() -> impl Strategy<Value = Option<Codel>> {
    let any = (Codel::TARGETS_NS, Codel::INTERVALS_NS)
        .prop_map(|(target_ns, interval_ns)| Some(Codel { target_ns, interval_ns: interval_ns.max(target_ns) }));
    prop_oneof![Just(None), Just(Some(Codel::default())), any]
}

fn class(id: u8, mode: Mode, (scheduler, rank): (Scheduler, Rank)) -> impl Strategy<Value = Class> {
    let rates = (option::of(rate()), option::of(rate())).prop_map(|(rate, ceil)| match ceil {
        Some(ceil) => (rate.map(|rate| rate.min(ceil)), Some(ceil)),
        None => (rate, None),
    });
    // Each value means one class: each class has values of its own.
    let own = hash_set(0..=63u8, 0..3);
    (
        name(),
        any::<u8>(),
        1..=MAX_WEIGHT,
        1..=1u32 << 24,
        option::of(LATENCY_BUDGETS_NS),
        rates,
        option::of(bytes()),
        option::of(limit()),
        any::<bool>(),
        (own, option::of(ceiling()), option::of(ceiling()), queue(), codel(), option::of(peak())),
    )
        .prop_map(
            move |(name, priority, weight, quantum_bytes, budget, (rate, ceil), burst, limit, police, more)| {
                let (own, flow_ceil, shared, queue, codel, peak) = more;
                let peak = peak
                    .zip(ceil)
                    .map(|((more, burst), ceil)| Ceiling { rate: Rate((ceil.0 + more).min(Rate::MAX.0)), burst });
                // A class with a peak has bursts of a frame or more, and that of its ceiling is the greater one.
                let burst = burst.map(|burst| if peak.is_some() { burst.max(Bytes(3 * 1514)) } else { burst });
                let (queue, codel) = if scheduler == Scheduler::PIFO { (Queue::Fifo, None) } else { (queue, codel) };
                let needs_budget = scheduler == Scheduler::PIFO && rank.has_deadline();
                let latency_budget_ns = if needs_budget { budget.or(Some(1_000_000)) } else { budget };
                let rate = rate.filter(|_| scheduler != Scheduler::PIFO);
                let exceed = if police && ceil.is_some() { Exceed::Police } else { Exceed::Shape };
                // Ten letters of up to three bytes, and the id to make it unique: at most 31 bytes with the shortest ids.
                let name = format!("{id}{}", name.chars().take(9).collect::<String>());
                let mut class = Class {
                    name,
                    priority,
                    weight,
                    quantum_bytes,
                    latency_budget_ns,
                    rate,
                    ceil,
                    burst,
                    peak,
                    limit,
                    queue,
                    codel,
                    exceed,
                    flow_ceil,
                    // Each name means one rate.
                    shared_ceil: shared.map(|ceiling| SharedCeiling { name: format!("shared-{id}"), ceiling }),
                    ..Class::new(ClassId(id))
                };
                match mode {
                    Mode::ScheduleOnly { by: ClassFrom::Dscp } => class.dscp = vec![id],
                    Mode::ScheduleOnly { by: ClassFrom::Mark } => {
                        class.marks = own.iter().map(|&v| u32::from(id) << 26 | u32::from(v)).collect();
                    }
                    _ => {}
                }
                class
            },
        )
}

fn net(v6: bool) -> impl Strategy<Value = IpNet> {
    (any::<u128>(), 0..=128u8).prop_map(move |(bits, length)| {
        let address =
            if v6 { std::net::Ipv6Addr::from(bits).into() } else { std::net::Ipv4Addr::from(bits as u32).into() };
        IpNet::new(address, if v6 { length } else { length % 33 }).unwrap().trunc()
    })
}

fn port_range() -> impl Strategy<Value = (u16, u16)> {
    (any::<u16>(), any::<u16>(), any::<bool>()).prop_map(|(a, b, one)| {
        let max = a.max(b).max(1);
        (if one { max } else { a.min(b) }, max)
    })
}

/// Values and names of sets; an empty list, one or several.
fn terms<T: Clone + std::fmt::Debug>(
    value: impl Strategy<Value = T>,
    sets: Vec<String>,
) -> impl Strategy<Value = Terms<T>> {
    let term = (value, option::of(any::<prop::sample::Index>())).prop_map(move |(value, set)| match set {
        Some(set) if !sets.is_empty() => Term::In(set.get(&sets).clone()),
        _ => Term::Is(value),
    });
    vec(term, 0..4)
}

fn set_names() -> impl Strategy<Value = Vec<String>> {
    hash_set("[a-zA-Z0-9_-]{1,31}", 0..3).prop_map(|names| names.into_iter().collect())
}

fn icmp(protocol: Protocol) -> impl Strategy<Value = Option<IcmpType>> {
    let number = any::<u8>().prop_map(|number| (Some(number), Some(number)));
    let named = prop::sample::select(vec![(Some(8), Some(128)), (None, Some(2)), (Some(13), None), (Some(3), Some(1))]);
    option::weighted(0.3, prop_oneof![number, named]).prop_map(move |kind| {
        let (v4, v6) = kind?;
        match protocol {
            Protocol::Any | Protocol::Icmp => Some(IcmpType { v4, v6 }),
            Protocol::Number(1) => Some(IcmpType { v4: Some(v4?), v6: None }),
            Protocol::Number(58) => Some(IcmpType { v4: None, v6: Some(v6?) }),
            _ => None,
        }
    })
}

fn tcp_flags(protocol: Protocol) -> impl Strategy<Value = Option<TcpFlags>> {
    option::weighted(0.3, any::<(u8, u8)>()).prop_map(move |flags| {
        let (set, clear) = flags?;
        let flags = TcpFlags { set, clear: clear & !set };
        let has_flags = matches!(protocol, Protocol::Any | Protocol::Tcp) && flags.set | flags.clear != 0;
        has_flags.then_some(flags)
    })
}

type Sets = (Vec<String>, Vec<String>);

fn rule(priority: u32, ids: Vec<u8>, sets: Sets) -> impl Strategy<Value = Rule> {
    let nets = any::<bool>().prop_flat_map(move |v6| {
        // A set may be of the other family, so a rule has only addresses or only sets.
        let own = (terms(net(v6), Vec::new()), terms(net(v6), Vec::new()));
        let named = terms(net(v6), sets.0.clone()).prop_map(|terms| (terms, Vec::new()));
        prop_oneof![own, named]
    });
    let ports = move || terms(port_range(), sets.1.clone());
    let protocol = prop_oneof![
        Just(Protocol::Any),
        Just(Protocol::Tcp),
        Just(Protocol::Udp),
        Just(Protocol::Icmp),
        prop::sample::select(vec![1, 58]).prop_map(Protocol::Number),
        any::<u8>().prop_map(Protocol::from_number),
    ];
    let class = prop::sample::select(ids).prop_map(ClassId);
    let by_protocol =
        protocol.prop_flat_map(move |protocol| (Just(protocol), ports(), ports(), icmp(protocol), tcp_flags(protocol)));
    let lengths = option::of((any::<u16>(), any::<u16>()).prop_map(|(a, b)| (a.min(b), a.max(b))));
    let lengths = prop_oneof![lengths, Just(Some((0, u16::MAX)))];
    let tags = (option::of(0..=63u8), option::of(1..=4094u16), option::of(0..=7u8));
    let others = (lengths, option::of("[a-zä0-9.@][a-zä0-9.@-]{0,6}[a-z]"), option::of(any::<u32>()));
    (option::of(name()), nets, by_protocol, tags, others, class).prop_map(
        move |(name, (src, dst), (protocol, src_ports, dst_ports, icmp, tcp_flags), tags, others, class)| {
            let ((dscp, vlan, pcp), (length, in_interface, mark)) = (tags, others);
            let mut rule = Rule { name, src, dst, protocol, dscp, vlan, pcp, ..Rule::new(priority, class) };
            (rule.length, rule.in_interface, rule.mark) = (length, in_interface, mark);
            if icmp.is_some() {
                rule.icmp = icmp;
            } else {
                rule.tcp_flags = tcp_flags;
                if protocol.can_have_ports() {
                    (rule.src_ports, rule.dst_ports) = (src_ports, dst_ports);
                }
            }
            rule
        },
    )
}

/// Forward number `n`, whose ports no other has.
fn forward(n: u16, ids: Vec<u8>) -> impl Strategy<Value = Forward> {
    let first = 1 + n * 1_000;
    let address = |v6: bool| {
        any::<[u8; 16]>().prop_map(move |mut bytes| {
            bytes[0] = 0x20; // a host's, in both families
            if v6 { IpAddr::from(bytes) } else { IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]]) }
        })
    };
    let transport = prop::sample::select(Transport::NAMES).prop_map(|(_, transport)| transport);
    let source = prop::sample::select(ForwardSource::NAMES).prop_map(|(_, source)| source);
    let connections = prop::sample::select(OldConnections::NAMES).prop_map(|(_, connections)| connections);
    let class = option::of(prop::sample::select(ids).prop_map(ClassId));
    (any::<bool>(), first..first + 1_000, transport, source, connections, class).prop_flat_map(
        move |(v6, last, transport, source, connections, class)| {
            let target = (address(v6), 1..=u16::MAX - 1_000, prop_oneof![Just(1), 1..=256u32])
                .prop_map(|(address, first_port, weight)| Target { address, first_port, weight });
            (option::of(address(v6)), vec(target, 1..5)).prop_map(move |(listen, targets)| Forward {
                name: format!("forward {n}"),
                transport,
                listen,
                ports: (first, last),
                targets,
                source,
                class,
                connections,
                line: 0,
            })
        },
    )
}

fn policy() -> impl Strategy<Value = Policy> {
    let modes = prop::sample::select(vec![
        Mode::Full,
        Mode::ClassifyOnly,
        Mode::ScheduleOnly { by: ClassFrom::Dscp },
        Mode::ScheduleOnly { by: ClassFrom::Mark },
    ]);
    let ranks = prop::sample::select(Rank::all().collect::<Vec<_>>());
    let disciplines = (prop::sample::select(Scheduler::all().collect::<Vec<_>>()), ranks).prop_map(
        |(scheduler, rank)| match scheduler {
            Scheduler::PIFO => (scheduler, rank),
            _ => (scheduler, Rank::default()),
        },
    );
    let parts = (modes, disciplines, hash_set(0..64u8, 1..6), hash_set(any::<u32>(), 0..6), (set_names(), set_names()));
    parts.prop_flat_map(|(mode, (scheduler, rank), ids, priorities, sets)| {
        let ids: Vec<u8> = ids.into_iter().collect();
        let classes: Vec<_> = ids.iter().map(|&id| class(id, mode, (scheduler, rank))).collect();
        let scheduled_only = matches!(mode, Mode::ScheduleOnly { .. });
        let priorities = priorities.into_iter().filter(|_| !scheduled_only);
        let rules: Vec<_> = priorities.map(|priority| rule(priority, ids.clone(), sets.clone())).collect();
        let nets = vec(any::<bool>().prop_flat_map(net), 1..4);
        let nets = vec(nets, sets.0.len()).prop_map(move |nets| sets.0.iter().cloned().zip(nets).collect());
        let ports = vec(vec(port_range(), 1..4), sets.1.len());
        let ports = ports.prop_map(move |ports| sets.1.iter().cloned().zip(ports).collect());
        let forwards: Vec<_> = (0..ids.len() as u16 - 1).map(|n| forward(n, ids.clone())).collect();
        let default_class = option::of(prop::sample::select(ids).prop_map(ClassId));
        let malformed = prop::sample::select(Malformed::NAMES).prop_map(|(_, malformed)| malformed);
        let head = (
            name(),
            option::of(name()),
            (link(), limits()),
            default_class,
            (0..=MAX_FLOWS, LEAST_CONNECTIONS..=MAX_CONNECTIONS),
            malformed,
        );
        (head, nets, ports, classes, rules, forwards).prop_map(
            move |(
                (name, description, (link, limits), default_class, (flows, connections), malformed),
                address_sets,
                port_sets,
                classes,
                rules,
                forwards,
            )| Policy {
                version: FORMAT_VERSION,
                name,
                description,
                scheduler,
                rank,
                mode,
                link,
                arrivals_of: Vec::new(),
                limits,
                default_class,
                // Flow ceilings need the flow table.
                flows: flows.max(u32::from(classes.iter().any(|class: &Class| class.flow_ceil.is_some()))),
                connections,
                malformed,
                address_sets,
                port_sets,
                classes,
                rules,
                forwards,
                network: None,
                origin: Origin::default(),
            },
        )
    })
}

proptest! {
    #[test]
    fn reads_what_it_prints(policy in policy()) {
        let text = print(&policy);
        match parse(&Source::new("printed", text.as_str())) {
            Ok(read) => {
                prop_assert_eq!(&read, &policy);
                prop_assert_eq!(print(&read), text);
            }
            Err(errors) => prop_assert!(false, "{}\n{}", errors, text),
        }
    }

    #[test]
    fn resolves_within_the_limits(policy in policy(), rate in option::of(rate())) {
        if let Ok(resolved) = resolve(&policy, &Context { link_rate: rate, ..Context::default() }) {
            // Classes that queue by flow without a limit may use all slots.
            let all = |class: &&ResolvedClass| class.queue.flows().is_some() && class.limit_pkts == MAX_QUEUED_PKTS;
            let others = resolved.classes.iter().filter(|class| !all(class) || policy.class(class.id).is_some_and(
                |class| matches!(class.limit, Some(Limit::Pkts(_) | Limit::Bytes(_)))));
            let pkts: u64 = others.map(|class| u64::from(class.limit_pkts)).sum();
            prop_assert!(resolved.classes.iter().all(|class| class.codel.is_none_or(|codel| codel.interval_ns >= codel.target_ns)));
            prop_assert!(pkts <= u64::from(MAX_QUEUED_PKTS));
            prop_assert!(resolved.classes.iter().all(|class| class.limit_pkts > 0));
            prop_assert!(resolved.class(resolved.default_class).is_some());
            prop_assert!(resolved.rules.windows(2).all(|pair| pair[0].rule.priority < pair[1].rule.priority));
            if let Some(link) = resolved.link_rate {
                let fastest = link.max(resolved.ingress_rate.unwrap_or(link));
                prop_assert!(resolved.classes.iter().all(|class| class.ceil.is_none_or(|ceil| ceil <= fastest)));
            }
            table(&resolved, None);
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "[\\[\\]{}\",:a-z0-9./*\\\\ \n'ä-]{0,80}") {
        if let Err(errors) = parse(&Source::new("any", text)) {
            prop_assert!(!errors.render(false).is_empty());
        }
    }

    /// A part of a shipped profile is replaced.
    #[test]
    fn damaged_profile_is_parsed_or_refused(at in any::<prop::sample::Index>(), length in 0..40usize, text in vec(any::<char>(), 0..4)) {
        let mut chars: Vec<char> = include_str!("valid/everything.json").chars().collect();
        let start = at.index(chars.len());
        let end = (start + length).min(chars.len());
        chars.splice(start..end, text);
        let damaged: String = chars.into_iter().collect();
        match parse(&Source::new("damaged", damaged)) {
            Ok(policy) => prop_assert_eq!(&parse(&Source::new("printed", print(&policy))).unwrap(), &policy),
            Err(errors) => prop_assert!(errors.has_errors() && !errors.render(true).is_empty()),
        }
    }
}
