//! Rows as Arrow columns: a vector for each, without an allocation for a row.

use super::Metadata;
use crate::address::{Address, AddressTexts};
use crate::column::{Column, Record, Type, Values};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, PrimitiveArray, RecordBatch, StringArray, TimestampNanosecondArray,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use std::sync::Arc;

/// The schema of a record, with this metadata.
pub fn schema<R: Record>(metadata: Metadata) -> SchemaRef {
    let fields: Vec<Field> = R::COLUMNS
        .iter()
        .map(|column| {
            let kind = match column.kind {
                Type::U8 => DataType::UInt8,
                Type::U16 => DataType::UInt16,
                Type::U32 => DataType::UInt32,
                Type::U64 => DataType::UInt64,
                Type::Time => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
                Type::Float => DataType::Float64,
                Type::Text | Type::Address => DataType::Utf8,
                Type::Bool => DataType::Boolean,
            };
            Field::new(column.name, kind, column.optional)
        })
        .collect();
    Arc::new(Schema::new_with_metadata(fields, metadata.into_iter().collect()))
}

enum Cells {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    Time(Vec<i64>),
    Float(Vec<f64>),
    Text { ends: Vec<i32>, bytes: Vec<u8> },
    Bool(Vec<bool>),
}

struct Cell {
    cells: Cells,
    known: NullBufferBuilder,
}

/// Rows that are gathered.
pub struct Batch {
    schema: SchemaRef,
    columns: Vec<Cell>,
    at: usize,
    rows: usize,
    most: usize,
    addresses: AddressTexts,
}

impl Batch {
    /// A batch of at most so many rows.
    pub fn new<R: Record>(schema: SchemaRef, most: usize) -> Batch {
        let columns = R::COLUMNS.iter().map(|column| Cell::new(column, most)).collect();
        Batch { schema, columns, at: 0, rows: 0, most, addresses: AddressTexts::default() }
    }

    /// Ends a row; true if the batch is full.
    pub fn end_row(&mut self) -> bool {
        self.at = 0;
        self.rows += 1;
        self.rows == self.most
    }

    /// Rows that are in it.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Takes the rows out.
    ///
    /// # Errors
    ///
    /// Columns that do not fit their types.
    pub fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        self.rows = 0;
        let most = self.most;
        let columns = self.columns.iter_mut().map(|cell| cell.take(most)).collect::<Result<_, _>>()?;
        RecordBatch::try_new(self.schema.clone(), columns)
    }

    #[inline]
    fn next(&mut self) -> &mut Cell {
        let cell = &mut self.columns[self.at];
        self.at += 1;
        cell
    }
}

impl Cell {
    fn new(column: &Column, most: usize) -> Cell {
        let cells = match column.kind {
            Type::U8 => Cells::U8(Vec::with_capacity(most)),
            Type::U16 => Cells::U16(Vec::with_capacity(most)),
            Type::U32 => Cells::U32(Vec::with_capacity(most)),
            Type::U64 => Cells::U64(Vec::with_capacity(most)),
            Type::Time => Cells::Time(Vec::with_capacity(most)),
            Type::Float => Cells::Float(Vec::with_capacity(most)),
            Type::Text | Type::Address => Cells::Text { ends: vec![0], bytes: Vec::with_capacity(most) },
            Type::Bool => Cells::Bool(Vec::with_capacity(most)),
        };
        Cell { cells, known: NullBufferBuilder::new(most) }
    }

    #[inline]
    fn number(&mut self, value: Option<u64>) {
        let number = value.unwrap_or_default();
        match &mut self.cells {
            Cells::U8(cells) => cells.push(number as u8),
            Cells::U16(cells) => cells.push(number as u16),
            Cells::U32(cells) => cells.push(number as u32),
            Cells::U64(cells) => cells.push(number),
            Cells::Time(cells) => cells.push(number as i64),
            _ => {}
        }
        self.known.append(value.is_some());
    }

    #[inline]
    fn text(&mut self, value: Option<&[u8]>) {
        if let Cells::Text { ends, bytes } = &mut self.cells {
            bytes.extend_from_slice(value.unwrap_or_default());
            ends.push(bytes.len() as i32);
        }
        self.known.append(value.is_some());
    }

    fn take(&mut self, most: usize) -> Result<ArrayRef, ArrowError> {
        let known: Option<NullBuffer> = self.known.finish();
        fn fresh<T>(cells: &mut Vec<T>, most: usize) -> ScalarBuffer<T>
        where
            T: arrow_buffer::ArrowNativeType,
        {
            std::mem::replace(cells, Vec::with_capacity(most)).into()
        }
        Ok(match &mut self.cells {
            Cells::U8(cells) => Arc::new(UInt8Array::try_new(fresh(cells, most), known)?),
            Cells::U16(cells) => Arc::new(UInt16Array::try_new(fresh(cells, most), known)?),
            Cells::U32(cells) => Arc::new(UInt32Array::try_new(fresh(cells, most), known)?),
            Cells::U64(cells) => Arc::new(UInt64Array::try_new(fresh(cells, most), known)?),
            Cells::Float(cells) => Arc::new(Float64Array::try_new(fresh(cells, most), known)?),
            Cells::Time(cells) => {
                let times: TimestampNanosecondArray = PrimitiveArray::try_new(fresh(cells, most), known)?;
                Arc::new(times.with_timezone("UTC"))
            }
            Cells::Text { ends, bytes } => {
                let size = bytes.len();
                let ends = OffsetBuffer::new(std::mem::replace(ends, vec![0]).into());
                let bytes = std::mem::replace(bytes, Vec::with_capacity(size));
                Arc::new(StringArray::try_new(ends, bytes.into(), known)?)
            }
            Cells::Bool(cells) => {
                let bits = BooleanBuffer::from(std::mem::take(cells));
                Arc::new(BooleanArray::new(bits, known))
            }
        })
    }
}

impl Values for Batch {
    #[inline]
    fn number(&mut self, value: Option<u64>) {
        self.next().number(value);
    }

    #[inline]
    fn float(&mut self, value: Option<f64>) {
        let cell = self.next();
        if let Cells::Float(cells) = &mut cell.cells {
            cells.push(value.unwrap_or_default());
        }
        cell.known.append(value.is_some());
    }

    #[inline]
    fn text(&mut self, value: Option<&str>) {
        self.next().text(value.map(str::as_bytes));
    }

    #[inline]
    fn address(&mut self, value: Option<Address>) {
        let text = value.map(|address| self.addresses.of(address));
        self.columns[self.at].text(text);
        self.at += 1;
    }

    fn truth(&mut self, value: bool) {
        let cell = self.next();
        if let Cells::Bool(cells) = &mut cell.cells {
            cells.push(value);
        }
        cell.known.append(true);
    }
}
