//! Attempts of a user who may only read the page: none of them opens files, fills memory, or blocks the server for others.

use super::{begin, end};
use crate::cases::confirm::waiting;
use crate::command::{await_that, run};
use crate::lab::Lab;
use crate::net::Ns;
use crate::suite::Suite;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time limit of each step.
const LONG: Duration = Duration::from_secs(20);
/// The memory limit of the server, KiB.
const MAX_KIB: u64 = 1 << 19;
/// The connection limit of the server.
const MAX_CONNECTIONS: usize = 256;

pub fn suite() -> Suite {
    Suite::new("hostile")
        .alike_everywhere()
        .any("interface_name_is_no_path", &[], interface_name_is_no_path)
        .any("a_long_wrong_policy", &[], a_long_wrong_policy)
        .any("who_sends_on_reads_the_refusal", &[], who_sends_on_reads_the_refusal)
        .any("many_connections", &[], many_connections)
        .any("only_root_reads_the_token", &[], only_root_reads_the_token)
}

/// The history of an interface was once read at whatever path its name made: another user's file was shown, and a FIFO there
/// blocked the whole interface, even against SIGTERM.
fn interface_name_is_no_path(lab: &Lab) {
    let (pair, server) = begin(lab);
    let of = |name: &str| format!("{name}@{}.json", pair.a.inode);
    let secret = lab.file(&of("secret"), "\"TOPSECRET\"");
    let fifo = secret.with_file_name(of("fifo"));
    mkfifo(&fifo, Mode::S_IRUSR | Mode::S_IWUSR).expect("a FIFO");
    let directory = secret.parent().expect("a directory").display().to_string().replace('/', "%2F");
    for name in ["secret", "fifo"] {
        for path in ["", "/history", "/history/1", "/policy", "/rates"] {
            let reply = server.get(&format!("/api/interfaces/{directory}%2F{name}{path}"));
            let reply = reply.refuses(404, "no interface");
            assert!(!reply.body.contains("TOPSECRET"), "{}", reply.body);
        }
    }
    for name in ["..", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "a%0ab", "a%00b", &"x".repeat(300)] {
        let reply = server.get(&format!("/api/interfaces/{name}/history"));
        assert!([400, 404].contains(&reply.status), "{name}: {}", reply.body);
    }
    // A FIFO at such a path does not keep the server from ending.
    let begin = Instant::now();
    end(lab, &pair, server);
    assert!(begin.elapsed() < LONG, "it ends when it is asked to");
}

/// The peak memory of a process, KiB.
fn peak_kib(ns: &Ns) -> u64 {
    let pids = waiting(ns);
    assert_eq!(pids.len(), 1, "the server alone is in the namespace: {pids:?}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", pids[0])).expect("a process");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    peak.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Long policies with an error in every place: those once took minutes and gigabytes, and their answers were longer than
/// themselves.
fn a_long_wrong_policy(lab: &Lab) {
    let (pair, server) = begin(lab);
    let ends = |of: &str, each: &str| {
        format!("{{ \"classes\": [{{ \"id\": 0 }}], \"{of}\": [{}] }}", each.repeat(3_800_000 / each.len()))
    };
    let many = |count: usize| format!("{{ \"classes\": [{{ \"id\": 0 }}], \"rules\": [{}] }}", "1,".repeat(count));
    for text in [
        many(100_000),
        ends("rules", "1,"),
        ends("rules", "{\"name\":\"a longer one, with a text\"},"),
        "[".repeat(3_800_000),
    ] {
        let body = lab.file("long.json", json!({ "text": text }).to_string()).display().to_string();
        let data = format!("@{body}");
        let send = |token: &str| {
            let kind = ["-H", "Content-Type: application/json", "-H", "Expect:", "--data-binary", &data];
            server.curl(
                "/api/interfaces/a0/check",
                &[&kind, &["-H", &format!("Authorization: Bearer {token}")][..]].concat(),
            )
        };
        let begin = Instant::now();
        let reply = send(&server.token);
        eprintln!("    {:?}: {} {} bytes, {} KiB", begin.elapsed(), reply.status, reply.body.len(), peak_kib(&pair.a));
        assert!(reply.body.len() < 300_000, "{} bytes", reply.body.len());
        assert!(reply.status == 413 || reply.body.contains("\"valid\":false"), "status {}", reply.status);
        assert!(peak_kib(&pair.a) < MAX_KIB, "{} KiB", peak_kib(&pair.a));
        send("0123456789abcdef").refuses(401, "not the token");
    }
    end(lab, &pair, server);
}

/// A client that was refused while it sent a long policy, piece by piece, was cut off before it had read why.
fn who_sends_on_reads_the_refusal(lab: &Lab) {
    let (pair, server) = begin(lab);
    let token = format!("Authorization: Bearer {}\r\n", server.token);
    let piece = vec![b'['; 100_000];
    for (interface, token, pieces, status) in
        [("a0", "", 20, "401"), ("no:name", token.as_str(), 20, "404"), ("a0", token.as_str(), 60, "413")]
    {
        let mut client = server.connect();
        client.set_read_timeout(Some(LONG)).expect("a time limit");
        let head = format!(
            "POST /api/interfaces/{interface}/check HTTP/1.1\r\nHost: {}\r\n{token}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            server.place.trim_start_matches("http://"),
            pieces * piece.len()
        );
        client.write_all(head.as_bytes()).expect("the head");
        for n in 0..pieces {
            client.write_all(&piece).unwrap_or_else(|error| panic!("{status}, piece {n}: {error}"));
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut answer = [0; 12];
        client.read_exact(&mut answer).expect("an answer");
        assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {status}"));
    }
    end(lab, &pair, server);
}

fn many_connections(lab: &Lab) {
    let (pair, server) = begin(lab);
    let mut all: Vec<_> = (0..MAX_CONNECTIONS + 40).map(|_| server.connect()).collect();
    all.iter().for_each(|one| one.set_nonblocking(true).expect("a socket that does not wait"));
    await_that("those above the most are closed at once", LONG, || {
        let open = |one: &mut std::net::TcpStream| matches!(one.read(&mut [0; 16]), Err(error) if error.kind() == ErrorKind::WouldBlock);
        all.iter_mut().filter_map(|one| open(one).then_some(())).count() <= MAX_CONNECTIONS
    });
    drop(all);
    await_that("there is room again", LONG, || {
        let url = format!("{}/api/interfaces", server.place);
        pair.a.inside(|| run(Command::new("curl").args(["-s", "-f", "-m", "20", &url]))).code == Some(0)
    });
    end(lab, &pair, server);
}

/// The server's output goes to the journal, which others read.
fn only_root_reads_the_token(lab: &Lab) {
    let (pair, server) = begin(lab);
    assert_eq!(server.token.len(), 48);
    let port = server.place.rsplit(':').next().expect("a port");
    let path = format!("/run/sluice/serve-{port}@{}.token", pair.a.inode);
    assert_eq!(std::fs::read_to_string(&path).expect("a file").trim(), server.token);
    let others = run(Command::new("cat").arg(&path).uid(65_534).gid(65_534));
    assert_ne!(others.code, Some(0), "{others}");
    end(lab, &pair, server);
    assert!(!std::path::Path::new(&path).exists(), "it goes with the server");
}
