//! Meanings of shipped and published profiles after resolving.

use sluice_policy::*;

const PUBLISHED: &str = include_str!("../../../lab/contenders/published.json");

fn resolved(text: &str, rate: Option<&str>) -> Resolved {
    let policy = parse(&Source::new("test.json", text)).unwrap_or_else(|errors| panic!("{errors}"));
    let context = Context { link_rate: rate.map(|rate| rate.parse().unwrap()), ..Context::default() };
    resolve(&policy, &context).unwrap_or_else(|errors| panic!("{errors}"))
}

fn kinds(resolved: &Resolved) -> Vec<Kind> {
    resolved.remarks.iter().map(|remark| remark.kind()).collect()
}

#[test]
fn the_published_profile_loads_unchanged_with_the_stated_meanings() {
    let policy = resolved(PUBLISHED, Some("40mbit"));
    assert_eq!(policy.scheduler, Scheduler::STRICT_PRIORITY);
    let ids: Vec<u8> = policy.classes.iter().map(|class| class.id.0).collect();
    assert_eq!(ids, [0, 1, 2, 5], "ids have gaps");
    let class = |id| policy.class(ClassId(id)).unwrap();
    assert_eq!((class(0).priority, class(1).priority), (0, 0), "control and gaming are equally urgent");
    assert_eq!(policy.urgent_class, ClassId(0), "the smallest priority number, then the smallest id");
    assert_eq!(policy.default_class, ClassId(5), "the largest priority number, then the largest id");

    assert_eq!((class(0).ceil, class(0).burst), (None, None), "0 is no limit");
    assert_eq!(class(2).ceil, Some(Rate(40_000_000)), "50 Mbit/s is lowered to the link");
    assert_eq!(class(2).burst, Some(Bytes(1 << 20)));
    assert_eq!(class(5).ceil.map(Rate::bytes_per_s), Some(1_250_000), "10 Mbit/s in bytes per second");
    assert_eq!(class(5).burst, Some(Bytes(102_400)), "100 kB are 100 x 1024");
    assert_eq!(class(5).exceed, Exceed::Shape);
    assert_eq!(class(5).quantum_bytes, 1500);
    assert_eq!(kinds(&policy), [Kind::SmallQuantum, Kind::CeilClamped]);

    // 0.0.0.0/0 is any address of either family, 0/0 any port.
    assert!(policy.rules.iter().all(|rule| rule.src.is_empty() && rule.dst.is_empty()));
    let first = &policy.rules[0];
    assert!(first.src_ports.is_empty() && first.dst_ports == [(3074, 3075)]);
    assert_eq!((first.rule.protocol, first.rule.class, first.rule.line), (Protocol::Udp, ClassId(1), 11));
    assert!(policy.rules.iter().all(|rule| rule.rule.protocol != Protocol::Icmp), "ping is bulk there");
}

