//! The subscribers of an interface with their present rates: a part of the list at a time, and one of them.

use super::live::{latest, soon};
use super::{run_reading, value};
use crate::extract::{Path, Query};
use crate::problem::{Answer, Problem};
use crate::search;
use crate::state::Shared;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use sluice_observe::Rates;
use sluice_observe::rates::{Selection, SubscriberOrder, SubscriberRates, SubscriberView, TreeRates};

/// Subscribers of an answer unless the request names a number.
const LIMIT: usize = 50;
/// The most subscribers of an answer.
const MAX_LIMIT: usize = 200;
/// The most addresses of a subscriber that are listed.
const MAX_ADDRESSES: usize = 100;

/// The query for a part of the list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Listed {
    /// A text that key, name, site or plan has, or an address.
    search: String,
    /// A site that they are below.
    site: Option<String>,
    /// Kind of subscribers.
    view: SubscriberView,
    /// Order. None: that of the view.
    sort: Option<SubscriberOrder>,
    /// Direction of the order. None: figures from high to low, names from a to z.
    order: Option<Direction>,
    /// The number of subscribers before the first that is wanted.
    offset: usize,
    /// The most that are wanted, up to [`MAX_LIMIT`].
    limit: Option<usize>,
}

/// The query for one subscriber. Its key is no part of the path, where some keys, such as `..`, have a meaning of their own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Its key.
    name: String,
}

/// The direction of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Direction {
    Ascending,
    Descending,
}

/// The subscribers that a query wants, from its offset on.
pub async fn subscribers(State(state): State<Shared>, Path(name): Path<String>, Query(query): Query<Listed>) -> Answer {
    let limit = query.limit.unwrap_or(LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        let what = format!("limit is {limit}, not between 1 and {MAX_LIMIT}");
        return Err(unprocessable(what, "ask for the others with offset"));
    }
    let search = search::of(&query.search)?;
    let rates = latest(&state, &name).await?;
    run_reading(state, move |_| {
        let tree = tree(&rates, &name)?;
        if let Some(site) = query.site.as_deref().filter(|site| tree.sites.iter().all(|one| one.name != **site)) {
            let what = format!("there is no site \"{}\"", site.escape_debug());
            return Err(unprocessable(what, format!("GET /api/interfaces/{name}/rates lists the sites")));
        }
        let order = query.sort.unwrap_or_else(|| query.view.order());
        let selection = Selection {
            search: &search,
            site: query.site.as_deref(),
            view: query.view,
            order,
            descending: query.order.map_or(order.is_descending(), |order| order == Direction::Descending),
        };
        let selected = tree.selected(&selection);
        let part = selected.iter().skip(query.offset).take(limit);
        Ok(json!({
            "at_ms": rates.at_ms,
            "way": tree.way,
            "count": tree.subscribers.len(),
            "found": selected.len(),
            "offset": query.offset,
            "subscribers": value(part.collect::<Vec<_>>())?,
        }))
    })
    .await
}

/// A subscriber, with its addresses, counters and classes.
pub async fn subscriber(
    State(state): State<Shared>,
    Path(name): Path<String>,
    Query(Named { name: id }): Query<Named>,
) -> Answer {
    let rates = latest(&state, &name).await?;
    run_reading(state, move |_| {
        let tree = tree(&rates, &name)?;
        let found = tree.subscribers.iter().find(|one| one.id == id);
        let missing = || Problem::from(sluice_kernel::no_subscriber(&id)).with_status(StatusCode::NOT_FOUND);
        let mut shown = in_full(found.ok_or_else(missing)?)?;
        shown["at_ms"] = json!(rates.at_ms);
        shown["way"] = json!(tree.way);
        Ok(shown)
    })
    .await
}

/// The rates of a subscriber with what a list leaves out.
fn in_full(one: &SubscriberRates) -> Result<Value, Problem> {
    let mut shown = value(one)?;
    let addresses: Vec<String> = one.addresses.iter().take(MAX_ADDRESSES).map(ToString::to_string).collect();
    shown["addresses_left_out"] = json!(one.addresses.len() - addresses.len());
    shown["addresses"] = json!(addresses);
    shown["sent"] = value(one.counts.sent)?;
    shown["dropped_pkts"] = json!(one.counts.dropped_pkts);
    shown["marked_pkts"] = json!(one.marked_pkts);
    shown["classes"] = value(&one.classes)?;
    Ok(shown)
}

fn tree<'a>(rates: &'a Rates, name: &str) -> Result<&'a TreeRates, Problem> {
    let interface = rates.interface(name).ok_or_else(soon)?;
    interface.tree.as_ref().ok_or_else(|| sluice_kernel::without_subscribers(name).into())
}

fn unprocessable(what: impl Into<String>, cure: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, what, cure)
}
