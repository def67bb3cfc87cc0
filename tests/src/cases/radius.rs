//! FreeRADIUS changes subscribers through `sluice serve`, with the files of the manual.

use super::confirm::waiting;
use crate::command::{Process, await_that, words};
use crate::lab::Lab;
use crate::needs::Need;
use crate::net::Ns;
use crate::server::Server;
use crate::suite::Suite;
use crate::town::{box_between, listed, town};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(20);
/// Files of FreeRADIUS that the manual shows.
const MODULE: &str = include_str!("../../../examples/radius/module");
const POLICY: &str = include_str!("../../../examples/radius/policy");
const MANUAL: &str = include_str!("../../../docs/changing.md");
/// The rest of a configuration, of what the two files need.
const RADIUSD: &str = "
prefix = /usr
confdir = DIR
run_dir = DIR
libdir = /usr/lib/freeradius
pidfile = DIR/radiusd.pid
$INCLUDE DIR/sluice-token.conf
log {
    destination = stdout
    auth = yes
}
thread pool {
    start_servers = 1
    max_servers = 2
    min_spare_servers = 1
    max_spare_servers = 1
}
client loopback {
    ipaddr = 127.0.0.1
    secret = shared-by-both
}
modules {
    always reject {
        rcode = reject
    }
    always ok {
        rcode = ok
    }
    files {
        usersfile = DIR/users
    }
    pap {
    }
    $INCLUDE DIR/module
}
policy {
    $INCLUDE DIR/policy
}
server default {
    listen {
        type = auth
        ipaddr = 127.0.0.1
        port = 1812
    }
    authorize {
        files
        pap
    }
    authenticate {
        Auth-Type PAP {
            pap
        }
    }
    post-auth {
        sluice_plan
    }
}
";
/// Users with the plans that they are to have. A key with quotes tries to remove another subscriber.
const USERS: &str = r#"
a Cleartext-Password := "secret"
    Filter-Id := "work"
b Cleartext-Password := "secret"
    Filter-Id := "gold"
c Cleartext-Password := "secret"
DEFAULT Cleartext-Password := "secret"
    Filter-Id := "work"
"#;
const FORGED: &str = r#"x","values":{}}},{"remove":{"name":"c"#;

pub fn suite() -> Suite {
    Suite::new("radius").alike_everywhere().any("users_get_their_plans", &[Need::Equipped], users_get_their_plans)
}

/// The daemon, with its directory in the test's own.
struct Radius<'a> {
    lab: &'a Lab,
    ns: &'a Ns,
    process: Process,
}

impl<'a> Radius<'a> {
    fn start(lab: &'a Lab, ns: &'a Ns, server: &Server) -> Radius<'a> {
        let module = MODULE.replace("http://127.0.0.1:8080", &server.place);
        assert_ne!(module, MODULE, "the place of the server is in it");
        lab.file("module", module);
        lab.file("policy", POLICY);
        lab.file("users", USERS);
        let token = lab.file("sluice-token.conf", format!("sluice_token = \"{}\"\n", server.token));
        let directory = token.parent().expect("a directory").display().to_string();
        lab.file("radiusd.conf", RADIUSD.replace("DIR", &directory));
        let line = format!("netns exec {} freeradius -f -l stdout -n radiusd -d {directory}", ns.name);
        let mut process = Process::start(&mut words("ip", &line));
        await_that("FreeRADIUS is ready", LONG, || {
            process.stdout().contains("Ready to process") || process.has_ended()
        });
        assert!(!process.has_ended(), "FreeRADIUS has ended: {}", process.finish());
        Radius { lab, ns, process }
    }

    /// The kind of the answer to a user's login.
    fn answer(&self, user: &str) -> String {
        let asked = format!("User-Name = \"{}\"\nUser-Password = \"secret\"\n", user.replace('"', "\\\""));
        let file = self.lab.file("asked", asked).display().to_string();
        let line = format!("-x -r 1 -t 20 -f {file} 127.0.0.1:1812 auth shared-by-both");
        let output = self.ns.tool("radclient", &line);
        let kind = output.stdout.lines().find_map(|line| line.strip_prefix("Received "));
        kind.unwrap_or_else(|| panic!("no answer: {output}")).split(' ').next().unwrap_or_default().to_owned()
    }

    /// Waits for a line of the log with these words.
    fn says(&self, words: &[&str]) {
        await_that(&format!("{words:?} in the log"), LONG, || {
            self.process.stdout().lines().any(|line| words.iter().all(|word| line.contains(word)))
        });
    }
}

/// A login sets the plan; a change that is refused rejects the user, and leaves everything as it was.
fn users_get_their_plans(lab: &Lab) {
    for file in [MODULE, POLICY] {
        assert!(MANUAL.contains(file), "docs/changing.md shows another text than examples/radius: {file}");
    }
    let net = box_between(lab);
    let policy = lab.policy(&town());
    lab.up(&net.router, "lan0", &policy, &[]);
    lab.up(&net.router, "wan0", &policy, &[]);
    let server = Server::start(lab, &net.router, &[]);
    let radius = Radius::start(lab, &net.router, &server);
    let ceilings = || {
        ["lan0", "wan0"].map(|interface| {
            let all = listed(lab, &net.router, interface).into_iter();
            all.map(|(name, (ceil, _))| format!("{name} {}", ceil / 1_000_000)).collect::<Vec<_>>().join(", ")
        })
    };
    assert_eq!(ceilings(), ["a 20, b 50, c 20", "a 5, b 10, c 5"]);
    assert_eq!(radius.answer("a"), "Access-Accept");
    let changed = ["a 50, b 50, c 20", "a 10, b 10, c 5"];
    assert_eq!(ceilings(), changed, "on both sides");
    let shown = lab.sluice(&net.router, &["subscriber", "show", "a", "--json"]).ok().stdout;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(shown["lan0"]["plan"], "work");
    let history = lab.sluice(&net.router, &["history", "lan0"]).ok().stdout;
    assert!(history.contains("RADIUS"), "{history}");

    assert_eq!(radius.answer("b"), "Access-Reject");
    radius.says(&["Login incorrect", "there is no plan", "gold", "[b]"]);
    assert_eq!(radius.answer("e"), "Access-Reject");
    radius.says(&["Login incorrect", "there is no subscriber", "[e]"]);
    assert_eq!(radius.answer(FORGED), "Access-Reject", "it is one name");
    radius.says(&["Login incorrect", "there is no subscriber", "remove"]);
    assert_eq!(radius.answer("c"), "Access-Accept", "its reply names no plan");
    assert_eq!(ceilings(), changed, "nothing else has changed");

    server.stop(Signal::SIGTERM);
    assert_eq!(radius.answer("a"), "Access-Accept", "it keeps what it has");
    radius.says(&["Error", "Couldn't connect to server"]);
    let Radius { process, .. } = radius;
    process.signal(Signal::SIGTERM);
    process.finish().ok();
    assert_eq!(waiting(&net.router), Vec::<String>::new(), "nothing runs in the namespace");
    lab.down(&net.router, "lan0");
    lab.down(&net.router, "wan0");
}
