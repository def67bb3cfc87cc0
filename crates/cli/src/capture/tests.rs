//! Captures made by hand; each was refused or misread once.

use super::*;

/// IPv4, UDP, 192.0.2.1:9 to 198.51.100.2:3074.
fn packet() -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2];
    bytes.extend([0, 9, 0x0c, 0x02, 0, 12, 0, 0, 1, 2, 3, 4]);
    bytes
}

fn frame() -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0], &packet()[..]].concat()
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn pcap(link: u32, packets: &[(&[u8], u32)]) -> Vec<u8> {
    let mut file = words(&[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 96, link]);
    for (bytes, original) in packets {
        file.extend(words(&[0, 0, bytes.len() as u32, *original]));
        file.extend(*bytes);
    }
    file
}

/// A pcapng block.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let body = [body, &vec![0; body.len().next_multiple_of(4) - body.len()][..]].concat();
    let length = 12 + body.len() as u32;
    [&words(&[kind, length])[..], &body, &words(&[length])].concat()
}

fn section() -> Vec<u8> {
    block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]))
}

fn interface(link: u32, snap: u32) -> Vec<u8> {
    block(1, &words(&[link, snap]))
}

fn enhanced(interface: u32, bytes: &[u8]) -> Vec<u8> {
    block(6, &[&words(&[interface, 0, 0, bytes.len() as u32, bytes.len() as u32])[..], bytes].concat())
}

fn read_all(file: &[u8]) -> Frames {
    read("file", file, 10).unwrap_or_else(|failure| panic!("{}", failure.render(false)))
}

/// Asserts the numbers of frames and notes, and that each frame is the packet above.
#[track_caller]
fn holds(file: &[u8], frames: usize, notes: usize) {
    let found = read_all(file);
    assert_eq!((found.frames.len(), found.notes.len()), (frames, notes), "{:?}", found.notes);
    for one in found.frames {
        assert_eq!(one[12..], frame()[12..]);
    }
}

#[test]
fn snap_length_truncates_packets_without_error() {
    holds(&pcap(1, &[(&frame(), 1514), (&frame(), 9000)]), 2, 0);
}

#[test]
fn truncated_file_yields_packets_before_its_end() {
    let file = pcap(1, &[(&frame(), 46), (&frame(), 46)]);
    holds(&file[..file.len() - 1], 1, 1);
    let sections = [section(), interface(1, 0), enhanced(0, &frame()), enhanced(0, &frame())].concat();
    holds(&sections[..sections.len() - 1], 1, 1);
    assert!(read("file", &file[..30], 10).is_err(), "nothing was read");
}

#[test]
fn options_without_end_marker_are_accepted() {
    let odd = block(1, &[&words(&[1, 0])[..], &[2, 0, 4, 0], b"eth0"].concat());
    holds(&[section(), odd, enhanced(0, &frame())].concat(), 1, 0);
}

#[test]
fn each_section_has_its_own_interfaces() {
    let two = [section(), interface(1, 0), enhanced(0, &frame()), section(), interface(101, 0), enhanced(0, &packet())];
    holds(&two.concat(), 2, 0);
    let missing = [section(), interface(1, 0), enhanced(0, &frame()), section(), enhanced(0, &frame())].concat();
    holds(&missing, 1, 1);
}

#[test]
fn simple_and_old_packets_are_read() {
    let simple = block(3, &[&words(&[1514])[..], &frame()].concat());
    let old = block(2, &[&words(&[0, 0, 0, 46, 46])[..], &frame()].concat());
    holds(&[section(), interface(1, 46), simple, old].concat(), 2, 0);
}

#[test]
fn unknown_packet_is_noted_and_skipped() {
    let mixed = [section(), interface(189, 0), interface(1, 0), enhanced(0, &[1; 40]), enhanced(1, &frame())].concat();
    holds(&mixed, 1, 1);
    let alone = read("file", &pcap(189, &[(&[1; 40], 40)])[..], 10).expect_err("USB is not read");
    assert!(alone.render(false).contains("USB"), "{}", alone.render(false));
    assert_eq!(alone.exit_code, 2);
}

#[test]
fn link_types_that_carry_ip_are_read() {
    let ip = packet();
    let with = |header: &[u8]| [header, &ip].concat();
    let sll = [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0][..], &[8, 0]].concat();
    let sll2 = [&[8, 0][..], &[0; 18]].concat();
    let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    let radiotap = [&[0, 0, 8, 0, 0, 0, 0, 0][..], &[0x88, 1], &[0; 24], &snap].concat();
    for (link, header) in [
        (0, &[2, 0, 0, 0][..]),
        (0, &[0, 0, 0, 2]),
        (108, &[0, 0, 0, 2]),
        (101, &[]),
        (228, &[]),
        (9, &[0xff, 3, 0, 0x21]),
        (9, &[0x21]),
        (113, &sll),
        (276, &sll2),
        (127, &radiotap),
        (105, &radiotap[8..]),
    ] {
        holds(&pcap(link, &[(&with(header), 100)]), 1, 0);
    }
    let pppoe = read_all(&pcap(51, &[(&with(&[0x11, 0, 0, 1, 0, 34, 0, 0x21]), 100)]));
    assert_eq!(pppoe.frames[0][12..14], [0x88, 0x64]);
}

#[test]
fn advice_is_applicable() {
    let refused = |file: &[u8]| read("file", file, 10).expect_err("it is refused").render(false).to_owned();
    assert!(refused(&pcap(127, &[(&[0, 0, 8, 0, 0, 0, 0, 0, 8, 0x41, 0, 0], 12)])).contains("monitor mode"));
    assert!(refused(&[0x1f, 0x8b, 8, 0, 0, 0]).contains("gunzip"));
    assert!(refused(b"hello, world, this is no capture").contains("not a capture"));
    assert!(refused(&[]).contains("not a capture"));
}

/// A stream that never ends fails the test if it is read to its end.
#[test]
fn reads_no_more_packets_than_wanted() {
    let packet = pcap(1, &[(&frame(), 46)]);
    let (header, packet) = packet.split_at(24);
    let endless = header.chain(std::iter::repeat_n(packet, 1000).collect::<Vec<_>>().concat().leak() as &[u8]);
    struct Limited<R>(R, usize);
    impl<R: Read> Read for Limited<R> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            self.1 = self.1.checked_sub(to.len().min(64)).expect("more is read than is needed");
            let most = to.len().min(64);
            self.0.read(&mut to[..most])
        }
    }
    assert_eq!(read("file", Limited(endless, 1000), 2).unwrap_or_else(|_| panic!("readable")).frames.len(), 2);
}
