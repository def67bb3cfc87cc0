//! `sluice forward`: edits of the forwards of the policy in force.

use crate::args::Change;
use crate::args::forward::{Add, Forward, ForwardCommand, List, Remove, TransportArg};
use crate::change;
use crate::failure::Failure;
use crate::{status, terminal};
use serde_json::{Value, json};
use sluice_kernel::{Edit, Error, Result};
use sluice_policy::{Policy, Source, edit, parse};
use std::collections::BTreeSet;

pub fn run(args: &Forward, color: bool) -> std::result::Result<(), Failure> {
    sluice_kernel::require_root()?;
    match &args.command {
        ForwardCommand::Add(args) => add(args, color),
        ForwardCommand::Remove(args) => remove(args, color),
        ForwardCommand::List(args) => list(args),
    }
}

/// The policy of an edited text.
fn read(text: &str) -> Result<Policy> {
    parse(&Source::new("the policy in force, edited", text))
        .map_err(|errors| Error::input(errors.to_string().trim_end()))
}

fn add(args: &Add, color: bool) -> std::result::Result<(), Failure> {
    let forward = forward(args);
    let edit = |text: &str| {
        let edited =
            edit::with_forward(text, &forward).ok_or_else(|| Error::system("the policy in force cannot be read"))?;
        read(&edited)
    };
    let message = format!("forward add {}", args.name);
    let edit =
        Edit { interface: &args.interface, edit: &edit, confirm: None, message: Some(message), force: args.force };
    perform(edit, &args.change, color)
}

/// The forward, as policies have it.
fn forward(args: &Add) -> Value {
    let protocol = match args.protocol {
        TransportArg::Tcp => "tcp",
        TransportArg::Udp => "udp",
        TransportArg::Both => "both",
    };
    let port = args.port.parse::<u16>().map_or_else(|_| json!(args.port), |port| json!(port));
    let mut forward = json!({ "name": args.name, "protocol": protocol, "port": port, "targets": args.targets });
    if let Some(address) = &args.address {
        forward["address"] = json!(address);
    }
    if args.masquerade {
        forward["source"] = json!("masquerade");
    }
    if let Some(class) = args.class {
        forward["class_id"] = json!(class);
    }
    forward
}

fn remove(args: &Remove, color: bool) -> std::result::Result<(), Failure> {
    let edit = |text: &str| {
        let mut text = text.to_owned();
        for name in args.names.iter().collect::<BTreeSet<_>>() {
            text = edit::without_forward(&text, name).ok_or_else(|| {
                Error::input(format!("{} has no forward \"{}\"", args.interface, name.escape_debug()))
                    .help(format!("sluice forward list {} shows those that it has", args.interface))
            })?;
        }
        read(&text)
    };
    let message = format!("forward remove {}", args.names.join(" "));
    perform(
        Edit { interface: &args.interface, edit: &edit, confirm: None, message: Some(message), force: false },
        &args.change,
        color,
    )
}

fn perform(edit: Edit<'_>, options: &Change, color: bool) -> std::result::Result<(), Failure> {
    let confirm = change::confirm_time(options)?;
    let message = options.message.clone().or(edit.message);
    let edit = Edit { confirm, message, ..edit };
    if options.dry_run {
        return change::show_previews(sluice_kernel::preview_edits(&[edit])?, options.json, color);
    }
    change::show_done(&sluice_kernel::apply_edits(&[edit])?, options, false, "has other forwards", color)
}

fn list(args: &List) -> std::result::Result<(), Failure> {
    let status = sluice_kernel::status_of(&args.interface)?;
    if args.json {
        let json =
            serde_json::to_string_pretty(&status.forwards).map_err(|error| Failure::system(error.to_string()))?;
        terminal::say(&(json + "\n"));
    } else if status.forwards.is_empty() {
        outln!("{} forwards nothing; sluice forward add {0} NAME --port PORT --to TARGET begins", args.interface);
    } else {
        outln!("{}", status::forwards(&status.forwards));
        for line in status::ways(&status.forwards) {
            outln!("{line}");
        }
    }
    Ok(())
}
