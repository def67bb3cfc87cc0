//! `sluice capture`: whole packets into pcapng files.

use crate::args::capture::Capture;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::pcapng::{Described, File};
use crate::{events, terminal};
use sluice_abi as abi;
use sluice_kernel::telemetry::{Observer, Records, Request, Sampling};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time after which a signal is noticed.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes of the addresses of an Ethernet header, behind which a tag stands.
const ADDRESSES: usize = 12;

pub fn run(args: &Capture) -> Result<(), Failure> {
    let request = request(args)?;
    let rotate = args.rotate.as_deref().map(|text| bytes("--rotate", text)).transpose()?;
    if rotate == Some(0) || args.files == Some(0) {
        return Err(Failure::input("--rotate and --files: 0 would keep nothing", "write at least 1"));
    }
    let end = events::end(args.time.as_deref())?;
    let interrupt = Interrupt::new()?;
    sluice_kernel::require_root()?;
    let mut described = Vec::new();
    for name in &args.observed.interfaces {
        let interface = sluice_kernel::Interface::find(name)?;
        described.push(Described { name: name.clone(), ethernet: interface.ethernet, snap_bytes: args.snap });
    }
    let mut files = Files::create(args, &described, rotate)?;
    let mut observer = Observer::start(&args.observed.interfaces, &request)?;
    observer.notes().iter().for_each(|note| eprintln!("note: {note}"));
    eprintln!("capturing into {}; Ctrl-C ends", files.path.display());
    let begun = Instant::now();
    let mut comments = Comments::default();
    let mut batch = Vec::new();
    let wanted = args.packets.unwrap_or(u64::MAX);
    let mut gone = None;
    while let Some(left) = events::left(end).filter(|_| !interrupt.is_asked() && files.packets < wanted) {
        observer.poll(left.min(LOOK), &mut |interface, record| batch.push((interface, record.to_vec())))?;
        for (interface, record) in batch.drain(..) {
            if files.packets < wanted {
                files.write(&observer, &mut comments, interface, &record)?;
            }
        }
        gone = observer.gone();
        if gone.is_some() {
            break;
        }
    }
    observer.stop();
    while observer.poll(Duration::ZERO, &mut |interface, record| batch.push((interface, record.to_vec())))? > 0 {
        for (interface, record) in batch.drain(..) {
            if files.packets < wanted {
                files.write(&observer, &mut comments, interface, &record)?;
            }
        }
    }
    files.finish(&observer)?;
    report(&observer, &files, begun.elapsed());
    match gone {
        Some(gone) => Err(Failure::system(format!("{gone} is not there any more, or was upgraded or given back"))),
        None => Ok(()),
    }
}

fn request(args: &Capture) -> Result<Request, Failure> {
    Ok(Request {
        records: Records::Bytes(args.snap),
        sampling: if args.adaptive { Sampling::Adaptive } else { Sampling::Packets(args.one_in) },
        ring_bytes: u32::try_from(bytes("--ring", &args.ring)?).unwrap_or(u32::MAX),
        ..args.observed.request()?
    })
}

/// A number of bytes, with K, M or G for powers of 1024.
pub fn bytes(option: &str, text: &str) -> Result<u64, Failure> {
    let (number, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| {
        Failure::input(&format!("{option}: \"{text}\" is no number of bytes"), "write one such as 4096, 512K or 16M")
    })
}

/// The files of a capture, one after the other.
struct Files<'a> {
    args: &'a Capture,
    described: &'a [Described],
    rotate: Option<u64>,
    file: File,
    path: PathBuf,
    /// Files so far.
    number: u64,
    /// Packets in all files.
    packets: u64,
}

