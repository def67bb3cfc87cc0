//! `sluice serve`: its answers, and its changes of policies.

mod access;
pub mod hostile;
pub mod pages;

use crate::command::{await_that, run};
use crate::lab::{Engine, Lab, traces};
use crate::needs::Need;
use crate::net::Pair;
use crate::pins::Map;
use crate::policy::{other, port, three};
use crate::server::Server;
use crate::suite::Suite;
use crate::traffic::{self, Flow};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);
/// The largest transfer size of the whole page, bytes.
const MAX_SENT_BYTES: usize = 300_000;

pub fn suite() -> Suite {
    Suite::new("serve")
        .alike_everywhere()
        .any("bad_input", &[Need::Equipped], access::bad_input)
        .any("guards", &[Need::Equipped], access::guards)
        .any("exposed_with_token_and_tls", &[Need::Equipped], access::exposed)
        .both("rates_and_counters_agree_with_status", &[], rates_and_counters_agree_with_status)
        .any("drafts_are_checked", &[Need::Equipped], drafts_are_checked)
        .both("changes_and_takes_back", &[], changes_and_takes_back)
        .any("interfaces_come_and_go", &[Need::Equipped], interfaces_come_and_go)
        .any("slow_senders_are_left", &[Need::Equipped], slow_senders)
        .any("pins_of_another_version", &[Need::Equipped], other_version)
        .any("is_small_and_ends_well", &[Need::Equipped], is_small_and_ends_well)
}

/// An interface with a policy, and the server.
pub fn begin(lab: &Lab) -> (Pair, Server) {
    let pair = lab.pair();
    let file = lab.file("old.json", three().to_string()).display().to_string();
    lab.up(&pair.a, "a0", &file, &["--rate", "20mbit"]);
    let server = Server::start(lab, &pair.a, &[]);
    (pair, server)
}

pub fn end(lab: &Lab, pair: &Pair, server: Server) {
    server.stop(Signal::SIGTERM);
    lab.down(&pair.a, "a0");
    super::confirm::await_no_waiter(&pair.a);
}

/// Counters agree with `sluice status` and with the packets sent; rates with the offered load.
fn rates_and_counters_agree_with_status(lab: &Lab) {
    let (pair, server) = begin(lab);
    let flows = [Flow::new(port(1), &[500], 2_000_000), Flow::new(port(2), &[1000], 4_000_000)];
    let streams = traffic::start(&pair.a, &pair.b, "10.77.0.2", &flows);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(server.get("/api/interfaces/a0/flows").status, 503, "no client has asked for flows before");
    std::thread::sleep(Duration::from_millis(2500));
    let flows = server.get("/api/interfaces/a0/flows").json();
    let rates = server.get("/api/interfaces/a0/rates").json();
    let series = server.get("/api/interfaces/a0/series?points=60").json();
    // Senders that were held up catch up, for which a queue may be too short.
    let outcomes = streams.finish(|| lab.status(&pair.a, "a0").direction("egress").totals().1);
    let class = |id: usize| &rates["directions"][0]["classes"][id];
    super::assert_near("rate of class 1", class(1)["sent_bps"].as_f64().expect("a rate"), 2e6, 0.1);
    super::assert_near("rate of class 2", class(2)["sent_bps"].as_f64().expect("a rate"), 4e6, 0.1);
    for (id, bps) in [(1, 2e6), (2, 4e6)] {
        let mut top = flows["top"].as_array().expect("flows").iter();
        let flow = top.find(|flow| flow["dst_port"] == port(id)).expect("a flow");
        assert_eq!((&flow["dst"], &flow["class"]), (&json!("10.77.0.2"), &json!(id)));
        super::assert_near("rate of its flow", flow["bps"].as_f64().expect("a rate"), bps, 0.1);
    }
    let column = series["series"]
        .as_array()
        .expect("series")
        .iter()
        .find(|one| one["direction"] == "egress" && one["class"] == 2);
    let column = column.expect("class 2");
    // The values of the chart of times in queue.
    let waits: Vec<f64> = column["p99_us"].as_array().expect("points").iter().filter_map(Value::as_f64).collect();
    assert_eq!(waits.iter().any(|us| *us > 0.0), lab.engine == Engine::Qdisc, "p99, microseconds: {waits:?}");
    let points = column["sent_bps"].as_array().expect("points");
    assert_eq!(points.len(), series["at_ms"].as_array().expect("times").len());
    assert!(points.iter().filter_map(Value::as_f64).any(|bps| (3.6e6..4.4e6).contains(&bps)), "{points:?}");
    // A further sample covers the time after the last packet.
    std::thread::sleep(Duration::from_millis(2200));
    let interface = server.get("/api/interfaces/a0").json();
    let latest = server.get("/api/interfaces/a0/rates").json();
    let status = lab.status(&pair.a, "a0");
    for (id, outcome) in [(1, &outcomes[0]), (2, &outcomes[1])] {
        let (sent, dropped) = (status.egress(id).sent, status.egress(id).dropped);
        assert_eq!((sent.pkts, sent.pkts + dropped.pkts), (outcome.received(), outcome.sent));
        // HTB's leaves count only packets: bytes are unknown, not zero.
        assert_eq!(dropped.bytes.is_some(), lab.engine == Engine::Qdisc);
        assert_eq!(interface["directions"][0]["classes"][usize::from(id)]["sent"]["pkts"], sent.pkts);
        assert_eq!(latest["directions"][0]["classes"][usize::from(id)]["sent"]["bytes"], sent.bytes);
        let rule = latest["rules"].as_array().expect("rules").iter().find(|rule| rule["name"] == format!("to {id}"));
        assert_eq!(rule.expect("a rule")["matched"]["pkts"], outcome.sent);
    }
    end(lab, &pair, server);
}

