//! Tests of tables of subscribers, good ones and refused ones.

use super::super::{EachWay, NetworkLink, NetworkPolicy, Sites, Subscribers, checks, sites, subscriber_table};
use super::*;
use crate::diagnostic::{Diagnostics, Severity};
use crate::source::Origin;

/// In the shape of LibreQoS's own example: a comment of the file, quotes, fractions, several addresses and devices, and comments with commas.
const TABLE: &str = r#"# Shaped devices
Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment,sqm
1,"1 High Street, Northtown",1,Router,AP_A,,"192.0.2.1, 192.0.2.14",2001:db8:0:100::/56,1,1,155,20,a comment,
2,"2 High Street, Northtown",2,Router,AP_A,02:00:00:00:00:02,192.0.2.2,,0.5,0.25,2.5,1.0,,fq_codel
10,No parent,12,Box,,,192.0.2.12,,50,20,200,50,Down=cake, Up=fq_codel,cake/fq_codel
27,Two devices,5,First,Site_1,,192.0.2.5,,1,1,105,18,,
27,Two devices,6,Second,Site_1,,192.0.2.6,2001:db8:0:600::/56,1,1,105,18,,
"#;
const SITES: &str = r#"{ "Site_1": { "downloadBandwidthMbps": 1000, "uploadBandwidthMbps": 100,
    "children": { "AP_A": { "downloadBandwidthMbps": 500, "uploadBandwidthMbps": 500 } } } }"#;

fn network() -> Sites {
    sites(&Source::new("network.json", SITES), &mut Vec::new()).expect("good")
}

fn read_source(source: &Source) -> Result<Subscribers, Diagnostics> {
    let mut findings = Vec::new();
    let (found, libreqos) = subscriber_table::read(source, Some(&network()), Some(&[]), &mut findings);
    assert!(libreqos || !findings.is_empty());
    if findings.is_empty() { Ok(found) } else { Err(Diagnostics::new(None, findings)) }
}

fn read(text: &str) -> Result<Subscribers, String> {
    read_source(&Source::new("devices.csv", text)).map_err(|found| found.render(false))
}

/// The mistakes of values beside each other.
fn check(sites: &Sites, subscribers: &Subscribers) -> Diagnostics {
    let policy = NetworkPolicy {
        name: "test".to_owned(),
        description: None,
        link: NetworkLink::default(),
        subscriber_side: vec!["eth1".to_owned()],
        oversold: true,
        sites: sites.clone(),
        plans: Vec::new(),
        classification: Default::default(),
        class_tree: None,
        subscribers: subscribers.clone(),
        groups: Vec::new(),
        unlisted: Default::default(),
        origin: Origin::default(),
    };
    let mut findings = checks::errors(&policy);
    findings.extend(checks::warnings(&policy));
    Diagnostics::new(None, findings)
}

#[test]
fn rows_become_subscribers() {
    let found = read(TABLE).expect("good").subscribers;
    let rate = |bps: u64| Some(Rate(bps));
    assert_eq!(found.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["1", "2", "10", "27"]);
    assert_eq!(found[0].name, "1 High Street, Northtown");
    assert_eq!(found.iter().map(|one| one.parent).collect::<Vec<_>>(), [Some(1), Some(1), None, Some(0)]);
    assert_eq!(found[1].rate, EachWay { down: rate(500_000), up: rate(250_000) });
    assert_eq!(found[1].ceil, EachWay { down: rate(2_500_000), up: rate(1_000_000) });
    assert_eq!(found[2].ceil, EachWay { down: rate(200_000_000), up: rate(50_000_000) }, "commas in a comment");
    let addresses = |place: usize| found[place].addresses.iter().map(|one| one.address.to_string()).collect::<Vec<_>>();
    assert_eq!(addresses(0), ["192.0.2.1/32", "192.0.2.14/32", "2001:db8:0:100::/56"]);
    assert_eq!(addresses(3), ["192.0.2.5/32", "192.0.2.6/32", "2001:db8:0:600::/56"], "of both devices");
    let checked = check(&network(), &read(TABLE).expect("good"));
    assert!(checked.is_empty(), "{}", checked.render(false));
}

#[test]
fn columns_of_other_versions_are_known() {
    let old = TABLE.replace(" Mbps", "").replace(",sqm", "");
    assert_eq!(read(&old).expect("before Mbps").subscribers.len(), 4);
    let new = TABLE.replace("Parent Node,", "Parent Node,Parent Node ID,Anchor Node ID,");
    let new = new.replace(",AP_A,", ",AP_A,,,").replace("Box,,", "Box,,,,").replace(",Site_1,", ",Site_1,,,");
    assert_eq!(read(&new).expect("with ids of nodes"), read(TABLE).expect("good"), "but for their places");
}