#[test]
fn shipped_profiles_suit_any_link() {
    for profile in ["gaming", "server", "default"] {
        let (source, file) = load(&format!("{}/../../policies/{profile}.json", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let policy = file.one().unwrap();
        assert_eq!(policy.name, profile);
        assert!(policy.link.rate.is_none(), "the rate is the user's");
        for rate in ["1mbit", "20mbit", "1gbit", "100gbit"] {
            let resolved = resolved(source.text(), Some(rate));
            assert_eq!(resolved.remarks.count(Severity::Warning), 0, "{profile} at {rate}:\n{}", resolved.remarks);
            let rest = resolved.class(resolved.default_class).unwrap();
            assert_eq!(rest.ceil, None, "what has no rule may use what is left");
            assert!(resolved.classes.iter().all(|class| class.queue.flows().is_some()), "what sends little goes first");
        }
        assert_eq!(resolved(source.text(), Some("20mbit")).remarks.len(), 0, "{profile}");
        assert!(kinds(&resolved(source.text(), None)).iter().all(|kind| *kind == Kind::LinkRateUnknown));
    }
}

/// The limit keeps queues short where the kernel has neither our queues nor fq_codel.
#[test]
fn no_profile_needs_codel_to_keep_queues_short() {
    for text in [
        include_str!("../../../policies/default.json"),
        include_str!("../../../policies/gaming.json"),
        include_str!("../../../policies/server.json"),
    ] {
        for rate in [Rate(20_000_000), Rate(100_000_000)] {
            let policy = resolved(text, Some(&rate.to_string()));
            for class in policy.classes.iter().filter(|class| class.ceil.is_none()) {
                let ms = u64::from(class.fifo_limit_pkts * FRAME_BYTES) * 8_000 / rate.0;
                assert!(ms <= 125, "{} of {} may wait {ms} ms", class.name, policy.name);
            }
        }
    }
}

/// The class that strict priority sends first is bounded on every useful link.
#[test]
fn urgent_classes_of_gaming_have_ceilings() {
    let gaming = resolved(include_str!("../../../policies/gaming.json"), None);
    let last = gaming.classes.iter().map(|class| class.priority).max().unwrap();
    for class in gaming.classes.iter().filter(|class| class.priority < last) {
        assert!(class.ceil.is_some(), "{} could starve the rest", class.name);
    }
}

#[test]
fn default_knows_no_applications() {
    let default = resolved(include_str!("../../../policies/default.json"), None);
    assert!(default.rules.is_empty());
    assert_eq!(default.classes.len(), 1);
}

#[test]
fn server_shares_by_weight() {
    let server = resolved(include_str!("../../../policies/server.json"), None);
    assert_eq!(server.scheduler, Scheduler::WEIGHTED_FAIR_QUEUING);
    assert_eq!(server.classes.iter().map(|class| class.weight).collect::<Vec<_>>(), [3, 5, 4, 2, 1]);
}

#[test]
fn the_published_profile_loads_under_every_scheduler() {
    for scheduler in Scheduler::all() {
        let policy = resolved(&PUBLISHED.replace("strict_priority", scheduler.name()), Some("40mbit"));
        assert_eq!((policy.scheduler, policy.rank), (scheduler, Rank::PRIORITY));
        let small = [Scheduler::STRICT_PRIORITY, Scheduler::DEFICIT_ROUND_ROBIN].contains(&scheduler);
        let expected: &[Kind] = if small { &[Kind::SmallQuantum, Kind::CeilClamped] } else { &[Kind::CeilClamped] };
        assert_eq!(kinds(&policy), expected, "{scheduler}");
    }
}

#[test]
fn open_values_are_chosen() {
    let text = r#"{ "scheduler": "deficit_round_robin", "link": { "overhead": "atm" },
        "classes": [{ "id": 9, "ceil": "2mbit" }, { "id": 3, "ceil": "10mbit", "limit": "50ms" }] }"#;
    let policy = resolved(text, Some("20mbit"));
    let (a, b) = (&policy.classes[0], &policy.classes[1]);
    assert_eq!((a.id, b.id), (ClassId(3), ClassId(9)), "classes are sorted");
    assert_eq!((policy.urgent_class, policy.default_class), (ClassId(3), ClassId(9)));
    assert_eq!((a.name.as_str(), a.weight, a.quantum_bytes), ("class3", 1, 1514));
    assert_eq!((a.burst, b.burst), (Some(Bytes(12_500)), Some(Bytes(3028))), "10 ms, at least two frames");
    assert_eq!((a.limit_bytes, b.limit_bytes), (Some(Bytes(62_500)), None), "50 ms at the ceiling");
    assert_eq!(b.limit_pkts, 64, "100 ms would be 17 packets");
    assert_eq!(policy.flows, 65_536);
    assert_eq!(policy.framing, Framing { overhead_bytes: 40, mpu_bytes: 0, cells: Cells::Atm });
}

#[test]
fn classes_of_engine_tc_do_not_share_slots() {
    let text = r#"{ "scheduler": "deficit_round_robin",
        "classes": [{ "id": 0, "limit": 16384 }, { "id": 1, "limit": 16384 }] }"#;
    let policy = parse(&Source::new("test.json", text)).unwrap();
    assert!(resolve(&policy, &Context::default()).is_err());
    let tc = resolve(&policy, &Context { engine: Engine::Tc, ..Context::default() }).unwrap();
    assert_eq!(tc.classes[1].limit_pkts, 16_384);
}

