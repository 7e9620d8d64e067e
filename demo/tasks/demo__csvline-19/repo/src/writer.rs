//! From records to text.

use crate::dialect::Dialect;

/// Collects records as text. Fields are quoted only where they have to be.
pub struct Writer {
    dialect: Dialect,
    text: String,
}

impl Writer {
    pub fn new(dialect: Dialect) -> Self {
        Writer { dialect, text: String::new() }
    }

    /// Append a record.
    pub fn write<S: AsRef<str>>(&mut self, fields: &[S]) {
        for (index, field) in fields.iter().enumerate() {
            if index > 0 {
                self.text.push(self.dialect.delimiter);
            }
            self.field(field.as_ref());
        }
        self.text.push('\n');
    }

    fn field(&mut self, field: &str) {
        if !self.dialect.needs_quotes(field) {
            self.text.push_str(field);
            return;
        }
        let quote = self.dialect.quote;
        self.text.push(quote);
        for c in field.chars() {
            if c == quote {
                self.text.push(quote);
            }
            self.text.push(c);
        }
        self.text.push(quote);
    }

    /// What was written.
    pub fn into_string(self) -> String {
        self.text
    }
}
