//! `sluice top`: its figures against the packets sent and tc's counters; interfaces that come and go; bad input.

use crate::cases::assert_near;
use crate::command::{Output, await_that, run};
use crate::lab::{Engine, Lab, binary, traces};
use crate::needs::is_icount;
use crate::net::{B, Pair};
use crate::policy::{by_port, other, port, three};
use crate::suite::Suite;
use crate::terminal::Terminal;
use crate::traffic::{self, Flow};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::net::UdpSocket;
use std::os::unix::process::CommandExt;
use std::thread;
use std::time::Duration;

/// Time limit of a reaction to a key or a signal.
const LONG: Duration = Duration::from_secs(30);

pub fn suite() -> Suite {
    Suite::new("top")
        .alike_everywhere()
        .both("rates_equal_the_traffic", &[], rates)
        .both("totals_are_those_of_tc", &[], totals)
        .both("a_table_for_people", &[], table)
        .qdisc("the_state_of_the_discipline", &[], discipline)
        .both("buckets_before_the_queues", &[], buckets)
        .both("interface_events_are_shown", &[], events)
        .any("all_interfaces", &[], all_interfaces)
        .any("gives_the_terminal_back", &[], gives_back)
        .any("on_terminals_of_all_kinds", &[], all_kinds)
        .any("bad_input", &[], bad_input)
        .any("outputs_that_end", &[], outputs_that_end)
        .any("pins_of_another_version", &[], other_version)
}

/// The output of `top --once --json` for an interface.
#[track_caller]
pub fn once(lab: &Lab, pair: &Pair, interval: &str) -> Value {
    let output = lab.sluice(&pair.a, &["top", "a0", "--once", "--json", "--interval", interval]).ok();
    let all: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output}"));
    all["interfaces"][0].clone()
}

