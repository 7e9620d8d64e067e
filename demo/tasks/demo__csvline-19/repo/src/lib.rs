//! Reads and writes delimited text.

mod dialect;
mod error;
mod reader;
mod table;
mod writer;

pub use dialect::Dialect;
pub use error::{Error, ErrorKind};
pub use reader::{Reader, Record};
pub use table::Table;
pub use writer::Writer;
