//! `sluice capture`: packets in pcapng files, with what is known of them, and what is missing there.

mod steal;
mod tshark;

use crate::command::{run, words};
use crate::frames::{IPV4, V4, Wire, ethernet, ports};
use crate::lab::Lab;
use crate::needs::Need;
use crate::net::{B, Pair};
use crate::policy::{by_port, port};
use crate::suite::Suite;
use crate::traffic::{self, Flow};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::json;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("capture")
        .any("every_packet_with_its_bytes", &[], every_packet)
        .any("class_rule_and_verdict", &[], comments)
        .any("what_finds_no_room_is_counted", &[], lossy)
        .any("files_rotate", &[], rotate)
        .any("outputs_that_cannot_be_written", &[], outputs)
        .any("readers_that_stall_or_leave", &[], readers)
        .any("steal_takes_what_matches", &[], steal::takes_what_matches)
        .any("steal_serves_every_queue", &[], steal::serves_every_queue)
        .any("steal_in_the_stack", &[], steal::in_the_stack)
        .any("steal_asks_first", &[], steal::asks_first)
        .any("steal_is_refused", &[], steal::is_refused)
        .any("steal_ends_with_its_process", &[], steal::ends_with_its_process)
        .any("steal_counts_an_overload", &[], steal::counts_an_overload)
        .any("steal_ends", &[], steal::ends)
        .any("tshark_opens_captures", &[Need::Equipped], tshark::opens_captures)
}

/// Packets of a file, and how many passed the filter and are missing by its statistics.
struct Read {
    packets: Vec<EnhancedPacketBlock<'static>>,
    received: u64,
    missing: u64,
}

