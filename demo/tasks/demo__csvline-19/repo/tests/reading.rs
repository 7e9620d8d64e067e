use csvline::{Dialect, ErrorKind, Reader};

fn read(text: &str) -> Vec<Vec<String>> {
    Reader::new(text, Dialect::default()).map(|record| record.unwrap().fields).collect()
}

#[test]
fn plain_fields() {
    assert_eq!(read("a,b\nc,d\n"), [["a", "b"], ["c", "d"]]);
}

#[test]
fn last_line_without_a_break() {
    assert_eq!(read("a,b\nc,"), [["a", "b"], ["c", ""]]);
}

#[test]
fn crlf_ends_a_record() {
    assert_eq!(read("a,b\r\nc,d\r\n"), [["a", "b"], ["c", "d"]]);
}

#[test]
fn a_lone_carriage_return_is_text() {
    assert_eq!(read("a\rb,c\n"), [["a\rb", "c"]]);
}

#[test]
fn quotes_protect_delimiters_and_breaks() {
    assert_eq!(read("\"a,b\",\"c\nd\"\n"), [["a,b", "c\nd"]]);
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    assert_eq!(read("\u{feff}a\n"), [["a"]]);
}

#[test]
fn other_dialects() {
    let fields = |text, dialect| Reader::new(text, dialect).next().unwrap().unwrap().fields;
    assert_eq!(fields("a\tb,c\n", Dialect::tsv()), ["a", "b,c"]);
    assert_eq!(fields("1,5;2\n", Dialect::semicolon()), ["1,5", "2"]);
    let trimming = Dialect { trim: true, ..Dialect::default() };
    assert_eq!(fields("  a , \"b \" ,c\n", trimming), ["a", "b ", "c"]);
}

#[test]
fn errors_have_a_position() {
    let error = Reader::new("a\n\"b\nc", Dialect::default()).nth(1).unwrap().unwrap_err();
    assert_eq!((error.kind, error.line, error.column), (ErrorKind::UnterminatedQuote, 2, 1));
    let error = Reader::new("a,\"b\"c\n", Dialect::default()).next().unwrap().unwrap_err();
    assert_eq!((error.kind, error.line, error.column), (ErrorKind::AfterQuote('c'), 1, 6));
}

#[test]
fn records_know_their_line() {
    let lines: Vec<usize> =
        Reader::new("a\n\"b\nb\"\nc\n", Dialect::default()).map(|record| record.unwrap().line).collect();
    assert_eq!(lines, [1, 2, 4]);
}
