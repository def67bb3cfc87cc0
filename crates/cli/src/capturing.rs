//! `sluice capture`: whole packets into pcapng files.

mod copied;
mod files;
mod stolen;

use crate::args::capture::Capture;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::pcapng::{Described, Packet};
use crate::{clock, events, observation, size, terminal};
use copied::Copied;
use files::Files;
use sluice_kernel::telemetry::{Records, Request, Sampling, Totals};
use std::time::{Duration, Instant};
use stolen::Stolen;

/// Time after which what was captured is written, so that a reader sees it soon.
const FLUSHED: Duration = Duration::from_secs(1);
/// Time after which a signal is noticed.
const LOOK: Duration = Duration::from_millis(100);

/// The origin of a capture's packets.
trait Source {
    /// Hands over the packets that have come, or come within this time, with what was seen of each interface until then. unix_less_monotonic_ns: to be
    /// added to times of packets, so that they count since 1970.
    fn poll(
        &mut self,
        limit: Duration,
        unix_less_monotonic_ns: i64,
        take: &mut dyn FnMut(&Packet<'_>, &[Totals]),
    ) -> Result<usize, Failure>;

    /// Ends the capture. What has come before can still be polled.
    fn stop(&mut self);

    /// The packets that were seen, for each interface.
    fn totals(&self) -> Result<Vec<Totals>, Failure>;

    /// Why an interface's packets do not come any more, as a sentence; None: they come.
    fn gone(&self) -> Option<String>;

    /// The fate of packets that are not in the files, in words. totals: of all interfaces.
    fn losses(&self, totals: &Totals, surplus: u64) -> Result<String, Failure>;
}

pub fn run(args: &Capture) -> Result<(), Failure> {
    let request = request(args)?;
    let rotate = args.rotate.as_deref().map(|text| size::bytes("--rotate", text)).transpose()?;
    if rotate == Some(0) || args.files == Some(0) {
        return Err(Failure::input("--rotate and --files: 0 would keep nothing", "write at least 1"));
    }
    if args.output.as_os_str() == "-" {
        return Err(Failure::input(
            "-o -: a capture goes into a file or a named pipe",
            "write -o /dev/stdout --force for standard output",
        ));
    }
    let end = events::end(args.time.as_deref())?;
    sluice_kernel::require_root()?;
    let mut described = Vec::new();
    for name in &args.observed.interfaces {
        let interface = sluice_kernel::Interface::find(name)?;
        described.push(Described { name: name.clone(), ethernet: interface.ethernet, snap_bytes: args.snap });
    }
    let agreed = args.steal.then(|| stolen::agree(args, &request)).transpose()?;
    let interrupt = Interrupt::new()?;
    let mut files = Files::create(args, &described, rotate, &interrupt)?;
    // An output that takes nothing is known before a packet is.
    files.flush()?;
    let mut source: Box<dyn Source> = match agreed {
        Some(checked) => Box::new(Stolen::start(&checked, &request, args.snap)?),
        None => Box::new(Copied::start(&args.observed.interfaces, &request)?),
    };
    eprintln!("capturing into {}; Ctrl-C ends", files.path().display());
    let begun = Instant::now();
    let captured = capture(source.as_mut(), &mut files, end, &interrupt);
    let time = begun.elapsed();
    // Also after a failure: packets that were taken and are in no file are told of.
    source.stop();
    let finished = captured.and_then(|gone| drain(source.as_mut(), &mut files).map(|()| gone));
    let totals = missed(source.totals()?, files.surplus(), args.steal);
    let finished = match finished {
        Ok(gone) => files.finish(&totals).map(|()| gone),
        Err(error) => {
            files.close_after_failure(&totals);
            Err(error)
        }
    };
    // A failure at the end leaves packets unwritten, too.
    let totals = missed(source.totals()?, files.surplus(), args.steal);
    report(source.as_ref(), &files, &totals, time)?;
    match finished? {
        Some(gone) => Err(Failure::system(format!("{gone}; start the command again, with another file, to go on"))),
        None => Ok(()),
    }
}

/// Writes packets until the end, a signal, or as many as wanted. Returns why packets do not come any more, if that was the reason.
fn capture(
    source: &mut dyn Source,
    files: &mut Files<'_>,
    end: Option<Instant>,
    interrupt: &Interrupt,
) -> Result<Option<String>, Failure> {
    let (mut looked, mut flushed) = (Instant::now(), Instant::now());
    while let Some(left) = events::left(end).filter(|_| !interrupt.is_asked() && !files.are_full()) {
        turn(source, files, left.min(LOOK))?;
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            if flushed.elapsed() >= FLUSHED {
                flushed = looked;
                files.flush()?;
            }
            if let Some(gone) = source.gone() {
                return Ok(Some(gone));
            }
        }
    }
    Ok(None)
}

/// Writes what had come when the capture ended.
fn drain(source: &mut dyn Source, files: &mut Files<'_>) -> Result<(), Failure> {
    while turn(source, files, Duration::ZERO)? > 0 {}
    Ok(())
}

fn turn(source: &mut dyn Source, files: &mut Files<'_>, limit: Duration) -> Result<usize, Failure> {
    let mut written = Ok(());
    let packets = source.poll(limit, clock::unix_less_monotonic_ns(), &mut |packet, totals| match written {
        Ok(()) => written = files.write(packet, totals),
        Err(_) => files.skip(packet),
    })?;
    written.map(|()| packets)
}

/// The totals with what is in no file though it was handed over: the host has not got these packets if they were stolen.
fn missed(mut totals: Vec<Totals>, surplus: &[u64], steal: bool) -> Vec<Totals> {
    for (totals, surplus) in totals.iter_mut().zip(surplus).filter(|_| steal) {
        totals.missed_pkts += surplus;
    }
    totals
}

fn request(args: &Capture) -> Result<Request, Failure> {
    Ok(Request {
        records: Records::Bytes(args.snap),
        sampling: if args.adaptive { Sampling::Adaptive } else { Sampling::Packets(args.one_in) },
        ring_bytes: observation::ring_bytes(&args.ring)?,
        ..args.observed.request()?
    })
}

/// The part of a comment that tells for how many packets its packet stands.
fn weight(packets: u32) -> String {
    if packets > 1 { format!(" | stands for {packets} packets") } else { String::new() }
}

fn report(source: &dyn Source, files: &Files<'_>, totals: &[Totals], time: Duration) -> Result<(), Failure> {
    let mut all = Totals::default();
    for one in totals {
        all.seen_pkts += one.seen_pkts;
        all.sampled_pkts += one.sampled_pkts;
        all.missed_pkts += one.missed_pkts;
        all.filtered_pkts += one.filtered_pkts;
        all.truncated_pkts += one.truncated_pkts;
    }
    let per_second = files.packets() as f64 / time.as_secs_f64().max(1e-9);
    if all.seen_pkts == 0 && all.filtered_pkts > 0 {
        eprintln!("note: no packet has passed the filter, or fitted into a frame of --steal");
    }
    eprintln!(
        "{} packets in {} ({per_second:.0} a second); {} passed the filter, {} did not; {}",
        files.packets(),
        terminal::bytes(files.bytes()),
        all.seen_pkts,
        all.filtered_pkts,
        source.losses(&all, files.surplus().iter().sum())?
    );
    Ok(())
}
