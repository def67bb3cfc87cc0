//! `/metrics`: read by Prometheus itself and by its tools; the alerts and the dashboard that ship are checked against it.

use crate::command::{Output, Process, await_that, run, words};
use crate::lab::Lab;
use crate::needs::Need;
use crate::net::{A, B, Ns, Pair, SERVER};
use crate::policy::{one_policed, port, three};
use crate::server::Server;
use crate::suite::Suite;
use crate::traffic::{self, Flow};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(40);
const RULES: &str = include_str!("../../../packaging/prometheus/sluice.rules.yml");
const RULES_TEST: &str = include_str!("../../../packaging/prometheus/sluice.test.yml");
const DASHBOARD: &str = include_str!("../../../packaging/grafana/sluice.json");

pub fn suite() -> Suite {
    Suite::new("metrics")
        .alike_everywhere()
        .both("counters_equal_the_packets_sent", &[], counters_equal_the_packets_sent)
        .any("forwards_are_counted_everywhere", &[], forwards_are_counted_everywhere)
        .any("counts_by_key", &[], counts_by_key)
        .any("prometheus_scrapes_them", &[Need::Equipped], prometheus_scrapes_them)
        .any("alerts_are_right", &[Need::Equipped], alerts_are_right)
}

fn begin(lab: &Lab) -> (Pair, Server) {
    let pair = lab.pair();
    let mut policy = three();
    policy["classes"][0]["ceil"] = "5mbit".into();
    policy["classes"][0]["police"] = true.into();
    policy["classes"][0]["peak"] = "15mbit".into();
    policy["forwards"] =
        json!([{ "name": "web", "protocol": "tcp", "port": 9, "targets": "10.77.0.2", "source": "masquerade" }]);
    lab.up(&pair.a, "a0", &lab.policy(&policy), &["--rate", "20mbit"]);
    let server = Server::start(lab, &pair.a, &[]);
    (pair, server)
}

/// The value of a series by its name and labels as they are printed.
fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

fn of_class(name: &str, class: &str, more: &str) -> String {
    format!("{name}{{interface=\"a0\",direction=\"egress\",class=\"{class}\"{more}}}")
}

