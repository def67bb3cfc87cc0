//! Counts as a table, JSON and CSV.

use super::report::{Bin, Report, Row};
use crate::failure::Failure;
use crate::{humanize, terminal};
use comfy_table::{Cell, CellAlignment, Table, presets};
use sluice_kernel::telemetry::{KeyPart, Request};
use std::fmt::Write;

/// Columns of a bar.
const BAR: f64 = 40.0;

pub fn json(report: &Report) -> Result<Vec<u8>, Failure> {
    let json = serde_json::to_string(report).map_err(|error| Failure::system(error.to_string()))?;
    Ok((json + "\n").into_bytes())
}

/// A line for each key, under titles if asked for.
pub fn csv(report: &Report, titles: bool) -> Result<Vec<u8>, Failure> {
    let broken = |error: csv::Error| Failure::system(error.to_string());
    let mut writer = csv::Writer::from_writer(Vec::new());
    if titles {
        let names = [
            "interface",
            "for_s",
            "direction",
            "proto",
            "class",
            "class_name",
            "dscp",
            "verdict",
            "vlan",
            "sport",
            "dport",
            "src",
            "dst",
            "pkts",
            "bytes",
            "pkts_missed",
            "bytes_missed",
            "pps",
            "bps",
        ];
        writer.write_record(names).map_err(broken)?;
    }
    fn text<T: ToString>(value: Option<T>) -> String {
        value.map_or(String::new(), |value| value.to_string())
    }
    for row in &report.rows {
        let fields = [
            report.interface.clone(),
            format!("{:.3}", report.for_s),
            text(row.direction),
            text(row.proto.as_ref()),
            text(row.class),
            text(row.class_name.as_ref()),
            text(row.dscp),
            text(row.verdict),
            text(row.vlan),
            text(row.sport),
            text(row.dport),
            text(row.src),
            text(row.dst),
            row.pkts.to_string(),
            row.bytes.to_string(),
            row.pkts_missed.to_string(),
            row.bytes_missed.to_string(),
            format!("{:.3}", row.pps),
            format!("{:.3}", row.bps),
        ];
        writer.write_record(fields).map_err(broken)?;
    }
    writer.into_inner().map_err(|error| Failure::system(error.to_string()))
}

pub fn text(report: &Report, request: &Request) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{}  {} packets, {} in {}; now {} packets/s, {}",
        report.interface,
        report.pkts,
        terminal::bytes(report.bytes),
        humanize::span_s(report.for_s),
        report.pps.round(),
        terminal::rate(report.bps.round() as u64)
    );
    if report.filtered_pkts > 0 {
        let _ = writeln!(text, "{} packets are not what --only asks for", report.filtered_pkts);
    }
    if report.rows.is_empty() {
        let _ = writeln!(text, "no packet yet");
        return text;
    }
    let _ = writeln!(text, "{}", table(report, request));
    let hidden = report.keys - report.rows.len();
    if hidden > 0 {
        let _ = writeln!(text, "and {hidden} more; --top shows more of them");
    }
    if report.others_bytes > 0 {
        let _ = writeln!(
            text,
            "a key that is not counted has sent at most {} packets and {}; --keys gives more of them a place",
            report.others_pkts,
            terminal::bytes(report.others_bytes)
        );
    }
    for (what, sizes) in [("packets", &report.packet_sizes), ("keys", &report.key_sizes)] {
        if let Some(sizes) = sizes {
            let _ = writeln!(text, "{what} by their bytes");
            let _ = writeln!(text, "{}", histogram(sizes));
        }
    }
    text
}

fn title(part: &KeyPart) -> String {
    match part {
        KeyPart::Direction => "direction".to_owned(),
        KeyPart::Protocol => "proto".to_owned(),
        KeyPart::Class => "class".to_owned(),
        KeyPart::Dscp => "dscp".to_owned(),
        KeyPart::Verdict => "verdict".to_owned(),
        KeyPart::Vlan => "vlan".to_owned(),
        KeyPart::SrcPort => "sport".to_owned(),
        KeyPart::DstPort => "dport".to_owned(),
        KeyPart::Src(32, 128) => "src".to_owned(),
        KeyPart::Dst(32, 128) => "dst".to_owned(),
        KeyPart::Src(v4, v6) => format!("src/{v4}/{v6}"),
        KeyPart::Dst(v4, v6) => format!("dst/{v4}/{v6}"),
    }
}

fn value(part: &KeyPart, row: &Row) -> String {
    fn shown<T: ToString>(value: Option<T>) -> String {
        value.map_or("-".to_owned(), |value| value.to_string())
    }
    match part {
        KeyPart::Direction => shown(row.direction),
        KeyPart::Protocol => shown(row.proto.as_ref()),
        KeyPart::Class => match (&row.class, &row.class_name) {
            (Some(number), Some(name)) => format!("{number} {name}"),
            (number, _) => shown(*number),
        },
        KeyPart::Dscp => shown(row.dscp),
        KeyPart::Verdict => shown(row.verdict),
        KeyPart::Vlan => shown(row.vlan),
        KeyPart::SrcPort => shown(row.sport),
        KeyPart::DstPort => shown(row.dport),
        KeyPart::Src(..) => shown(row.src),
        KeyPart::Dst(..) => shown(row.dst),
    }
}

fn table(report: &Report, request: &Request) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let bounded = report.rows.iter().any(|row| row.bytes_missed > 0);
    let mut titles: Vec<String> = request.by.iter().map(title).collect();
    titles.extend(["packets/s", "rate", "packets", "bytes", "share"].map(str::to_owned));
    titles.extend(bounded.then(|| "missed at most".to_owned()));
    table.set_header(titles);
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    for row in &report.rows {
        let mut cells: Vec<Cell> = request.by.iter().map(|part| Cell::new(value(part, row))).collect();
        cells.push(right(format!("{:.0}", row.pps)));
        cells.push(right(terminal::rate(row.bps.round() as u64)));
        cells.push(right(row.pkts.to_string()));
        cells.push(right(terminal::bytes(row.bytes)));
        cells.push(right(humanize::percent(row.bytes as f64 / report.bytes.max(1) as f64)));
        if bounded {
            cells.push(right(terminal::bytes(row.bytes_missed)));
        }
        table.add_row(cells);
    }
    table
}

/// A line for each bin, with a bar.
fn histogram(bins: &[Bin]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(1);
    for bin in bins {
        let bar = (BAR * bin.count as f64 / most as f64).ceil() as usize;
        let range =
            if bin.below == bin.from + 1 { bin.from.to_string() } else { format!("{}-{}", bin.from, bin.below - 1) };
        let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        table.add_row([right(range), right(bin.count.to_string()), Cell::new("█".repeat(bar))]);
    }
    table
}
