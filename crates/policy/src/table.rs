//! A resolved policy as text tables.

use crate::dscp;
use crate::forward::{Forward, ForwardSource, Target};
use crate::icmp;
use crate::link::{Cells, Framing, LinkQueues, SplitGso};
use crate::policy::{ClassFrom, Exceed, IcmpType, Malformed, Mode, Rule, Terms};
use crate::queue::Flows;
use crate::resolved::{Resolved, ResolvedClass};
use crate::scheduler::Scheduler;
use crate::tcp_flags;
use crate::terms;
use crate::time;
use comfy_table::{CellAlignment, Table};

/// The policy's settings, then its classes, then its rules in the order of evaluation. `resolution` is that of the rank in the
/// engine, or `None` if it is exact. Ends in a newline.
pub fn table(resolved: &Resolved, resolution: Option<&str>) -> String {
    let mut text = settings(resolved, resolution);
    text += "\n";
    text += &classes(resolved);
    if !matches!(resolved.mode, Mode::ScheduleOnly { .. }) {
        text += "\n";
        text += &rules(resolved);
    }
    if !resolved.forwards.is_empty() {
        text += "\n";
        text += &forwards(resolved);
    }
    text
}

fn settings(resolved: &Resolved, resolution: Option<&str>) -> String {
    let class_name = |id| resolved.class(id).map_or(format!("{id}"), |class| format!("{id} {}", class.name));
    let scheduler = match resolved.mode {
        Mode::ClassifyOnly => "none (classify_only: packets are counted and policed)".to_string(),
        _ => resolved.scheduler.to_string(),
    };
    let mut rows = vec![("policy", resolved.name.clone())];
    if let Some(description) = &resolved.description {
        rows.push(("purpose", description.clone()));
    }
    rows.push(("scheduler", scheduler));
    if resolved.scheduler == Scheduler::PIFO && resolved.mode != Mode::ClassifyOnly {
        let resolution = resolution.map_or(String::new(), |resolution| format!(", exact to {resolution}"));
        rows.push(("rank", format!("{}{resolution}", resolved.rank)));
    }
    if !resolved.arrivals_of.is_empty() {
        rows.push(("arrivals of", resolved.arrivals_of.join(", ")));
    }
    rows.push(("link", link(resolved)));
    for (name, ceiling) in [("ingress limit", resolved.limits.ingress), ("egress limit", resolved.limits.egress)] {
        rows.extend(ceiling.map(|ceiling| (name, format!("{}, burst {}", ceiling.rate, ceiling.burst()))));
    }
    if let Mode::ScheduleOnly { by } = resolved.mode {
        let by = if by == ClassFrom::Dscp { "DSCP" } else { "firewall mark" };
        rows.push(("class from", format!("{by} (schedule_only: rules are not consulted)")));
    }
    rows.push(("default class", class_name(resolved.default_class)));
    rows.push(("urgent class", format!("{} (ARP, ND and DHCP)", class_name(resolved.urgent_class))));
    let flows = if resolved.flows == 0 { "off".into() } else { format!("{} entries", resolved.flows) };
    rows.push(("flow table", flows));
    if !resolved.forwards.is_empty() {
        rows.push(("connection table", format!("{} entries", resolved.connections.next_power_of_two())));
    }
    if resolved.malformed == Malformed::Drop {
        rows.push(("malformed", "dropped".into()));
    }
    rows.iter().map(|(name, value)| format!("{name:<14} {value}\n")).collect()
}

fn link(resolved: &Resolved) -> String {
    let is_group = !resolved.arrivals_of.is_empty();
    let mut text = match (resolved.link_rate, resolved.ingress_rate) {
        (_, Some(rate)) if is_group => format!("arrivals {rate} together"),
        (None, _) => "rate unknown, not shaped".into(),
        (Some(rate), _) => format!("{rate}"),
    };
    if let Some(rate) = resolved.ingress_rate.filter(|_| !is_group) {
        text += &format!(", arrivals {rate}");
    }
    let framing = resolved.framing;
    if framing != Framing::default() {
        if let Some((name, _)) = Framing::PRESETS.iter().find(|(_, preset)| *preset == framing) {
            text += &format!(", {name} framing:");
        } else {
            text += ",";
        }
        text += &format!(" {:+} bytes a packet", framing.overhead_bytes);
        if framing.mpu_bytes > 0 {
            text += &format!(", at least {}", framing.mpu_bytes);
        }
        text += match framing.cells {
            Cells::None => "",
            Cells::Atm => ", in ATM cells",
            Cells::Ptm => ", 64b/65b",
        };
    }
    if let Some(burst) = resolved.link_burst {
        text += &format!(", burst {burst}");
    }
    text += match resolved.split_gso {
        SplitGso::Auto => "",
        SplitGso::On => ", GSO split",
        SplitGso::Off => ", GSO whole",
    };
    text + match resolved.queues {
        LinkQueues::Auto => "",
        LinkQueues::One => ", one tx queue",
        LinkQueues::All => ", all tx queues",
    }
}