impl<'a> Files<'a> {
    fn create(args: &'a Capture, described: &'a [Described], rotate: Option<u64>) -> Result<Files<'a>, Failure> {
        let path = if rotate.is_some() { numbered(&args.output, 1) } else { args.output.clone() };
        let file = File::create(&path, described, args.force)?;
        Ok(Files { args, described, rotate, file, path, number: 1, packets: 0 })
    }

    fn write(
        &mut self,
        observer: &Observer,
        comments: &mut Comments,
        interface: usize,
        record: &[u8],
    ) -> Result<(), Failure> {
        let Some(head) = record.get(..size_of::<abi::sl_captured>()).and_then(abi::read_pod::<abi::sl_captured>) else {
            return Ok(());
        };
        let captured = (head.captured as usize).min(record.len() - size_of::<abi::sl_captured>());
        let mut data = record[size_of::<abi::sl_captured>()..][..captured].to_vec();
        let mut length = head.length;
        if head.has_vlan != 0 && data.len() >= ADDRESSES && observer.is_ethernet(interface) {
            let tci = head.vlan_tci.to_be_bytes();
            data.splice(ADDRESSES..ADDRESSES, [0x81, 0x00, tci[0], tci[1]]);
            length += 4;
        }
        let comment = comments.of(observer, interface, &head);
        self.file.packet(interface, time_of(head.at_ns), length, &data, comment)?;
        self.packets += 1;
        if self.rotate.is_some_and(|most| self.file.bytes() >= most) {
            self.next(observer)?;
        }
        Ok(())
    }

    /// Begins another file, and removes the oldest if there are too many.
    fn next(&mut self, observer: &Observer) -> Result<(), Failure> {
        self.finish(observer)?;
        self.number += 1;
        self.path = numbered(&self.args.output, self.number);
        self.file = File::create(&self.path, self.described, self.args.force)?;
        if let Some(old) = self.args.files.and_then(|files| self.number.checked_sub(files)).filter(|old| *old > 0) {
            let path = numbered(&self.args.output, old);
            fs::remove_file(&path).map_err(|error| Failure::system(format!("removing {}: {error}", path.display())))?;
        }
        Ok(())
    }

    fn finish(&mut self, observer: &Observer) -> Result<(), Failure> {
        for interface in 0..self.described.len() {
            let totals = observer.totals(interface);
            self.file.statistics(interface, totals.seen_pkts, totals.missed_pkts)?;
        }
        self.file.flush()
    }
}

/// The path of a numbered file: x-1.pcapng for x.pcapng.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map_or(String::new(), |extension| format!(".{}", extension.to_string_lossy()));
    path.with_file_name(format!("{stem}-{number}{extension}"))
}

/// The time since 1970 of a moment of CLOCK_MONOTONIC.
fn time_of(at_ns: u64) -> Duration {
    let clock = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since + Duration::from_nanos(at_ns)).saturating_sub(clock)
}

/// The parts of a packet's comment.
#[derive(PartialEq, Eq, Hash)]
struct Subject {
    interface: usize,
    policy: u64,
    direction: u8,
    class: u8,
    rule: u16,
    verdict: u8,
    weight: u32,
}

/// Comments of packets: a capture has few of them.
#[derive(Default)]
struct Comments(HashMap<Subject, String>);

impl Comments {
    fn of(&mut self, observer: &Observer, interface: usize, head: &abi::sl_captured) -> &str {
        let &abi::sl_captured { direction, class, rule, verdict, weight, .. } = head;
        let policy = observer.policy(interface);
        let subject = Subject { interface, policy, direction, class, rule, verdict, weight };
        self.0.entry(subject).or_insert_with(|| {
            let direction = if u32::from(head.direction) == abi::SL_EGRESS { "departing" } else { "arriving" };
            let name = observer.class_names(interface).get(usize::from(head.class)).filter(|name| !name.is_empty());
            let class = match (head.class, name) {
                (0xff, _) => "no class".to_owned(),
                (number, Some(name)) => format!("class {number} {name}"),
                (number, None) => format!("class {number}"),
            };
            let rule = match observer.rules(interface).get(usize::from(head.rule)) {
                Some(rule) => format!("rule {rule}"),
                None if observer.rules(interface).is_empty() => "no policy".to_owned(),
                None => "no rule of the policy".to_owned(),
            };
            let weight = if head.weight > 1 { format!(" | stands for {} packets", head.weight) } else { String::new() };
            format!("{direction} | {class} | {rule} | {}{weight}", abi::verdict_name(head.verdict))
        })
    }
}

fn report(observer: &Observer, files: &Files<'_>, time: Duration) {
    let (mut seen, mut missed, mut filtered, mut cut) = (0, 0, 0, 0);
    for interface in 0..files.described.len() {
        let totals = observer.totals(interface);
        seen += totals.seen_pkts;
        missed += totals.missed_pkts;
        filtered += totals.filtered_pkts;
        cut += totals.truncated_pkts;
    }
    let per_second = files.packets as f64 / time.as_secs_f64().max(1e-9);
    eprintln!(
        "{} packets in {} ({per_second:.0} a second); {seen} passed the filter, {filtered} did not; \
         {missed} found no room in the ring; {cut} are cut to --snap",
        files.packets,
        terminal::bytes(files.file.bytes())
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("--ring", "16M").ok(), Some(16 << 20));
        assert_eq!(bytes("--ring", "4096").ok(), Some(4096));
        for text in ["", "M", "16X", "-1", "é", "99999999999G"] {
            assert!(bytes("--ring", text).is_err(), "{text}");
        }
    }

    #[test]
    fn files_are_numbered_before_the_extension() {
        assert_eq!(numbered(Path::new("/a/x.pcapng"), 3), Path::new("/a/x-3.pcapng"));
        assert_eq!(numbered(Path::new("x"), 1), Path::new("x-1"));
    }
}
