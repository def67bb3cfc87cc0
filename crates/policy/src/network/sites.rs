//! `network.json` of LibreQoS: sites by name, each with its bandwidth and the sites below it.

use super::{EachWay, MAX_NETWORK_NAME_BYTES, MAX_SITE_DEPTH, MAX_SITES, Site, Sites};
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::parse::syntax::tree;
use crate::rate::Rate;
use crate::source::{Source, Span, Where};
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use std::collections::HashMap;

const HELP: &str =
    "a site is `\"name\": { \"downloadBandwidthMbps\": 500, \"uploadBandwidthMbps\": 500, \"children\": {} }`";

/// Reads the sites of a network; keys that LibreQoS alone knows are passed over. `None` if something is wrong, which is reported.
pub(crate) fn sites(source: &Source, findings: &mut Vec<Diagnostic>) -> Option<Sites> {
    let (tree, mut found) = tree(source.text());
    if source.text().trim().is_empty() {
        let finding = Diagnostic::error(Kind::Empty, "the file of sites is empty").at(0..0, "nothing in here");
        found = vec![finding.help("a network without sites is `{}`; or leave the key \"sites\" out")];
    }
    let mut reading = Reading { sites: Vec::new(), known: HashMap::new(), findings: Vec::new(), too_many: false };
    match &tree {
        Some(Value::Object(object)) => reading.children(object, None, 1),
        Some(other) => {
            let finding =
                Diagnostic::error(Kind::WrongType, "the sites are no object").at(span(other), "not an object");
            reading.findings.push(finding.help(HELP));
        }
        None => {}
    }
    found.extend(reading.findings);
    let good = found.is_empty();
    findings.extend(found.into_iter().map(|finding| finding.of(source)));
    good.then(|| Sites { sites: reading.sites, source: Some(source.clone()) })
}

fn span(value: &impl Ranged) -> Span {
    let range = value.range();
    range.start..range.end
}

struct Reading {
    sites: Vec<Site>,
    /// The index of each site.
    known: HashMap<String, usize>,
    findings: Vec<Diagnostic>,
    too_many: bool,
}

impl Reading {
    /// Adds the sites of an object, `depth` levels below the link.
    fn children(&mut self, object: &Object<'_>, parent: Option<usize>, depth: usize) {
        for property in &object.properties {
            let name = property.name.as_str();
            let place = span(&property.name);
            let Value::Object(own) = &property.value else {
                let finding =
                    Diagnostic::error(Kind::WrongType, format!("the site \"{}\" is no object", excerpt(name)));
                self.findings.push(finding.at(span(&property.value), "not an object").help(HELP));
                continue;
            };
            if depth > MAX_SITE_DEPTH {
                let title = format!("the site \"{}\" has {} sites above it", excerpt(name), depth - 1);
                let finding = Diagnostic::error(Kind::TooMany, title).at(place, "too deep");
                self.findings.push(finding.help(format!("{MAX_SITE_DEPTH} levels of sites are the most")));
                continue;
            }
            if self.sites.len() == MAX_SITES {
                if !self.too_many {
                    let finding = Diagnostic::error(Kind::TooMany, format!("there are more than {MAX_SITES} sites"));
                    self.findings.push(finding.at(place, "one too many").help("leave some out"));
                }
                self.too_many = true;
                return;
            }
            if !self.can_be_named(name, &place) {
                continue;
            }
            let ceil = EachWay {
                down: self.bandwidth(own, name, "downloadBandwidthMbps"),
                up: self.bandwidth(own, name, "uploadBandwidthMbps"),
            };
            let index = self.sites.len();
            self.known.insert(name.to_owned(), index);
            self.sites.push(Site {
                name: name.to_owned(),
                parent,
                rate: EachWay::default(),
                ceil,
                weight: 1,
                span: Where(place),
            });
            match own.get("children").map(|children| &children.value) {
                Some(Value::Object(below)) => self.children(below, Some(index), depth + 1),
                Some(other) => {
                    let title = format!("\"children\" of \"{}\" is no object", excerpt(name));
                    self.findings
                        .push(Diagnostic::error(Kind::WrongType, title).at(span(other), "not an object").help(HELP));
                }
                None => {}
            }
        }
    }

