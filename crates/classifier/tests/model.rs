//! The parser and the rules, compiled natively, equal the slow model of the classifier on random policies and frames.

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use sluice_abi as abi;
use sluice_classifier::Classifier;
use sluice_model::{findings, parse, random, rules};
use std::collections::HashMap;

const KINDS: [random::Kind; 5] = [
    random::Kind { rules: (20, 60), rare: 0.0 },
    random::Kind { rules: (65, 300), rare: 0.1 },
    random::Kind { rules: (0, 64), rare: 0.02 },
    random::Kind { rules: (65, 1500), rare: 0.0 },
    random::Kind { rules: (0, 60), rare: 0.1 },
];
/// Frames of each policy.
const FRAMES: usize = 3_000;

#[test]
fn the_class_of_a_frame_is_that_of_the_model() {
    let interfaces = random::interfaces();
    let (mut matched, mut malformed, mut control) = (0, 0, 0);
    for round in 0..10 {
        let seed = SmallRng::from_os_rng().random();
        let mut rng = SmallRng::seed_from_u64(seed);
        let policy = random::policy(&mut rng, KINDS[round % KINDS.len()]);
        let context = sluice_tables::Context::ethernet(&interfaces);
        let classifier = Classifier::new(sluice_tables::compile(&policy, &context).expect("fits"));
        let mut recent: Vec<Vec<u8>> = findings::FRAMES.iter().map(|frame| frame.to_vec()).collect();
        for number in 0..FRAMES {
            let frame = match recent.choose(&mut rng) {
                _ if number < findings::FRAMES.len() => findings::FRAMES[number].to_vec(),
                Some(earlier) if rng.random_bool(0.4) => random::akin(&mut rng, earlier),
                _ => random::frame(&mut rng),
            };
            let place = rng.random_range(0..30.min(recent.len()));
            recent[place].clone_from(&frame);
            let interface = [0, 1, 2, 3, 70_000][rng.random_range(0..5)];
            let seen = parse::parse(&frame);
            let due = rules::choose(&policy, &interfaces, &seen, rules::Outside { mark: 0, interface });
            let found = classifier.classify(&frame, interface);
            assert_eq!(
                (found.rule, found.class, found.kind),
                (due.0, due.1.into(), seen.kind),
                "seed {seed}: of {frame:02x?}, seen as {seen:?}"
            );
            matched += u32::from(due.0 < abi::SL_RULES);
            let is_lldp = frame.get(12..14) == Some(&[0x88, 0xcc]);
            assert_eq!(found.is_control(), (abi::SL_RULE_ARP..abi::SL_RULE_NONE).contains(&due.0), "seed {seed}");
            assert_eq!(found.is_never_queued(), found.is_control() || is_lldp, "seed {seed}: of {frame:02x?}");
            control += u32::from(found.is_control());
            malformed += u32::from(abi::parse_kinds().nth(seen.kind as usize).is_some_and(|kind| kind.malformed));
        }
    }
    assert!(matched > 500 && malformed > 500 && control > 50, "{matched} matched, {malformed} bad, {control} built in");
}

#[test]
fn hashes_tell_flows_and_hosts_apart() {
    let resolved = sluice_policy::resolve(
        &sluice_policy::parse(&sluice_policy::Source::new(
            "flows",
            r#"{ "scheduler": "strict_priority", "classes": [{ "id": 0, "priority": 0 }] }"#,
        ))
        .expect("valid"),
        &sluice_policy::Context::default(),
    )
    .expect("resolves");
    let context = sluice_tables::Context::ethernet(&[]);
    let classifier = Classifier::new(sluice_tables::compile(&resolved, &context).expect("fits"));
    let packet = |host: u8, port: u16, ecn: u8| {
        let mut ip = etherparse::Ipv4Header::new(12, 9, etherparse::IpNumber::UDP, [10, 0, 0, host], [10, 9, 9, 9])
            .expect("short");
        ip.ecn = ecn.try_into().expect("two bits");
        let headers = etherparse::IpHeaders::Ipv4(ip, Default::default());
        let mut bytes = Vec::new();
        let step = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6]).ip(headers);
        step.udp(port, 6).write(&mut bytes, &[7; 4]).expect("memory");
        classifier.classify(&bytes, 0)
    };
    let mut flows = HashMap::new();
    let mut hosts = HashMap::new();
    for host in 0..40 {
        for port in 1000..1100 {
            let found = packet(host, port, 0);
            assert!(!found.can_be_marked() && packet(host, port, 1).can_be_marked());
            assert_eq!(found.flow_hash, packet(host, port, 1).flow_hash);
            *flows.entry(found.flow_hash).or_insert(0) += 1;
            hosts.entry(found.src_host).or_insert(host);
            assert_eq!(found.dst_host, packet(0, 1, 0).dst_host);
        }
    }
    // 4,000 hashes of 32 bits: two collisions have a probability of 10^-6; 40 of 16 bits: more than two one of 10^-6.
    assert!(flows.len() >= 3_998, "{}", flows.len());
    assert!(hosts.len() >= 37, "{}", hosts.len());
}

/// Frames that keep a network up are never queued, unless a rule of the policy takes them; others are.
#[test]
fn what_keeps_a_network_up_is_never_queued() {
    let classifier = |rules: &str| {
        let text = format!(
            r#"{{ "scheduler": "strict_priority", "classes": [{{ "id": 0, "priority": 0 }}, {{ "id": 1, "priority": 1 }}], "default_class": 1, "rules": [{rules}] }}"#
        );
        let policy = sluice_policy::parse(&sluice_policy::Source::new("never queued", &*text)).expect("valid");
        let resolved = sluice_policy::resolve(&policy, &sluice_policy::Context::default()).expect("resolves");
        Classifier::new(sluice_tables::compile(&resolved, &sluice_tables::Context::ethernet(&[])).expect("fits"))
    };
    let of_type = |ethertype: u16| {
        let mut frame = [[2; 12].as_slice(), &ethertype.to_be_bytes()].concat();
        frame.resize(60, 0);
        frame
    };
    let udp = |from: u16, to: u16| {
        let mut bytes = Vec::new();
        let step = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([0, 0, 0, 0], [255; 4], 64);
        step.udp(from, to).write(&mut bytes, &[7; 30]).expect("memory");
        bytes
    };
    let plain = classifier("");
    let never = |frame: &[u8]| plain.classify(frame, 0).is_never_queued();
    assert!(never(&of_type(0x0806)) && never(&of_type(0x88cc)) && never(&udp(68, 67)));
    assert!(!never(&of_type(0x88cd)) && !never(&udp(68, 69)) && !never(&[0x88, 0xcc]));
    assert!(!plain.classify(&of_type(0x88cc), 0).is_control(), "no rule knows LLDP");
    let own = classifier(r#"{ "priority": 1, "protocol": "udp", "dst_port": 67, "class_id": 1 }"#);
    assert!(!own.classify(&udp(68, 67), 0).is_never_queued(), "the policy's rule takes it");
}