fn class(direction: &Value, id: u64) -> &Value {
    let classes = direction["classes"].as_array().expect("classes");
    classes.iter().find(|class| class["id"] == id).unwrap_or_else(|| panic!("no class {id}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// 4 Mbit/s of urgent traffic and 25 of other traffic, on 20.
fn rates(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let flows = [Flow::new(port(0), &[514], 4_000_000), Flow::new(port(2), &[1514], 25_000_000)];
    let streams = traffic::start(&pair.a, &pair.b, B, &flows);
    thread::sleep(Duration::from_millis(500));
    let seen = once(lab, &pair, "1s");
    streams.finish(|| lab.status(&pair.a, "a0").direction("egress").totals().1);
    let egress = &seen["directions"][0];
    let (urgent, bulk) = (class(egress, 0), class(egress, 2));
    // Elsewhere other work takes the CPU from the senders.
    let part = if is_icount() { 0.03 } else { 0.25 };
    assert_near("what the urgent class sends", number(&urgent["sent_bps"]), 4e6, part);
    assert_near("what the interface sends", number(&egress["sent_bps"]), 20e6, part);
    assert_near("the part of the rate that is used", number(&egress["use"]), 1.0, part);
    assert_near("packets of the urgent class", number(&urgent["sent_pps"]), 4e6 / 8.0 / 514.0, part);
    assert_near("the share of bulk", number(&bulk["share"]), 0.8, part);
    assert_eq!(number(&urgent["dropped_pps"]), 0.0);
    assert_near(
        "what bulk loses",
        number(&bulk["dropped_pps"]),
        9e6 / 8.0 / 1514.0,
        if is_icount() { 0.1 } else { 1.0 },
    );
    let reasons = bulk["drops_pps"].as_object().expect("reasons");
    let sum: f64 = reasons.values().map(number).sum();
    assert_near("drops by reason", sum, number(&bulk["dropped_pps"]), 1e-6);
    assert!(number(&bulk["backlog"]["pkts"]) > 50.0, "its queue is full: {}", bulk["backlog"]);
    assert!(number(&bulk["backlog_fill"]) > 0.5, "{}", bulk["backlog_fill"]);
    let rule = seen["rules"].as_array().expect("rules").iter().find(|rule| rule["name"] == "to 0").expect("a rule");
    assert_near("hits of the rule", number(&rule["matched_pps"]), 4e6 / 8.0 / 514.0, part);
    if lab.engine == Engine::Qdisc {
        let wait = |class: &Value, what: &str| number(&class["sojourn"][what]);
        assert!(wait(urgent, "p99_us") < wait(bulk, "p50_us"), "the urgent wait less: {urgent} {bulk}");
        // 100 frames of 1514 bytes at 16 Mbit/s, and a bucket of the histogram is right to 12.5 %.
        let full_us = 100.0 * 1514.0 * 8.0 / 16.0;
        assert_near("the wait in a full queue", wait(bulk, "p50_us"), full_us, if is_icount() { 0.15 } else { 0.5 });
        assert!(wait(bulk, "max_us") >= wait(bulk, "p99_us"), "{bulk}");
        assert!(number(&egress["link_fill"]) < 0.5, "the bucket of a busy link is empty: {}", egress["link_fill"]);
    } else {
        assert_eq!(bulk["sojourn"], Value::Null, "engine tc does not tell");
    }
    lab.down(&pair.a, "a0");
}

fn totals(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "50mbit"]);
    let flows = [0, 1, 2].map(|class| Flow::new(port(class), &[214, 1014], 6_000_000));
    let outcomes = traffic::run(&pair.a, &pair.b, B, &flows, Duration::from_millis(700), || 0);
    let (pkts, bytes) = outcomes.iter().fold((0, 0), |sum, one| (sum.0 + one.received(), sum.1 + one.bytes()));
    let seen = once(lab, &pair, "200ms");
    let sum = |key: &str| {
        let classes = seen["directions"][0]["classes"].as_array().expect("classes");
        classes.iter().map(|class| class["sent"][key].as_u64().expect("a count")).sum::<u64>()
    };
    assert_eq!((sum("pkts"), sum("bytes")), (pkts, bytes), "what left is what arrived");
    if lab.engine == Engine::Tc {
        let root = pair.a.root("a0").expect("a root qdisc");
        assert_eq!((root.packets, root.bytes), (pkts, bytes), "and what tc counts");
    }
    lab.down(&pair.a, "a0");
}

fn table(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let output = lab.sluice(&pair.a, &["top", "--once", "--interval", "100ms"]).ok();
    for part in ["a0  policy", "strict_priority", "of 20 Mbit/s", "0 control", "2 bulk", "wait p50", "bucket"] {
        assert!(output.stdout.contains(part), "`{part}` is missing: {output}");
    }
    assert!(!output.stdout.contains('\x1b'), "no colours without a terminal: {output}");
    // The live view needs a terminal.
    lab.sluice(&pair.a, &["top"]).exits(2).says("needs a terminal").says("--once");
    lab.down(&pair.a, "a0");
}

/// Only disciplines that have deadlines and lags report them; a ceiling's bucket is empty while its class wants more.
fn discipline(lab: &Lab) {
    let pair = lab.pair();
    let policy = by_port(
        "eevdf",
        json!([
            { "id": 0, "name": "one", "weight": 1, "limit": 200 },
            { "id": 1, "name": "three", "weight": 3, "limit": 200, "ceil": "5mbit" },
        ]),
    );
    lab.up(&pair.a, "a0", &lab.policy(&policy), &["--rate", "20mbit"]);
    let flows = [0, 1].map(|class| Flow::new(port(class), &[1014], 25_000_000));
    let streams = traffic::start(&pair.a, &pair.b, B, &flows);
    thread::sleep(Duration::from_millis(300));
    let seen = once(lab, &pair, "500ms");
    streams.finish(|| lab.status(&pair.a, "a0").direction("egress").totals().1);
    let egress = &seen["directions"][0];
    let (one, three) = (class(egress, 0), class(egress, 1));
    assert_eq!((number(&one["promised_share"]), number(&three["promised_share"])), (0.25, 0.75));
    assert_near("the class with a ceiling", number(&three["sent_bps"]), 5e6, if is_icount() { 0.03 } else { 0.3 });
    assert!(number(&three["ceil_fill"]) < 0.5, "its bucket is all but empty: {three}");
    assert_eq!(one["ceil_fill"], Value::Null, "the other has none");
    assert!(number(&egress["scheduler"]["virtual_time"]) > 0.0, "{egress}");
    assert!(number(&one["state"]["virtual_deadline"]) > number(&one["state"]["virtual_start"]), "{one}");
    lab.down(&pair.a, "a0");
}

/// The buckets of policers are read as well: of a class, of a shared ceiling, of the interface. They are full without packets,
/// and almost empty under overload.
fn buckets(lab: &Lab) {
    let pair = lab.pair();
    let shared = json!({ "name": format!("test-{}", std::process::id()), "rate": "2mbit", "burst": "8kb" });
    let mut policy = by_port(
        "deficit_round_robin",
        json!([
            { "id": 0, "name": "policed", "ceil": "2mbit", "police": true, "burst": "8kb" },
            { "id": 1, "name": "shared", "shared_ceil": shared },
            { "id": 2, "name": "free", "flow_ceil": "50mbit" },
        ]),
    );
    policy["limits"] = json!({ "egress": "90mbit", "egress_burst": "256kb" });
    lab.up(&pair.a, "a0", &lab.policy(&policy), &["--rate", "100mbit"]);
    let fills = |seen: &Value| {
        let egress = &seen["directions"][0];
        let of = |id: u64, key: &str| class(egress, id)[key].as_f64();
        (of(0, "ceil_fill"), of(1, "shared_ceil_fill"), egress["limit_fill"].as_f64(), of(2, "ceil_fill"))
    };
    // A scheduler of ours reads its configuration at the first packet.
    pair.a.inside(|| UdpSocket::bind("0.0.0.0:0")?.send_to(&[0; 100], (B, port(2)))).expect("sending a packet");
    let seen = once(lab, &pair, "100ms");
    assert_eq!(fills(&seen), (Some(1.0), Some(1.0), Some(1.0), None), "{seen}");
    let egress = &seen["directions"][0];
    assert_eq!((&egress["limit_bps"], &class(egress, 2)["flow_ceil_bps"]), (&json!(90_000_000), &json!(50_000_000)));
    let flows = [0, 1].map(|id| Flow::new(port(id), &[514], 10_000_000));
    let streams = traffic::start(&pair.a, &pair.b, B, &flows);
    // The senders may be held up for a moment, in which buckets fill.
    await_that("both are all but empty", LONG, || {
        let (policed, shared, limit, _) = fills(&once(lab, &pair, "100ms"));
        policed.is_some_and(|fill| fill < 0.5)
            && shared.is_some_and(|fill| fill < 0.5)
            && limit.is_some_and(|fill| fill > 0.2)
    });
    let table = lab.sluice(&pair.a, &["top", "a0", "--once", "--interval", "100ms"]).ok();
    assert!(table.stdout.contains("at most 90 Mbit/s (bucket "), "{table}");
    streams.finish(|| lab.status(&pair.a, "a0").direction("egress").totals().1);
    await_that("they fill again", LONG, || fills(&once(lab, &pair, "100ms")).0 == Some(1.0));
    let status = lab.sluice(&pair.a, &["status", "a0"]).ok();
    assert!(status.stdout.contains("bucket") && status.stdout.contains("100 %"), "{status}");
    lab.down(&pair.a, "a0");
}

fn events(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let top = lab.start(&pair.a, &["top", "a0", "--json", "--interval", "100ms"]);
    top.await_stdout_lines("{", 2);
    lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&other()), "--quiet"]).ok();
    top.await_stdout_lines("\"new_policy\"", 1);
    lab.down(&pair.a, "a0");
    top.await_stdout_lines("\"down\"", 1);
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    top.await_stdout_lines("\"set_up_anew\"", 1);
    top.signal(Signal::SIGTERM);
    let output = top.finish();
    let lines: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect();
    let events: Vec<&str> = lines
        .iter()
        .flat_map(|line| line["events"].as_array().expect("events"))
        .filter_map(|one| one["what"].as_str())
        .collect();
    assert_eq!(events, ["new_policy", "down", "set_up_anew"], "{output}");
    let counts: Vec<usize> = lines.iter().map(|line| line["interfaces"].as_array().map_or(0, Vec::len)).collect();
    assert!(counts.contains(&0) && counts.last() == Some(&1), "it is missing while it is down: {counts:?}");
    lab.down(&pair.a, "a0");
}