/// The findings are those of `sluice check`, with places; the difference is that of `apply --dry-run`.
fn drafts_are_checked(lab: &Lab) {
    let (pair, server) = begin(lab);
    let check = |text: &str| server.post("/api/interfaces/a0/check", &json!({ "text": text })).json();
    let text = "{\n  \"scheduler\": \"strict_prioritty\",\n  \"classes\": [{ \"id\": 0, \"ceil\": \"5mbti\" }]\n}";
    let found = check(text);
    assert_eq!(found["valid"], false);
    let first = &found["findings"][0];
    assert_eq!((&first["severity"], &first["kind"]), (&json!("error"), &json!("unknown_value")));
    assert_eq!(first["place"]["line"], 2);
    assert_eq!((&first["place"]["column"], &first["place"]["end_column"]), (&json!(16), &json!(34)));
    assert_eq!(first["cures"][0], "did you mean \"strict_priority\"?");
    assert_eq!(found["findings"][1]["place"]["line"], 3);
    assert_eq!(
        (&first["pointer"], &found["findings"][1]["pointer"]),
        (&json!("/scheduler"), &json!("/classes/0/ceil"))
    );
    let file = lab.file("wrong.json", text).display().to_string();
    let printed = lab.sluice(&pair.a, &["check", &file]).exits(2);
    for finding in found["findings"].as_array().expect("findings") {
        let (title, line) = (finding["title"].as_str().unwrap_or("?"), &finding["place"]["line"]);
        assert!(printed.stderr.contains(title) && printed.stderr.contains(&format!(":{line}:")), "{title}: {printed}");
    }
    let broken = &check("{")["findings"][0];
    assert_eq!((&broken["kind"], &broken["pointer"]), (&json!("syntax"), &Value::Null));
    assert_eq!(check("{ \"scheduler\": \"eevdf\" }")["findings"][0]["pointer"], "", "of the whole");
    assert_eq!(check("")["valid"], false);

    let file = lab.file("other.json", other().to_string()).display().to_string();
    let dry = lab.sluice(&pair.a, &["apply", "a0", &file, "--dry-run", "--json"]).ok();
    let dry: Value = serde_json::from_str(&dry.stdout).expect("JSON");
    let found = check(&other().to_string());
    assert_eq!((&found["valid"], &found["changes"]), (&json!(true), &json!(true)));
    let without_name = |of: &Value| {
        let mut settings = of["settings"].as_array().expect("settings").clone();
        settings.retain(|field| field["field"] != "name");
        (settings, of["classes"].clone(), of["rules"].clone())
    };
    assert_eq!(without_name(&found["difference"]), without_name(&dry["difference"]));
    let present = server.get("/api/interfaces/a0/policy").json();
    assert_eq!(check(present["text"].as_str().expect("text"))["changes"], false);
    let table = check(&crate::policy::with(three(), "flow_table", json!(1024)).to_string());
    assert!(table["refused"]["error"].as_str().is_some_and(|why| why.contains("size of the flow table")), "{table}");
    assert_eq!(lab.status(&pair.a, "a0").policy.generation, 1);
    end(lab, &pair, server);
}

