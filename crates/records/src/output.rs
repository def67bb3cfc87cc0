//! Where records go: a file, standard output, or a socket. A failure is remembered, and names the output and the cure.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sluice_error::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a pipe or a socket may take nothing.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a stop is looked for meanwhile.
const STOP_POLL_MS: u16 = 200;
/// Bytes that a pipe which is ready takes without blocking (PIPE_BUF).
const READY_BYTES: usize = 4096;

/// An output as it is named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// `-`
    Stdout,
    /// `tcp:HOST:PORT`
    Tcp(String),
    /// `unix:PATH`
    Unix(PathBuf),
    /// Any other text: a path.
    File(PathBuf),
}

impl Destination {
    /// The destination of a text.
    ///
    /// # Errors
    ///
    /// The text is empty, or a socket has no address.
    pub fn parse(text: &str) -> Result<Destination> {
        const CURE: &str = "write a path, - for standard output, tcp:HOST:PORT or unix:PATH";
        let bad = |what: &str| Err(Error::input(format!("the output \"{text}\" {what}")).help(CURE));
        match text {
            "" => bad("has no name"),
            "-" => Ok(Destination::Stdout),
            _ if text.starts_with("tcp:") => {
                let address = &text[4..];
                match address.rsplit_once(':') {
                    Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {
                        Ok(Destination::Tcp(address.to_owned()))
                    }
                    _ => bad("has no host and port"),
                }
            }
            "unix:" => bad("has no path"),
            _ if text.starts_with("unix:") => Ok(Destination::Unix(text[5..].into())),
            path => Ok(Destination::File(path.into())),
        }
    }

    /// The name for messages.
    pub fn name(&self) -> String {
        match self {
            Destination::Stdout => "standard output".to_owned(),
            Destination::Tcp(address) => format!("tcp:{address}"),
            Destination::Unix(path) => format!("unix:{}", path.display()),
            Destination::File(path) => path.display().to_string(),
        }
    }

    /// Whether what was written can be cut and read again: a file, and none that is a pipe or a device.
    pub fn is_regular(&self) -> bool {
        match self {
            Destination::File(path) => path.metadata().map_or(true, |data| !is_special(&data.file_type())),
            _ => false,
        }
    }

    /// Refuses a file that exists, unless it is to be replaced: before anything is begun.
    ///
    /// # Errors
    ///
    /// It exists.
    pub fn check(&self, replaces: bool) -> Result<()> {
        match self {
            Destination::File(path) if !replaces && self.is_regular() && path.exists() => {
                Err(self.not_opened(&ErrorKind::AlreadyExists.into()))
            }
            _ => Ok(()),
        }
    }

    /// Opens the output. A file that exists is an error unless `replaces`; a write that takes long ends when `stop` becomes true.
    ///
    /// # Errors
    ///
    /// It exists, cannot be opened, or nothing listens there.
    pub fn open(&self, replaces: bool, stop: Arc<AtomicBool>) -> Result<Output> {
        let is_regular = self.is_regular();
        let file = match self {
            Destination::Stdout => io::stdout().as_fd().try_clone_to_owned().map(File::from),
            Destination::Tcp(address) => TcpStream::connect(address).map(|stream| File::from(OwnedFd::from(stream))),
            Destination::Unix(path) => UnixStream::connect(path).map(|stream| File::from(OwnedFd::from(stream))),
            Destination::File(path) => open_file(path, is_regular, replaces),
        };
        let file = file.map_err(|error| self.not_opened(&error))?;
        Ok(Output { name: self.name(), file, is_regular, written: 0, failure: None, stop })
    }

    fn not_opened(&self, error: &io::Error) -> Error {
        let name = self.name();
        match (self, error.kind()) {
            (Destination::File(_), ErrorKind::AlreadyExists) => {
                Error::input(format!("{name} exists already")).help("choose another name, or replace it with --force")
            }
            (Destination::File(_), _) => {
                Error::input(format!("{name} cannot be written: {error}")).help("give a path that can be written")
            }
            (Destination::Stdout, _) => Error::system(format!("{name}: {error}")),
            _ => Error::input(format!("{name}: {error}"))
                .help("start the reader first, for instance: socat -u TCP-LISTEN:9000 CREATE:records.csv"),
        }
    }
}

fn is_special(kind: &std::fs::FileType) -> bool {
    kind.is_fifo() || kind.is_char_device() || kind.is_block_device() || kind.is_socket()
}

fn open_file(path: &Path, is_regular: bool, replaces: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    match (is_regular, replaces) {
        (false, _) => options.open(path),
        (true, false) => options.create_new(true).open(path),
        (true, true) => options.create(true).truncate(true).open(path),
    }
}

/// An open output. After a failure it takes nothing more until it is cut back.
#[derive(Debug)]
pub struct Output {
    name: String,
    file: File,
    is_regular: bool,
    written: u64,
    failure: Option<Failure>,
    stop: Arc<AtomicBool>,
}

#[derive(Debug, Clone)]
struct Failure {
    kind: ErrorKind,
    text: String,
}

impl Output {
    /// Bytes that were written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether it is a file that can be cut.
    pub fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// The same file, open a second time, as if this much were written; for the repair of a file whose writer is broken.
    ///
    /// # Errors
    ///
    /// An error of the system.
    pub fn again(&self) -> io::Result<Output> {
        let file = self.file.try_clone()?;
        let (name, stop) = (self.name.clone(), self.stop.clone());
        Ok(Output { name, file, is_regular: self.is_regular, written: self.written, failure: None, stop })
    }