/// All interfaces of a namespace are followed, also under another name, and also later ones.
fn all_interfaces(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let top = lab.start(&pair.a, &["top", "--json", "--interval", "100ms"]);
    top.await_stdout_lines("{", 1);
    // A name may change at any time, also during a reading.
    pair.a.ip("link set a0 down");
    let names = ["a0", "renamed"];
    for turn in 0..11 {
        pair.a.ip(&format!("link set {} name {}", names[turn % 2], names[(turn + 1) % 2]));
        thread::sleep(Duration::from_millis(130));
    }
    pair.a.ip("link set renamed up");
    top.await_stdout_lines("\"renamed\"", 2);
    pair.a.ip("link add late type veth peer name late1");
    lab.up(&pair.a, "late", &lab.policy(&three()), &["--rate", "20mbit"]);
    top.await_stdout_lines("{\"interface\":\"late\",\"what\":\"up\"", 1);
    top.signal(Signal::SIGTERM);
    let output = top.finish();
    let lines: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect();
    let names = |line: &Value| -> Vec<String> {
        let all = line["interfaces"].as_array().expect("interfaces");
        all.iter().map(|one| one["interface"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let interfaces: Vec<Vec<String>> = lines.iter().map(names).collect();
    let last = vec!["late".to_owned(), "renamed".to_owned()];
    assert_eq!((interfaces.first(), interfaces.last()), (Some(&vec!["a0".to_owned()]), Some(&last)), "{output}");
    for one in interfaces {
        assert!(["a0", "renamed"].iter().any(|name| one == [*name]) || one == last, "{one:?}\n{output}");
    }
    let events: Vec<&Value> = lines.iter().flat_map(|line| line["events"].as_array().expect("events")).collect();
    assert_eq!(events, [&json!({ "interface": "late", "what": "up" })], "a new name is no event");
    lab.down(&pair.a, "late");
    lab.down(&pair.a, "renamed");
    pair.a.ip("link del late");
}

/// The terminal is restored, however the command ends. Panics are tested next to the code.
fn gives_back(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    type End = fn(&mut Terminal);
    let ends: [(&str, End); 4] = [
        ("SIGTERM", |terminal| terminal.signal(Signal::SIGTERM)),
        ("SIGINT", |terminal| terminal.signal(Signal::SIGINT)),
        ("q", |terminal| terminal.press("q")),
        ("Ctrl-C", |terminal| terminal.press("\x03")),
    ];
    for (how, end) in ends {
        for command in ["top", "flows"] {
            let mut terminal = Terminal::start(&mut lab.command(&pair.a, &[command, "a0"]), 80, 24);
            terminal.shows("sluice top");
            assert!(terminal.is_raw() && terminal.screen().screen().alternate_screen(), "{command} has taken it over");
            await_that("the cursor is hidden", LONG, || terminal.screen().screen().hide_cursor());
            end(&mut terminal);
            let left = terminal.finish();
            eprintln!("    {command} by {how}: exit code {:?}", left.output.code);
            left.output.ok();
            assert_eq!(left.screen.screen().contents().trim(), "", "{command} leaves nothing behind");
        }
    }
    // A view that cannot be shown leaves the screen alone; the error is printed there.
    let refused = |command: &mut std::process::Command, messages: [&str; 2]| {
        let left = Terminal::start(command, 80, 24).finish();
        left.output.exits(2);
        let shown = left.screen.screen().contents();
        assert!(messages.iter().all(|part| shown.contains(part)), "{shown}");
        assert!(!String::from_utf8_lossy(&left.written).contains("\x1b[?1049h"), "it was never taken over: {shown}");
    };
    refused(&mut lab.command(&pair.a, &["top", "nope0"]), ["no interface `nope0`", "a0"]);
    refused(lab.command(&pair.a, &["top"]).env("TERM", "dumb"), ["TERM=dumb", "--once"]);
    lab.down(&pair.a, "a0");
}

/// Small and large terminals, one that changes its size, one without colours, and a dumb one.
fn all_kinds(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    for (columns, rows) in [(20, 5), (80, 24), (300, 100)] {
        let mut terminal = Terminal::start(&mut lab.command(&pair.a, &["top", "a0"]), columns, rows);
        terminal.shows("control");
        for key in ["d", "r", "f", "c", "?"] {
            terminal.press(key);
        }
        terminal.shows(" help ");
        terminal.press("?");
        await_that("the help has gone", LONG, || !terminal.screen().screen().contents().contains(" help "));
        // Each size is drawn anew, to its last column.
        terminal.resize(columns + 10, rows + 2);
        await_that("the new size is used", LONG, || {
            let screen = terminal.screen();
            let last = screen.screen().cell(0, columns + 9).map(|cell| cell.inverse());
            last == Some(true) && screen.screen().contents().contains("a0  policy-1")
        });
        // A key that comes together with a new size is not lost.
        terminal.resize(columns, rows);
        terminal.press("q");
        terminal.finish().output.ok();
    }
    let colored = |set: fn(&mut std::process::Command) -> &mut std::process::Command| {
        let mut command = lab.command(&pair.a, &["top", "a0"]);
        set(command.env_remove("NO_COLOR"));
        let mut terminal = Terminal::start(&mut command, 80, 24);
        terminal.shows("strict_priority");
        let screen = terminal.screen();
        let cells = (0..24).flat_map(|row| (0..80).map(move |column| (row, column)));
        let colors = cells.filter_map(|(row, column)| screen.screen().cell(row, column));
        let any = colors.into_iter().any(|cell| cell.fgcolor() != vt100::Color::Default);
        terminal.press("q");
        terminal.finish().output.ok();
        any
    };
    assert!(colored(|command| command), "keys have a colour");
    assert!(!colored(|command| command.env("NO_COLOR", "1")), "NO_COLOR is heeded");
    assert!(!colored(|command| command.args(["--color", "never"])), "--color never is heeded");
    lab.down(&pair.a, "a0");
}

/// Reading commands, and their errors.
fn bad_input(lab: &Lab) {
    let pair = lab.pair();
    for command in ["top", "flows"] {
        let look = |more: &[&str]| lab.sluice(&pair.a, &[&[command][..], more].concat());
        look(&["--once"]).exits(2).says("no interface is managed here").says("sluice up");
        look(&["nope0", "--once"]).exits(2).says("no interface `nope0`").says("a0");
        look(&["a0", "--once"]).exits(2).says("a0 is not managed").says("sluice up a0");
        for interval in ["0", "10ms", "2h", "fast", "-1s"] {
            let interval = format!("--interval={interval}");
            look(&["--once", &interval]).exits(2).says("--interval");
        }
        let mut other_user = std::process::Command::new(binary());
        other_user.args([command, "--once"]).uid(65_534).gid(65_534);
        harmless(run(&mut other_user).exits(4).says("root"));
    }
    for (arguments, message) in
        [(["--csv", "--json"], "cannot be used with"), (["--by", "size"], "rate"), (["--top", "0"], "--top")]
    {
        lab.sluice(&pair.a, &[&["flows"][..], &arguments].concat()).exits(2).says(message);
    }
    for (filter, message) in [
        ("udp tcp", "\"tcp\" comes after another of its kind"),
        ("dst 192.0.2.1 dst 192.0.2.2", "comes after another"),
        ("src 192.0.2.1 dst 2001:db8::1", "one address is of IPv4"),
        ("icmp dport 7", "ICMP has no ports"),
        ("dport 70000", "is no port"),
        ("src", "needs a value"),
        ("--count 0", "--count"),
        ("--one-in 0", "would trace nothing"),
    ] {
        let words: Vec<&str> = filter.split(' ').collect();
        lab.sluice(&pair.a, &[&["trace", "a0", "--for", "1s"][..], &words].concat()).exits(2).says(message);
    }
    assert!(traces(pair.a.inode).is_empty(), "{:?}", traces(pair.a.inode));
}

fn harmless(output: Output) {
    assert!(!output.stderr.contains("panicked"), "{output}");
}

/// The output is closed, or its device is full: no command panics, and none continues to listen.
fn outputs_that_end(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let shell = |line: &str, code: i32| {
        let line = line.replace("sluice", &format!("{} --netns {}", binary().display(), pair.a.name));
        harmless(run(std::process::Command::new("bash").args(["-c", &line])).exits(code));
    };
    // The first line is printed, and then there is no event: the command still ends, and another one may listen.
    shell("sluice events a0 | true; sluice trace a0 | true; sluice events a0 --for 1s", 0);
    for command in ["top --json", "flows --csv"] {
        shell(&format!("sluice {command} --interval 100ms | head -n 1"), 0);
    }
    // The last two commands have nothing to print.
    let commands = ["status", "status --json", "top --once", "flows --once", "events --for 1s", "trace a0 --for 1s"];
    for (place, command) in commands.iter().enumerate() {
        shell(&format!("sluice {command} > /dev/full"), i32::from(place < 4));
        shell(&format!("sluice {command} < /dev/null >&-"), 0);
    }
    lab.down(&pair.a, "a0");
}

/// Changes the pins as if another version of the product had made them.
fn other_version(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let pins = traces(pair.a.inode).into_iter().find(|path| path.join("tables").exists()).expect("pins");
    let tables = crate::pins::Map::open(&pins.join("tables"));
    let own = [0, 1].map(|buffer| tables.value(buffer));
    for version in [Some(77u32), None] {
        for (buffer, own) in own.iter().enumerate() {
            let mut value = own.clone();
            if let Some(version) = version {
                value[..4].copy_from_slice(&version.to_ne_bytes());
            }
            tables.set(buffer as u32, &value);
        }
        for command in ["top", "flows", "status"] {
            let once: &[&str] =
                if command == "status" { &["status"] } else { &[command, "--once", "--interval", "100ms"] };
            let output = lab.sluice(&pair.a, once);
            if version.is_some() {
                harmless(output.exits(1).says("ABI version 77").says("sluice down"));
            } else {
                output.ok();
            }
        }
    }
    lab.down(&pair.a, "a0");
}