fn counters_equal_the_packets_sent(lab: &Lab) {
    let (pair, server) = begin(lab);
    let flows = [Flow::new(port(1), &[500], 2_000_000), Flow::new(port(2), &[1000], 30_000_000)];
    let streams = traffic::start(&pair.a, &pair.b, "10.77.0.2", &flows);
    std::thread::sleep(Duration::from_secs(3));
    let dropped = || lab.status(&pair.a, "a0").egress(2).dropped.pkts;
    let outcomes = streams.finish(dropped);
    std::thread::sleep(Duration::from_millis(2200));
    let text = server.get("/metrics").body;
    let status = lab.status(&pair.a, "a0");
    for (class, id, outcome) in [("game", 1, &outcomes[0]), ("bulk", 2, &outcomes[1])] {
        let metric = |name: &str| {
            value(&text, &of_class(name, class, "")).unwrap_or_else(|| panic!("no {name} of {class} in\n{text}"))
        };
        assert_eq!(metric("sluice_class_sent_packets_total"), outcome.received() as f64);
        assert_eq!(metric("sluice_class_sent_bytes_total"), status.egress(id).sent.bytes as f64);
        assert_eq!(metric("sluice_class_backlog_packets"), 0.0);
        let drops = text.lines().filter(|line| {
            line.starts_with("sluice_class_dropped_packets_total{interface=\"a0\",direction=\"egress\"")
        });
        let of_it = drops.filter(|line| line.contains(&format!("class=\"{class}\"")));
        let sum: f64 = of_it.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum();
        assert_eq!(sum, outcome.lost() as f64, "drops of {class} by reason");
        let rule = format!(
            "sluice_rule_matched_packets_total{{interface=\"a0\",rule=\"to {id}\",priority=\"{}\",class=\"{class}\"}}",
            100 + id
        );
        assert_eq!(value(&text, &rule), Some(outcome.sent as f64));
        if status.engine == "qdisc" {
            assert_eq!(metric("sluice_class_sojourn_seconds_count"), outcome.received() as f64);
            let of_it = format!("interface=\"a0\",direction=\"egress\",class=\"{class}\"");
            let buckets = text
                .lines()
                .filter(|line| line.starts_with("sluice_class_sojourn_seconds_bucket{") && line.contains(&of_it));
            let counts: Vec<f64> = buckets.filter_map(|line| line.rsplit_once(' ')?.1.parse().ok()).collect();
            assert!(counts.len() == 20 && counts.is_sorted(), "{counts:?}");
            assert_eq!(counts.last(), Some(&(outcome.received() as f64)));
        }
    }
    let of_control = |name: &str, more: &str| value(&text, &of_class(name, "control", more));
    assert_eq!(of_control("sluice_class_bucket_fill_ratio", ",bucket=\"ceil\""), Some(1.0), "{text}");
    assert_eq!(of_control("sluice_class_bucket_fill_ratio", ",bucket=\"peak\""), Some(1.0), "{text}");
    assert_eq!(of_control("sluice_class_peak_bytes_per_second", ""), Some(1_875_000.0), "{text}");
    assert_eq!(of_control("sluice_class_ceiling_bytes_per_second", ""), Some(625_000.0));
    assert!(outcomes[1].lost() > 0, "bulk was sent more than the link carries");
    if status.engine == "qdisc" {
        // The queue of bulk is full: 100 packets of 1000 bytes at 18 Mbit/s.
        let mean_s = value(&text, &of_class("sluice_class_sojourn_seconds_sum", "bulk", "")).expect("a sum")
            / outcomes[1].received() as f64;
        super::assert_near("mean wait of bulk", mean_s, 100.0 * 8000.0 / 18e6, 0.25);
    } else {
        assert!(!text.contains("sojourn"), "engine tc does not tell it");
    }
    assert_eq!(value(&text, "sluice_policy_reloads_total{interface=\"a0\"}"), Some(0.0));
    assert_eq!(
        value(&text, "sluice_interface_rate_bytes_per_second{interface=\"a0\",direction=\"egress\"}"),
        Some(2.5e6)
    );
    super::serve::end(lab, &pair, server);
}

