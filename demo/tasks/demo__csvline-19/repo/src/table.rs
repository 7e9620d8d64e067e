//! Records under a header.

use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};
use crate::reader::{Reader, Record};

/// A header, and rows that all have as many fields as it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Read a whole text whose first record is the header. Records with a single empty field are passed over.
    pub fn read(text: &str, dialect: Dialect) -> Result<Table, Error> {
        let mut records = Reader::new(text, dialect);
        let header = match records.next() {
            Some(record) => record?.fields,
            None => Vec::new(),
        };
        let mut rows = Vec::new();
        for record in records {
            let Record { fields, line } = record?;
            if fields.len() == 1 && fields[0].is_empty() {
                continue;
            }
            if fields.len() != header.len() {
                let kind = ErrorKind::FieldCount { expected: header.len(), found: fields.len() };
                return Err(Error::new(kind, line, 1));
            }
            rows.push(fields);
        }
        Ok(Table { header, rows })
    }

    /// Where a column is.
    pub fn position(&self, name: &str) -> Result<usize, Error> {
        self.header
            .iter()
            .position(|column| column == name)
            .ok_or_else(|| Error::new(ErrorKind::NoColumn(name.to_string()), 1, 1))
    }

    /// A table of some of the columns, in the given order.
    pub fn select(&self, names: &[&str]) -> Result<Table, Error> {
        let positions = names.iter().map(|name| self.position(name)).collect::<Result<Vec<_>, _>>()?;
        let pick = |row: &Vec<String>| positions.iter().map(|&p| row[p].clone()).collect();
        Ok(Table { header: pick(&self.header), rows: self.rows.iter().map(pick).collect() })
    }
}
