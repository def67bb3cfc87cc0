//! What writers write: golden lines, and files read back by the crates' own readers.

#[path = "records/mod.rs"]
mod records;

use records::{Scratch, flows, labels, packets};
use sluice_records::{Format, Packet, Record, writer};

fn written<R: Record + 'static>(format: Format, rows: &[R]) -> Vec<u8> {
    let scratch = Scratch::new(&format!("{}-{}", R::WHAT, format.name()));
    let first = vec![("sluice.one_in".to_owned(), "8".to_owned())];
    let mut writer = writer::open(&scratch.destination(), format, false, first, Default::default()).expect("opened");
    rows.iter().for_each(|row| writer.write(row, &labels()).expect("written"));
    writer.flush().expect("flushed");
    writer.finish(vec![("sluice.missed".to_owned(), "3".to_owned())]).expect("finished");
    assert_eq!(writer.rows(), rows.len() as u64);
    std::fs::read(&scratch.path).expect("read")
}

fn is_golden(name: &str, bytes: &[u8]) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        std::fs::write(&path, bytes).expect("written");
    }
    let wanted = std::fs::read_to_string(&path).expect("a golden file");
    assert_eq!(String::from_utf8_lossy(bytes), wanted, "{name}: WRITE_GOLDEN=1 writes it anew");
}

#[test]
fn lines_are_golden() {
    is_golden("packets.csv", &written(Format::Csv, &packets()));
    is_golden("packets.jsonl", &written(Format::JsonLines, &packets()));
    is_golden("flows.csv", &written(Format::Csv, &flows()));
    is_golden("flows.jsonl", &written(Format::JsonLines, &flows()));
}

#[test]
fn csv_is_read_back() {
    let bytes = written(Format::Csv, &packets());
    let mut reader = csv::Reader::from_reader(&bytes[..]);
    let titles: Vec<String> = reader.headers().expect("titles").iter().map(str::to_owned).collect();
    assert!(titles.iter().zip(Packet::COLUMNS).all(|(title, column)| title == column.name));
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
    assert_eq!(rows.len(), packets().len());
    assert!(rows.iter().all(|row| row.len() == Packet::COLUMNS.len()));
    let class = titles.iter().position(|title| title == "class_name").expect("the column");
    assert_eq!(&rows[0][class], "bulk, \"slow\"");
}

#[test]
fn json_lines_are_objects_of_the_columns() {
    let text = String::from_utf8(written(Format::JsonLines, &flows())).expect("UTF-8");
    let columns = <sluice_records::Flow as Record>::COLUMNS;
    for line in text.lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let object = value.as_object().expect("an object");
        assert_eq!(object.len(), columns.len());
        for column in columns {
            assert!(column.optional || !object[column.name].is_null(), "{}", column.name);
        }
    }
}

#[cfg(feature = "columnar")]
mod columnar {
    use super::*;
    use arrow_array::{Array, RecordBatch, StringArray, TimestampNanosecondArray, UInt16Array};
    use arrow_ipc::reader::{FileReader, StreamReader};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use std::io::Cursor;

    fn is_what_was_written(batches: &[RecordBatch]) {
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, packets().len());
        let batch = &batches[0];
        for (field, column) in batch.schema().fields().iter().zip(Packet::COLUMNS) {
            assert_eq!((field.name().as_str(), field.is_nullable()), (column.name, column.optional));
        }
        let column = |name: &str| batch.column_by_name(name).expect("the column").clone();
        let texts = |name: &str| {
            let column = column(name);
            let texts = column.as_any().downcast_ref::<StringArray>().expect("texts").clone();
            texts.iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
        };
        assert_eq!(texts("src"), [Some("192.0.2.1".to_owned()), Some("000000000000002a".to_owned()), None, None]);
        assert_eq!(texts("class_name")[0].as_deref(), Some("bulk, \"slow\""));
        let times = column("time_ns");
        let times = times.as_any().downcast_ref::<TimestampNanosecondArray>().expect("times");
        assert_eq!(times.value(0), 1_700_000_000_000_000_001);
        let ports = column("dport");
        let ports = ports.as_any().downcast_ref::<UInt16Array>().expect("ports");
        assert_eq!((ports.value(0), ports.is_null(2)), (443, true));
    }

    #[test]
    fn arrow_is_read_back() {
        let file = FileReader::try_new(Cursor::new(written(Format::Arrow, &packets())), None).expect("a file");
        assert_eq!(file.schema().metadata()["sluice.schema_version"], "1");
        assert_eq!(file.custom_metadata()["sluice.missed"], "3");
        is_what_was_written(&file.map(|batch| batch.expect("a batch")).collect::<Vec<_>>());
        let bytes = written(Format::ArrowStream, &packets());
        let stream = StreamReader::try_new(Cursor::new(bytes), None).expect("a stream");
        assert_eq!(stream.schema().metadata()["sluice.one_in"], "8");
        is_what_was_written(&stream.map(|batch| batch.expect("a batch")).collect::<Vec<_>>());
    }

    #[test]
    fn parquet_is_read_back() {
        let bytes = bytes::Bytes::from(written(Format::Parquet, &packets()));
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).expect("a file");
        let pairs = builder.metadata().file_metadata().key_value_metadata().expect("metadata").clone();
        let value = |key: &str| pairs.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.clone());
        assert_eq!(value("sluice.schema").as_deref(), Some("packets"));
        assert_eq!(value("sluice.one_in").as_deref(), Some("8"));
        assert_eq!(value("sluice.missed").as_deref(), Some("3"));
        let reader = builder.build().expect("a reader");
        is_what_was_written(&reader.map(|batch| batch.expect("a batch")).collect::<Vec<_>>());
    }

    #[test]
    fn row_groups_are_bounded() {
        let rows = vec![packets()[0]; 300_000];
        let bytes = bytes::Bytes::from(written(Format::Parquet, &rows));
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).expect("a file");
        let groups: Vec<i64> = builder.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(groups, [131_072, 131_072, 37_856]);
    }
}

#[cfg(not(feature = "columnar"))]
#[test]
fn builds_without_arrow_say_so() {
    let scratch = Scratch::new("absent");
    let error = writer::open::<Packet>(&scratch.destination(), Format::Parquet, false, Vec::new(), Default::default());
    let error = error.err().expect("refused");
    assert!(error.to_string().contains("columnar"), "{error}");
    assert_eq!(error.exit_code(), 3);
    assert!(!scratch.path.exists());
}
