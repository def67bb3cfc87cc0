//! The keys of a plan, and of a class inside the subscribers that have it.

use super::class;
use super::node::{each_way, rates};
use super::object::{Field, Object, Reader};
use super::{discipline, queue, share};
use crate::class_id::ClassId;
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::network::{BURST_TIMES_NS, Burst, EachWay, MAX_PLAN_CLASSES, Plan, PlanClass, names};
use crate::policy::MAX_CLASS_NAME_BYTES;
use crate::source::Where;
use crate::{quantity, time};
use jsonc_parser::ast::Value;
use sluice_abi as abi;

/// Every key of a plan.
pub(super) const KEYS: &[&str] =
    &with_queue::<8, 15>(["rate", "ceil", "burst", "weight", "scheduler", "rank", "classes", "limit"]);
/// Every key of a class of a plan.
pub(super) const CLASS_KEYS: &[&str] = &with_queue::<10, 17>([
    "id",
    "name",
    "rate",
    "ceil",
    "burst",
    "weight",
    "quantum",
    "priority",
    "latency_budget",
    "limit",
]);

/// These keys, and those of a queue behind them.
const fn with_queue<const OWN: usize, const ALL: usize>(own: [&'static str; OWN]) -> [&'static str; ALL] {
    let mut all = [""; ALL];
    let mut i = 0;
    while i < ALL {
        all[i] = if i < OWN { own[i] } else { queue::KEYS[i - OWN] };
        i += 1;
    }
    all
}

const CLASSES_HELP: &str = "list them, as `[{ \"id\": 0, \"name\": \"calls\", \"rate\": \"2mbit\" }, { \"id\": 1, \"name\": \"rest\" }]`; rules name them by \"class_id\"";

/// The plans; `None` if they cannot be read at all.
pub(super) fn read_all(reader: &mut Reader, field: &Field) -> Option<Vec<Plan>> {
    let Value::Object(_) = field.value else {
        reader.wrong_type(field, "an object", "write plans by name, as `{ \"home\": { \"ceil\": \"100mbit\" } }`");
        return None;
    };
    let mut plans = Vec::new();
    for entry in reader.entries(field, "") {
        if !names::can_be_name(entry.key) {
            reader.report(names::no_name("plan", entry.key, entry.key_span.clone()));
        }
        // One that cannot be read keeps its name, so that subscribers find it.
        plans.push(read(reader, &entry));
    }
    Some(plans)
}

fn read(reader: &mut Reader, entry: &Field) -> Plan {
    let mut plan = Plan::new(entry.key, Where(entry.key_span.clone()));
    let Some(object) = reader.object(entry.value, &entry.path, "a plan", KEYS) else { return plan };
    (plan.rate, plan.ceil) = (rates(reader, &object, "rate"), rates(reader, &object, "ceil"));
    plan.burst = bursts(reader, &object);
    plan.weight = share::weight(reader, &object);
    plan.scheduler = share::scheduler(reader, &object);
    let mut default = queue::Default::Flows;
    if plan.scheduler.rank().is_some() {
        default = queue::Default::Fifo;
        let plan = format!("the plan {}", excerpt(&plan.name));
        discipline::refuse_queues(reader, &object, &plan, "a PIFO ranks the first packet of each class");
    }
    (plan.queue, plan.codel) = queue::read(reader, &object, default);
    plan.limit = object.get("limit").and_then(|field| class::limit(reader, field));
    match object.get("classes") {
        Some(field) => plan.classes = classes(reader, field, &plan),
        None => {
            if let Some(field) = object.get("scheduler") {
                let finding = Diagnostic::error(Kind::MissingKey, "\"scheduler\" of a plan without \"classes\"");
                reader.report(finding.at(field.key_span.clone(), "there is nothing to order").help(CLASSES_HELP));
            }
        }
    }
    plan
}

fn bursts(reader: &mut Reader, object: &Object) -> EachWay<Option<Burst>> {
    object.get("burst").map_or(EachWay::default(), |field| each_way(reader, field, burst))
}

/// A burst in bytes, or as a time at the ceiling.
fn burst(reader: &mut Reader, field: &Field) -> Option<Burst> {
    let is_time = match field.value {
        Value::StringLit(text) => {
            quantity::split(&text.value).is_some_and(|(number, unit)| time::of(number, &unit).is_some())
        }
        _ => false,
    };
    if is_time { reader.time(field, &BURST_TIMES_NS).map(Burst::TimeNs) } else { reader.bytes(field).map(Burst::Bytes) }
}

/// The classes inside a subscriber of a plan. What they do not say of their queue, the plan says.
fn classes(reader: &mut Reader, field: &Field, plan: &Plan) -> Vec<PlanClass> {
    let elements = reader.list(field, CLASSES_HELP);
    if elements.is_empty() && matches!(field.value, Value::Array(_)) {
        let title = format!("the plan {} has an empty list of classes", excerpt(&plan.name));
        let finding = Diagnostic::error(Kind::Empty, title).at(field.span(), "no class");
        reader.report(finding.help("add one, or leave \"classes\" out"));
    }
    if let Some(first) = elements.get(MAX_PLAN_CLASSES) {
        let title = format!("the plan {} has {} classes", excerpt(&plan.name), elements.len());
        let finding = Diagnostic::error(Kind::TooMany, title).at(first.span(), "one too many");
        reader.report(finding.help(format!("{MAX_PLAN_CLASSES} are the most")));
    }
    let mut classes: Vec<PlanClass> = Vec::new();
    for element in elements.iter().take(MAX_PLAN_CLASSES) {
        let Some(class) = class_of(reader, element, plan) else { continue };
        let same = classes.iter().find(|other| other.id == class.id || other.name == class.name);
        if let Some(same) = same {
            let (kind, title) = if same.id == class.id {
                (Kind::DuplicateId, format!("two classes of the plan {} have the id {}", excerpt(&plan.name), class.id))
            } else {
                let (plan, name) = (excerpt(&plan.name), &class.name);
                (Kind::DuplicateName, format!("two classes of the plan {plan} are named \"{name}\""))
            };
            let finding = Diagnostic::error(kind, title)
                .at(class.span.0.clone(), "the second class")
                .at(same.span.0.clone(), "the first class");
            reader.report(finding.help("give each its own"));
            continue;
        }
        classes.push(class);
    }
    classes
}

fn class_of(reader: &mut Reader, element: &Field, plan: &Plan) -> Option<PlanClass> {
    let object = reader.object(element.value, &element.path, "a class of a plan", CLASS_KEYS)?;
    let help = "number the classes from 0; rules name them by `class_id`";
    let id = reader.required(&object, "id", help).and_then(|field| {
        let help = "classes inside subscribers are numbered 0 to 14, gaps are fine";
        reader.integer(field, 0..=MAX_PLAN_CLASSES as i64 - 1, help)
    });
    let is_numbered = id.is_some();
    let id = ClassId(id.unwrap_or_default());
    let name = object.get("name").and_then(|field| reader.name(field, MAX_CLASS_NAME_BYTES));
    let share = share::read(
        reader,
        &object,
        &share::Place {
            scheduler: plan.scheduler,
            most_priority: abi::SL_PART_PRIORITIES - 1,
            class: &format!("class {id} of the plan {}", excerpt(&plan.name)),
            parent: "its plan",
            above: "the plan",
        },
    );
    let default = if plan.scheduler.rank().is_some() { queue::Default::Fifo } else { queue::Default::Flows };
    let (queue, codel) = queue::read_or(reader, &object, (plan.queue, plan.codel), default);
    let class = PlanClass {
        id,
        name: name.unwrap_or_else(|| format!("class{id}")),
        rate: rates(reader, &object, "rate"),
        ceil: rates(reader, &object, "ceil"),
        burst: bursts(reader, &object),
        weight: share.weight,
        priority: share.priority,
        order: share.order,
        queue,
        codel,
        limit: object.get("limit").map_or(plan.limit, |field| class::limit(reader, field)),
        span: Where(element.span()),
    };
    is_numbered.then_some(class)
}