fn classes(resolved: &Resolved) -> String {
    let any = |has: fn(&ResolvedClass) -> bool| resolved.classes.iter().any(has);
    let by_flow: fn(&ResolvedClass) -> bool = |c| c.queue.flows().is_some();
    let own_quantum: fn(&ResolvedClass) -> bool =
        |c| c.queue.flows().is_some_and(|flows| flows.quantum_bytes != Flows::default().quantum_bytes);
    let acts: fn(&ResolvedClass) -> bool = |c| c.codel.is_some();
    let queues: fn(&ResolvedClass) -> bool = |c| c.queue.flows().is_some() || c.codel.is_some();
    type C<'a> = Column<'a, ResolvedClass>;
    let columns = vec![
        C::right("class", true, |c| c.id.to_string()),
        C::left("name", true, |c| c.name.clone()),
        C::right("priority", true, |c| c.priority.to_string()),
        C::right("weight", resolved.scheduler.uses_weight(resolved.rank), |c| c.weight.to_string()),
        C::right("quantum", resolved.scheduler.uses_quantum(resolved.rank), |c| c.quantum_bytes.to_string()),
        C::right("latency budget", resolved.scheduler.uses_budget(resolved.rank), |c| {
            or_dash(c.latency_budget_ns.map(time::format))
        }),
        C::right("rate", any(|c| c.rate.is_some()), |c| or_dash(c.rate)),
        C::right("ceil", any(|c| c.ceil.is_some()), |c| or_dash(c.ceil)),
        C::right("burst", any(|c| c.burst.is_some()), |c| or_dash(c.burst)),
        C::right("peak", any(|c| c.peak.is_some()), |c| or_dash(c.peak.map(|peak| peak.rate))),
        C::right("peak burst", any(|c| c.peak.is_some()), |c| or_dash(c.peak.map(|peak| peak.burst()))),
        C::left("above ceil", any(|c| c.ceil.is_some()), |c| {
            match (c.ceil, c.exceed) {
                (None, _) => "-",
                (_, Exceed::Shape) => "wait",
                (_, Exceed::Police) => "drop",
            }
            .into()
        }),
        C::right("flow ceil", any(|c| c.flow_ceil.is_some()), |c| or_dash(c.flow_ceil.map(|ceil| ceil.rate))),
        C::left("shared ceil", any(|c| c.shared_ceil.is_some()), |c| {
            or_dash(c.shared_ceil.as_ref().map(|shared| format!("{} {}", shared.name, shared.ceiling.rate)))
        }),
        C::right("limit", true, |c| format!("{} pkts", c.limit_pkts)),
        C::right("or bytes", any(|c| c.limit_bytes.is_some()), |c| or_dash(c.limit_bytes)),
        C::left("queue", any(queues), |c| c.queue.name().into()),
        C::left("fair to hosts", any(by_flow), |c| or_dash(c.queue.flows().map(|flows| flows.hosts.name()))),
        C::right("flow quantum", any(own_quantum), |c| or_dash(c.queue.flows().map(|flows| flows.quantum_bytes))),
        C::right("allowance", any(by_flow), |c| or_dash(c.queue.flows().map(|flows| flows.allowance))),
        C::left("aqm", any(queues), |c| or_dash(c.codel.map(|_| "codel"))),
        C::right("target", any(acts), |c| or_dash(c.codel.map(|codel| time::format(codel.target_ns)))),
        C::right("interval", any(acts), |c| or_dash(c.codel.map(|codel| time::format(codel.interval_ns)))),
        C::left("dscp", any(|c| !c.dscp.is_empty()), |c| joined(c.dscp.iter().map(|&value| dscp_name(value)))),
        C::left("mark", any(|c| !c.marks.is_empty()), |c| joined(c.marks.iter().map(u32::to_string))),
    ];
    render(&columns, &resolved.classes)
}

