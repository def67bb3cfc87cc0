//! Tests of topologies, good ones and refused ones.

use super::*;
use crate::format::fixture::{assert_refused, source};

const LINE: &str = r#"
about = "A line."
hosts = ["server", "home"]
routers = ["router", "modem"]
owner = ["router", "modem"]
noise = ["server", "router"]
[[shaped]]
direction = "egress"
line = ["modem", "home"]
wire = ["modem", "home"]
[[link]]
between = ["server", "router"]
delay = "10ms"
[[link]]
between = ["router", "modem"]
[[link]]
between = ["modem", "home"]
rate = "105%"
queue = "250ms"
"#;

fn of(text: &str) -> Result<Topology> {
    Topology::of(&source("line", text))
}

#[test]
fn routes_and_addresses_follow_from_the_links() {
    let line = of(LINE).unwrap();
    assert_eq!(
        line.next_hops("server"),
        BTreeMap::from([("router", "router"), ("modem", "router"), ("home", "router")])
    );
    assert_eq!(line.next_hops("modem"), BTreeMap::from([("router", "router"), ("server", "router"), ("home", "home")]));
    assert_eq!(line.address_of("home").unwrap(), "10.99.3.2");
    assert_eq!(line.address(1, "router"), "10.99.2.1");
}

const CHAIN: &str = r#"
about = "A hop."
hosts = ["client", "server"]
routers = ["hop-1", "hop-2"]
chain = ["client", "hop-1", "hop-2", "server"]
[[link]]
between = ["client", "hop-1"]
[[link]]
between = ["hop-1", "hop-2"]
[[link]]
between = ["hop-2", "server"]
"#;

#[test]
fn chains_go_from_link_to_link() {
    let topology = of(CHAIN).unwrap();
    let chain = topology.chain().unwrap();
    assert_eq!((chain.client.as_str(), chain.server.as_str()), ("client", "server"));
    assert_eq!((chain.hops.as_slice(), topology.queue().is_none()), (topology.routers.as_slice(), true));
    let mistakes = [
        (
            "\"hop-1\", \"hop-2\", \"server\"]",
            "\"hop-2\", \"server\"]",
            ":5: there is no link between client and hop-2",
        ),
        (
            "chain = [\"client\", \"hop-1\", \"hop-2\", \"server\"]",
            "chain = [\"client\", \"server\"]",
            "at least one hop",
        ),
        ("chain = [\"client\", \"hop-1\", \"hop-2\", \"server\"]\n", "", "own a queue or the hops"),
        ("about = \"A hop.\"", "about = \"A hop.\"\nnoise = [\"client\", \"hop-1\"]", "own a queue or the hops"),
        ("routers = [\"hop-1\", \"hop-2\"]", "routers = [\"hop-2\"]", "there is no host \"hop-1\""),
        (
            "hosts = [\"client\", \"server\"]\nrouters = [\"hop-1\", \"hop-2\"]",
            "hosts = [\"client\", \"server\", \"hop-1\"]\nrouters = [\"hop-2\"]",
            ":5: hop-1 is no router",
        ),
    ];
    assert_refused(of, CHAIN, &mistakes);
}

#[test]
fn errors_name_the_line() {
    let mistakes = [
        (
            "between = [\"server\", \"router\"]",
            "between = [\"server\", \"rooter\"]",
            "line.toml (built in):12: there is no host \"rooter\"",
        ),
        (
            "owner = [\"router\", \"modem\"]",
            "owner = [\"router\", \"home\"]",
            ":5: there is no link between router and home",
        ),
        ("queue = \"250ms\"", "delay = \"1ms\"", "has a queue of its own"),
        ("queue = \"250ms\"", "quueue = \"250ms\"", "there is no key \"quueue\""),
        ("delay = \"10ms\"", "delay = \"10\"", ":13: \"10\" is no time"),
        ("rate = \"105%\"\nqueue = \"250ms\"", "", ":9: the line has no rate"),
        ("delay = \"10ms\"", "[[link]]\nbetween = [\"router\", \"server\"]", "two links between"),
        ("hosts = [\"server\", \"home\"]", "hosts = [\"server\", \"home\", \"lost\"]", "no link leads to lost"),
    ];
    assert_refused(of, LINE, &mistakes);
}
