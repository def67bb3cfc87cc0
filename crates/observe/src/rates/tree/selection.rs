//! The choice and the order of subscribers for a list.

use super::{SubscriberRates, TreeRates, is_at_ceiling};
use serde::Deserialize;
use sluice_kernel::status::SubscriberSearch;
use std::cmp::Ordering;
use std::collections::HashSet;

/// A kind of subscribers that is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubscriberView {
    /// All of them.
    #[default]
    All,
    /// Those that send.
    Busiest,
    /// Those with packets in their queues.
    Queued,
    /// Those whose packets were measured to wait.
    Slowest,
    /// Those that send as much as their ceilings let through.
    AtCeiling,
}

/// An order of subscribers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubscriberOrder {
    /// The order of the policy's table.
    Table,
    /// By key, in lower case.
    Name,
    /// By sending rate.
    Rate,
    /// By the used part of the ceiling; those without one come below all others.
    Used,
    /// By bytes in the queue.
    Queue,
    /// By the wait of packets in the queue; those without one come below all others.
    Wait,
    /// By drop rate, then by the packets that were ever dropped.
    Drops,
}

/// The wanted subscribers of a tree, in order.
#[derive(Debug, Clone)]
pub struct Selection<'a> {
    /// Text or address that they have.
    pub search: &'a SubscriberSearch,
    /// Site that they are below, be it below a site of its own. None: any.
    pub site: Option<&'a str>,
    /// Kind of subscribers.
    pub view: SubscriberView,
    /// Order; equal ones stand as in the table.
    pub order: SubscriberOrder,
    /// Whether the order is turned round.
    pub descending: bool,
}

impl SubscriberView {
    fn has(self, one: &SubscriberRates) -> bool {
        match self {
            SubscriberView::All => true,
            SubscriberView::Busiest => one.queue.rates.sent_bps > 0.0,
            SubscriberView::Queued => one.queue.rates.backlog.pkts > 0,
            SubscriberView::Slowest => one.queue.wait_ms.is_some(),
            SubscriberView::AtCeiling => is_at_ceiling(one.queue.used),
        }
    }

    /// The order in which a kind is looked at.
    pub fn order(self) -> SubscriberOrder {
        match self {
            SubscriberView::All => SubscriberOrder::Table,
            SubscriberView::Busiest => SubscriberOrder::Rate,
            SubscriberView::Queued => SubscriberOrder::Queue,
            SubscriberView::Slowest => SubscriberOrder::Wait,
            SubscriberView::AtCeiling => SubscriberOrder::Used,
        }
    }
}

impl SubscriberOrder {
    /// Whether the order by itself is from high to low: that of figures is.
    pub fn is_descending(self) -> bool {
        !matches!(self, SubscriberOrder::Table | SubscriberOrder::Name)
    }

    /// The figures that are compared, one after the other.
    fn figures(self, one: &SubscriberRates) -> [f64; 2] {
        match self {
            SubscriberOrder::Table | SubscriberOrder::Name => [0.0; 2],
            SubscriberOrder::Rate => [one.queue.rates.sent_bps, 0.0],
            SubscriberOrder::Used => [one.queue.used.unwrap_or(-1.0), 0.0],
            SubscriberOrder::Queue => [one.queue.rates.backlog.bytes as f64, 0.0],
            SubscriberOrder::Wait => [one.queue.wait_ms.unwrap_or(-1.0), 0.0],
            SubscriberOrder::Drops => [one.queue.rates.dropped_pps, one.counts.dropped_pkts as f64],
        }
    }
}

impl TreeRates {
    /// The subscribers of a selection.
    pub fn selected(&self, selection: &Selection<'_>) -> Vec<&SubscriberRates> {
        let below = selection.site.map(|site| self.below(site));
        let is_below = |one: &SubscriberRates| {
            below.as_ref().is_none_or(|sites| one.site.as_deref().is_some_and(|site| sites.contains(site)))
        };
        let is_found = |one: &SubscriberRates| {
            let names = [Some(&one.id), Some(&one.name), one.site.as_ref(), one.plan.as_ref()];
            selection.search.finds(names.into_iter().flatten().map(String::as_str), &one.addresses)
        };
        let wanted = |one: &&SubscriberRates| selection.view.has(one) && is_below(one) && is_found(one);
        let mut selected: Vec<&SubscriberRates> = self.subscribers.iter().filter(wanted).collect();
        let turned = |order: Ordering| if selection.descending { order.reverse() } else { order };
        match selection.order {
            SubscriberOrder::Table if selection.descending => selected.reverse(),
            SubscriberOrder::Table => {}
            SubscriberOrder::Name => {
                let mut named: Vec<(String, &SubscriberRates)> =
                    selected.into_iter().map(|one| (one.id.to_lowercase(), one)).collect();
                named.sort_by(|(one, _), (other, _)| turned(one.cmp(other)));
                selected = named.into_iter().map(|(_, one)| one).collect();
            }
            by => selected.sort_by(|one, other| {
                let ([first, second], [of_first, of_second]) = (by.figures(one), by.figures(other));
                turned(first.total_cmp(&of_first).then(second.total_cmp(&of_second)))
            }),
        }
        selected
    }

