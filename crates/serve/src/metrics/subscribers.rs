//! The metrics of a provider's network: of its sites, and of the subscribers that a scrape asks for.

use super::family::{Family, Label, Value, name, packets};
use prometheus_client::registry::Unit;
use sluice_kernel::status::{LeafCounts, QueueStatus, SiteStatus, Status, SubscriberSearch, SubscriberStatus};
use sluice_observe::Sample;

/// The most queues of an interface that have series of their own: those of subscribers, and of classes inside them.
const MOST_QUEUES: usize = 10_000;

/// Counts of the subscribers of each site, those of the sites below it included.
pub(super) fn of_sites(sample: &Sample) -> Vec<Family> {
    let all = || {
        let trees = sample.interfaces.iter().filter_map(|one| Some((one, one.tree.as_ref()?)));
        trees.flat_map(|(one, tree)| tree.sites.iter().map(move |site| (one, site)))
    };
    if all().next().is_none() {
        return Vec::new();
    }
    let labels = |(one, site): (&Status, &SiteStatus)| vec![name(one), ("site", site.name.clone())];
    let count = |value: fn(&LeafCounts) -> u64| {
        move |place: (&Status, &SiteStatus)| Some((labels(place), Value::Count(value(&place.1.counts))))
    };
    vec![
        Family::counter("sluice_site_sent", "Packets that the subscribers of a site have sent or got", packets())
            .each(all(), count(|counts| counts.sent.pkts)),
        Family::counter("sluice_site_sent", "Bytes that the subscribers of a site have sent or got", Unit::Bytes)
            .each(all(), count(|counts| counts.sent.bytes)),
        Family::counter("sluice_site_dropped", "Packets of the subscribers of a site that were dropped", packets())
            .each(all(), count(|counts| counts.dropped_pkts)),
        Family::gauge("sluice_site_backlog", "Bytes of the subscribers of a site that wait", Some(Unit::Bytes))
            .each(all(), |place| Some((labels(place), Value::Gauge(place.1.counts.backlog.bytes as f64)))),
        Family::gauge("sluice_site_subscribers", "Subscribers of a site", Some(Unit::Other("subscribers".to_owned())))
            .each(all(), |place| Some((labels(place), Value::Gauge(place.1.subscribers as f64)))),
    ]
}

/// Counts of the subscribers that a search finds, and of the classes inside them: the first [`MOST_QUEUES`] queues of each interface.
pub(super) fn of_subscribers(sample: &Sample, search: &SubscriberSearch) -> Vec<Family> {
    let (mut whole, mut inside): (Vec<Queue>, Vec<Queue>) = Default::default();
    let mut left_out = Family::gauge(
        "sluice_subscriber_left_out",
        "Subscribers that were asked for and have no series, since there are too many",
        Some(Unit::Other("subscribers".to_owned())),
    );
    for (one, tree) in sample.interfaces.iter().filter_map(|one| Some((one, one.tree.as_ref()?))) {
        let found: Vec<&SubscriberStatus> = tree.all.iter().filter(|own| search.finds_subscriber(own)).collect();
        let fit = fitting(found.iter().map(|own| 1 + own.classes.len()));
        left_out.series.push((vec![name(one)], Value::Gauge((found.len() - fit) as f64)));
        for own in &found[..fit] {
            let or_none = |text: &Option<String>| text.clone().unwrap_or_default();
            let labels = vec![
                name(one),
                ("subscriber", own.id.clone()),
                ("site", or_none(&own.site)),
                ("plan", or_none(&own.plan)),
            ];
            for class in &own.classes {
                inside.push(([labels.as_slice(), &[("class", class.name.clone())]].concat(), class.queue));
            }
            whole.push((labels, own.queue));
        }
    }
    let mut families = of_queues(
        &whole,
        [
            ("sluice_subscriber_sent", "Packets that a subscriber has sent or got"),
            ("sluice_subscriber_sent", "Bytes that a subscriber has sent or got"),
            ("sluice_subscriber_dropped", "Packets of a subscriber that were dropped"),
            ("sluice_subscriber_marked", "Packets of a subscriber with congestion marked (ECN)"),
            ("sluice_subscriber_backlog", "Bytes of a subscriber that wait"),
            ("sluice_subscriber_wait", "Wait of a subscriber's packets in the queue, a mean of the last"),
        ],
    );
    if !inside.is_empty() {
        families.extend(of_queues(
            &inside,
            [
                ("sluice_subscriber_class_sent", "Packets of a class inside a subscriber that have left"),
                ("sluice_subscriber_class_sent", "Bytes of a class inside a subscriber that have left"),
                ("sluice_subscriber_class_dropped", "Packets of a class inside a subscriber that were dropped"),
                (
                    "sluice_subscriber_class_marked",
                    "Packets of a class inside a subscriber with congestion marked (ECN)",
                ),
                ("sluice_subscriber_class_backlog", "Bytes of a class inside a subscriber that wait"),
                ("sluice_subscriber_class_wait", "Wait of packets of a class inside a subscriber, a mean of the last"),
            ],
        ));
    }
    families.push(left_out);
    families
}

/// The number of first subscribers, which have so many queues each, that have [`MOST_QUEUES`] together at most.
fn fitting(queues: impl IntoIterator<Item = usize>) -> usize {
    let sums = queues.into_iter().scan(0, |sum, own| {
        *sum += own;
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= MOST_QUEUES).count()
}

/// A queue's labels and state.
type Queue = (Vec<Label>, QueueStatus);

/// Families of queues, which have these names and help texts: sent packets and bytes, dropped and marked packets, backlog and wait.
fn of_queues(queues: &[Queue], names: [(&'static str, &'static str); 6]) -> Vec<Family> {
    let count = |value: fn(&QueueStatus) -> u64| {
        move |(labels, queue): &Queue| Some((labels.clone(), Value::Count(value(queue))))
    };
    let [sent, sent_bytes, dropped, marked, backlog, wait] = names;
    vec![
        Family::counter(sent.0, sent.1, packets()).each(queues.iter(), count(|queue| queue.counts.sent.pkts)),
        Family::counter(sent_bytes.0, sent_bytes.1, Unit::Bytes)
            .each(queues.iter(), count(|queue| queue.counts.sent.bytes)),
        Family::counter(dropped.0, dropped.1, packets()).each(queues.iter(), count(|queue| queue.counts.dropped_pkts)),
        Family::counter(marked.0, marked.1, packets()).each(queues.iter(), count(|queue| queue.marked_pkts)),
        Family::gauge(backlog.0, backlog.1, Some(Unit::Bytes)).each(queues.iter(), |(labels, queue)| {
            Some((labels.clone(), Value::Gauge(queue.counts.backlog.bytes as f64)))
        }),
        Family::gauge(wait.0, wait.1, Some(Unit::Seconds))
            .each(queues.iter(), |(labels, queue)| Some((labels.clone(), Value::Gauge(queue.wait_ms? / 1e3)))),
    ]
}

#[cfg(test)]
mod tests {
    use super::{MOST_QUEUES, fitting};

    #[test]
    fn series_are_bounded_by_queues() {
        assert_eq!(fitting(vec![1; MOST_QUEUES]), MOST_QUEUES);
        assert_eq!(fitting(vec![1; MOST_QUEUES + 1]), MOST_QUEUES);
        assert_eq!(fitting(vec![4; MOST_QUEUES]), MOST_QUEUES / 4);
        assert_eq!(fitting([MOST_QUEUES - 1, 2, 1]), 1, "those behind one that does not fit have none either");
        assert_eq!(fitting([]), 0);
    }
}