    /// Cuts a file to its first bytes, and lets writing go on there.
    ///
    /// # Errors
    ///
    /// It is not a file, or an error of the system.
    pub fn cut(&mut self, bytes: u64) -> io::Result<()> {
        if !self.is_regular {
            return Err(io::Error::other("a stream cannot be cut"));
        }
        self.file.set_len(bytes)?;
        self.file.seek(SeekFrom::Start(bytes))?;
        (self.written, self.failure) = (bytes, None);
        Ok(())
    }

    /// The error of what has failed, with what became of the records.
    pub fn error(&self, otherwise: &str, records: u64) -> Error {
        let (kind, cause) = match &self.failure {
            Some(failure) => (failure.kind, failure.text.as_str()),
            None => (ErrorKind::Other, otherwise),
        };
        failed(&self.name, cause, kind, records)
    }

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn wait_until_ready(&self) -> io::Result<()> {
        let start = Instant::now();
        loop {
            let mut watched = [PollFd::new(self.file.as_fd(), PollFlags::POLLOUT)];
            match poll(&mut watched, PollTimeout::from(STOP_POLL_MS)) {
                Ok(0) | Err(nix::Error::EINTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(io::Error::new(ErrorKind::TimedOut, "it took nothing when the command was to end"));
            }
            if start.elapsed() > PATIENCE {
                let text = format!("it has taken nothing for {} s", PATIENCE.as_secs());
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
        }
    }
}

/// The error of an output that took not even the beginning, from the writer that has it.
pub fn not_begun(name: &str, cause: &(dyn std::error::Error + 'static)) -> Error {
    let mut next = Some(cause);
    let mut io = None;
    while let Some(error) = next.filter(|_| io.is_none()) {
        io = error.downcast_ref::<io::Error>();
        next = error.source();
    }
    match io {
        Some(io) => failed(name, &io.to_string(), io.kind(), 0),
        None => failed(name, &cause.to_string(), ErrorKind::Other, 0),
    }
}

fn failed(name: &str, cause: &str, kind: ErrorKind, records: u64) -> Error {
    let cure = match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some space, or write to another file system",
        ErrorKind::FileTooLarge => "raise the limit on the size of files (ulimit -f)",
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
            "its reader has gone: start it again, or end sluice first"
        }
        ErrorKind::TimedOut => "its reader takes nothing: look whether it is stopped, or write to a file",
        _ => "look at the output, or write to another one",
    };
    let what = format!("{name} cannot be written any more: {cause}; the first {records} rows are there");
    Error::system(what).help(cure)
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(failure) = &self.failure {
            return Err(io::Error::new(failure.kind, failure.text.clone()));
        }
        let result = if self.is_regular {
            self.file.write(bytes)
        } else {
            self.wait_until_ready().and_then(|()| self.file.write(&bytes[..bytes.len().min(READY_BYTES)]))
        };
        match result {
            Ok(count) => {
                self.written += count as u64;
                Ok(count)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.failure = Some(Failure { kind: error.kind(), text: error.to_string() });
                Err(error)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_told_apart() {
        let good = [
            ("-", Destination::Stdout),
            ("tcp:localhost:9000", Destination::Tcp("localhost:9000".to_owned())),
            ("tcp:[::1]:9000", Destination::Tcp("[::1]:9000".to_owned())),
            ("unix:/run/reader", Destination::Unix("/run/reader".into())),
            ("a/b.csv", Destination::File("a/b.csv".into())),
        ];
        for (text, wanted) in good {
            assert_eq!(Destination::parse(text).expect("good"), wanted);
        }
        for text in ["", "tcp:", "tcp:9000", "tcp::9000", "tcp:host:0", "tcp:host:port", "unix:"] {
            assert_eq!(Destination::parse(text).expect_err("refused").exit_code(), 2, "{text}");
        }
    }

    #[test]
    fn a_file_that_exists_stays() {
        let path = std::env::temp_dir().join(format!("sluice-output-{}", std::process::id()));
        std::fs::write(&path, "precious").expect("written");
        let destination = Destination::File(path.clone());
        let error = destination.open(false, Arc::default()).expect_err("refused");
        assert_eq!(destination.check(false).expect_err("refused").what, error.what);
        destination.check(true).expect("to be replaced");
        assert!(error.to_string().contains("--force"), "{error}");
        assert_eq!(error.exit_code(), 2);
        assert_eq!(std::fs::read(&path).expect("read"), b"precious");
        destination.open(true, Arc::default()).expect("opened");
        assert_eq!(std::fs::read(&path).expect("read"), b"");
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn a_reader_that_stalls_does_not_hold_up_the_end() {
        let (ours, _theirs) = UnixStream::pair().expect("sockets");
        let stop = Arc::new(AtomicBool::new(true));
        let file = File::from(OwnedFd::from(ours));
        let name = "unix:/nowhere".to_owned();
        let mut output = Output { name, file, is_regular: false, written: 0, failure: None, stop };
        let error = output.write_all(&vec![0; 1 << 22]).expect_err("nobody reads");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(output.error("", 3).to_string().contains("the first 3 rows are there"));
    }
}