    fn can_be_named(&mut self, name: &str, place: &Span) -> bool {
        if name.is_empty() || name.len() > MAX_NETWORK_NAME_BYTES || name.contains(char::is_control) {
            let title = format!("\"{}\" cannot be the name of a site", excerpt(name));
            let finding = Diagnostic::error(Kind::Name, title).at(place.clone(), "empty, too long or not to be shown");
            self.findings
                .push(finding.help(format!("write 1 to {MAX_NETWORK_NAME_BYTES} bytes without control characters")));
            return false;
        }
        if let Some(&first) = self.known.get(name) {
            let finding = Diagnostic::error(Kind::DuplicateName, format!("two sites are called \"{}\"", excerpt(name)))
                .at(place.clone(), "the second one")
                .at(self.sites[first].span.0.clone(), "the first one");
            self.findings.push(finding.help("subscribers name their site: give each a name of its own"));
            return false;
        }
        true
    }

    /// A bandwidth in Mbit/s; none: no limit of its own.
    fn bandwidth(&mut self, site: &Object<'_>, name: &str, key: &str) -> Option<Rate> {
        let value = &site.get(key)?.value;
        let number = match value {
            Value::NumberLit(number) => number.value.parse::<f64>().ok(),
            _ => None,
        };
        let rate = match number {
            Some(mbps) => Rate::from_mbps(mbps).map_err(|error| (error.cause, error.cure)),
            None => Err(("it is no number".to_owned(), "write a number of Mbit/s, without quotes".to_owned())),
        };
        match rate {
            Ok(rate) => Some(rate),
            Err((cause, cure)) => {
                let title = format!("\"{key}\" of \"{}\": {cause}", excerpt(name));
                self.findings
                    .push(Diagnostic::error(Kind::Quantity, title).at(span(value), "cannot be used").help(cure));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Diagnostics;

    fn read(text: &str) -> Result<Sites, String> {
        let mut findings = Vec::new();
        let found = sites(&Source::new("network.json", text), &mut findings);
        found.ok_or_else(|| Diagnostics::new(None, findings).render(false))
    }

    #[test]
    fn sites_come_behind_their_parents() {
        let text = r#"{
            "north": { "downloadBandwidthMbps": 1000, "uploadBandwidthMbps": 400, "type": "Site", "children": {
                "tower": { "downloadBandwidthMbps": 99.5, "uploadBandwidthMbps": 20, "type": "AP", "virtual": true } } },
            "south": {} }"#;
        let found = read(text).expect("good");
        let rate = |bps| Some(Rate(bps));
        let seen: Vec<_> = found.sites.iter().map(|site| (site.name.as_str(), site.parent, site.ceil)).collect();
        assert_eq!(
            seen,
            [
                ("north", None, EachWay { down: rate(1_000_000_000), up: rate(400_000_000) }),
                ("tower", Some(0), EachWay { down: rate(99_500_000), up: rate(20_000_000) }),
                ("south", None, EachWay::default()),
            ]
        );
        assert_eq!(read("{}"), Ok(Sites::default()), "a flat network");
    }

    #[test]
    fn mistakes_have_places() {
        let of_depth =
            |depth| (0..depth).fold("{}".to_owned(), |inner, n| format!("{{ \"s{n}\": {{ \"children\": {inner} }} }}"));
        assert_eq!(read(&of_depth(MAX_SITE_DEPTH)).map(|found| found.sites.len()), Ok(MAX_SITE_DEPTH));
        let deep = of_depth(MAX_SITE_DEPTH + 1);
        let many: Vec<String> = (0..MAX_SITES + 9).map(|n| format!("\"s{n}\": {{}}")).collect();
        for (text, says) in [
            ("", "the file of sites is empty"),
            ("[]", "no object"),
            ("{ \"a\": 5 }", "the site \"a\" is no object"),
            ("{ \"a\": {}, \"b\": { \"children\": { \"a\": {} } } }", "two sites are called \"a\""),
            ("{ \"a\": { \"downloadBandwidthMbps\": \"1\" } }", "network.json:1:35"),
            ("{ \"a\": { \"uploadBandwidthMbps\": 0 } }", "lets nothing pass"),
            ("{ \"a\": { \"uploadBandwidthMbps\": 1e99 } }", "above the largest rate"),
            ("{ \"a\": { \"children\": [] } }", "\"children\" of \"a\" is no object"),
            ("{ \"\": {} }", "cannot be the name of a site"),
            ("{ \"a\": {", "is not closed"),
            (&deep, "the site \"s0\" has 6 sites above it"),
            (&format!("{{ {} }}", many.join(",")), "more than 4095 sites"),
        ] {
            let error = read(text).expect_err(says);
            assert!(
                error.contains(says) && error.contains("network.json:") && error.contains("help: "),
                "{says}:\n{error}"
            );
        }
    }
}