#[test]
fn table_shows_effective_values() {
    let text = r#"{ "name": "test", "scheduler": "strict_priority", "link": { "overhead": "ethernet" },
        "classes": [
            { "id": 0, "name": "voice", "priority": 0, "ceil": "2mbit", "police": true },
            { "id": 5, "name": "bulk", "priority": 3, "limit": "64kb" } ],
        "rules": [
            { "name": "sip", "priority": 20, "dst_port_min": 5060, "dst_port_max": 5061, "class_id": 0 },
            { "priority": 10, "src_ip": "2001:db8::/32", "protocol": "udp", "dscp": "ef", "class_id": 0 } ] }"#;
    let expected = "\
policy         test
scheduler      strict_priority
link           20mbit, ethernet framing: +38 bytes a packet, at least 84
default class  5 bulk
urgent class   0 voice (ARP, ND and DHCP)
flow table     65536 entries

class  name   priority  quantum   ceil  burst  above ceil      limit  or bytes
    0  voice         0     1514  2mbit  3028b  drop          64 pkts         -
    5  bulk          3     1514      -      -  -           1000 pkts      64kb

rule  name  protocol  from           to port    dscp  class
  10  -     udp       2001:db8::/32  any        ef    0 voice
  20  sip   any       any            5060-5061  any   0 voice
";
    let shown = table(&resolved(text, Some("20mbit")), None);
    assert_eq!(shown, expected, "\n{shown}");
}

#[test]
fn table_shows_the_keys_of_the_discipline() {
    let shown = |text: &str, resolution| {
        let text = table(&resolved(text, Some("20mbit")), resolution);
        let (settings, classes) = text.split_once("\n\n").unwrap();
        let rank = settings.lines().find(|line| line.starts_with("rank")).map(String::from);
        (rank, classes.lines().take(3).map(|line| format!("{line}\n")).collect::<String>())
    };
    let (rank, classes) = shown(
        r#"{ "scheduler": "pifo", "rank": "earliest_deadline", "classes": [
            { "id": 0, "name": "voice", "latency_budget": "5ms" },
            { "id": 1, "name": "video", "latency_budget": "0.15s" } ] }"#,
        Some("66 us"),
    );
    assert_eq!(rank.as_deref(), Some("rank           earliest_deadline, exact to 66 us"));
    let expected = "\
class  name   priority  latency budget     limit
    0  voice         0             5ms  166 pkts
    1  video         0           150ms  166 pkts
";
    assert_eq!(classes, expected, "\n{classes}");
    let (rank, classes) = shown(
        r#"{ "scheduler": "eevdf", "classes": [
            { "id": 0, "name": "voice", "weight": 3, "quantum": 300 }, { "id": 1, "name": "bulk" } ] }"#,
        None,
    );
    assert_eq!(rank, None);
    let expected = "\
class  name   priority  weight  quantum     limit
    0  voice         0       3      300  166 pkts
    1  bulk          0       1     1514  166 pkts
";
    assert_eq!(classes, expected, "\n{classes}");
    let (rank, classes) =
        shown(r#"{ "scheduler": "pifo", "classes": [{ "id": 0, "name": "all", "priority": 4 }] }"#, None);
    assert_eq!(rank.as_deref(), Some("rank           priority"));
    assert!(classes.starts_with("class  name  priority     limit\n"), "\n{classes}");
}

