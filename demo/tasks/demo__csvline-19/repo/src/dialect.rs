//! What separates and what quotes.

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// Between two fields.
    pub delimiter: char,
    /// Around a field that contains anything special.
    pub quote: char,
    /// Whether blanks around an unquoted field are taken off.
    pub trim: bool,
}

impl Default for Dialect {
    fn default() -> Self {
        Dialect { delimiter: ',', quote: '"', trim: false }
    }
}

impl Dialect {
    /// Tab-separated values.
    pub fn tsv() -> Self {
        Dialect { delimiter: '\t', ..Dialect::default() }
    }

    /// What spreadsheets write where the comma is the decimal sign.
    pub fn semicolon() -> Self {
        Dialect { delimiter: ';', ..Dialect::default() }
    }

    /// Whether a field has to be quoted when it is written.
    pub fn needs_quotes(&self, field: &str) -> bool {
        field.contains(|c| c == self.delimiter || c == self.quote || c == '\n' || c == '\r')
            || (self.trim && field.trim() != field)
    }
}