fn read(path: &Path) -> Read {
    let mut reader = PcapNgReader::new(File::open(path).expect("the file")).expect("a pcapng file");
    let mut read = Read { packets: Vec::new(), received: 0, missing: 0 };
    while let Some(block) = reader.next_block() {
        match block.expect("a block") {
            Block::EnhancedPacket(packet) => read.packets.push(packet.into_owned()),
            Block::InterfaceStatistics(statistics) => {
                for option in statistics.options {
                    match option {
                        InterfaceStatisticsOption::IsbIfRecv(count) => read.received += count,
                        InterfaceStatisticsOption::IsbIfDrop(count) => read.missing += count,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    read
}

fn comment(packet: &EnhancedPacketBlock<'_>) -> String {
    let comment = |option: &EnhancedPacketOption<'_>| match option {
        EnhancedPacketOption::Comment(text) => Some(text.to_string()),
        _ => None,
    };
    packet.options.iter().find_map(comment).expect("a comment")
}

/// Captures on b0 while `work` runs. Returns what the command said.
fn capture(lab: &Lab, pair: &Pair, file: &Path, more: &[&str], work: impl FnOnce()) -> String {
    let path = file.display().to_string();
    let capturing = lab.start(&pair.b, &[&["capture", "b0", "-o", &path], more].concat());
    capturing.await_stderr("Ctrl-C ends");
    work();
    capturing.signal(nix::sys::signal::Signal::SIGINT);
    capturing.finish().ok().stderr
}

fn output(lab: &Lab) -> PathBuf {
    lab.file("here", "").with_file_name("x.pcapng")
}

fn frame(n: u16, bytes: usize) -> Vec<u8> {
    let mut payload = ports(4000, 7);
    payload.resize(bytes - 34, n as u8);
    ethernet(&[], IPV4, &V4 { id: n, ..V4::default() }.packet(&payload))
}

fn every_packet(lab: &Lab) {
    let pair = lab.pair();
    let file = output(lab);
    let lengths = [64, 128, 129, 512, 513, 1000, 1514];
    let frames: Vec<Vec<u8>> = (0..700u16).map(|n| frame(n, lengths[usize::from(n) % lengths.len()])).collect();
    let wire = Wire::open(&pair.a, "a0");
    capture(lab, &pair, &file, &["--only", "udp sport 4000"], || frames.iter().for_each(|frame| wire.send(frame)));
    let seen = read(&file);
    assert_eq!((seen.received, seen.missing), (700, 0));
    assert_eq!(seen.packets.len(), 700);
    for (packet, frame) in seen.packets.iter().zip(&frames) {
        assert_eq!(packet.data.as_ref(), frame.as_slice());
        assert_eq!(packet.original_len as usize, frame.len());
        assert_eq!(comment(packet), "arriving | no class | no policy | unknown");
    }
    let times: Vec<Duration> = seen.packets.iter().map(|packet| packet.timestamp).collect();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let age = now.saturating_sub(times[0]);
    assert!(times[0] <= now && age < Duration::from_secs(60), "the first packet is {age:?} old");
    let cut = capture(lab, &pair, &file, &["--force", "--snap", "100", "--only", "udp sport 4000"], || {
        wire.send(&frames[6]);
    });
    assert!(cut.contains("1 are cut"), "{cut}");
    let seen = read(&file);
    assert_eq!((seen.packets[0].data.as_ref(), seen.packets[0].original_len), (&frames[6][..100], 1514));
}

fn comments(lab: &Lab) {
    let pair = lab.pair();
    let classes = json!([
        { "id": 0, "name": "game", "priority": 0 },
        { "id": 1, "name": "bulk", "priority": 1, "ceil": "1mbit", "police": true },
    ]);
    lab.up(&pair.b, "b0", &lab.policy(&by_port("strict_priority", classes)), &[]);
    let file = output(lab);
    let mut sent = Vec::new();
    capture(lab, &pair, &file, &["--only", "udp"], || {
        let flows = [Flow::new(port(0), &[514], 1_000_000), Flow::new(port(1), &[1014], 6_000_000)];
        let streams = traffic::start(&pair.a, &pair.b, B, &flows);
        std::thread::sleep(Duration::from_millis(400));
        sent = streams.finish_lossy().iter().map(|outcome| (outcome.sent, outcome.received())).collect();
    });
    let seen = read(&file);
    let with = |parts: &[&str]| -> u64 {
        seen.packets.iter().filter(|packet| parts.iter().all(|part| comment(packet).contains(part))).count() as u64
    };
    assert_eq!(with(&["arriving | class 0 game | rule 100 \"to 0\"", "passed"]), sent[0].0);
    assert_eq!(with(&["class 1 bulk | rule 101 \"to 1\"", "passed"]), sent[1].1);
    assert_eq!(with(&["class 1 bulk | rule 101 \"to 1\"", "policed"]), sent[1].0 - sent[1].1);
    lab.down(&pair.b, "b0");
}

/// A ring of one page, and a reader that does not run: every packet is in the file or counted as missing.
fn lossy(lab: &Lab) {
    let pair = lab.pair();
    let file = output(lab);
    let wire = Wire::open(&pair.a, "a0");
    let path = file.display().to_string();
    let capturing = lab.start(&pair.b, &["capture", "b0", "-o", &path, "--ring", "4K", "--only", "udp sport 4000"]);
    capturing.await_stderr("Ctrl-C ends");
    capturing.signal(nix::sys::signal::Signal::SIGSTOP);
    (0..500).for_each(|n| wire.send(&frame(n, 100)));
    capturing.signal(nix::sys::signal::Signal::SIGCONT);
    capturing.signal(nix::sys::signal::Signal::SIGINT);
    capturing.finish().ok();
    let seen = read(&file);
    assert_eq!(seen.received, 500);
    assert!(seen.missing > 0, "a page has no room for 500 packets");
    assert_eq!(seen.packets.len() as u64 + seen.missing, 500, "every packet is told of");
}

fn rotate(lab: &Lab) {
    let pair = lab.pair();
    let file = output(lab);
    let wire = Wire::open(&pair.a, "a0");
    let more = ["--rotate", "20K", "--files", "2", "--only", "udp sport 4000"];
    capture(lab, &pair, &file, &more, || (0..60).for_each(|n| wire.send(&frame(n, 1000))));
    let there: Vec<u32> = (1..10).filter(|n| file.with_file_name(format!("x-{n}.pcapng")).exists()).collect();
    assert_eq!(there.len(), 2, "{there:?}");
    assert!(!read(&file.with_file_name(format!("x-{}.pcapng", there[0]))).packets.is_empty());
}

fn outputs(lab: &Lab) {
    let pair = lab.pair();
    let file = output(lab);
    std::fs::write(&file, "mine").expect("a file");
    let path = file.display().to_string();
    let refused = |arguments: &[&str], says: &str| {
        lab.sluice(&pair.b, &[&["capture"], arguments].concat()).exits(2).says(says);
    };
    refused(&["b0", "-o", &path], "is there already");
    refused(&["b0", "-o", "/nowhere/x.pcapng"], "give a path that can be written");
    refused(&["b0", "-o", "/dev/null", "--ring", "5000", "--force"], "power of two");
    refused(&["b0", "-o", "/dev/null", "--snap", "0", "--force"], "--snap");
    refused(&["b0", "-o", "/dev/null", "--rotate", "x", "--force"], "no number of bytes");
    refused(&["b0", "-o", "/dev/null", "--one-in", "0", "--force"], "one in 0");
    assert_eq!(std::fs::read(&file).expect("the file"), b"mine");
    let full = ["capture", "b0", "-o", "/dev/full", "--force", "--packets", "5"];
    lab.sluice(&pair.b, &full).exits(1).says("No space left on device");
    full_disk(lab, &pair);
}

/// A disk that fills up: the file ends with a whole packet, and the command says how many are in it, and how many are not.
fn full_disk(lab: &Lab, pair: &Pair) {
    let disk = Disk::new(lab.file("here", "").with_file_name("disk"));
    let file = disk.0.join("x.pcapng");
    for steal in [&[][..], &["--steal", "--yes"]] {
        let path = file.display().to_string();
        let more = [&["capture", "b0", "-o", &path, "--force", "--only", "udp sport 4000"], steal].concat();
        let capturing = lab.start(&pair.b, &more);
        capturing.await_stderr("Ctrl-C ends");
        let wire = Wire::open(&pair.a, "a0");
        (0..3000).for_each(|n| wire.send(&frame(n, 1000)));
        let said = capturing.finish().exits(1).says("No space left on device").stderr;
        let announced = said.lines().find_map(|line| line.split_once(" packets in ")).expect("a count").0.to_owned();
        let read = read(&file);
        assert_eq!(read.packets.len().to_string(), announced, "{said}");
        assert!(read.packets.len() > 1000, "{said}");
        assert!(said.contains("not written"), "{said}");
    }
}

/// A small disk in memory, which goes when it is dropped.
struct Disk(PathBuf);

impl Disk {
    fn new(path: PathBuf) -> Disk {
        std::fs::create_dir(&path).expect("a directory");
        run(&mut words("mount", &format!("-t tmpfs -o size=1500k sluice-test {}", path.display()))).ok();
        Disk(path)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run(&mut words("umount", &self.0.display().to_string()));
    }
}

/// A pipe whose reader takes nothing, and one whose reader leaves: a signal ends the first capture, the second ends by itself.
fn readers(lab: &Lab) {
    let pair = lab.pair();
    for steal in [&[][..], &["--steal", "--yes"]] {
        let fifo = lab.file("here", "").with_file_name(format!("pipe-{}", steal.len()));
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR).expect("a pipe");
        let path = fifo.display().to_string();
        let arguments = [&["capture", "b0", "-o", &path, "--force", "--only", "udp sport 4000"], steal].concat();
        let begin = || {
            let capturing = lab.start(&pair.b, &arguments);
            let reader = File::open(&fifo).expect("the reading end");
            capturing.await_stderr("Ctrl-C ends");
            (capturing, reader)
        };
        // More than the pipe and the writer's memory hold.
        let flood = || {
            let wire = Wire::open(&pair.a, "a0");
            (0..3000).for_each(|n| wire.send(&frame(n, 1000)));
        };
        let (capturing, reader) = begin();
        flood();
        capturing.signal(nix::sys::signal::Signal::SIGINT);
        capturing.finish().exits(1).says("its reader takes nothing");
        drop(reader);
        let (capturing, reader) = begin();
        drop(reader);
        flood();
        capturing.finish().exits(1).says("Broken pipe");
    }
}
