use csvline::{Dialect, Writer};

fn line(fields: &[&str]) -> String {
    let mut writer = Writer::new(Dialect::default());
    writer.write(fields);
    writer.into_string()
}

#[test]
fn quotes_only_where_needed() {
    assert_eq!(line(&["a b", "c,d", "e\nf"]), "a b,\"c,d\",\"e\nf\"\n");
}

#[test]
fn quotes_are_doubled() {
    assert_eq!(line(&["say \"hi\""]), "\"say \"\"hi\"\"\"\n");
}

#[test]
fn written_text_is_read_back() {
    let fields = ["", "a,b", "c\nd", " e "];
    let text = line(&fields);
    let record = csvline::Reader::new(&text, Dialect::default()).next().unwrap().unwrap();
    assert_eq!(record.fields, fields);
}