#[test]
fn the_table_shows_how_classes_queue() {
    let text = r#"{ "scheduler": "deficit_round_robin", "classes": [
        { "id": 0, "name": "calls", "aqm": "codel", "target": "1ms" },
        { "id": 1, "name": "bulk", "queue": "flows", "hosts": "source", "allowance": "64kb" },
        { "id": 2, "name": "slow", "queue": "flows", "ceil": "1mbit" },
        { "id": 3, "name": "rest" } ] }"#;
    let shown = table(&resolved(text, Some("20mbit")), None);
    let classes: String =
        shown.lines().skip_while(|line| !line.starts_with("class")).take(5).map(|line| format!("{line}\n")).collect();
    let expected = "\
class  name   priority  quantum   ceil  burst  above ceil       limit  queue  fair to hosts  allowance  aqm     target  interval
    0  calls         0     1514      -      -  -             166 pkts  fifo   -                      -  codel      1ms     100ms
    1  bulk          0     1514      -      -  -           16384 pkts  flows  source              64kb  codel      5ms     100ms
    2  slow          0     1514  1mbit  3028b  wait        16384 pkts  flows  both              48448b  codel  18168us  113168us
    3  rest          0     1514      -      -  -             166 pkts  fifo   -                      -  -            -         -
";
    assert_eq!(classes, expected, "\n{classes}");
}

#[test]
fn queues_are_resolved() {
    let text = r#"{ "scheduler": "deficit_round_robin", "default_class": 0, "classes": [
        { "id": 0, "queue": "flows" }, { "id": 1 }, { "id": 2, "queue": "flows", "limit": 500 },
        { "id": 5, "queue": "flows", "aqm": "none" },
        { "id": 3, "aqm": "codel", "ceil": "1mbit" }, { "id": 4, "aqm": "codel", "ceil": "1mbit", "police": true } ] }"#;
    let policy = resolved(text, Some("20mbit"));
    let limits: Vec<u32> = policy.classes.iter().map(|class| class.limit_pkts).collect();
    assert_eq!(
        limits,
        [16_384, 166, 500, 64, 64, 166],
        "flows that CoDel watches may have all, and take nothing from the others"
    );
    let as_fifos: Vec<u32> = policy.classes.iter().map(|class| class.fifo_limit_pkts).collect();
    assert_eq!(as_fifos, [166, 166, 500, 64, 64, 166]);
    assert_eq!(policy.remarks.len(), 0, "{}", policy.remarks);
    let targets: Vec<Option<u64>> =
        policy.classes.iter().map(|class| class.codel.map(|codel| codel.target_ns)).collect();
    let usual = Some(5_000_000);
    assert_eq!(
        targets,
        [usual, None, usual, Some(18_168_000), usual, None],
        "a frame and a half at the rate it is sent at"
    );
}