/// Arrivals of an interface without a policy and of one with: each packet that was sent is in a series of its key, also after the interface was
/// away.
fn counts_by_key(lab: &Lab) {
    let pair = lab.pair();
    let policy = one_policed();
    lab.up(&pair.a, "a0", &lab.policy(&policy), &[]);
    for (key, cure) in [("b0:dport", "proto, class, dscp and verdict"), ("b0", "eth0:proto,class"), (":proto", "eth0:")]
    {
        lab.sluice(&pair.b, &["serve", "--listen", "127.0.0.1:0", "--count", key]).exits(2).says(cure);
    }
    let twice = ["serve", "--listen", "127.0.0.1:0", "--count", "b0:proto", "--count", "b0:dscp"];
    lab.sluice(&pair.b, &twice).exits(2).says("name each interface once");
    lab.sluice(&pair.b, &["serve", "--listen", "127.0.0.1:0", "--count", "b7:proto"]).exits(2).says("b7");

    let managing = Server::start(lab, &pair.a, &["--count", "a0:class,verdict"]);
    let plain = Server::start(lab, &pair.b, &["--count", "b0:proto,class"]);
    let flows = [Flow::new(port(0), &[514], 1_000_000), Flow::new(port(1), &[1014], 6_000_000)];
    let streams = traffic::start(&pair.b, &pair.a, A, &flows);
    std::thread::sleep(Duration::from_millis(600));
    let outcomes = streams.finish_lossy();
    let series = |name: &str, labels: &str| format!("sluice_counted_{name}_total{{interface={labels}}}");
    let passed = series("packets", r#""a0",class="game",verdict="passed""#);
    await_that("the counts of a0", LONG, || {
        value(&managing.get("/metrics").body, &passed) == Some(outcomes[0].sent as f64)
    });
    let text = managing.get("/metrics").body;
    let of_bulk = |verdict: &str| {
        value(&text, &series("packets", &format!(r#""a0",class="bulk",verdict="{verdict}""#))).unwrap_or(0.0)
    };
    assert_eq!(of_bulk("passed") + of_bulk("policed"), outcomes[1].sent as f64, "{text}");
    assert_eq!(of_bulk("passed"), outcomes[1].received() as f64, "{text}");
    let bytes = value(&text, &series("bytes", r#""a0",class="game",verdict="passed""#));
    assert_eq!(bytes, Some(outcomes[0].sent as f64 * 514.0), "{text}");

    let echoes = series("packets", r#""b0",protocol="icmp",class="none""#);
    let ping = || pair.a.tool("ping", &format!("-c 5 -i 0.02 {B}")).ok();
    ping();
    await_that("the counts of b0", LONG, || value(&plain.get("/metrics").body, &echoes) == Some(5.0));
    pair.b.tool("ip", "link set b0 down").ok();
    pair.b.tool("ip", "link set b0 name b1").ok();
    await_that("no count of b0", LONG, || value(&plain.get("/metrics").body, &echoes).is_none());
    pair.b.tool("ip", "link set b1 name b0").ok();
    pair.b.tool("ip", "link set b0 up").ok();
    await_that("b0 is counted again", LONG, || {
        ping();
        value(&plain.get("/metrics").body, &echoes).is_some()
    });
    lab.up(&pair.b, "b0", &lab.policy(&policy), &[]);
    let classed = series("packets", r#""b0",protocol="icmp",class="bulk""#);
    await_that("b0 is counted by the classes that it has now", LONG, || {
        ping();
        value(&plain.get("/metrics").body, &classed).is_some()
    });
    plain.stop(Signal::SIGTERM);
    lab.down(&pair.b, "b0");
    super::serve::end(lab, &pair, managing);
}

/// Datagrams through a forward: metrics and rates equal what was sent, and `explain` says which forward takes them.
fn forwards_are_counted_everywhere(lab: &Lab) {
    const DATAGRAMS: u32 = 300;
    const BYTES: usize = 1000;
    let net = lab.routed();
    let policy = json!({
        "scheduler": "deficit_round_robin", "classes": [{ "id": 0 }, { "id": 1, "name": "games" }], "default_class": 0,
        "forwards": [
            { "name": "game", "protocol": "udp", "port": "100-101", "targets": format!("{SERVER}:8000-8001"), "class_id": 1 },
            { "name": "web", "protocol": "tcp", "port": 80, "source": "masquerade", "targets": ["10.79.0.8", "10.79.0.9"] },
        ]
    });
    lab.up(&net.router, "lan0", &lab.policy(&policy), &[]);
    let server = Server::start(lab, &net.router, &[]);
    let rates = || server.get("/api/interfaces/lan0/rates").json()["forwards"][0].clone();
    await_that("the first rates", LONG, || server.get("/api/interfaces/lan0/rates").status == 200);

    let target = net.server.inside(|| UdpSocket::bind((SERVER, 8001))).expect("a port");
    let client = net.client.inside(|| UdpSocket::bind(("10.78.0.2", 0))).expect("a port");
    client.connect("10.78.0.1:101").expect("a route");
    let mut seen = Vec::new();
    for n in 0..DATAGRAMS {
        let mut bytes = [0; BYTES];
        client.send(&bytes).expect("sending");
        let (length, from) = target.recv_from(&mut bytes).expect("the datagram");
        target.send_to(&bytes[..length / 2], from).expect("answering");
        client.recv(&mut bytes).expect("the answer");
        std::thread::sleep(Duration::from_millis(10));
        if n % 50 == 49 {
            seen.push(rates());
        }
    }
    let highest = |of: &str| seen.iter().filter_map(|one| one[of].as_f64()).fold(0.0, f64::max);
    assert!(seen.iter().all(|one| one["name"] == "game" && one["refused_pps"] == 0.0), "{seen:?}");
    assert!(highest("opened_per_s") > 0.0 && highest("from_targets_pps") > 20.0, "{seen:?}");
    let (up, down) = (highest("from_clients_bps"), highest("from_targets_bps"));
    assert!(up > 100_000.0 && down > 0.4 * up && down < 0.65 * up, "{seen:?}");

    std::thread::sleep(Duration::from_millis(2200));
    let text = server.get("/metrics").body;
    let of = |name: &str, more: &str| value(&text, &format!("{name}{{interface=\"lan0\",forward=\"game\"{more}}}"));
    let sides = [(",from=\"clients\"", BYTES), (",from=\"targets\"", BYTES / 2)];
    for (side, bytes) in sides {
        assert_eq!(of("sluice_forward_passed_packets_total", side), Some(f64::from(DATAGRAMS)), "{text}");
        let on_wire = f64::from(DATAGRAMS) * (bytes + 42) as f64;
        assert_eq!(of("sluice_forward_passed_bytes_total", side), Some(on_wire), "{text}");
    }
    assert_eq!(of("sluice_forward_opened_connections_total", ""), Some(1.0));
    assert_eq!(of("sluice_forward_open_connections", ""), Some(1.0));
    let refused = text.lines().filter(|line| line.starts_with("sluice_forward_refused_packets_total{"));
    assert_eq!(refused.filter(|line| line.ends_with(" 0")).count(), 22, "each reason of each forward: {text}");

    let status = lab.status(&net.router, "lan0").forwards;
    assert!(status.iter().all(|forward| forward.refused.is_empty()), "{status:?}");

    let once = lab.sluice(&net.router, &["top", "lan0", "--once"]).ok().stdout;
    assert!(once.contains("  game") && once.contains("any:100-101"), "{once}");
    let explain = |words: &[&str]| {
        let answer = lab.sluice(&net.router, &[&["explain", "lan0", "--json"], words].concat()).ok().stdout;
        serde_json::from_str::<Value>(&answer).expect("JSON")[0]["forward"].clone()
    };
    let game = explain(&["--arriving", "udp", "10.78.0.2:9", "10.79.0.1:101"]);
    assert_eq!(
        (&game["name"], &game["class"], &game["source"]),
        (&json!("game"), &json!(1), &json!("keep")),
        "{game:#}"
    );
    let way = json!({ "kind": "peer", "interface": "wan0" });
    assert_eq!(
        game["targets"],
        json!([{ "to": format!("{SERVER}:8001"), "translated": false, "weight": 1, "way": way }])
    );
    assert_eq!(explain(&["udp", "10.78.0.2:9", "10.78.0.1:101"])["takes"], false, "it departs");
    let web = explain(&["--arriving", "tcp", "10.78.0.2:9", "10.78.0.1:80"]);
    assert_eq!(web["targets"].as_array().map(Vec::len), Some(2), "{web:#}");
    assert!(
        explain(&["--arriving", "tcp", "10.78.0.2:9", &format!("{SERVER}:80")]).is_null(),
        "it is not for this host"
    );
    server.stop(Signal::SIGTERM);
    lab.down(&net.router, "lan0");
}

fn promtool(arguments: &str) -> Command {
    let mut command = words("promtool", arguments);
    command.stdin(Stdio::null());
    command
}

fn alerts_are_right(lab: &Lab) {
    let rules = lab.file("sluice.rules.yml", RULES);
    let test = lab.file("sluice.test.yml", RULES_TEST);
    run(&mut promtool(&format!("check rules {}", rules.display()))).ok();
    run(&mut promtool(&format!("test rules {}", test.display()))).ok();
    // Every alert has a test.
    for name in RULES.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(RULES_TEST.matches(name).count() >= 2, "{name} is not tested both ways");
    }
}

fn prometheus_scrapes_them(lab: &Lab) {
    let (pair, server) = begin(lab);
    let metrics = lab.file("metrics.txt", server.get("/metrics").body);
    let check = format!("promtool check metrics < {}", metrics.display());
    let checked = run(Command::new("sh").args(["-c", &check])).ok();
    assert!(checked.stderr.is_empty() && checked.stdout.is_empty(), "promtool has something to say: {checked}");

    let prometheus = Prometheus::start(lab, &pair.a, &server);
    await_that("Prometheus scrapes", LONG, || !prometheus.found("up{job=\"sluice\"} == 1").is_empty());
    let flows = [Flow::new(port(1), &[500], 2_000_000), Flow::new(port(2), &[1000], 30_000_000)];
    let streams = traffic::start(&pair.a, &pair.b, "10.77.0.2", &flows);
    std::thread::sleep(Duration::from_secs(7));
    dashboard_is_answered(&prometheus, lab.status(&pair.a, "a0").engine == "qdisc");
    let outcomes = streams.finish(|| lab.status(&pair.a, "a0").egress(2).dropped.pkts);
    let last = |expression: &str| {
        prometheus.found(expression)[0]["value"][1].as_str().and_then(|value| value.parse::<f64>().ok())
    };
    await_that("what Prometheus keeps is what was sent", LONG, || {
        let sent =
            |class| last(&format!("sum(sluice_class_sent_packets_total{{direction=\"egress\",class=\"{class}\"}})"));
        sent("game") == Some(outcomes[0].received() as f64) && sent("bulk") == Some(outcomes[1].received() as f64)
    });
    let types = prometheus.get("/api/v1/metadata?metric=sluice_class_sent_bytes");
    assert!(
        types.stdout.contains("counter") && types.stdout.contains("bytes"),
        "OpenMetrics tells type and unit: {types}"
    );
    let rules = prometheus.get("/api/v1/rules");
    assert!(!rules.stdout.contains("\"health\":\"err\"") && rules.stdout.contains("SluiceLinkFull"), "{rules}");
    prometheus.stop();
    super::serve::end(lab, &pair, server);
}

/// A Prometheus that scrapes a `sluice serve` every second and evaluates the rules that ship.
struct Prometheus<'a> {
    ns: &'a Ns,
    process: Process,
    data: PathBuf,
}

impl<'a> Prometheus<'a> {
    fn start(lab: &Lab, ns: &'a Ns, server: &Server) -> Prometheus<'a> {
        let place = server.place.trim_start_matches("http://");
        let rules = lab.file("sluice.rules.yml", RULES);
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{}]\nscrape_configs:\n  - job_name: sluice\n    static_configs: [{{targets: ['{place}']}}]\n",
            rules.display()
        );
        let config = lab.file("prometheus.yml", config);
        let data = config.with_file_name("prometheus-data");
        let line = format!(
            "netns exec {} prometheus --config.file={} --storage.tsdb.path={} --web.listen-address=127.0.0.1:9090",
            ns.name,
            config.display(),
            data.display()
        );
        Prometheus { ns, process: Process::start(&mut words("ip", &line)), data }
    }

    fn query(&self, expression: &str) -> Value {
        let url = "http://127.0.0.1:9090/api/v1/query";
        let arguments = ["-s", "-m", "10", "--data-urlencode", &format!("query={expression}"), url];
        let output = self.ns.inside(|| run(Command::new("curl").args(arguments)));
        serde_json::from_str(&output.stdout).unwrap_or(Value::Null)
    }

    /// The series that an expression finds.
    fn found(&self, expression: &str) -> Vec<Value> {
        self.query(expression)["data"]["result"].as_array().cloned().unwrap_or_default()
    }

    fn get(&self, path: &str) -> Output {
        self.ns.inside(|| run(&mut words("curl", &format!("-s http://127.0.0.1:9090{path}")))).ok()
    }

    fn stop(self) {
        self.process.signal(Signal::SIGTERM);
        self.process.finish().ok();
        let _ = std::fs::remove_dir_all(self.data);
    }
}

/// Every expression of the dashboard has an answer, save waits without engine `qdisc` and changes, of which there are none.
fn dashboard_is_answered(prometheus: &Prometheus, qdisc: bool) {
    let queries = dashboard_queries();
    assert!(queries.len() > 15, "{queries:?}");
    for expression in &queries {
        let answer = prometheus.query(expression);
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        let nothing = answer["data"]["result"].as_array().is_none_or(Vec::is_empty);
        assert_eq!(
            nothing,
            expression.contains("sojourn") && !qdisc || expression.contains("changes("),
            "{expression}: {answer}"
        );
    }
}

/// Every expression of the dashboard, its variables filled in.
fn dashboard_queries() -> Vec<String> {
    fn collect(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                into.extend(fields.get("expr").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|field| collect(field, into));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    collect(&serde_json::from_str(DASHBOARD).expect("the dashboard is JSON"), &mut all);
    let filled = [("$__rate_interval", "5s"), ("$instance", ".*"), ("$interface", ".*"), ("$direction", "egress")];
    all.into_iter().map(|one| filled.iter().fold(one, |text, (name, value)| text.replace(name, value))).collect()
}
