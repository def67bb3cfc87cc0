//! `sluice serve`: bad input, and its access control: tokens, hosts, sites, addresses and TLS.

use super::{begin, end};
use crate::command::run;
use crate::lab::Lab;
use crate::net::Pair;
use crate::policy::{other, three};
use crate::server::Server;
use serde_json::json;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

fn secret(lab: &Lab, name: &str, text: &str, mode: u32) -> String {
    let path = lab.file(name, text);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("chmod");
    path.display().to_string()
}

/// A certificate for 127.0.0.1 and 10.77.0.1, and its key.
fn certificate(lab: &Lab, name: &str) -> (String, String) {
    let [cert, key] = ["crt", "key"].map(|end| lab.file(&format!("{name}.{end}"), "").display().to_string());
    let line = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=sluice \
                -addext subjectAltName=IP:127.0.0.1,IP:10.77.0.1";
    run(Command::new("openssl").args(line.split_whitespace()).args(["-keyout", &key, "-out", &cert])).ok();
    (cert, key)
}

pub fn bad_input(lab: &Lab) {
    let pair = lab.pair();
    let refused = |arguments: &[&str]| {
        let output = lab.sluice(&pair.a, &[&["serve"], arguments].concat()).exits(2);
        assert!(!output.stdout.contains("Serving"), "{output}");
        assert!(output.stderr.contains("help: "), "no cure: {output}");
        output
    };
    refused(&["--listen", "nowhere"]).says("not an address with a port");
    refused(&["--listen", "127.0.0.1"]).says("the port is missing");
    refused(&["--listen", "0.0.0.0:8080"]).says("neither a token nor TLS");
    refused(&["--listen", "10.77.0.1:8080"]).says("neither a token nor TLS").says("ssh -L");
    let token = secret(lab, "token", "0123456789abcdef\n", 0o600);
    refused(&["--listen", "[::]:8080", "--token-file", &token]).says("no TLS");
    refused(&["--listen", "10.77.9.9:8080", "--token-file", &token]).says("no TLS");
    refused(&["--token-file", "/nowhere/token"]).says("cannot be read");
    refused(&["--token-file", &secret(lab, "open", "0123456789abcdef\n", 0o644)]).says("every user").says("chmod");
    refused(&["--token-file", &secret(lab, "short", "abc\n", 0o600)]).says("3 characters");
    let absent = ["--tls-cert", "/nowhere/cert", "--tls-key", "/nowhere/key"];
    refused(&absent).says("--tls-cert /nowhere/cert").says("no certificate can be read");
    refused(&["--tls-cert", &token, "--tls-key", &token]).says("there is no certificate in it");
    lab.sluice(&pair.a, &["serve", "--tls-cert", &token]).exits(2).says("--tls-key");
    let taken = pair.a.inside(|| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let place = taken.local_addr().expect("its address").to_string();
    refused(&["--listen", &place]).says("another program has this port").says("--listen 127.0.0.1:PORT");
    let mut unprivileged = Command::new(crate::lab::binary());
    unprivileged.arg("serve").uid(65_534).gid(65_534);
    run(&mut unprivileged).exits(4).says("root");
}

/// Requests that browsers send for pages of other sites, requests without a token, and paths without an answer.
pub fn guards(lab: &Lab) {
    let (pair, server) = begin(lab);
    reading_is_for_this_site(&server);
    changing_needs_the_token(lab, &pair, &server);
    wrong_paths_are_refused(&pair, &server);
    let head = server.get("/").head.to_lowercase();
    for header in [
        "content-security-policy: default-src 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
    ] {
        assert!(head.contains(header), "{header} is not in {head}");
    }
    end(lab, &pair, server);
}

/// Reads are refused by another host's name, and to the scripts of another site.
fn reading_is_for_this_site(server: &Server) {
    let read = "/api/interfaces/a0";
    assert_eq!(server.get(read).json()["interface"], "a0");
    assert_eq!(server.curl(read, &["-H", &format!("Origin: {}", server.place)]).status, 200);
    assert_eq!(server.curl(read, &["-H", "Host: localhost"]).status, 200);
    for host in ["evil.example", "127.0.0.1.evil.example", "10.77.0.1", "0.0.0.0:80"] {
        server.curl(read, &["-H", &format!("Host: {host}")]).refuses(421, "not one of this machine");
        assert_eq!(server.curl("/", &["-H", &format!("Host: {host}")]).status, 421);
    }
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1"] {
        server.curl(read, &["-H", &format!("Origin: {origin}")]).refuses(403, "another site");
    }
    server.curl(read, &["-H", "Sec-Fetch-Site: cross-site"]).refuses(403, "another site");
    server.curl("/metrics", &["-H", "Sec-Fetch-Site: same-site"]).refuses(403, "another site");
    let link = ["-H", "Sec-Fetch-Site: cross-site", "-H", "Sec-Fetch-Mode: navigate"];
    assert_eq!(server.curl("/", &link).status, 200, "a link on another page may lead here");
    server.curl(read, &link).refuses(403, "another site");
}

