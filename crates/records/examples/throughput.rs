//! `throughput [REPEATS]`: the time that a record takes on one core, from the bytes that the kernel sends to a file in each format, to flows, and
//! to nothing. Prints CSV: format, addresses, repeat, ns of processor time per record, bytes per record. Files are written to a directory in memory if there is
//! one (/dev/shm).

use nix::time::{ClockId, clock_gettime};
use sluice_abi as abi;
use sluice_records::flow::Limits;
use sluice_records::{AddressKey, Destination, Flows, Format, Labels, Packet, Reader, Sampling, writer};
use std::hint::black_box;

const RECORDS: usize = 2_000_000;
const RECORD_BYTES: usize = size_of::<abi::sl_packet_record>();

/// Records of 20,000 flows of IPv4 as a line has them: long and short packets, answers, and flows that come and go.
fn traffic() -> Vec<u8> {
    let mut seed = 1u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u32
    };
    let mut bytes = Vec::with_capacity(RECORDS * RECORD_BYTES);
    let mut at_ns = 0;
    for _ in 0..RECORDS {
        at_ns += u64::from(random() % 1300);
        // The product of two is small more often than not: few flows have most packets.
        let flow = (u64::from(random() % 20_000) * u64::from(random() % 20_000) / 20_000) as u32;
        let is_back = random() % 3 == 0;
        let ends =
            [[0, 0, 0xffff_0000, 0x0100_000a + ((flow % 250) << 24)], [0, 0, 0xffff_0000, 0x0200_00c6 + (flow << 8)]];
        let ports = [1024 + flow as u16, if flow % 3 == 0 { 443 } else { 5201 }];
        let [from, to] = if is_back { [1, 0] } else { [0, 1] };
        let record = abi::sl_packet_record {
            at_ns,
            length: if random() % 3 == 0 { 66 + random() % 1000 } else { 1514 },
            weight: 1,
            missed: 0,
            src: ends[from],
            dst: ends[to],
            sport: ports[from],
            dport: ports[to],
            window: (random() % 500) as u16,
            vlan: u16::MAX,
            proto: if flow % 4 == 0 { 17 } else { 6 },
            tcp_flags: if flow % 4 == 0 { 0 } else { 16 },
            ttl: if is_back { 57 } else { 64 },
            dscp: 0,
            ecn: 0,
            class: (flow % 5) as u8,
            verdict: 1,
            direction: u8::from(is_back),
            cpu: (flow % 4) as u8,
            segments: 1,
        };
        bytes.extend_from_slice(abi::bytes_of(&record));
    }
    bytes
}

fn packets<'a>(bytes: &'a [u8], reader: &'a Reader) -> impl Iterator<Item = Packet> + 'a {
    bytes.chunks_exact(RECORD_BYTES).map(|bytes| {
        let record = abi::read_pod::<abi::sl_packet_record>(bytes).expect("enough bytes");
        Packet::read(&record, 0, reader).expect("a valid record")
    })
}

/// Processor time of this thread, which other programs on the machine do not lengthen by much.
fn processor_ns() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock");
    time.tv_sec() as f64 * 1e9 + time.tv_nsec() as f64
}

fn main() {
    let repeats: u32 = std::env::args().nth(1).map_or(5, |text| text.parse().expect("a number of repeats"));
    let memory = std::path::Path::new("/dev/shm");
    let directory = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let bytes = traffic();
    let mut labels = Labels::new(vec!["eth0".to_owned()]);
    for (class, name) in ["control", "gaming", "voip", "interactive", "bulk"].iter().enumerate() {
        labels.name_class(0, class as u8, name);
    }
    println!("format,addresses,repeat,ns_per_record,bytes_per_record");
    for addresses in ["plain", "hashed"] {
        let key = (addresses == "hashed").then(|| AddressKey::new([7; 16]));
        let reader = Reader { clock_offset_ns: 1_700_000_000_000_000_000, key };
        for repeat in 1..=repeats {
            let report = |format: &str, start: f64, bytes: f64| {
                let ns = (processor_ns() - start) / RECORDS as f64;
                println!("{format},{addresses},{repeat},{ns:.1},{bytes:.1}");
            };
            let start = processor_ns();
            packets(&bytes, &reader).for_each(|packet| _ = black_box(packet));
            report("none", start, 0.0);
            let start = processor_ns();
            let mut flows = Flows::new(Limits::default(), Sampling::Packets);
            packets(&bytes, &reader).for_each(|packet| flows.add(&packet, &mut |_| Ok(())).expect("kept"));
            report("flows", start, 0.0);
            for format in [Format::Csv, Format::JsonLines, Format::Arrow, Format::Parquet] {
                let path = directory.join(format!("sluice-throughput-{}", std::process::id()));
                let destination = Destination::File(path.clone());
                let start = processor_ns();
                let mut writer =
                    writer::open(&destination, format, true, Vec::new(), Default::default()).expect("opened");
                packets(&bytes, &reader).for_each(|packet| writer.write(&packet, &labels).expect("written"));
                writer.finish(Vec::new()).expect("finished");
                let size = std::fs::metadata(&path).expect("a file").len() as f64 / RECORDS as f64;
                report(format.name(), start, size);
                std::fs::remove_file(&path).expect("removed");
            }
        }
    }
}