#[test]
fn budgets_choose_the_urgent_and_the_default_class_where_they_order() {
    let chosen = |head: &str| {
        let classes = r#"[{ "id": 0, "latency_budget": "1s", "priority": 1 },
            { "id": 1, "latency_budget": "5ms", "priority": 3 }, { "id": 2, "latency_budget": "5ms", "priority": 2 }]"#;
        let policy = resolved(&format!(r#"{{ {head}, "classes": {classes} }}"#), Some("20mbit"));
        (policy.urgent_class.0, policy.default_class.0)
    };
    assert_eq!(
        chosen(r#""scheduler": "pifo", "rank": "earliest_deadline""#),
        (2, 0),
        "of equal ones the priority tells"
    );
    assert_eq!(chosen(r#""scheduler": "pifo", "rank": "slack", "default_class": 1"#), (2, 1));
    assert_eq!(chosen(r#""scheduler": "pifo", "rank": "priority""#), (0, 1));
    assert_eq!(chosen(r#""scheduler": "eevdf""#), (0, 1));
}

/// The most rules that a policy may have, all different.
fn most_rules() -> String {
    let rule = |n: usize| {
        let (a, b, port) = (n >> 8, n & 255, n * 8 + 1);
        format!(
            r#"{{ "priority": {n}, "src_ip": "10.{a}.{b}.0/24", "dst_port": "{port}-{}", "class_id": 0 }}"#,
            port + 6
        )
    };
    let rules: Vec<String> = (0..MAX_RULES).map(rule).collect();
    format!(r#"{{ "scheduler": "round_robin", "classes": [{{ "id": 0 }}], "rules": [{}] }}"#, rules.join(",\n"))
}

/// Only the first 64 of too many classes are checked: the errors of a hundred thousand classes once took 40 s to find.
#[test]
fn first_of_too_many_classes_are_checked() {
    let classes = vec![r#"{ "id": 0, "name": "a", "unknown": 1 }"#; 1000].join(",");
    let text = format!(r#"{{ "scheduler": "round_robin", "classes": [{classes}] }}"#);
    let found = parse(&Source::new("test.json", text)).expect_err("too many classes");
    assert!(found.iter().any(|finding| finding.kind() == Kind::TooMany), "{found}");
    assert!(found.iter().count() <= 4 * MAX_CLASSES, "{} findings", found.iter().count());
}

#[test]
fn maximum_of_rules_is_parsed_and_printed() {
    let policy = resolved(&most_rules(), Some("20mbit"));
    assert_eq!(policy.rules.len(), MAX_RULES);
    assert_eq!(policy.rules[4095].rule.line, 4096);
    assert!(policy.remarks.is_empty());
    assert_eq!(table(&policy, None).lines().filter(|line| line.ends_with("0 class0")).count(), MAX_RULES + 1);
}

/// Prints the time of each stage with the most rules; `cargo test --release -- --ignored --nocapture`.
#[test]
#[ignore = "prints times: make look"]
fn time_of_maximum_rules() {
    let distinct = most_rules();
    // The values of all rules begin and end alike, so only their lists distinguish them.
    let alike = distinct.replace(
        r#""src_ip": "#,
        r#""dst_ip": ["0.0.0.0/32", "255.255.255.255"], "src_ip": ["0.0.0.0/32", "255.255.255.255", "#,
    );
    let alike = alike.replace(r#"/24""#, r#"/24"]"#).replace(r#""dst_port": ""#, r#""dst_port": [1, 65535, ""#);
    let alike = alike.replace(r#"", "class_id""#, r#""], "class_id""#);
    let covered = distinct.replacen(r#""src_ip": "10.0.0.0/24", "dst_port": "1-7", "#, "", 1);
    let twice = distinct.replace(r#""priority": 4"#, r#""priority": 3"#);
    for text in [distinct, alike, covered, twice] {
        let time = |start: std::time::Instant| start.elapsed().as_millis();
        let start = std::time::Instant::now();
        let policy = parse(&Source::new("test.json", text));
        let parsed = time(start);
        let Ok(policy) = policy.map_err(|errors| println!("{} errors in {parsed} ms", errors.len())) else { continue };
        let start = std::time::Instant::now();
        let resolved = resolve(&policy, &Context::default()).unwrap();
        let done = time(start);
        let start = std::time::Instant::now();
        table(&resolved, None);
        println!("ms: parse {parsed}, resolve {done}, table {}", time(start));
    }
}

#[test]
fn the_table_cuts_lists_short() {
    let text = r#"{ "name": "test", "scheduler": "round_robin", "classes": [{ "id": 0 }],
        "address_sets": { "lan": ["10.0.0.0/8"] },
        "rules": [
            { "priority": 1, "src_ip": ["@lan", "ipv6", "192.0.2.1"], "dst_port": [80, "8000-8999"], "tcp_flags": "syn,!ack",
              "pcp": 3, "class_id": 0 },
            { "priority": 2, "icmp_type": "echo-request", "length_max": 100, "in_interface": "eth0", "mark": "0x10",
              "class_id": 0 } ] }"#;
    let shown = table(&resolved(text, Some("20mbit")), None);
    let expected = "\
rule  from          to port       pcp  icmp          flags     length  in    mark  class
   1  @lan ipv6 +1  80 8000-8999  3    any           syn,!ack  any     any   any   0 class0
   2  any           any           any  echo-request  any       0-100   eth0  16    0 class0
";
    assert!(shown.ends_with(expected), "\n{shown}");
}
