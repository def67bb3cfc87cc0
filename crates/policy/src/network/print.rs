//! A network as text in the native format, in one canonical form: sites and subscribers stand in the policy itself. Parsing the text gives the
//! same network.

use super::{
    Burst, ClassTree, Classification, DEFAULT_GROUP_HOSTS, EachWay, HostGroup, NetworkPolicy, NodeScheduler, Order,
    Plan, PlanClass, ShareKey, Site, Subscriber,
};
use crate::limit::Limit;
use crate::link::Link;
use crate::print::parts::{Fields, link, object, queue};
use crate::print::rules::{list, port_value, rule, sets};
use crate::queue::{Codel, Queue};
use crate::rank::Rank;
use crate::rate::Rate;
use crate::{terms, time};
use serde_json::Value;

/// The policy in the native format. Keys at their defaults are left out.
pub fn print(policy: &NetworkPolicy) -> String {
    let mut text = String::from("{\n");
    text += &format!("  \"version\": {},\n  \"name\": {},\n", crate::FORMAT_VERSION, Value::from(policy.name.as_str()));
    if let Some(description) = &policy.description {
        text += &format!("  \"description\": {},\n", Value::from(description.as_str()));
    }
    let shown = link_fields(policy);
    if !shown.is_empty() {
        text += &format!("  \"link\": {},\n", object(&shown));
    }
    if let Some(tree) = &policy.class_tree {
        return text + &class_tree(policy, tree);
    }
    text += &format!("  \"subscriber_side\": {},\n", Value::from(policy.subscriber_side.clone()));
    if policy.oversold {
        text += "  \"oversold\": true,\n";
    }
    if !policy.sites.sites.is_empty() {
        text += &format!("  \"sites\": {},\n", sites(policy));
    }
    if !policy.plans.is_empty() {
        let plans: Vec<String> =
            policy.plans.iter().map(|one| format!("    {}", named(&one.name, &plan(one)))).collect();
        text += &format!("  \"plans\": {{\n{}\n  }},\n", plans.join(",\n"));
    }
    text += &classification(&policy.classification);
    if !policy.groups.is_empty() {
        let groups: Vec<String> =
            policy.groups.iter().map(|one| format!("    {}", named(&one.each.name, &group(policy, one)))).collect();
        text += &format!("  \"each_host\": {{\n{}\n  }},\n", groups.join(",\n"));
    }
    let all: Vec<String> = policy
        .subscribers
        .subscribers
        .iter()
        .map(|one| format!("\n    {}", object(&subscriber(policy, one))))
        .collect();
    let all = if all.is_empty() { "[]".to_owned() } else { format!("[{}\n  ]", all.join(",")) };
    text + &format!("  \"subscribers\": {all}\n}}\n")
}

/// The rest of a policy whose classes form a tree.
fn class_tree(policy: &NetworkPolicy, tree: &ClassTree) -> String {
    let mut text = String::new();
    for (key, value) in served(tree.scheduler) {
        text += &format!("  \"{key}\": {value},\n");
    }
    let parent = |site: Option<usize>| site.and_then(|site| policy.sites.sites.get(site));
    let scheduler = |site: Option<usize>| site.map_or(tree.scheduler, |site| tree.inner[site].scheduler);
    let share = |fields: &mut Fields, site: Option<usize>, (weight, priority, order): (u32, u8, Order)| {
        fields.extend(parent(site).map(|site| ("parent", site.name.clone().into())));
        fields.extend(share_of(scheduler(site), weight, priority, order));
    };
    let inner = policy.sites.sites.iter().zip(&tree.inner).map(|(site, own)| {
        let mut fields: Fields = vec![("name", site.name.clone().into())];
        share(&mut fields, site.parent, (site.weight, own.priority, own.order));
        fields.extend(rates([("rate", &site.rate), ("ceil", &site.ceil)]));
        fields.extend(own.burst.map(|burst| ("burst", burst.to_string().into())));
        fields.extend(served(own.scheduler));
        fields
    });
    let leaves = policy.subscribers.subscribers.iter().zip(&tree.leaves).map(|(leaf, own)| {
        let mut fields: Fields = vec![("id", own.id.0.into()), ("name", leaf.name.clone().into())];
        let weight = policy.plan(leaf).map_or(1, |plan| plan.weight);
        share(&mut fields, leaf.parent, (weight, own.priority, own.order));
        if let Some(plan) = policy.plan(leaf) {
            fields.extend(rates([("rate", &plan.rate), ("ceil", &plan.ceil)]));
            burst(&mut fields, &plan.burst);
            limit(&mut fields, plan.limit);
            queue(&mut fields, plan.queue, plan.codel);
        }
        fields
    });
    let classes = list(inner.chain(leaves));
    text + &classification(&policy.classification) + &format!("  \"classes\": {classes}\n}}\n")
}

