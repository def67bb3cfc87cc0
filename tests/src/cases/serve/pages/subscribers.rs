//! The page's view of sites and subscribers.

use super::{open, pixels};
use crate::browser::{Browser, Viewport};
use crate::lab::Lab;
use crate::net::Ns;
use crate::policy::three;
use crate::server::Server;
use crate::town::{ODD, box_between, download, end, town_with_a_mast};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// An expression of JavaScript: the first cells of the rows of a table, as they are seen.
fn cells(table: &str, count: usize) -> String {
    format!(
        "JSON.stringify([...document.querySelectorAll('#{table} tbody tr')]
           .map((row) => [...row.cells].slice(0, {count}).map((cell) => cell.innerText.replaceAll('\\n', ' ').trim())))"
    )
}

/// Sites fold, and lead to the subscribers below them; the list is searched and sorted; a subscriber has a page of its own.
pub fn subscribers_by_site(lab: &Lab) {
    let net = box_between(lab);
    let mut town = town_with_a_mast();
    town["plans"]["home"]["classes"] =
        json!([{ "id": 0, "name": "calls", "rate": "1mbit", "ceil": "4mbit" }, { "id": 1, "name": "rest" }]);
    lab.up(&net.router, "lan0", &lab.policy(&town), &[]);
    lab.up(&net.router, "wan0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let server = Server::start(lab, &net.router, &[]);
    let browser = Browser::start(&net.router, Viewport::DESKTOP);
    open(&server, &browser);
    let streams = download(&net, &[("a", 30), ("b", 8)]);
    browser.until("there are subscribers", "!document.getElementById('subscribers-tab').hidden");
    browser.click("#subscribers-tab");
    let shows = |what: &str, table: &str, columns: usize, rows: Value| {
        browser.until(what, &format!("{} === {}", cells(table, columns), json!(rows.to_string())));
    };
    let unfolded = json!([
        ["the link", "4"],
        ["▾ north", "2"],
        ["mast", "1"],
        ["south", "1"],
        ["addresses of no subscriber", "–"]
    ]);
    shows("the sites stand below each other", "sites", 2, unfolded);
    let fold = "#sites [data-action=fold][data-site=north]";
    browser.click(fold);
    let folded = json!([["the link", "4"], ["▸ north", "2"], ["south", "1"], ["addresses of no subscriber", "–"]]);
    shows("a site folds", "sites", 2, folded);
    let focused = "[document.activeElement.dataset.site, document.activeElement.getAttribute('aria-expanded')].join()";
    assert_eq!(browser.script(&format!("return {focused};")), "north,false", "the focus stays");

    let listed = |what: &str, keys: &[&str]| {
        shows(what, "subscribers", 1, keys.iter().map(|key| json!([key])).collect());
    };
    listed("those that send most are first", &["a", "b", "c", ODD]);
    browser.click("[data-subscribers-view=at_ceiling]");
    listed("a is at its ceiling", &["a"]);
    browser.click("[data-subscribers-view=all]");
    browser.click("#subscribers th:first-child button");
    listed("by name", &[ODD, "a", "b", "c"]);
    browser.click("#sites [data-action=choose][data-site=south]");
    listed("those of the south", &["c"]);
    browser.click("#subscribers-everywhere");
    browser.keys("#subscribers-find", "10.78.0.11");
    listed("found by its address", &["a"]);

    // By keyboard.
    browser.keys("#subscribers a", "\n");
    browser.until("its page is shown", "document.getElementById('subscriber-title').innerText === 'a'");
    let path = json!([
        ["the link", "–", "100 Mbit/s"],
        ["north", "5 Mbit/s", "60 Mbit/s"],
        ["mast", "5 Mbit/s", "40 Mbit/s"],
        ["a", "5 Mbit/s", "20 Mbit/s"],
        ["calls", "1 Mbit/s", "4 Mbit/s"],
        ["rest", "–", "–"]
    ]);
    shows("what its packets pass", "subscriber-path", 3, path);
    assert_eq!(browser.text("#subscriber-addresses"), "10.78.0.11/32");
    let tiles = browser.text("#subscriber-tiles");
    assert!(tiles.contains("of 20 Mbit/s") && tiles.contains("at the ceiling"), "{tiles}");
    browser.until("its rate is drawn", &format!("{} > 20", pixels("chart-own-sent", 0)));
    let numbers =
        "[...document.querySelectorAll('#chart-own-sent-numbers tbody tr')].map((row) => row.cells[1].textContent)";
    browser.click("#chart-own-sent summary");
    browser.until("beside the ceiling", &format!("{numbers}.some((text) => text.endsWith('(of at most 20 Mbit/s)'))"));
    assert!(end(streams)[0].received() > 100);

    // A key is text, wherever it stands.
    browser.click("#subscriber .head a");
    browser.until("all are back", "!document.getElementById('subscribers-all').hidden");
    browser.script("document.getElementById('subscribers-find').value = '2001:db8:7:1::1';");
    browser.keys("#subscribers-find", " ");
    listed("found by an address of its prefix", &[ODD]);
    browser.click("#subscribers a");
    browser
        .until("it has a page", &format!("document.getElementById('subscriber-title').innerText === {}", json!(ODD)));
    browser.until("which is known", "!document.getElementById('subscriber-known').hidden");
    assert_eq!(browser.text("#subscriber-addresses"), "192.0.2.64/29\n2001:db8:7::/56");
    browser.script(
        "const select = document.getElementById('interface');
         select.value = 'wan0';
         select.dispatchEvent(new Event('change'));",
    );
    browser.until(
        "classes are no subscribers",
        "document.getElementById('subscribers-tab').hidden && !document.getElementById('subscribers-none').hidden",
    );
    drop(browser);
    fits_a_phone(&server, &net.router);
    server.stop(Signal::SIGTERM);
    lab.down(&net.router, "lan0");
    lab.down(&net.router, "wan0");
}

/// A class tree is shown by the same views, with labels of its own.
pub fn class_tree(lab: &Lab) {
    let pair = lab.pair();
    let tree = json!({
        "link": { "rate": "20mbit" },
        "classes": [
            { "name": "office", "ceil": "12mbit" },
            { "id": 0, "name": "calls", "parent": "office", "rate": "2mbit" },
            { "id": 1, "name": "guests", "ceil": "8mbit" },
        ],
    });
    lab.up(&pair.a, "a0", &lab.policy(&tree), &[]);
    let server = Server::start(lab, &pair.a, &[]);
    let browser = Browser::start(&pair.a, Viewport::DESKTOP);
    open(&server, &browser);
    browser.until("there is a tree", "document.getElementById('subscribers-tab').innerText === 'Class tree'");
    browser.click("#subscribers-tab");
    let shows = |what: &str, table: &str, columns: usize, rows: Value| {
        browser.until(what, &format!("{} === {}", cells(table, columns), json!(rows.to_string())));
    };
    shows("inner classes", "sites", 2, json!([["the link", "2"], ["office", "1"], ["unclassified", "–"]]));
    browser.click("#subscribers th:first-child button");
    shows("leaf classes", "subscribers", 2, json!([["calls", "office"], ["guests", "the link"]]));
    for (table, title) in [("sites", "class"), ("subscribers", "class")] {
        assert_eq!(browser.text(&format!("#{table} th")), title, "{table}");
    }
    browser.click("#subscribers a");
    browser.until("a class has a page", "document.getElementById('subscriber-title').innerText === 'calls'");
    browser.until("which is known", "!document.getElementById('subscriber-known').hidden");
    assert_eq!(browser.text("#subscriber-hint"), "Class of packets that a0 sends.");
    drop(browser);
    server.stop(Signal::SIGTERM);
    lab.down(&pair.a, "a0");
}

/// The list and a subscriber's page fit a narrow screen, and have one title each.
fn fits_a_phone(server: &Server, ns: &Ns) {
    let browser = Browser::start(ns, Viewport::PHONE);
    for (hash, ready) in [
        ("subscribers", "document.querySelectorAll('#subscribers tbody tr').length === 4"),
        ("subscribers/a", "!document.getElementById('subscriber-known').hidden"),
    ] {
        browser.open(&format!("{}/#{hash}", server.place));
        browser.until(hash, ready);
        assert_eq!(browser.script("return document.documentElement.scrollWidth;"), 375, "{hash} does not fit");
        let fits = browser.script(
            "return [...document.querySelectorAll('.scroll')].filter((one) => one.offsetParent !== null)
               .every((one) => one.scrollWidth <= one.clientWidth);",
        );
        assert_eq!(fits, true, "a table of {hash} does not fit");
        let titles = browser
            .script("return [...document.querySelectorAll('h1')].filter((one) => one.offsetParent !== null).length;");
        assert_eq!(titles, 1, "{hash} has one title");
    }
}