fn rules(resolved: &Resolved) -> String {
    if resolved.rules.is_empty() {
        return "no rules: every packet gets the default class\n".into();
    }
    let rules: Vec<&Rule> = resolved.rules.iter().map(|rule| &rule.rule).collect();
    let any = |has: fn(&Rule) -> bool| rules.iter().any(|rule| has(rule));
    let class_name =
        |rule: &&Rule| resolved.class(rule.class).map_or(rule.class.to_string(), |c| format!("{} {}", c.id, c.name));
    type R<'a> = Column<'a, &'a Rule>;
    let columns = vec![
        R::right("rule", true, |r| r.priority.to_string()),
        R::left("name", any(|r| r.name.is_some()), |r| or_dash(r.name.as_ref())),
        R::left("protocol", any(|r| r.protocol != crate::Protocol::Any), |r| r.protocol.to_string()),
        R::left("from", any(|r| !r.src.is_empty()), |r| first(&r.src, terms::prefix)),
        R::left("port", any(|r| !r.src_ports.is_empty()), |r| first(&r.src_ports, terms::ports)),
        R::left("to", any(|r| !r.dst.is_empty()), |r| first(&r.dst, terms::prefix)),
        R::left("to port", any(|r| !r.dst_ports.is_empty()), |r| first(&r.dst_ports, terms::ports)),
        R::left("dscp", any(|r| r.dscp.is_some()), |r| or_any(r.dscp.map(dscp_name))),
        R::left("vlan", any(|r| r.vlan.is_some()), |r| or_any(r.vlan)),
        R::left("pcp", any(|r| r.pcp.is_some()), |r| or_any(r.pcp)),
        R::left("icmp", any(|r| r.icmp.is_some()), |r| or_any(r.icmp.map(|kind| icmp_type(kind, r)))),
        R::left("flags", any(|r| r.tcp_flags.is_some()), |r| or_any(r.tcp_flags.map(tcp_flags::format))),
        R::left("length", any(|r| r.length.is_some()), |r| or_any(r.length.map(|range| terms::ports(&range)))),
        R::left("in", any(|r| r.in_interface.is_some()), |r| or_any(r.in_interface.as_ref())),
        R::left("mark", any(|r| r.mark.is_some()), |r| or_any(r.mark)),
        R::left("class", true, class_name),
    ];
    render(&columns, &rules)
}

fn forwards(resolved: &Resolved) -> String {
    let any = |has: fn(&Forward) -> bool| resolved.forwards.iter().any(has);
    let class = |f: &Forward| f.class.and_then(|id| resolved.class(id)).map(|c| format!("{} {}", c.id, c.name));
    let target = |f: &Forward| {
        let one = |target: &Target| format!("{} {}", target.address, terms::ports(&f.target_ports(target)));
        let more = f.targets.len() - 1;
        format!("{}{}", one(&f.targets[0]), if more > 0 { format!(" +{more}") } else { String::new() })
    };
    type F<'a> = Column<'a, Forward>;
    let columns = vec![
        F::left("forward", true, |f| f.name.clone()),
        F::left("protocol", true, |f| f.transport.to_string()),
        F::left("listens on", any(|f| f.listen.is_some()), |f| or_any(f.listen)),
        F::right("port", true, |f| terms::ports(&f.ports)),
        F::left("to", true, target),
        F::left("source", any(|f| f.source == ForwardSource::Masquerade), |f| match f.source {
            ForwardSource::Keep => "kept".into(),
            ForwardSource::Masquerade => "masqueraded".into(),
        }),
        F::left("class", any(|f| f.class.is_some()), move |f| class(f).unwrap_or("by rules".into())),
    ];
    render(&columns, &resolved.forwards)
}

/// The most values of a cell.
const MAX_VALUES: usize = 2;

/// The first values of a rule's condition, and the number of the others.
fn first<T>(terms: &Terms<T>, value: fn(&T) -> String) -> String {
    if terms.is_empty() {
        return "any".into();
    }
    let mut texts: Vec<String> = terms.iter().take(MAX_VALUES).map(|term| terms::term(term, value)).collect();
    if terms.len() > MAX_VALUES {
        texts.push(format!("+{}", terms.len() - MAX_VALUES));
    }
    texts.join(" ")
}

fn icmp_type(kind: IcmpType, rule: &Rule) -> String {
    icmp::name(kind, rule.protocol).map_or_else(|number| number.to_string(), String::from)
}

/// A column: its title, and the text of each row. Empty columns are left out.
struct Column<'a, T> {
    title: &'static str,
    alignment: CellAlignment,
    shown: bool,
    text: Box<dyn Fn(&T) -> String + 'a>,
}

impl<'a, T> Column<'a, T> {
    fn left(title: &'static str, shown: bool, text: impl Fn(&T) -> String + 'a) -> Self {
        Column { title, alignment: CellAlignment::Left, shown, text: Box::new(text) }
    }

    fn right(title: &'static str, shown: bool, text: impl Fn(&T) -> String + 'a) -> Self {
        Column { title, alignment: CellAlignment::Right, shown, text: Box::new(text) }
    }
}

fn render<T>(columns: &[Column<T>], rows: &[T]) -> String {
    let columns: Vec<&Column<T>> = columns.iter().filter(|column| column.shown).collect();
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_header(columns.iter().map(|column| column.title));
    for row in rows {
        table.add_row(columns.iter().map(|column| (column.text)(row)));
    }
    for (i, column) in columns.iter().enumerate() {
        if let Some(layout) = table.column_mut(i) {
            layout.set_cell_alignment(column.alignment);
            layout.set_padding((0, 2));
        }
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or("-".into(), |value| value.to_string())
}

fn or_any(value: Option<impl ToString>) -> String {
    value.map_or("any".into(), |value| value.to_string())
}

fn joined(values: impl Iterator<Item = String>) -> String {
    let values: Vec<String> = values.collect();
    if values.is_empty() { "-".into() } else { values.join(" ") }
}

fn dscp_name(value: u8) -> String {
    dscp::name(value).map_or(value.to_string(), String::from)
}