    /// The names of a site and of all sites below it.
    fn below<'a>(&'a self, site: &'a str) -> HashSet<&'a str> {
        let mut below = HashSet::from([site]);
        // Each stands behind the one above it.
        for one in &self.sites {
            if one.parent.as_deref().is_some_and(|parent| below.contains(parent)) {
                below.insert(&one.name);
            }
        }
        below
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LeafRates, QueueRates, SiteRates};
    use super::*;
    use sluice_kernel::status::{Count, LeafCounts, Way};

    fn site(name: &str, parent: Option<&str>) -> SiteRates {
        SiteRates {
            name: name.to_owned(),
            parent: parent.map(str::to_owned),
            depth: usize::from(parent.is_some()),
            subscribers: 0,
            rate_bps: None,
            ceil_bps: None,
            used: None,
            rates: LeafRates::default(),
        }
    }

    fn subscriber(
        id: &str,
        site: Option<&str>,
        address: &str,
        mbit: f64,
        queued: u64,
        dropped: u64,
    ) -> SubscriberRates {
        let backlog = Count { pkts: queued, bytes: queued * 1500 };
        SubscriberRates {
            id: id.to_owned(),
            name: format!("{id} by name"),
            site: site.map(str::to_owned),
            plan: None,
            addresses: [address.parse().expect("a prefix")].into(),
            queue: QueueRates {
                rate_bps: None,
                ceil_bps: site.map(|_| 20_000_000),
                used: site.map(|_| mbit / 20.0),
                rates: LeafRates { sent_bps: mbit * 1e6, sent_pps: 0.0, dropped_pps: 0.0, backlog },
                wait_ms: (mbit > 0.0).then_some(queued as f64 * 2.0),
            },
            counts: LeafCounts { dropped_pkts: dropped, ..LeafCounts::default() },
            marked_pkts: 0,
            classes: Vec::new(),
        }
    }

    fn tree() -> TreeRates {
        TreeRates {
            is_class_tree: false,
            way: Way::Down,
            sites: vec![site("north", None), site("south", None), site("mast", Some("north"))],
            subscribers: vec![
                subscriber("shop", Some("mast"), "192.0.2.64/29", 19.9, 7, 3),
                subscriber("Elm 1", Some("north"), "192.0.2.1/32", 5.0, 0, 0),
                subscriber("mill", None, "2001:db8::/48", 60.0, 9, 5),
                subscriber("elm 2", Some("south"), "192.0.2.2/32", 0.0, 0, 5),
            ],
            nobody: LeafRates::default(),
        }
    }

    #[test]
    fn selected_by_kind_place_and_text_in_order() {
        use {SubscriberOrder as Order, SubscriberView as View};
        let tree = tree();
        let ids = |search: &str, site: Option<&str>, view: View, order: Order, descending: bool| -> Vec<String> {
            let search = &SubscriberSearch::new(search);
            let selected = tree.selected(&Selection { search, site, view, order, descending });
            selected.into_iter().map(|one| one.id.clone()).collect()
        };
        let by = |order: Order, descending: bool| ids("", None, View::All, order, descending);
        assert_eq!(by(Order::Table, false), ["shop", "Elm 1", "mill", "elm 2"]);
        assert_eq!(by(Order::Table, true), ["elm 2", "mill", "Elm 1", "shop"]);
        assert_eq!(by(Order::Name, false), ["Elm 1", "elm 2", "mill", "shop"]);
        assert_eq!(by(Order::Rate, true), ["mill", "shop", "Elm 1", "elm 2"]);
        assert_eq!(by(Order::Used, true), ["shop", "Elm 1", "elm 2", "mill"], "without a ceiling last");
        assert_eq!(by(Order::Queue, false), ["Elm 1", "elm 2", "shop", "mill"], "equal ones as in the table");
        assert_eq!(by(Order::Drops, true), ["mill", "elm 2", "shop", "Elm 1"]);
        assert_eq!(by(Order::Wait, true), ["mill", "shop", "Elm 1", "elm 2"]);
        let seen = |view: View| ids("", None, view, view.order(), view.order().is_descending());
        assert_eq!(seen(View::Busiest), ["mill", "shop", "Elm 1"]);
        assert_eq!(seen(View::Queued), ["mill", "shop"]);
        assert_eq!(seen(View::Slowest), ["mill", "shop", "Elm 1"], "who sends nothing is not slow");
        assert_eq!(seen(View::AtCeiling), ["shop"], "60 Mbit/s without a ceiling are not at one");
        let found = |search: &str, site: Option<&str>| ids(search, site, View::All, Order::Table, false);
        assert_eq!(found("", Some("north")), ["shop", "Elm 1"], "those of sites below it, too");
        assert_eq!(found("elm", Some("north")), ["Elm 1"]);
        assert_eq!(found("BY NAME", Some("south")), ["elm 2"]);
        assert_eq!(found("192.0.2.66", None), ["shop"]);
        assert_eq!(found("2001:db8::7", None), ["mill"]);
        assert!(found("", Some("nowhere")).is_empty());
    }
}