fn changes_and_takes_back(lab: &Lab) {
    let (pair, server) = begin(lab);
    let post = |what: &str, body: Value| server.post(&format!("/api/interfaces/a0/{what}"), &body);
    let in_force = || lab.status(&pair.a, "a0").policy.scheduler;
    let text = other().to_string();

    let wrong = post("apply", json!({ "text": "{ \"classes\": [] }" }));
    assert_eq!(wrong.status, 422);
    assert!(wrong.body.contains("findings"), "{}", wrong.body);
    post("apply", json!({ "text": text, "generation": 7 })).refuses(409, "has changed meanwhile");
    post("apply", json!({ "text": text, "confirm_s": 0 })).refuses(422, "confirm_s 0s: this is not between 1s and 24h");
    post("apply", json!({ "text": text, "message": "two\nlines" })).refuses(422, "one line");
    post("apply", json!({ "text": text, "confrim_s": 9 })).refuses(422, "unknown field");
    post("confirm", json!({})).refuses(409, "nothing waits");
    post("revert", json!({})).refuses(409, "nothing waits");
    assert_eq!(in_force(), "strict_priority");

    // The change is kept.
    let done =
        post("apply", json!({ "text": text, "confirm_s": 60, "message": "by the test", "generation": 1 })).json();
    assert_eq!((&done["generation"], &done["unconfirmed"]["former"]), (&json!(2), &json!("old")));
    assert_eq!(in_force(), "deficit_round_robin");
    await_that("the page shows the deadline", LONG, || {
        let reply = server.get("/api/interfaces/a0/rates");
        let rates: Value = serde_json::from_str(&reply.body).unwrap_or_default();
        rates["unconfirmed"]["former"] == "old" && rates["policy"]["generation"] == 2
    });
    post("confirm", json!({})).json();
    assert!(lab.status(&pair.a, "a0").unconfirmed.is_none());

    // The policy is taken back by request, and for want of a confirmation.
    post("apply", json!({ "text": three().to_string(), "confirm_s": 60 })).json();
    assert_eq!(in_force(), "strict_priority");
    assert_eq!(post("revert", json!({})).json()["generation"], 4);
    assert_eq!(in_force(), "deficit_round_robin");
    post("apply", json!({ "text": three().to_string(), "confirm_s": 1 })).json();
    let history = || server.get("/api/interfaces/a0/history").json();
    // The history is written once the former policy is in force again.
    let is_revert = |entry: &Value| entry["what"] == "revert" && entry["number"] == 6;
    await_that("the unconfirmed policy is taken back", LONG, || {
        history().as_array().is_some_and(|entries| entries.last().is_some_and(is_revert))
    });
    assert_eq!(in_force(), "deficit_round_robin");

    let entries = history();
    let outcomes: Vec<(&str, &str)> = entries
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| (entry["what"].as_str().unwrap_or("?"), entry["outcome"].as_str().unwrap_or("?")))
        .collect();
    let reverted = "not confirmed, reverted";
    let (applied, apply, revert) = (("up", "applied"), ("apply", "applied"), ("revert", "applied"));
    assert_eq!(outcomes, [applied, apply, ("apply", reverted), revert, ("apply", reverted), revert]);
    assert_eq!((&entries[1]["message"], &entries[3]["message"]), (&json!("by the test"), &json!("taken back by hand")));
    let first = server.get("/api/interfaces/a0/history/1").json();
    assert!(first["policy"].as_str().is_some_and(|text| text.contains("strict_priority")), "{first}");

    post("rollback", json!({ "number": 1 })).json();
    assert_eq!(in_force(), "strict_priority");
    post("rollback", json!({ "number": 99 })).refuses(409, "no entry 99");
    // The waiting processes were children of the server.
    let zombies = run(Command::new("ps").args(["-eo", "stat,comm"])).ok().stdout;
    assert!(!zombies.lines().any(|line| line.starts_with('Z') && line.contains("sluice")), "{zombies}");
    end(lab, &pair, server);
}

fn interfaces_come_and_go(lab: &Lab) {
    let pair = lab.pair();
    let server = Server::start(lab, &pair.a, &[]);
    assert_eq!(server.get("/api/interfaces").json(), json!([]), "it may start first");
    assert_eq!(server.get("/metrics").status, 200);
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let known = || server.get("/api/interfaces/a0/rates").status == 200;
    await_that("the interface is seen", LONG, known);
    assert_eq!(server.get("/api/interfaces").json()[0]["name"], "a0");
    lab.down(&pair.a, "a0");
    await_that("it has gone", LONG, || !known());
    server.get("/api/interfaces/a0/rates").refuses(404, "not managed");
    lab.up(&pair.a, "a0", &lab.policy(&other()), &["--rate", "20mbit"]);
    await_that("it is back", LONG, known);
    end(lab, &pair, server);
}

