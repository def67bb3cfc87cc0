//! Parquet: row groups of bounded size, and a footer even where the disk is full.

use super::batch::{Batch, schema};
use super::{Metadata, Writer};
use crate::column::{Record, Type};
use crate::labels::Labels;
use crate::output::Output;
use arrow_schema::SchemaRef;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowSchemaConverter, ArrowWriter, encode_arrow_schema};
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use sluice_error::{Error, Result};

/// Rows that are encoded at once.
const BATCH_ROWS: usize = 8 << 10;
/// Rows of a row group, which is in memory, encoded, until it is written.
pub const GROUP_ROWS: usize = 128 << 10;

/// A writer of Parquet.
pub struct Parquet {
    /// None after a failure.
    inner: Option<ArrowWriter<Output>>,
    /// The same file, for the repair after a failure.
    again: Output,
    schema: SchemaRef,
    metadata: Metadata,
    batch: Batch,
    groups: Vec<RowGroupMetaData>,
    /// Where the last whole row group ends.
    whole: u64,
    rows: u64,
}

impl Parquet {
    /// Begins a file.
    pub fn begin<R: Record>(output: Output, metadata: Metadata) -> Result<Parquet> {
        let schema = schema::<R>(metadata.clone());
        let batch = Batch::new::<R>(schema.clone(), BATCH_ROWS);
        let again = output.again().map_err(|error| output.error(&error.to_string(), 0))?;
        let mut properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true)
            .set_max_row_group_size(usize::MAX);
        // Times and moments differ from row to row: a dictionary of them is work for nothing.
        for column in R::COLUMNS.iter().filter(|column| matches!(column.kind, Type::Time | Type::Float)) {
            properties = properties.set_column_dictionary_enabled(column.name.into(), false);
            if column.kind == Type::Time {
                properties = properties.set_column_encoding(column.name.into(), Encoding::DELTA_BINARY_PACKED);
            }
        }
        let pairs = metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
        let properties = properties.set_key_value_metadata(Some(pairs)).build();
        let mut inner = ArrowWriter::try_new(output, schema.clone(), Some(properties))
            .map_err(|cause| again.error(&cause.to_string(), 0))?;
        inner.sync().map_err(|cause| inner.inner().error(&cause.to_string(), 0))?;
        let whole = inner.inner().written();
        Ok(Parquet { inner: Some(inner), again, schema, metadata, batch, groups: Vec::new(), whole, rows: 0 })
    }

    fn encode(&mut self) -> Result<()> {
        if self.batch.rows() == 0 {
            return Ok(());
        }
        let Some(inner) = &mut self.inner else { return Err(self.closed()) };
        let batch = self.batch.take().map_err(ParquetError::from);
        if let Err(cause) = batch.and_then(|batch| inner.write(&batch)) {
            return Err(self.give_up(&cause));
        }
        if inner.in_progress_rows() >= GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<()> {
        let Some(inner) = &mut self.inner else { return Err(self.closed()) };
        if let Err(cause) = inner.flush().and_then(|()| Ok(inner.sync()?)) {
            return Err(self.give_up(&cause));
        }
        self.groups = inner.flushed_row_groups().to_vec();
        self.whole = inner.inner().written();
        self.rows = self.groups.iter().map(|group| group.num_rows() as u64).sum();
        Ok(())
    }

    fn closed(&self) -> Error {
        self.again.error("it failed before", self.rows)
    }

    /// Cuts the row group that was begun, and writes the footer for those before it.
    fn give_up(&mut self, cause: &ParquetError) -> Error {
        let Some(inner) = self.inner.take() else { return self.closed() };
        let error = inner.inner().error(&cause.to_string(), self.rows);
        // What it has not written it tries to write now, and the failed output refuses.
        drop(inner);
        if self.again.cut(self.whole).is_ok() {
            // Where even the footer finds no room, the error says all there is to say.
            _ = self.write_footer();
        }
        error
    }

    fn write_footer(&mut self) -> std::result::Result<(), ParquetError> {
        let descriptor = ArrowSchemaConverter::new().convert(&self.schema)?;
        let mut pairs: Vec<KeyValue> =
            self.metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
        pairs.push(KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(&self.schema)));
        pairs.push(KeyValue::new("sluice.incomplete".to_owned(), "the output has failed".to_owned()));
        let file = FileMetaData::new(1, self.rows as i64, None, Some(pairs), descriptor.into(), None);
        let metadata = ParquetMetaData::new(file, self.groups.clone());
        ParquetMetaDataWriter::new(&mut self.again, &metadata).finish()
    }
}

impl<R: Record> Writer<R> for Parquet {
    fn write(&mut self, record: &R, labels: &Labels) -> Result<()> {
        record.give(labels, &mut self.batch);
        if self.batch.end_row() { self.encode() } else { Ok(()) }
    }

    /// A file without its footer cannot be read, so nothing is hurried out.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self, last: Metadata) -> Result<()> {
        self.encode()?;
        self.write_group()?;
        let Some(inner) = &mut self.inner else { return Err(self.closed()) };
        last.into_iter().for_each(|(key, value)| inner.append_key_value_metadata(KeyValue::new(key, value)));
        match inner.finish() {
            Ok(_) => Ok(()),
            Err(cause) => Err(self.give_up(&cause)),
        }
    }

    fn rows(&self) -> u64 {
        self.rows
    }
}
