//! A capture that takes packets from the host by AF_XDP, and asks before.

use super::Source;
use crate::args::capture::Capture;
use crate::failure::Failure;
use crate::pcapng::{Comment, Packet};
use sluice_kernel::steal::{Checked, Steal, check};
use sluice_kernel::telemetry::{Request, Sampling, Totals};
use std::io::{self, BufRead, IsTerminal, Write};
use std::time::Duration;

/// Packets of interfaces, taken from the host.
pub struct Stolen {
    steal: Steal,
    interfaces: usize,
    snap_bytes: usize,
    /// Packets that are longer than the snap length, of each interface.
    cut: Vec<u64>,
    comment: Comment,
}

/// Checks that packets can be taken, and asks whether they may be. Nothing is changed yet.
pub fn agree(args: &Capture, request: &Request) -> Result<Vec<Checked>, Failure> {
    let checked = check(&args.observed.interfaces, request)?;
    for one in &checked {
        ask(one, args)?;
    }
    Ok(checked)
}

/// Asks on a terminal; elsewhere --yes is the answer. An interface with a default route wants its name typed.
fn ask(checked: &Checked, args: &Capture) -> Result<(), Failure> {
    let name = checked.name();
    let matching = if args.observed.only.is_some() { " and matches" } else { "" };
    let taken = format!("every packet that arrives at {name}{matching} is taken from the host until the capture ends");
    let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if checked.default_route {
        let danger = format!(
            "{name} carries the default route: {taken}, so the host loses its connections, perhaps the one you type on"
        );
        if !terminal {
            return Err(Failure::input(
                &danger,
                "name a mirror port; or confirm on a terminal, where its name must be typed: --yes does not do",
            ));
        }
        return answer(&format!("{danger}.\nType {name} to continue: "), |line| line == name);
    }
    if args.yes {
        return Ok(());
    }
    if !terminal {
        return Err(Failure::input(
            &format!("{taken}, and the command cannot ask: standard input or error is no terminal"),
            "confirm with --yes",
        ));
    }
    answer(&format!("{taken}.\nContinue? [y/N] "), |line| matches!(line, "y" | "Y" | "yes"))
}

fn answer(question: &str, agrees: impl Fn(&str) -> bool) -> Result<(), Failure> {
    let mut line = String::new();
    let mut asked = io::stderr().write_all(question.as_bytes());
    asked = asked.and_then(|()| io::stdin().lock().read_line(&mut line).map(drop));
    asked.map_err(|error| Failure::system(format!("asking on the terminal: {error}")))?;
    if agrees(line.trim()) {
        return Ok(());
    }
    Err(Failure::input("not confirmed; nothing was changed", "capture by copy, without --steal"))
}

impl Stolen {
    pub fn start(checked: &[Checked], request: &Request, snap: u32) -> Result<Stolen, Failure> {
        let steal = Steal::start(checked, request)?;
        for (interface, one) in checked.iter().enumerate() {
            eprintln!("taking packets of {} from the host: {}", one.name(), steal.way(interface));
        }
        let weight = match request.sampling {
            Sampling::Packets(one_in) => super::weight(one_in),
            _ => String::new(),
        };
        let comment = Comment::new(&format!("arriving | no class | no policy | taken from the host{weight}"));
        let interfaces = checked.len();
        Ok(Stolen { steal, interfaces, snap_bytes: snap as usize, cut: vec![0; interfaces], comment })
    }
}

impl Source for Stolen {
    fn poll(
        &mut self,
        limit: Duration,
        unix_less_monotonic_ns: i64,
        take: &mut dyn FnMut(&Packet<'_>, &[Totals]),
    ) -> Result<usize, Failure> {
        let Stolen { steal, snap_bytes, cut, comment, .. } = self;
        Ok(steal.poll(limit, &mut |interface, packet, totals| {
            let length = packet.bytes.len();
            cut[interface] += u64::from(length > *snap_bytes);
            let bytes = &packet.bytes[..length.min(*snap_bytes)];
            let at_ns = packet.at_ns.saturating_add_signed(unix_less_monotonic_ns);
            take(&Packet { interface, at_ns, length: length as u32, bytes, tag: None, comment }, totals);
        })?)
    }

    fn stop(&mut self) {
        self.steal.stop();
    }

    fn totals(&self) -> Result<Vec<Totals>, Failure> {
        let one = |interface| {
            let totals = self.steal.totals(interface)?;
            Ok(Totals { truncated_pkts: self.cut[interface], ..totals })
        };
        (0..self.interfaces).map(one).collect()
    }

    fn gone(&self) -> Option<String> {
        self.steal.gone()
    }

    fn losses(&self, totals: &Totals, surplus: u64) -> Result<String, Failure> {
        let mut lost = sluice_kernel::steal::Lost::default();
        for interface in 0..self.interfaces {
            let one = self.steal.lost(interface)?;
            lost.dropped += one.dropped;
            lost.ring_full += one.ring_full;
            lost.no_frame += one.no_frame;
        }
        let kept = totals.seen_pkts - totals.sampled_pkts.min(totals.seen_pkts);
        let kept = if kept > 0 { format!("{kept} stayed with the host, as --one-in chose; ") } else { String::new() };
        let surplus = if surplus > 0 { format!(", {surplus} not written") } else { String::new() };
        Ok(format!(
            "{} were taken from the host; {kept}{} of these are lost (rx_dropped {}, rx_ring_full {}, \
             rx_fill_ring_empty_descs {}{surplus}); {} are cut to --snap",
            totals.sampled_pkts, totals.missed_pkts, lost.dropped, lost.ring_full, lost.no_frame, totals.truncated_pkts
        ))
    }
}
