//! Tests of our own tables of subscribers.

use super::super::{checks, sites};
use super::*;
use crate::diagnostic::{Diagnostics, Severity};
use crate::network::tables::Unreadable;
use crate::parse::parse_file_with;
use crate::set::PolicyFile;
use std::time::{Duration, Instant};

/// Reports take a tenth of a second on an idle machine; work that grew with the square of the rows would take minutes on any.
const AT_MOST: Duration = Duration::from_secs(20);

const POLICY: &str = r#"{ "subscriber_side": ["eth1"], "sites": { "north": { "sites": { "tower": {} } } },
    "plans": { "home": { "ceil": "100mbit" } }, "subscribers": "customers.csv" }"#;

fn read(table: &str) -> Result<Box<super::super::NetworkPolicy>, Diagnostics> {
    read_policy(POLICY, table)
}

fn read_policy(policy: &str, table: &str) -> Result<Box<super::super::NetworkPolicy>, Diagnostics> {
    let tables = |name: &str| match name {
        "customers.csv" => Ok(Source::new(name, table)),
        _ => Err(Unreadable { cause: "no such file".to_owned(), cure: "check the path".to_owned() }),
    };
    match parse_file_with(&Source::new("policy.json", policy), None, &tables)? {
        PolicyFile::One(policy) => Ok(policy.network.expect("a network")),
        other => panic!("another policy: {other:?}"),
    }
}

#[test]
fn rows_become_subscribers() {
    let table =
        "\u{feff}# ours\nPlan,name , addresses,SITE\nhome,a,\"192.0.2.1, 2001:db8::/56\",tower\n\n,b,192.0.2.2,\n";
    let found = read(table).unwrap_or_else(|found| panic!("{found}"));
    let seen: Vec<_> = found
        .subscribers
        .subscribers
        .iter()
        .map(|one| (one.id.as_str(), one.plan, one.parent, one.addresses.len()))
        .collect();
    assert_eq!(seen, [("a", Some(0), Some(1), 2), ("b", None, None, 1)]);
    let without_site = read("name,addresses,plan\nc,192.0.2.9,home\n").unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(without_site.subscribers.subscribers[0].parent, None);
    assert!(!without_site.oversold, "that is for LibreQoS's tables");
}

/// Ten thousand faulty rows: the report is bounded, in size and in time.
#[test]
fn a_report_of_many_mistakes_is_short() {
    let faulty = |n: usize| format!("{n},\"300.0.0.{n}, 192.0.2.1/24\",plan {n},site {n}\n");
    let overlapping = |n: usize| format!("{n},192.0.2.0/24,home,tower\n");
    let within_the_last = |n: usize| match n {
        9_999 => "all,0.0.0.0/0,home,\n".to_owned(),
        n => format!("{n},{},home,tower\n", std::net::Ipv4Addr::from(0x0a00_0000 + n as u32)),
    };
    let rows: [&dyn Fn(usize) -> String; 3] = [&faulty, &overlapping, &within_the_last];
    for (row, mistakes) in rows.into_iter().zip([40_000, 9_999, 9_999]) {
        let table: String =
            std::iter::once("name,addresses,plan,site\n".to_owned()).chain((0..10_000).map(row)).collect();
        let start = Instant::now();
        let found = read(&table).expect_err("all are faulty");
        let shown = found.render(false);
        assert!(start.elapsed() < AT_MOST, "took {:?}", start.elapsed());
        assert_eq!(found.len(), mistakes);
        assert!(shown.contains("... and ") && shown.lines().count() < 900, "{}", shown.lines().count());
    }
}