/// The scheduler, and the rank function of a PIFO, unless they are the defaults.
fn served(scheduler: NodeScheduler) -> Fields {
    let name = (scheduler != NodeScheduler::default()).then(|| ("scheduler", scheduler.name().into()));
    let rank = scheduler.rank().filter(|rank| *rank != Rank::default());
    name.into_iter().chain(rank.map(|rank| ("rank", rank.name().into()))).collect()
}

/// The keys by which a scheduler shares or orders, unless their values are the defaults.
fn share_of(scheduler: NodeScheduler, weight: u32, priority: u8, order: Order) -> Fields {
    let all = scheduler.values(weight, priority, order).into_iter();
    let written = all.filter(|(key, value)| key.default_value().map(u64::from) != Some(*value));
    let value = |key: ShareKey, value: u64| match key {
        ShareKey::LatencyBudget => key.text(value).into(),
        _ => value.into(),
    };
    written.map(|(key, own)| (key.name(), value(key, own))).collect()
}

fn named(name: &str, fields: &Fields) -> String {
    format!("{}: {}", Value::from(name), object(fields))
}

fn link_fields(policy: &NetworkPolicy) -> Fields {
    let own = &policy.link;
    let mut fields = rates([("rate", &own.rate)]);
    let rest = Link {
        framing: own.framing,
        burst: own.burst,
        split_gso: own.split_gso,
        queues: own.queues,
        ..Link::default()
    };
    fields.extend(link(&rest));
    fields
}

fn rates<const N: usize>(all: [(&'static str, &EachWay<Option<Rate>>); N]) -> Fields {
    all.into_iter().filter_map(|(key, rates)| Some((key, each_way(rates, |rate| rate.to_string().into())?))).collect()
}

/// One value for both directions, or an object with those that there are.
fn each_way<T: PartialEq>(values: &EachWay<Option<T>>, text: impl Fn(&T) -> Value) -> Option<Value> {
    match (&values.down, &values.up) {
        (None, None) => None,
        (Some(down), Some(up)) if down == up => Some(text(down)),
        _ => {
            let named = values.named();
            let present = named.iter().filter_map(|(way, value)| Some(((*way).to_owned(), text(value.as_ref()?))));
            Some(Value::Object(present.collect()))
        }
    }
}

/// The sites, nested.
fn sites(policy: &NetworkPolicy) -> String {
    let all = &policy.sites.sites;
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); all.len() + 1];
    for (place, site) in all.iter().enumerate() {
        below[site.parent.map_or(0, |parent| parent + 1)].push(place);
    }
    fn level(all: &[Site], below: &[Vec<usize>], parent: usize, depth: usize) -> String {
        let indent = "  ".repeat(depth);
        let lines: Vec<String> = below[parent]
            .iter()
            .map(|&place| {
                let site = &all[place];
                let mut fields = rates([("rate", &site.rate), ("ceil", &site.ceil)]);
                if site.weight != 1 {
                    fields.push(("weight", site.weight.into()));
                }
                let text = named(&site.name, &fields);
                if below[place + 1].is_empty() {
                    return format!("{indent}  {text}");
                }
                // The object of the sites below goes before the closing brace.
                let open = text.strip_suffix('}').unwrap_or(&text).trim_end();
                let comma = if fields.is_empty() { " " } else { ", " };
                format!("{indent}  {open}{comma}\"sites\": {} }}", level(all, below, place + 1, depth + 1))
            })
            .collect();
        format!("{{\n{}\n{indent}}}", lines.join(",\n"))
    }
    level(all, &below, 0, 1)
}

