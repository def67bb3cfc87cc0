//! `sluice history`: a table, JSON, or one policy.

use crate::args::History;
use crate::failure::Failure;
use crate::terminal;
use comfy_table::{Cell, CellAlignment, Table, presets};
use serde_json::{Value, json};
use sluice_kernel::history::Entry;

/// Digits of a digest that tell policies apart in a table.
const SHORT_DIGEST: usize = 12;

pub fn run(args: &History) -> Result<(), Failure> {
    if let Some(number) = args.number {
        let entry = sluice_kernel::history_entry(&args.interface, number)?;
        if args.json {
            outln!("{:#}", object(&entry)?);
        } else {
            out!("{}", entry.policy);
        }
        return Ok(());
    }
    let entries = sluice_kernel::history_of(&args.interface)?;
    if args.json {
        let all = entries.iter().map(object).collect::<Result<Vec<Value>, Failure>>()?;
        outln!("{:#}", Value::from(all));
        return Ok(());
    }
    outln!("{}", table(&entries));
    for failed in entries.iter().filter(|entry| entry.error.is_some()) {
        outln!("{}: {}", failed.number, failed.error.as_deref().unwrap_or_default());
    }
    Ok(())
}

/// An entry with its local time.
fn object(entry: &Entry) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(entry).map_err(|error| Failure::system(error.to_string()))?;
    value["when"] = json!(entry.local_time());
    Ok(value)
}

/// The rates that were given beside the policy.
fn rates(entry: &Entry) -> String {
    let arrivals = entry.ingress_rate_bps.map(|bps| format!("arrivals {}", terminal::rate(bps)));
    let all: Vec<String> = entry.rate_bps.map(terminal::rate).into_iter().chain(arrivals).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

fn table(entries: &[Entry]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["number", "when", "what", "policy", "from", "rate", "digest", "outcome", "message"]);
    for entry in entries {
        let what = match entry.repeats {
            Some(number) => format!("{} to {number}", entry.what.name()),
            None => entry.what.name().to_owned(),
        };
        let rate = rates(entry);
        table.add_row([
            Cell::new(entry.number).set_alignment(CellAlignment::Right),
            Cell::new(entry.local_time()),
            Cell::new(what),
            Cell::new(&entry.policy_name),
            Cell::new(&entry.policy_source),
            Cell::new(rate).set_alignment(CellAlignment::Right),
            Cell::new(entry.digest.as_ref().map_or("-", |digest| digest.get(..SHORT_DIGEST).unwrap_or(digest))),
            Cell::new(entry.outcome.name()),
            Cell::new(entry.message.as_deref().unwrap_or("-")),
        ]);
    }
    table
}
