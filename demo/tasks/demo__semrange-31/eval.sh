#!/bin/bash
set -uxo pipefail
cd /testbed
git config --global --add safe.directory /testbed
cd /testbed
git status
git show
git -c core.fileMode=false diff 2e21b3fdb1e25437bcf65e90cc371f072c191c98
git checkout 2e21b3fdb1e25437bcf65e90cc371f072c191c98 range_test.go
git apply -v - <<'EOF_114329324912'
diff --git a/range_test.go b/range_test.go
index 1e434d6..de0f91d 100644
--- a/range_test.go
+++ b/range_test.go
@@ -51,6 +51,23 @@ func TestCaret(t *testing.T) {
 	check(t, "^1", membership{in: []string{"1.0.0", "1.9.9"}, out: []string{"2.0.0", "0.9.9"}})
 }
 
+func TestCaretBelowOne(t *testing.T) {
+	check(t, "^0.2.3", membership{in: []string{"0.2.3", "0.2.9"}, out: []string{"0.2.2", "0.3.0", "0.9.0", "1.0.0"}})
+	check(t, "^0.0.3", membership{in: []string{"0.0.3"}, out: []string{"0.0.2", "0.0.4", "0.1.0"}})
+}
+
+func TestCaretPartialBelowOne(t *testing.T) {
+	check(t, "^0.2", membership{in: []string{"0.2.0", "0.2.9"}, out: []string{"0.1.9", "0.3.0"}})
+	check(t, "^0.0", membership{in: []string{"0.0.0", "0.0.9"}, out: []string{"0.1.0"}})
+	check(t, "^0", membership{in: []string{"0.0.0", "0.9.9"}, out: []string{"1.0.0"}})
+	check(t, "^0.x", membership{in: []string{"0.9.9"}, out: []string{"1.0.0"}})
+	check(t, "^0.0.0", membership{in: []string{"0.0.0"}, out: []string{"0.0.1"}})
+}
+
+func TestCaretPreReleaseBelowOne(t *testing.T) {
+	check(t, "^0.2.3-beta.2", membership{in: []string{"0.2.3-beta.4", "0.2.4"}, out: []string{"0.2.4-beta.2", "0.3.0"}})
+}
+
 func TestHyphen(t *testing.T) {
 	check(t, "1.2.3 - 2.3.4", membership{in: []string{"1.2.3", "2.3.4"}, out: []string{"2.3.5"}})
 	check(t, "1.2 - 2.3", membership{in: []string{"1.2.0", "2.3.9"}, out: []string{"2.4.0"}})
EOF_114329324912
: '>>>>> Start Test Output'
go test -v -count=1 ./...
: '>>>>> End Test Output'
git checkout 2e21b3fdb1e25437bcf65e90cc371f072c191c98 range_test.go
