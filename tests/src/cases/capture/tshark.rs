//! Captures as tshark reads them: the program that most captures are opened with.

use super::{capture, frame, output};
use crate::command::run;
use crate::frames::Wire;
use crate::lab::Lab;
use std::process::Command;

/// Packets of several lengths, captured by copy and taken from the host: tshark finds all, with their comments, and complains of nothing.
pub fn opens_captures(lab: &Lab) {
    let pair = lab.pair();
    let file = output(lab);
    let path = file.display().to_string();
    let lengths = [64, 129, 1000, 1514];
    let ways: [(&[&str], &str); 2] = [
        (&[], "arriving | no class | no policy | unknown"),
        (&["--steal", "--yes"], "arriving | no class | no policy | taken from the host"),
    ];
    for (more, comment) in ways {
        let wire = Wire::open(&pair.a, "a0");
        capture(lab, &pair, &file, &[&["--force", "--only", "udp sport 4000"], more].concat(), || {
            (0..200u16).for_each(|n| wire.send(&frame(n, lengths[usize::from(n) % lengths.len()])));
        });
        let fields = ["ip.id", "frame.len", "udp.srcport", "frame.interface_name", "frame.comment"];
        let asked = fields.iter().flat_map(|field| ["-e", *field]);
        let mut tshark = Command::new("tshark");
        tshark.args(["-n", "-r", &path, "-T", "fields", "-E", "separator=;"]).args(asked);
        let read = run(&mut tshark).ok();
        let complaints: Vec<&str> = read.stderr.lines().filter(|line| !line.starts_with("Running as user")).collect();
        assert!(complaints.is_empty(), "{read}");
        let lines: Vec<&str> = read.stdout.lines().collect();
        let expected: Vec<String> =
            (0..200usize).map(|n| format!("0x{n:04x};{};4000;b0;{comment}", lengths[n % lengths.len()])).collect();
        assert_eq!(lines, expected);
    }
}
