//! From text to records.

use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};

/// The fields of one record, and the line that it starts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub fields: Vec<String>,
    pub line: usize,
}

/// An iterator over the records of a text. After an error it ends.
pub struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    dialect: Dialect,
    line: usize,
    column: usize,
    failed: bool,
}

impl<'a> Reader<'a> {
    /// Read a text. A byte order mark at its start is passed over.
    pub fn new(text: &'a str, dialect: Dialect) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Reader { rest: text.chars().peekable(), dialect, line: 1, column: 1, failed: false }
    }

    fn advance(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    /// Take a line break, if there is one.
    fn line_break(&mut self) {
        if self.at_crlf() {
            self.advance();
        }
        if self.rest.peek() == Some(&'\n') {
            self.advance();
        }
    }

    fn record(&mut self) -> Result<Record, Error> {
        let line = self.line;
        let mut fields = Vec::new();
        loop {
            fields.push(self.field()?);
            if self.rest.peek() == Some(&self.dialect.delimiter) {
                self.advance();
                continue;
            }
            self.line_break();
            return Ok(Record { fields, line });
        }
    }

    fn field(&mut self) -> Result<String, Error> {
        if self.dialect.trim {
            while matches!(self.rest.peek(), Some(' ')) {
                self.advance();
            }
        }
        if self.rest.peek() == Some(&self.dialect.quote) {
            return self.quoted();
        }
        let mut field = String::new();
        while let Some(&c) = self.rest.peek() {
            if c == self.dialect.delimiter || c == '\n' {
                break;
            }
            if c == '\r' && self.at_crlf() {
                break;
            }
            field.push(c);
            self.advance();
        }
        if self.dialect.trim {
            field.truncate(field.trim_end().len());
        }
        Ok(field)
    }

    fn at_crlf(&self) -> bool {
        let mut ahead = self.rest.clone();
        ahead.next() == Some('\r') && ahead.next() == Some('\n')
    }

    fn quoted(&mut self) -> Result<String, Error> {
        let (line, column) = (self.line, self.column);
        let quote = self.dialect.quote;
        self.advance();
        let mut field = String::new();
        loop {
            match self.advance() {
                None => return Err(Error::new(ErrorKind::UnterminatedQuote, line, column)),
                Some(c) if c == quote => {
                    self.after_quote()?;
                    return Ok(field);
                }
                Some('\r') if self.rest.peek() == Some(&'\n') => {}
                Some(c) => field.push(c),
            }
        }
    }

    /// Check that a closing quote ends its field.
    fn after_quote(&mut self) -> Result<(), Error> {
        if self.dialect.trim {
            while matches!(self.rest.peek(), Some(' ')) {
                self.advance();
            }
        }
        match self.rest.peek().copied() {
            None | Some('\n') => Ok(()),
            Some('\r') if self.at_crlf() => Ok(()),
            Some(c) if c == self.dialect.delimiter => Ok(()),
            Some(c) => Err(Error::new(ErrorKind::AfterQuote(c), self.line, self.column)),
        }
    }
}

impl Iterator for Reader<'_> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        self.rest.peek()?;
        let record = self.record();
        self.failed = record.is_err();
        Some(record)
    }
}
