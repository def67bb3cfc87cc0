//! `sluice serve`, and requests to it by curl, as any user's script sends them.

use crate::command::{Output, Process, await_that, run};
use crate::lab::Lab;
use crate::net::Ns;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

/// Time limit of a start.
const STARTS: Duration = Duration::from_secs(20);

/// A server in a namespace.
pub struct Server {
    ns: Ns,
    process: Process,
    /// `http://127.0.0.1:PORT`.
    pub place: String,
    /// The token from the file that the server has named; empty if one was given.
    pub token: String,
}

/// The server's answer to a request.
#[derive(Debug)]
pub struct Reply {
    /// Status of HTTP.
    pub status: u32,
    /// Status line and headers.
    pub head: String,
    /// The body.
    pub body: String,
}

impl Reply {
    fn of(answer: &str) -> Reply {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no headers: {answer}"));
        let status = head.split_whitespace().nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Reply { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// The body of a successful reply as JSON.
    #[track_caller]
    pub fn json(self) -> Value {
        assert_eq!(self.status, 200, "{}\n{}", self.head, self.body);
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The reply, which must be a refusal with this status and text.
    #[track_caller]
    pub fn refuses(self, status: u32, what: &str) -> Reply {
        assert_eq!(self.status, status, "{}", self.body);
        assert!(self.body.contains(what), "`{what}` is not in {}", self.body);
        let printed: Value = serde_json::from_str(&self.body).expect("a refusal is JSON");
        assert!(printed["cure"].as_str().is_some_and(|cure| !cure.is_empty()), "no cure in {printed}");
        self
    }
}

impl Server {
    /// Starts the server on a free port of the loopback.
    pub fn start(lab: &Lab, ns: &Ns, more: &[&str]) -> Server {
        Server::start_at(lab, ns, "127.0.0.1:0", more)
    }

    /// Starts the server on another address.
    pub fn start_at(lab: &Lab, ns: &Ns, listen: &str, more: &[&str]) -> Server {
        let mut process = lab.start(ns, &[&["serve", "--listen", listen], more].concat());
        await_that("sluice serve says where it is", STARTS, || {
            process.stdout().contains("Ctrl-C ends it.") || process.has_ended()
        });
        let printed = process.stdout();
        let line = |begin: &str| printed.lines().find_map(|line| line.strip_prefix(begin));
        let Some(place) = line("Serving at ") else { panic!("sluice serve has ended: {}", process.finish()) };
        assert!(!printed.contains("token="), "a log has other readers: {printed}");
        let token = line("The token for changes is in ").map(|path| std::fs::read_to_string(path).expect("the token"));
        Server {
            ns: ns.clone(),
            process,
            place: place.trim_end_matches('/').to_owned(),
            token: token.unwrap_or_default().trim().to_owned(),
        }
    }

    /// Sends a request by curl with these arguments.
    pub fn curl(&self, path: &str, arguments: &[&str]) -> Reply {
        let url = format!("{}{path}", self.place);
        let output =
            self.ns.inside(|| run(Command::new("curl").args(["-s", "-S", "-i", "-m", "20"]).args(arguments).arg(&url)));
        Reply::of(&output.ok().stdout)
    }

    /// The answer to a request without a token.
    pub fn get(&self, path: &str) -> Reply {
        self.curl(path, &[])
    }

    /// Posts JSON with the server's token.
    pub fn post(&self, path: &str, body: &Value) -> Reply {
        let token = format!("Authorization: Bearer {}", self.token);
        self.curl(path, &["-H", &token, "-H", "Content-Type: application/json", "-d", &body.to_string()])
    }

    /// The same without curl, which a plain machine lacks.
    pub fn post_plainly(&self, path: &str, body: &Value) -> Reply {
        let (body, mut connection) = (body.to_string(), self.connect());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.token,
            body.len()
        );
        let mut answer = String::new();
        let done =
            connection.write_all((head + &body).as_bytes()).and_then(|()| connection.read_to_string(&mut answer));
        done.unwrap_or_else(|error| panic!("POST {path}: {error}"));
        Reply::of(&answer)
    }

    /// Opens a connection to the server.
    pub fn connect(&self) -> TcpStream {
        let place = self.place.rsplit('/').next().unwrap_or_default().to_owned();
        self.ns.inside(|| TcpStream::connect(&place)).unwrap_or_else(|error| panic!("connecting to {place}: {error}"))
    }

    /// Sends the server a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Ends the server, which must succeed.
    pub fn stop(self, signal: Signal) -> Output {
        self.process.signal(signal);
        self.process.finish().ok()
    }
}