/// The server does not wait for a client that sends a byte now and then, neither in the headers nor in the body; others are
/// answered meanwhile.
fn slow_senders(lab: &Lab) {
    let (pair, server) = begin(lab);
    let head = "GET /api/interfaces HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ";
    let body = format!(
        "POST /api/interfaces/a0/check HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{{",
        server.token
    );
    let mut slow = [head, &body].map(|begin| {
        let mut stream = server.connect();
        stream.write_all(begin.as_bytes()).expect("sending");
        stream.set_nonblocking(true).expect("a socket that does not wait");
        (stream, false)
    });
    await_that("both are left", Duration::from_secs(120), || {
        std::thread::sleep(Duration::from_millis(250));
        for (stream, is_over) in &mut slow {
            let closed = match stream.read(&mut [0; 4096]) {
                Ok(count) => count == 0,
                Err(error) => error.kind() != ErrorKind::WouldBlock,
            };
            *is_over |= closed || stream.write_all(b"x").is_err();
        }
        assert_eq!(server.get("/api/interfaces").status, 200, "others are answered");
        slow.iter().all(|(_, is_over)| *is_over)
    });
    end(lab, &pair, server);
}

/// Pins of another version are not read as this version's, and other interfaces are still read.
fn other_version(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let set = |version: Option<u32>, dev: &str| {
        let mark = format!("{dev}@");
        let named =
            |path: &std::path::PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&mark));
        let pins = traces(pair.a.inode).into_iter().find(|path| path.is_dir() && named(path)).expect("pins");
        let tables = Map::open(&pins.join("tables"));
        let own = tables.value(0)[..4].to_vec();
        for buffer in [0, 1] {
            let mut value = tables.value(buffer);
            value[..4].copy_from_slice(&version.map_or(own.clone(), |version| version.to_ne_bytes().to_vec()));
            tables.set(buffer, &value);
        }
        u32::from_ne_bytes(own.try_into().expect("four bytes"))
    };
    let own = set(Some(77), "a0");
    lab.sluice(&pair.a, &["serve", "--listen", "127.0.0.1:0"]).exits(1).says("ABI version 77").says("sluice down");
    set(Some(own), "a0");
    let server = Server::start(lab, &pair.a, &[]);
    pair.a.ip("link add late type veth peer name late1");
    server.signal(Signal::SIGSTOP);
    lab.up(&pair.a, "late", &lab.policy(&three()), &["--rate", "20mbit"]);
    set(Some(77), "late");
    server.signal(Signal::SIGCONT);
    await_that("a0 is read again", LONG, || server.get("/api/interfaces/a0/rates").status == 200);
    let refused = server.get("/api/interfaces/late/rates").refuses(500, "ABI version 77");
    assert!(refused.body.contains("sluice down"), "{}", refused.body);
    server.get("/api/interfaces/late").refuses(500, "ABI version 77");
    assert_eq!(server.get("/api/interfaces/a0/rates").status, 200, "others are read on");
    set(Some(own), "late");
    await_that("late is read", LONG, || server.get("/api/interfaces/late/rates").status == 200);
    lab.down(&pair.a, "late");
    pair.a.ip("link del late");
    end(lab, &pair, server);
}

fn is_small_and_ends_well(lab: &Lab) {
    let (pair, server) = begin(lab);
    let page = server.get("/").body;
    let paths =
        page.split('"').filter(|word| word.ends_with(".js") || word.ends_with(".css") || word.ends_with(".svg"));
    let modules = [
        "api.js",
        "charts.js",
        "editor.js",
        "format.js",
        "highlight.js",
        "lists.js",
        "overview.js",
        "policy.js",
        "subscriber.js",
        "subscribers.js",
        "tables.js",
    ];
    let all: std::collections::BTreeSet<&str> = paths.chain(modules).chain([""]).collect();
    let size = |path: &str| {
        let url = format!("{}/{path}", server.place);
        let arguments =
            ["-s", "-f", "-H", "Accept-Encoding: gzip", "-o", "/dev/null", "-w", "%{size_download} %{size_header}"];
        let printed = pair.a.inside(|| run(Command::new("curl").args(arguments).arg(&url))).ok().stdout;
        printed.split_whitespace().map(|n| n.parse::<usize>().expect("a size")).sum::<usize>()
    };
    let sent: usize = all.into_iter().map(size).sum();
    eprintln!("    the page is {sent} bytes as it is sent");
    assert!((10_000..MAX_SENT_BYTES).contains(&sent), "{sent} bytes");
    let tag = server
        .get("/app.js")
        .head
        .lines()
        .find_map(|line| line.strip_prefix("etag: ").map(str::to_owned))
        .expect("a tag");
    assert_eq!(server.curl("/app.js", &["-H", &format!("If-None-Match: {tag}")]).status, 304, "it is fetched once");

    // A silent client does not keep the server from ending.
    let port = server.place.rsplit(':').next().and_then(|port| port.parse::<u16>().ok()).expect("a port");
    let _silent = pair.a.inside(|| TcpStream::connect(("127.0.0.1", port)).expect("connecting"));
    let begin = Instant::now();
    server.stop(Signal::SIGINT);
    assert!(begin.elapsed() < Duration::from_secs(4), "it took {:?}", begin.elapsed());
    lab.down(&pair.a, "a0");
}