fn changing_needs_the_token(lab: &Lab, pair: &Pair, server: &Server) {
    let token = format!("Authorization: Bearer {}", server.token);
    let apply = json!({ "text": other().to_string() }).to_string();
    let change = |more: &[&str]| {
        let kind = ["-H", "Content-Type: application/json", "-d", &apply];
        server.curl("/api/interfaces/a0/apply", &[&kind, more].concat())
    };
    change(&[]).refuses(401, "this needs the token");
    change(&["-H", "Authorization: Bearer wrong"]).refuses(401, "not the token of this server");
    change(&["-H", &format!("Authorization: Basic {}", server.token)]).refuses(401, "not a bearer token");
    change(&["-H", &token, "-H", "Origin: http://evil.example"]).refuses(403, "another site");
    for path in ["check", "confirm", "revert", "rollback"] {
        server.curl(&format!("/api/interfaces/a0/{path}"), &["-d", "{}"]).refuses(401, "this needs the token");
    }
    // The request that a form of another site can send.
    let form = ["-H", &token, "-H", "Content-Type: text/plain", "-d", &apply];
    server.curl("/api/interfaces/a0/apply", &form).refuses(415, "Content-Type");
    assert_eq!(lab.status(&pair.a, "a0").policy.generation, 1, "nothing of this has changed anything");
}

/// Paths, methods, interfaces and numbers that there are not.
fn wrong_paths_are_refused(pair: &Pair, server: &Server) {
    server.get("/api/nothing").refuses(404, "nothing at this path");
    server.get("/nothing").refuses(404, "nothing at this path");
    for (method, path) in [("DELETE", "/api/interfaces/a0"), ("GET", "/api/interfaces/a0/apply"), ("POST", "/")] {
        let refused = server.curl(path, &["-X", method]).refuses(405, method);
        assert!(refused.head.to_lowercase().contains("\r\nallow: "), "{}", refused.head);
    }
    pair.a.ip("link add sluice-in9 type veth peer name sluice-in8");
    server.get("/api/interfaces/sluice-in9").refuses(404, "a device of sluice itself");
    pair.a.ip("link del sluice-in9");
    server.get("/api/interfaces/nope0").refuses(404, "there is no interface `nope0`");
    server.get("/api/interfaces/nope0/rates").refuses(404, "there is no interface `nope0`");
    server.get("/api/interfaces/a0/history/99").refuses(409, "no entry 99");
    for path in ["%FF/history", "a0/history/-1", "a0/history/99999999999999999999", "a0/series?points=-1"] {
        server.get(&format!("/api/interfaces/{path}")).refuses(400, "docs/serve.md");
    }
    server.get("/api/profiles/..%2f..%2fetc%2fpasswd").refuses(404, "no profile");
}

pub fn exposed(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let (cert, key) = certificate(lab, "good");
    let (_, stranger) = certificate(lab, "stranger");
    let token = secret(lab, "token", "0123456789abcdef0123\n", 0o600);
    let files = |key| ["--tls-cert", &cert, "--tls-key", key, "--token-file", &token];
    lab.sluice(&pair.a, &[&["serve", "--listen", "10.77.0.1:0"][..], &files(&stranger)].concat())
        .exits(2)
        .says("not the key of the certificate");
    let server = Server::start_at(lab, &pair.a, "10.77.0.1:0", &files(&key));
    assert!(
        server.place.starts_with("https://10.77.0.1:") && server.token.is_empty(),
        "a secret of a file is not printed"
    );
    let trust = ["--cacert", &cert];
    let bearer = ["-H", "Authorization: Bearer 0123456789abcdef0123"];
    server.curl("/api/interfaces", &trust).refuses(401, "this needs the token");
    server.curl("/metrics", &trust).refuses(401, "this needs the token");
    let all = server.curl("/api/interfaces", &[&trust[..], &bearer].concat()).json();
    assert_eq!(all[0]["name"], "a0");
    // From the other host.
    let url = format!("{}/api/interfaces", server.place);
    let from_b = pair.b.inside(|| run(Command::new("curl").args(["-s"]).args(trust).args(bearer).arg(&url))).ok();
    assert!(from_b.stdout.contains("a0"), "{from_b}");
    let plain = url.replace("https", "http");
    let unencrypted = pair.b.inside(|| run(Command::new("curl").args(["-s", "-m", "5"]).args(bearer).arg(&plain)));
    assert_ne!(unencrypted.code, Some(0), "{unencrypted}");
    end(lab, &pair, server);
}
