#!/bin/bash
set -uxo pipefail
cd /testbed
git config --global --add safe.directory /testbed
cd /testbed
git status
git show
git -c core.fileMode=false diff 6b0c8153e49a4af81637c96f33cef6b284062f44
git checkout 6b0c8153e49a4af81637c96f33cef6b284062f44 src/test/java/org/example/spanset/SpanSetTest.java
git apply -v - <<'EOF_114329324912'
diff --git a/src/test/java/org/example/spanset/SpanSetTest.java b/src/test/java/org/example/spanset/SpanSetTest.java
index 87b7357..2e21896 100644
--- a/src/test/java/org/example/spanset/SpanSetTest.java
+++ b/src/test/java/org/example/spanset/SpanSetTest.java
@@ -54,6 +54,42 @@ public class SpanSetTest {
         assertEquals("(all)", new SpanSet().complement().toString());
     }
 
+    @Test
+    public void addingToAnOpenSpanChangesNothing() {
+        SpanSet open = set("20-").add(30, 40);
+        assertEquals("20-", open.toString());
+        assertTrue(open.contains(50) && open.contains(Long.MAX_VALUE));
+    }
+
+    @Test
+    public void addingAnOpenSpanSwallowsWhatFollows() {
+        assertEquals("1-", set("1-5,8").add(3, Long.MAX_VALUE).toString());
+        assertEquals(set("20-"), set("20-25,40").add(22, Long.MAX_VALUE));
+    }
+
+    @Test
+    public void theLeastNumberTouchesNothingBelow() {
+        assertEquals("(-5)", set("(-3)").add(4, 5).add(Long.MIN_VALUE, 4).toString());
+        SpanSet ends = new SpanSet().add(Long.MAX_VALUE).add(Long.MIN_VALUE);
+        assertEquals(2, ends.toList().size());
+        assertTrue(ends.contains(Long.MIN_VALUE) && ends.contains(Long.MAX_VALUE) && !ends.contains(0));
+    }
+
+    @Test
+    public void complementOfOpenSpans() {
+        assertEquals("(-19)", set("20-").complement().toString());
+        assertTrue(set("(all)").complement().isEmpty());
+        for (String text : new String[] {"20-", "(-3),7", "(all)", "", "1-2,9-"}) {
+            assertEquals(set(text), set(text).complement().complement());
+        }
+    }
+
+    @Test
+    public void intersectionWithAnOpenSpan() {
+        assertEquals("20-30", set("20-").intersection(set("1-30")).toString());
+        assertEquals("20-30", set("1-30").intersection(set("20-")).toString());
+    }
+
     @Test
     public void intersection() {
         assertEquals("3,5-6", set("1-3,5-8").intersection(set("3-6")).toString());
EOF_114329324912
: '>>>>> Start Test Output'
./build.sh test
: '>>>>> End Test Output'
git checkout 6b0c8153e49a4af81637c96f33cef6b284062f44 src/test/java/org/example/spanset/SpanSetTest.java
