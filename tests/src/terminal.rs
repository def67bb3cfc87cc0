//! A terminal that a program runs in: a pty, and its screen, as an emulator reads the program's output.

use crate::command::{Output, Process, await_that};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::Signal;
use nix::sys::termios::{LocalFlags, Termios, tcgetattr};
use sluice_testbed::process::PipeReader;
use std::fs::File;
use std::io::Write;
use std::num::NonZeroU16;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Time limit of a reaction to a key.
const LONG: Duration = Duration::from_secs(30);

nix::ioctl_write_ptr_bad!(set_size, libc::TIOCSWINSZ, Winsize);

/// A program in a terminal of its own.
pub struct Terminal {
    keyboard: File,
    /// The program's side, kept open to read its state.
    line: OwnedFd,
    before: Termios,
    process: Process,
    written: PipeReader,
    size: (u16, u16),
}

/// The state after a program has ended.
pub struct Ended {
    /// The program's exit code; its output is on the screen.
    pub output: Output,
    /// The screen of the terminal.
    pub screen: vt100::Parser,
    /// The bytes that the emulator has read.
    pub written: Vec<u8>,
}

impl Terminal {
    /// Starts the program in a terminal of so many columns and rows.
    pub fn start(command: &mut Command, columns: u16, rows: u16) -> Terminal {
        let pty = openpty(&winsize(columns, rows), None).expect("a pty");
        let side = || Stdio::from(pty.slave.try_clone().expect("the terminal once more"));
        command.stdin(side()).stdout(side()).stderr(side());
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm-256color");
        }
        // SAFETY: between fork and exec only setsid(2) and ioctl(2) are called, which are async-signal-safe and allocate nothing.
        unsafe {
            command.pre_exec(|| {
                nix::unistd::setsid()?;
                if libc::ioctl(0, libc::TIOCSCTTY, 0) == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
            })
        };
        let before = tcgetattr(&pty.slave).expect("the terminal's state");
        assert!(before.local_flags.contains(LocalFlags::ICANON | LocalFlags::ECHO), "a terminal begins cooked");
        let process = Process::spawn(command);
        // Only the command keeps the terminal open.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let keyboard = File::from(pty.master);
        let written = PipeReader::start(keyboard.try_clone().expect("the other side once more"));
        Terminal { keyboard, line: pty.slave, before, process, written, size: (columns, rows) }
    }

    /// The screen of the terminal now.
    pub fn screen(&self) -> vt100::Parser {
        show(&self.written.bytes(), self.size)
    }

    /// Waits until the screen shows this text.
    #[track_caller]
    pub fn shows(&self, text: &str) {
        await_that(&format!("the terminal shows {text:?}"), LONG, || self.screen().screen().contents().contains(text));
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("pressing keys");
    }

    /// Changes the size of the window.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        // SAFETY: the structure lives as long as the call.
        unsafe { set_size(self.keyboard.as_raw_fd(), &winsize(columns, rows)) }.expect("another size");
        self.size = (columns, rows);
    }

    /// Whether the terminal is in raw mode: keys come one by one and are not echoed.
    pub fn is_raw(&self) -> bool {
        !tcgetattr(&self.line).expect("the terminal's state").local_flags.contains(LocalFlags::ICANON)
    }

    /// Sends the program a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Waits for the program's end. The terminal must be as it was: cooked, with its cursor, and what it showed before.
    #[track_caller]
    pub fn finish(self) -> Ended {
        let Terminal { keyboard, line, before, process, written, size } = self;
        let output = process.finish();
        let after = tcgetattr(&line).expect("the terminal's state");
        assert_eq!(after, before, "the terminal is not as it was after {output}");
        // The output ends when the last copy of the slave side is closed.
        drop(line);
        let bytes = written.end();
        drop(keyboard);
        let parser = show(&bytes, size);
        assert!(!parser.screen().alternate_screen(), "the screen is not given back after {output}");
        assert!(!parser.screen().hide_cursor(), "the cursor is not given back after {output}");
        Ended { output, screen: parser, written: bytes }
    }
}

fn show(bytes: &[u8], (columns, rows): (u16, u16)) -> vt100::Parser {
    let size = |cells| NonZeroU16::new(cells).expect("a size");
    let mut parser = vt100::Parser::new(size(rows), size(columns), 0);
    parser.process(bytes);
    parser
}

fn winsize(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}