fn plan(plan: &Plan) -> Fields {
    let mut fields = rates([("rate", &plan.rate), ("ceil", &plan.ceil)]);
    burst(&mut fields, &plan.burst);
    if plan.weight != 1 {
        fields.push(("weight", plan.weight.into()));
    }
    limit(&mut fields, plan.limit);
    // Classes of a PIFO have a FIFO if nothing else is written.
    if plan.scheduler.rank().is_some() {
        queue(&mut fields, plan.queue, plan.codel);
    } else {
        leaf_queue(&mut fields, plan.queue, plan.codel);
    }
    fields.extend(served(plan.scheduler));
    if !plan.classes.is_empty() {
        let classes = plan.classes.iter().map(|class| plan_class(plan, class));
        let object =
            |fields: Fields| Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect());
        fields.push(("classes", classes.map(object).collect()));
    }
    fields
}

fn burst(fields: &mut Fields, burst: &EachWay<Option<Burst>>) {
    let burst = each_way(burst, |burst| match burst {
        Burst::Bytes(bytes) => bytes.to_string().into(),
        Burst::TimeNs(ns) => time::format(*ns).into(),
    });
    fields.extend(burst.map(|burst| ("burst", burst)));
}

fn limit(fields: &mut Fields, limit: Option<Limit>) {
    match limit {
        Some(Limit::Pkts(pkts)) => fields.push(("limit", pkts.into())),
        Some(limit) => fields.push(("limit", limit.to_string().into())),
        None => {}
    }
}

/// By flow is the default here, as a FIFO is that of a class of a policy with classes.
fn leaf_queue(fields: &mut Fields, own: Queue, codel: Option<Codel>) {
    if own.flows().is_none() {
        fields.push(("queue", own.name().into()));
    }
    queue(fields, own, codel);
}

fn plan_class(plan: &Plan, class: &PlanClass) -> Fields {
    let mut fields: Fields = vec![("id", class.id.0.into()), ("name", class.name.clone().into())];
    fields.extend(rates([("rate", &class.rate), ("ceil", &class.ceil)]));
    burst(&mut fields, &class.burst);
    fields.extend(share_of(plan.scheduler, class.weight, class.priority, class.order));
    if class.limit != plan.limit {
        limit(&mut fields, class.limit);
    }
    if (class.queue, class.codel) != (plan.queue, plan.codel) {
        leaf_queue(&mut fields, class.queue, class.codel);
    }
    fields
}

fn classification(own: &Classification) -> String {
    let mut text = String::new();
    if let Some(id) = own.default_class {
        text += &format!("  \"default_class\": {id},\n");
    }
    text += &sets("address_sets", &own.address_sets, |net| terms::prefix(net).into());
    text += &sets("port_sets", &own.port_sets, port_value);
    if !own.rules.is_empty() {
        text += &format!("  \"rules\": {},\n", list(own.rules.iter().map(rule)));
    }
    text
}

fn subscriber(policy: &NetworkPolicy, subscriber: &Subscriber) -> Fields {
    let mut fields: Fields = vec![("name", subscriber.name.clone().into())];
    if subscriber.id != subscriber.name {
        fields.push(("id", subscriber.id.clone().into()));
    }
    let addresses = subscriber.addresses.iter().map(|written| written.address.to_string());
    fields.push(("addresses", addresses.map(Value::from).collect()));
    fields.extend(policy.plan(subscriber).map(|plan| ("plan", plan.name.clone().into())));
    fields.extend(rates([("rate", &subscriber.rate), ("ceil", &subscriber.ceil)]));
    let site = subscriber.parent.and_then(|site| policy.sites.sites.get(site));
    fields.extend(site.map(|site| ("site", site.name.clone().into())));
    fields
}

fn group(policy: &NetworkPolicy, group: &HostGroup) -> Fields {
    let mut fields = subscriber(policy, &group.each);
    fields.retain(|(key, _)| *key != "name");
    if group.hosts != DEFAULT_GROUP_HOSTS {
        fields.push(("hosts", group.hosts.into()));
    }
    if group.ipv6_length != 128 {
        fields.push(("ipv6_length", group.ipv6_length.into()));
    }
    fields
}
