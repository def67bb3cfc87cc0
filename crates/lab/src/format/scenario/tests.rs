//! Tests of scenarios, good ones and refused ones.

use super::*;
use crate::format::fixture::{assert_refused, source};

const GAME: &str = r#"
title = "Game"
about = "A game."
topology = "isp"
[[load]]
name = "game"
kind = "stream"
from = "server"
to = "home"
bytes = 100
interval = "15.625ms"
port = 3074
"#;

fn of(text: &str) -> Result<Scenario> {
    Scenario::of(source("game", text))
}

const CHAIN: &str = r#"
title = "Two hops"
about = "Two hops."
topology = "chain-2"
[[load]]
name = "3 KB"
kind = "siege"
from = "server"
to = "client"
bytes = 3000
requests = 100
[[load]]
name = "requests"
kind = "wrk"
from = "server"
to = "client"
bytes = 3000
flows = 16
keep_alive = false
"#;

#[test]
fn loads_over_a_chain_pass_all_of_it() {
    let scenario = of(CHAIN).unwrap();
    assert_eq!((scenario.shape.len(), scenario.loads.len()), (0, 2));
    assert_eq!(scenario.loads[0].about(), "a page of 3000 B, 100 times, a connection each, server to client");
    assert_eq!(
        scenario.loads[1].about(),
        "a page of 3000 B, 16 requests at a time, a connection each, server to client"
    );
    let mistakes = [
        ("requests = 100", "", "load \"3 KB\" lacks requests"),
        ("requests = 100", "requests = 100\nflows = 2", "flows has no meaning for this kind"),
        ("requests = 100", "requests = 100\nport = 80", "a chain forwards TCP port 5201"),
        ("kind = \"siege\"", "kind = \"ping\"", "a chain forwards TCP port 5201"),
        ("to = \"client\"", "to = \"hop-1\"", "does not pass the whole chain"),
        ("topology = \"chain-2\"", "topology = \"chain-2\"\nidle = \"1s\"", "have no meaning over a chain"),
        ("topology = \"chain-2\"", "topology = \"lan\"", "load \"3 KB\" needs a chain"),
    ];
    assert_refused(of, CHAIN, &mistakes);
    let no_tcp = of(&CHAIN.replacen("kind = \"siege\"", "kind = \"ping\"", 1)).unwrap_err();
    assert_eq!(no_tcp.cure.unwrap(), "its loads are tcp, siege and wrk, without a port");
}

#[test]
fn loads_have_exactly_the_keys_of_their_kind() {
    assert!(of(GAME).unwrap().loads[0].is_probe());
    let mistakes = [
        ("to = \"home\"", "to = \"hone\"", ":9: there is no host \"hone\""),
        ("port = 3074", "port = 3074\nrate = \"1mbit\"", "rate has no meaning for this kind"),
        ("bytes = 100", "", "load \"game\" lacks bytes"),
        ("bytes = 100", "bytes = 9", "bytes 9 is not between"),
        ("kind = \"stream\"", "kind = \"steam\"", ":7: unknown variant `steam`"),
        ("topology = \"isp\"", "topology = \"ips\"", "there is no topology \"ips\""),
        ("title = \"Game\"", "", "the key \"title\" is missing"),
        ("to = \"home\"", "to = \"server\"", ":9: a load that stays on its host"),
        ("topology = \"isp\"", "topology = \"isp\"\nwarm_up = \"99999999999s\"", "warm_up is not between"),
        ("topology = \"isp\"", "topology = \"isp\"\nmeasured = \"0s\"", "measured is not between"),
    ];
    assert_refused(of, GAME, &mistakes);
}
