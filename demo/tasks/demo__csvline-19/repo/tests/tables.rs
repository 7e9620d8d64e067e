use csvline::{Dialect, ErrorKind, Table};

#[test]
fn columns_are_selected_by_name() {
    let table = Table::read("a,b,c\n1,2,3\n\n4,5,6\n", Dialect::default()).unwrap();
    let selected = table.select(&["c", "a"]).unwrap();
    assert_eq!(selected.header, ["c", "a"]);
    assert_eq!(selected.rows, [["3", "1"], ["6", "4"]]);
    assert_eq!(table.select(&["d"]).unwrap_err().kind, ErrorKind::NoColumn("d".to_string()));
}

#[test]
fn rows_must_fit_the_header() {
    let error = Table::read("a,b\n1,2\n3\n", Dialect::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::FieldCount { expected: 2, found: 1 });
    assert_eq!(error.line, 3);
}

#[test]
fn no_text_is_an_empty_table() {
    assert!(Table::read("", Dialect::default()).unwrap().rows.is_empty());
}
