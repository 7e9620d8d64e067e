#!/bin/bash
set -uxo pipefail
cd /testbed
git config --global --add safe.directory /testbed
cd /testbed
git status
git show
git -c core.fileMode=false diff 014f0826086835f7f381cabfe50d31161115fd1b
git checkout 014f0826086835f7f381cabfe50d31161115fd1b tests/reading.rs tests/writing.rs
git apply -v - <<'EOF_114329324912'
diff --git a/tests/reading.rs b/tests/reading.rs
index d7e21aa..338478c 100644
--- a/tests/reading.rs
+++ b/tests/reading.rs
@@ -29,6 +29,22 @@ fn quotes_protect_delimiters_and_breaks() {
     assert_eq!(read("\"a,b\",\"c\nd\"\n"), [["a,b", "c\nd"]]);
 }
 
+#[test]
+fn a_doubled_quote_stands_for_one() {
+    assert_eq!(read("\"say \"\"hi\"\"\",\"\"\"\",\"\"\n"), [["say \"hi\"", "\"", ""]]);
+}
+
+#[test]
+fn crlf_in_quotes_is_text() {
+    assert_eq!(read("\"a\r\nb\"\r\nc\r\n"), [["a\r\nb"], ["c"]]);
+}
+
+#[test]
+fn position_after_a_doubled_quote() {
+    let error = Reader::new("\"a\"\"b\"c\n", Dialect::default()).next().unwrap().unwrap_err();
+    assert_eq!((error.kind, error.line, error.column), (ErrorKind::AfterQuote('c'), 1, 7));
+}
+
 #[test]
 fn a_byte_order_mark_is_passed_over() {
     assert_eq!(read("\u{feff}a\n"), [["a"]]);
diff --git a/tests/writing.rs b/tests/writing.rs
index aeaf389..5da0c39 100644
--- a/tests/writing.rs
+++ b/tests/writing.rs
@@ -18,7 +18,7 @@ fn quotes_are_doubled() {
 
 #[test]
 fn written_text_is_read_back() {
-    let fields = ["", "a,b", "c\nd", " e "];
+    let fields = ["", "a,b", "c\nd", " e ", "say \"hi\"", "\"", "two\r\nlines"];
     let text = line(&fields);
     let record = csvline::Reader::new(&text, Dialect::default()).next().unwrap().unwrap();
     assert_eq!(record.fields, fields);
EOF_114329324912
: '>>>>> Start Test Output'
cargo test --offline --no-fail-fast
: '>>>>> End Test Output'
git checkout 014f0826086835f7f381cabfe50d31161115fd1b tests/reading.rs tests/writing.rs
