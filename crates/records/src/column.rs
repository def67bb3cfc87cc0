//! The columns of a record: their names, types and units, and how a record gives its values in their order.

use crate::address::Address;
use crate::labels::Labels;

/// The type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// 8 bits, unsigned.
    U8,
    /// 16 bits, unsigned.
    U16,
    /// 32 bits, unsigned.
    U32,
    /// 64 bits, unsigned.
    U64,
    /// Nanoseconds since 1970; Arrow and Parquet know them as a time in UTC.
    Time,
    /// 64 bits, floating point.
    Float,
    /// UTF-8.
    Text,
    /// An address, or the hash of one in 16 hexadecimal digits; UTF-8.
    Address,
    /// True or false.
    Bool,
}

/// A column of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Name of the column, with its unit where it has one.
    pub name: &'static str,
    /// Type of its values.
    pub kind: Type,
    /// Whether a row can have no value here.
    pub optional: bool,
}

impl Column {
    /// A column with a value in every row.
    pub const fn of(name: &'static str, kind: Type) -> Column {
        Column { name, kind, optional: false }
    }

    /// A column without a value in some rows.
    pub const fn maybe(name: &'static str, kind: Type) -> Column {
        Column { name, kind, optional: true }
    }
}

/// What takes the values of a row, in the order of its columns.
pub trait Values {
    /// An unsigned number or a time.
    fn number(&mut self, value: Option<u64>);
    /// A floating-point number.
    fn float(&mut self, value: Option<f64>);
    /// A text.
    fn text(&mut self, value: Option<&str>);
    /// An address.
    fn address(&mut self, value: Option<Address>);
    /// True or false.
    fn truth(&mut self, value: bool);
}

/// A row of a stream of records.
pub trait Record {
    /// What the record is: a word for metadata.
    const WHAT: &'static str;
    /// Columns of the record.
    const COLUMNS: &'static [Column];

    /// Gives a value for each column, in their order.
    fn give(&self, labels: &Labels, to: &mut impl Values);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Gives a record and compares its values with its columns.
    pub fn check<R: Record>(record: &R, labels: &Labels) {
        let mut values = Checked::<R>(0, std::marker::PhantomData);
        record.give(labels, &mut values);
        assert_eq!(values.0, R::COLUMNS.len());
    }

    struct Checked<R>(usize, std::marker::PhantomData<R>);

    impl<R: Record> Checked<R> {
        fn next(&mut self, kinds: &[Type], is_none: bool, value: u64) {
            let column = R::COLUMNS[self.0];
            assert!(kinds.contains(&column.kind), "{}", column.name);
            assert!(column.optional || !is_none, "{} has no value", column.name);
            let most = match column.kind {
                Type::U8 => u8::MAX.into(),
                Type::U16 => u16::MAX.into(),
                Type::U32 => u32::MAX.into(),
                _ => u64::MAX,
            };
            assert!(value <= most, "{} is {value}", column.name);
            self.0 += 1;
        }
    }

    impl<R: Record> Values for Checked<R> {
        fn number(&mut self, value: Option<u64>) {
            let kinds = [Type::U8, Type::U16, Type::U32, Type::U64, Type::Time];
            self.next(&kinds, value.is_none(), value.unwrap_or_default());
        }
        fn float(&mut self, value: Option<f64>) {
            self.next(&[Type::Float], value.is_none(), 0);
        }
        fn text(&mut self, value: Option<&str>) {
            self.next(&[Type::Text], value.is_none(), 0);
        }
        fn address(&mut self, value: Option<Address>) {
            self.next(&[Type::Address], value.is_none(), 0);
        }
        fn truth(&mut self, _: bool) {
            self.next(&[Type::Bool], false, 0);
        }
    }
}