/// The same in the policy itself.
#[test]
fn a_report_of_many_mistakes_in_a_list_is_short() {
    let row = |n: usize| format!(r#"{{ "name": "{n}", "addresses": ["300.0.0.{n}"], "plan": "plan {n}", "site": 7 }}"#);
    let rows: Vec<String> = (0..10_000).map(row).collect();
    let policy = POLICY.replace("\"customers.csv\"", &format!("[{}]", rows.join(",\n")));
    let start = Instant::now();
    let found = read_policy(&policy, "").expect_err("all are faulty");
    let shown = found.render(false);
    assert!(start.elapsed() < AT_MOST, "took {:?}", start.elapsed());
    assert_eq!(found.len(), 30_000);
    assert!(shown.lines().count() < 700, "{}", shown.lines().count());
}

#[test]
fn there_is_room_for_so_many_and_no_more() {
    let table = |many: usize| -> String {
        let row = |n: usize| format!("customer {n},{},home,tower\n", std::net::Ipv4Addr::from(0x0a00_0000 + n as u32));
        std::iter::once("name,addresses,plan,site\n".to_owned()).chain((0..many).map(row)).collect()
    };
    let full = read(&table(MAX_SUBSCRIBERS)).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(full.subscribers.subscribers.len(), MAX_SUBSCRIBERS);
    let start = Instant::now();
    let resolved = super::super::resolve(&full, &crate::Context::default()).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!((resolved.leaves.len(), resolved.queues.len()), (MAX_SUBSCRIBERS, 1));
    assert!(start.elapsed() < AT_MOST, "took {:?}", start.elapsed());
    let error = read(&table(MAX_SUBSCRIBERS + 1)).expect_err("one more").render(false);
    assert!(error.contains("more than 32767 subscribers"), "{error}");
}

/// LibreQoS takes 10 kbit/s and more.
#[test]
fn small_guarantees_of_libreqos_are_raised() {
    let table =
        "Circuit ID,Parent Node,IPv4,Download Min,Upload Min,Download Max,Upload Max\n1,tower,192.0.2.1,0.01,1,10,5\n";
    let policy = read(table).unwrap_or_else(|found| panic!("{found}"));
    let network = super::super::resolve(&policy, &crate::Context::default()).unwrap_or_else(|found| panic!("{found}"));
    let least = *super::super::NODE_RATES.start();
    assert_eq!(network.leaves[0].node.rate.down, Some(least));
    assert!(network.sites().iter().all(|site| site.rate.down == Some(least)));
}

#[test]
fn a_table_of_the_wrong_kind_is_refused() {
    for (table, says) in [
        ("", "the table of subscribers is empty"),
        ("# nothing\n", "the table of subscribers is empty"),
        ("name;addresses;plan\n", "has no column \"name\""),
        ("name,addresses,plan,name\n", "two columns are called \"name\""),
        ("name,addresses,plan,site\n\u{7},192.0.2.1,home,\n", "cannot be the name of a subscriber"),
        ("Circuit ID,Circuit Name\n", "has no column \"parent node\""),
    ] {
        let error = read(table).expect_err(says).render(false);
        assert!(
            error.contains(says) && error.contains("customers.csv:") && error.contains("help: "),
            "{says}:\n{error}"
        );
    }
}

/// Sites from LibreQoS's file, subscribers from our own table: guarantees are held against them.
#[test]
fn guarantees_of_own_tables_must_fit() {
    let text = r#"{ "AP": { "downloadBandwidthMbps": 5, "uploadBandwidthMbps": 5 } }"#;
    let known = sites(&Source::new("network.json", text), &mut Vec::new()).expect("good");
    let policy = POLICY.replace("\"ceil\": \"100mbit\"", "\"rate\": { \"down\": \"3mbit\" }");
    let mut policy = read_policy(&policy, "name,addresses,plan\na,192.0.2.1,home\nb,192.0.2.2,home\n")
        .unwrap_or_else(|found| panic!("{found}"));
    policy.sites = known;
    policy.subscribers.subscribers.iter_mut().for_each(|one| one.parent = Some(0));
    let found = Diagnostics::new(None, checks::errors(&policy));
    assert_eq!(found.iter().map(|one| one.severity()).collect::<Vec<_>>(), [Severity::Error]);
    let shown = found.render(false);
    assert!(shown.contains("the subscribers of AP are promised 6mbit down, more than its 5mbit"), "{shown}");
    assert!(shown.contains("network.json:1:3") && shown.contains("customers.csv:2:1"), "both places:\n{shown}");
    policy.oversold = true;
    assert!(checks::errors(&policy).is_empty(), "a warning then");
}

proptest::proptest! {
    /// No content of the file makes the reader panic, and each mistake has a cure.
    #[test]
    fn any_text_is_read_or_refused(damage: Vec<(usize, u8)>, cut: usize) {
        const TABLE: &str = "name,addresses,plan,site\na,\"192.0.2.1 ä, 2001:db8::/56\",home,tower\nb,192.0.2.2,home,\n";
        let mut bytes = TABLE.as_bytes()[..cut % (TABLE.len() + 1)].to_vec();
        for (at, byte) in damage {
            let place = at % bytes.len().max(1);
            if let Some(own) = bytes.get_mut(place) {
                *own = byte;
            }
        }
        if let Err(error) = read(&String::from_utf8_lossy(&bytes)) {
            proptest::prop_assert!(error.render(false).contains("help: "));
        }
    }
}

#[test]
fn addresses_of_ipv4_in_the_form_of_ipv6_are_refused() {
    let error = read("name,addresses,plan\na,::ffff:192.0.2.1,home\n").expect_err("no packet has it").render(false);
    assert!(error.contains("write 192.0.2.1/32"), "{error}");
}

#[test]
fn a_table_is_not_read_without_end() {
    let columns = vec!["x"; 1_000_000].join(",");
    let error = read(&format!("{columns}\n")).expect_err("too many columns").render(false);
    assert!(error.contains("the table has 1000000 columns, and at most 64 are read"), "{error}");
    let rows = "a,nothing,home\n".repeat(3 * MAX_MISTAKES);
    let found = read(&format!("name,addresses,plan\n{rows}")).expect_err("mistakes");
    assert!(found.len() < 2 * MAX_MISTAKES, "{} mistakes", found.len());
}
