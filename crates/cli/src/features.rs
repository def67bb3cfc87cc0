//! `sluice features`: records of packets or flows into files, pipes and sockets.

mod rows;

use crate::args::features::Features;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{clock, events, observation};
use rows::{FlowRows, PacketRows, Rows};
use sluice_abi as abi;
use sluice_kernel::telemetry::{Observer, Records, Request, Sampling};
use sluice_records::estimate::Estimates;
use sluice_records::flow::Limits;
use sluice_records::{AddressKey, Destination, Format, Labels, Packet, Reader, writer};
use std::time::{Duration, Instant};

/// Time after which a signal is noticed, and readers of the output get what there is.
const LOOK: Duration = Duration::from_millis(100);
const FLUSHED: Duration = Duration::from_secs(1);
/// Ports whose estimated bytes are printed.
const PORTS: usize = 5;

pub fn run(args: &Features) -> Result<(), Failure> {
    let destination = Destination::parse(&args.output)?;
    let format = Format::of(&destination, args.format.map(|format| format.format()))?;
    destination.check(args.force)?;
    let request = request(args)?;
    let end = events::end(args.time.as_deref())?;
    let idle = sluice_kernel::confirm::time_of("--idle", &args.idle)?;
    let key = match (&args.key, args.hash_addresses) {
        (Some(path), _) => Some(AddressKey::of_file(path)?),
        (None, true) => Some(AddressKey::random()?),
        (None, false) => None,
    };
    let interrupt = Interrupt::new()?;
    let mut observer = observation::begin(&args.observed.interfaces, &request)?;
    let metadata = metadata(args);
    let rows: Box<dyn Rows> = if args.flows {
        let limits = Limits { flows: args.open_flows, idle_ns: idle.as_nanos() as u64, ..Limits::default() };
        let writer = writer::open(&destination, format, args.force, metadata, interrupt.flag())?;
        Box::new(FlowRows::new(writer, limits, args.one_in_flows.is_some()))
    } else {
        Box::new(PacketRows::new(writer::open(&destination, format, args.force, metadata, interrupt.flag())?))
    };
    eprintln!("writing {} to {}; Ctrl-C ends", format.name(), destination.name());
    let mut stream = Stream {
        rows,
        labels: Labels::new(args.observed.interfaces.clone()),
        policies: vec![u64::MAX; args.observed.interfaces.len()],
        // It stays for a whole stream, so that times do not jump when the clock is set.
        reader: Reader { clock_offset_ns: clock::unix_less_monotonic_ns(), key },
        estimates: (args.one_in > 1 || args.adaptive).then(Estimates::default),
        left: args.packets.unwrap_or(u64::MAX),
        packets: 0,
        failure: None,
        gone: None,
    };
    let begun = Instant::now();
    let ended = stream.follow(&mut observer, end, &interrupt);
    let time = begun.elapsed();
    let missed = (0..args.observed.interfaces.len()).map(|interface| observer.missed_at_the_end(interface)).sum();
    // Whatever has ended the stream, the output is closed. An output that has failed says so again.
    let now_ns = stream.now_ns();
    let rows = stream.rows.finish(now_ns, missed, &stream.labels);
    ended?;
    report(args, &observer, &stream, rows?, time);
    match stream.gone {
        Some(gone) => Err(Failure::system(format!("{gone}; start the command again, with another output, to go on"))),
        None => Ok(()),
    }
}

fn request(args: &Features) -> Result<Request, Failure> {
    let sampling = match args.one_in_flows {
        Some(flows) => Sampling::Flows(flows),
        None if args.adaptive => Sampling::Adaptive,
        None => Sampling::Packets(args.one_in),
    };
    Ok(Request {
        records: Records::Headers,
        sampling,
        ring_bytes: observation::ring_bytes(&args.ring)?,
        ..args.observed.request()?
    })
}