#[test]
fn mistakes_have_a_place_and_a_cure() {
    for (from, to, place, says) in [
        ("Circuit ID", "Circut ID", "Circut", "is \"circut id\" meant?"),
        ("Comment,sqm", "ipv4,sqm", "ipv4,sqm", "two columns are called \"ipv4\""),
        ("192.0.2.14", "192.0.2.300", "192.0.2.300", "`192.0.2.300` is no address"),
        ("192.0.2.2,", "192.0.2.2/24,", "192.0.2.2/24", "write 192.0.2.0/24 for all of them"),
        ("AP_A,,", "AP_B,,", "AP_B,,", "is \"AP_A\" meant?"),
        (",155,20,", ",155,,", "", ""),
        (",155,20,", ",fast,20,", "fast,20", "download max: `fast` is no number"),
        (",155,20,", ",-5,20,", "-5,20", "download max:"),
        (",155,20,", ",NaN,20,", "NaN,20", "`NaN` is no number"),
        ("2,\"2 High", ",\"2 High", ",\"2 High", "is no circuit id"),
        (
            "6,2001:db8:0:600::/56,1,1,105,18",
            "6,2001:db8:0:600::/56,1,1,105,19",
            "27,Two devices,6",
            "circuit 27 has two rates",
        ),
        ("6,Second,Site_1", "6,Second,AP_A", "27,Two devices,6", "circuit 27 has two parent node"),
        (
            "10,No parent,12,Box,,,192.0.2.12,,50,20,200,50,Down=cake, Up=fq_codel,cake/fq_codel",
            "10,No parent",
            "10,No",
            "a row has 2 fields",
        ),
    ] {
        let text = TABLE.replacen(from, to, 1);
        assert_ne!(text, TABLE, "{from}");
        match read(&text) {
            Ok(_) => assert!(says.is_empty(), "{says}"),
            Err(error) => {
                let at = Source::new("", text.as_str()).line_column(text.find(place).expect(place));
                let place = format!("devices.csv:{}:{}\n", at.0, at.1);
                assert!(
                    error.contains(says) && error.contains(&place) && error.contains("help: "),
                    "{place}{says}:\n{error}"
                );
            }
        }
    }
    assert!(read("# nothing\n").expect_err("empty").contains("the table of subscribers is empty"));
}

#[test]
fn subscribers_are_held_against_each_other() {
    for (from, to, severity, says) in [
        (
            "192.0.2.12,",
            "192.0.2.0/28,",
            Severity::Error,
            "192.0.2.1/32 of 1 High Street, Northtown is 192.0.2.0/28 of No parent too",
        ),
        (
            "192.0.2.12,",
            "192.0.2.2,",
            Severity::Error,
            "192.0.2.2/32 of No parent is 192.0.2.2/32 of 2 High Street, Northtown too",
        ),
        (",50,20,200,50", ",50,60,200,50", Severity::Error, "No parent gets at least 60mbit up, and at most 50mbit"),
        ("155,20", "1500,20", Severity::Warning, ""),
        (
            ",,\"192.0.2.1, 192.0.2.14\",2001:db8:0:100::/56,",
            ",,,,",
            Severity::Warning,
            "1 High Street, Northtown has no address",
        ),
        ("0.25,2.5,1.0", "600,2.5,700", Severity::Warning, "promised 601mbit up, more than its 500mbit"),
    ] {
        let text = TABLE.replacen(from, to, 1);
        assert_ne!(text, TABLE, "{from}");
        let found = check(&network(), &read(&text).expect(says));
        let shown = found.render(false);
        assert!(shown.contains(says), "{says}:\n{shown}");
        assert!(says.is_empty() == found.is_empty(), "{shown}");
        assert!(found.iter().all(|one| one.severity() == severity && one.cures().next().is_some()), "{shown}");
    }
}

/// Ten thousand faulty rows: the report is bounded.
#[test]
fn a_report_of_many_mistakes_is_short() {
    let header = TABLE.lines().nth(1).expect("the names of the columns");
    let row = |n: usize| format!("{n},Name {n},1,Box,NO_SITE_{n},,300.0.0.{n},x,a,b,c,d,,\n");
    let text: String = std::iter::once(format!("{header}\n")).chain((0..10_000).map(row)).collect();
    let source = Source::new("devices.csv", text.as_str());
    let found = read_source(&source).expect_err("all are faulty");
    assert_eq!(found.len(), 70_000, "seven mistakes in each");
    let shown = found.render(false);
    assert!(shown.contains("... and 69950 more") && shown.lines().count() < 500, "{}", shown.lines().count());
}

#[test]
fn there_is_room_for_so_many_and_no_more() {
    let header = TABLE.lines().nth(1).expect("the names of the columns");
    let table = |many: usize| {
        let address = |n: usize| std::net::Ipv4Addr::from(0x0a00_0000 + n as u32);
        let row = |n: usize| format!("{n},Name,1,Box,AP_A,,{},,0,0,10,5,,\n", address(n));
        std::iter::once(format!("{header}\n")).chain((0..many).map(row)).collect::<String>()
    };
    let full = read(&table(MAX_SUBSCRIBERS)).expect("as many as there may be");
    assert_eq!(full.subscribers.len(), MAX_SUBSCRIBERS);
    assert!(check(&network(), &full).is_empty());
    assert!(read(&table(MAX_SUBSCRIBERS + 1)).expect_err("one more").contains("more than 32767 subscribers"));
}

proptest::proptest! {
    /// No content of the file makes the reader panic, and each mistake has a cure.
    #[test]
    fn any_text_is_read_or_refused(damage: Vec<(usize, u8)>, cut: usize) {
        let mut bytes = TABLE.as_bytes()[..cut % (TABLE.len() + 1)].to_vec();
        for (at, byte) in damage {
            let place = at % bytes.len().max(1);
            if let Some(own) = bytes.get_mut(place) {
                *own = byte;
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Err(error) = read(&text) {
            proptest::prop_assert!(error.contains("help: "));
        }
        let _ = sites(&Source::new("network.json", text), &mut Vec::new());
    }
}
