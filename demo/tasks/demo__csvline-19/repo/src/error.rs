//! Errors with a position.

use std::fmt;

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text ended inside a quoted field.
    UnterminatedQuote,
    /// Something other than a delimiter or a line break came after a closing quote.
    AfterQuote(char),
    /// A record has another number of fields than the header.
    FieldCount { expected: usize, found: usize },
    /// The header has no such column.
    NoColumn(String),
}

/// An error, and where it is. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub kind: ErrorKind,
    pub line: usize,
    pub column: usize,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, line: usize, column: usize) -> Self {
        Error { kind, line, column }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        match &self.kind {
            ErrorKind::UnterminatedQuote => write!(f, "the quote that starts here is never closed"),
            ErrorKind::AfterQuote(c) => write!(f, "{:?} after a closing quote", c),
            ErrorKind::FieldCount { expected, found } => {
                write!(f, "{} fields where the header has {}", found, expected)
            }
            ErrorKind::NoColumn(name) => write!(f, "there is no column {:?}", name),
        }
    }
}

impl std::error::Error for Error {}
