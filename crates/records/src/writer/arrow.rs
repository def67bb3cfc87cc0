//! Arrow IPC: a stream, or a file, which has a table of its batches at the end.

use super::batch::{Batch, schema};
use super::{Metadata, Writer};
use crate::column::Record;
use crate::labels::Labels;
use crate::output::{self, Output};
use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::ArrowError;
use sluice_error::{Error, Result};

/// Rows of a batch.
const BATCH_ROWS: usize = 16 << 10;

enum Inner {
    File(Box<FileWriter<Output>>),
    Stream(Box<StreamWriter<Output>>),
}

impl Inner {
    fn write(&mut self, batch: &RecordBatch) -> std::result::Result<(), ArrowError> {
        match self {
            Inner::File(writer) => writer.write(batch),
            Inner::Stream(writer) => writer.write(batch),
        }
    }

    fn finish(&mut self) -> std::result::Result<(), ArrowError> {
        match self {
            Inner::File(writer) => writer.finish(),
            Inner::Stream(writer) => writer.finish(),
        }
    }

    fn output(&mut self) -> &mut Output {
        match self {
            Inner::File(writer) => writer.get_mut(),
            Inner::Stream(writer) => writer.get_mut(),
        }
    }
}

/// A writer of Arrow.
pub struct Arrow {
    inner: Inner,
    batch: Batch,
    rows: u64,
    /// Where the last whole batch ends.
    whole: u64,
}

impl Arrow {
    /// Begins a file or a stream.
    pub fn begin<R: Record>(output: Output, is_file: bool, metadata: Metadata) -> Result<Arrow> {
        let schema = schema::<R>(metadata);
        let batch = Batch::new::<R>(schema.clone(), BATCH_ROWS);
        let name = output.name().to_owned();
        let begun = if is_file {
            FileWriter::try_new(output, &schema).map(|writer| Inner::File(Box::new(writer)))
        } else {
            StreamWriter::try_new(output, &schema).map(|writer| Inner::Stream(Box::new(writer)))
        };
        let mut inner = begun.map_err(|cause| output::not_begun(&name, &cause))?;
        let whole = inner.output().written();
        Ok(Arrow { inner, batch, rows: 0, whole })
    }

    fn write_out(&mut self) -> Result<()> {
        let rows = self.batch.rows() as u64;
        if rows == 0 {
            return Ok(());
        }
        let written = self.batch.take().and_then(|batch| self.inner.write(&batch));
        if let Err(cause) = written {
            return Err(self.give_up(&cause));
        }
        self.rows += rows;
        self.whole = self.inner.output().written();
        Ok(())
    }

    /// Cuts what was begun, and closes a file so that readers find the batches before.
    fn give_up(&mut self, cause: &ArrowError) -> Error {
        let (rows, whole) = (self.rows, self.whole);
        let output = self.inner.output();
        let error = output.error(&cause.to_string(), rows);
        if output.cut(whole).is_ok() {
            // Without its end a file is still a stream behind eight bytes; the error is there in any case.
            _ = self.inner.finish();
        }
        error
    }
}

impl<R: Record> Writer<R> for Arrow {
    fn write(&mut self, record: &R, labels: &Labels) -> Result<()> {
        record.give(labels, &mut self.batch);
        if self.batch.end_row() { self.write_out() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.write_out()
    }

    fn finish(&mut self, last: Metadata) -> Result<()> {
        self.write_out()?;
        if let Inner::File(writer) = &mut self.inner {
            last.into_iter().for_each(|(key, value)| writer.write_metadata(key, value));
        }
        let (result, rows) = (self.inner.finish(), self.rows);
        result.map_err(|cause| self.inner.output().error(&cause.to_string(), rows))
    }

    fn rows(&self) -> u64 {
        self.rows
    }
}
