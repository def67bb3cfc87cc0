//! Outputs that fail: what was written before is readable. Limits on file sizes count for a whole process, so this is a program of one test.

#[path = "records/mod.rs"]
mod records;

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigHandler, Signal, signal};
use records::{Scratch, labels, packets};
use sluice_error::Error;
use sluice_records::{Destination, Format, Packet, writer};
use std::io::Read;

/// Writes packets that differ until the output fails.
fn fill(destination: &Destination, format: Format) -> (Error, u64) {
    let begun = writer::open(destination, format, false, Vec::new(), Default::default());
    let mut writer = match begun {
        Ok(writer) => writer,
        Err(error) => return (error, 0),
    };
    for number in 0..3_000_000u64 {
        let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let packet =
            Packet { time_ns: 1_700_000_000_000_000_000 + number * 1000, length: random as u32, ..packets()[0] };
        if let Err(error) = writer.write(&packet, &labels()) {
            assert!(writer.finish(Vec::new()).is_err(), "{} ends well", format.name());
            return (error, writer.rows());
        }
    }
    let error = writer.finish(Vec::new()).expect_err("no room");
    (error, writer.rows())
}

#[test]
fn what_was_written_before_is_readable() {
    // A write that fails instead of the signal.
    // SAFETY: to ignore a signal is always valid.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }.expect("ignored");
    let most = 3_000_000;
    setrlimit(Resource::RLIMIT_FSIZE, most, most).expect("a limit");

    for format in [Format::Csv, Format::JsonLines] {
        let scratch = Scratch::new(format.name());
        let (error, rows) = fill(&scratch.destination(), format);
        says(&error, &scratch, rows);
        let text = std::fs::read_to_string(&scratch.path).expect("UTF-8");
        assert!(text.ends_with('\n'), "{} ends within a line", format.name());
        let titles = if format == Format::Csv { 1 } else { 0 };
        assert_eq!(text.lines().count() as u64, rows + titles);
        assert!(rows > 1000);
    }
    #[cfg(feature = "columnar")]
    columnar();

    for format in [Format::Csv, Format::ArrowStream] {
        let (error, rows) = fill(&Destination::File("/dev/full".into()), format);
        assert!(error.what.contains("/dev/full") && error.what.contains("No space left"), "{error}");
        assert!(error.cure.as_deref().is_some_and(|cure| cure.contains("free some space")), "{error}");
        assert_eq!((rows, error.exit_code()), (0, 1));
    }

    let scratch = Scratch::new("socket");
    let listener = std::os::unix::net::UnixListener::bind(&scratch.path).expect("a socket");
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a writer");
        stream.read_exact(&mut [0; 100_000]).expect("bytes");
    });
    let (error, rows) = fill(&Destination::Unix(scratch.path.clone()), Format::JsonLines);
    reader.join().expect("read");
    assert!(error.to_string().contains("its reader has gone"), "{error}");
    assert!(rows > 100);
}

fn says(error: &Error, scratch: &Scratch, rows: u64) {
    let path = scratch.path.display().to_string();
    assert!(error.what.contains(&path) && error.what.contains("File too large"), "{error}");
    assert!(error.what.contains(&format!("the first {rows} rows are there")), "{error}");
    assert_eq!(error.exit_code(), 1);
}

#[cfg(feature = "columnar")]
fn columnar() {
    use arrow_ipc::reader::FileReader;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use std::fs::File;

    let scratch = Scratch::new("parquet");
    let (error, rows) = fill(&scratch.destination(), Format::Parquet);
    says(&error, &scratch, rows);
    assert!(rows >= 131_072, "{rows} rows");
    let file = File::open(&scratch.path).expect("a file");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("a footer");
    let pairs = builder.metadata().file_metadata().key_value_metadata().expect("metadata").clone();
    assert!(pairs.iter().any(|pair| pair.key == "sluice.incomplete"));
    let read: usize = builder.build().expect("a reader").map(|batch| batch.expect("a batch").num_rows()).sum();
    assert_eq!(read as u64, rows);

    let scratch = Scratch::new("arrow");
    let (error, rows) = fill(&scratch.destination(), Format::Arrow);
    says(&error, &scratch, rows);
    let reader = FileReader::try_new(File::open(&scratch.path).expect("a file"), None).expect("a footer");
    let read: usize = reader.map(|batch| batch.expect("a batch").num_rows()).sum();
    assert_eq!(read as u64, rows);
    assert!(rows >= 16_384, "{rows} rows");
}