/// What a file says of how its records were made.
fn metadata(args: &Features) -> writer::Metadata {
    let (sampling, one_in) = match args.one_in_flows {
        Some(flows) => ("flows", flows.to_string()),
        None if args.adaptive => ("adaptive", "by weight".to_owned()),
        None => ("packets", args.one_in.to_string()),
    };
    let addresses = if args.hash_addresses { "siphash-2-4" } else { "plain" };
    [
        ("sluice.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("sluice.sampling", sampling.to_owned()),
        ("sluice.one_in", one_in),
        ("sluice.addresses", addresses.to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

/// The way of records from the rings into the output.
struct Stream {
    rows: Box<dyn Rows>,
    labels: Labels,
    /// The policies whose classes `labels` knows.
    policies: Vec<u64>,
    reader: Reader,
    estimates: Option<Estimates>,
    /// Packets that may still come.
    left: u64,
    packets: u64,
    failure: Option<sluice_kernel::Error>,
    /// Why an interface is not observed any more, as a sentence.
    gone: Option<String>,
}

impl Stream {
    /// Takes records until the time, the number of packets, a signal, or the loss of an interface ends that, and then those that are left.
    fn follow(&mut self, observer: &mut Observer, end: Option<Instant>, interrupt: &Interrupt) -> Result<(), Failure> {
        let (mut looked, mut flushed) = (Instant::now(), Instant::now());
        while let Some(left) = events::left(end).filter(|_| !interrupt.is_asked() && self.left > 0) {
            let polled = self.poll(observer, left.min(LOOK));
            // While records come, the interface is there. An error may be that of one that has gone.
            if polled.is_err() || looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.gone = observer.gone();
                if self.gone.is_some() {
                    break;
                }
            }
            polled?;
            if flushed.elapsed() >= FLUSHED {
                flushed = Instant::now();
                let now_ns = self.now_ns();
                self.rows.flush(now_ns, &self.labels)?;
            }
        }
        observer.stop();
        while self.left > 0 && self.poll(observer, Duration::ZERO)? > 0 {}
        Ok(())
    }

    /// The time by the clock of the records, nanoseconds since 1970.
    fn now_ns(&self) -> u64 {
        clock::monotonic_ns().saturating_add_signed(self.reader.clock_offset_ns)
    }

    /// Takes the records that have come, or come within this time.
    fn poll(&mut self, observer: &mut Observer, limit: Duration) -> Result<usize, Failure> {
        for (interface, known) in self.policies.iter_mut().enumerate() {
            if std::mem::replace(known, observer.policy(interface)) != *known {
                self.labels.forget_classes(interface);
                for (class, name) in observer.class_names(interface).iter().enumerate() {
                    self.labels.name_class(interface, class as u8, name);
                }
            }
        }
        let begun_ns = self.now_ns();
        let count = observer.poll(limit, &mut |interface, bytes| self.take(interface, bytes))?;
        if let Some(error) = self.failure.take() {
            return Err(error.into());
        }
        self.rows.end_look(begun_ns, &self.labels)?;
        Ok(count)
    }

    fn take(&mut self, interface: usize, bytes: &[u8]) {
        if self.left == 0 || self.failure.is_some() {
            return;
        }
        let Some(record) = abi::read_pod::<abi::sl_packet_record>(bytes) else { return };
        let added = Packet::read(&record, interface as u16, &self.reader).and_then(|packet| {
            if let Some(estimates) = &mut self.estimates {
                estimates.add(&packet);
            }
            self.rows.add(&packet, &self.labels)
        });
        match added {
            Ok(()) => {
                self.left -= 1;
                self.packets += 1;
            }
            Err(error) => self.failure = Some(error),
        }
    }
}

fn report(args: &Features, observer: &Observer, stream: &Stream, rows: u64, time: Duration) {
    let (mut seen, mut missed, mut filtered) = (0, 0, 0);
    for interface in 0..args.observed.interfaces.len() {
        let totals = observer.totals(interface);
        seen += totals.seen_pkts;
        missed += totals.missed_pkts;
        filtered += totals.filtered_pkts;
    }
    let per_second = stream.packets as f64 / time.as_secs_f64().max(1e-9);
    let what = if args.flows { "flows and the last row" } else { "packets and the last row" };
    eprintln!("{rows} rows in {}: {what}", args.output);
    eprintln!(
        "{seen} packets seen, {filtered} filtered out; {} records delivered ({per_second:.0} a second), {missed} missed",
        stream.packets
    );
    observation::tell_gap(observer);
    if missed > 0 {
        eprintln!("note: a larger --ring, --one-in N or --adaptive misses less");
    }
    if seen == 0 && filtered > 0 {
        eprintln!("note: no packet has passed the filter \"{}\"", args.observed.only.as_deref().unwrap_or_default());
    }
    let Some(estimates) = &stream.estimates else { return };
    let estimate = |sum: &sluice_records::estimate::Sum| {
        let (low, high) = sum.interval();
        format!("{:.0} (95 %: {low:.0} to {high:.0})", sum.total())
    };
    eprintln!(
        "estimated from the sample: {} packets, {} bytes",
        estimate(&estimates.packets),
        estimate(&estimates.bytes)
    );
    for (port, sum) in estimates.largest_ports(PORTS) {
        eprintln!("  port {port}: {} bytes", estimate(&sum));
    }
}
