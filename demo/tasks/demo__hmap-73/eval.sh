#!/bin/bash
set -uxo pipefail
cd /testbed
git config --global --add safe.directory /testbed
cd /testbed
git status
git show
git -c core.fileMode=false diff cd8a42e4745f6ffa4d2dc6f833a60a45f0699a6a
git checkout cd8a42e4745f6ffa4d2dc6f833a60a45f0699a6a tests/test_churn.c
git apply -v - <<'EOF_114329324912'
diff --git a/tests/test_churn.c b/tests/test_churn.c
index 8d56c50..9f8ace4 100644
--- a/tests/test_churn.c
+++ b/tests/test_churn.c
@@ -36,8 +36,37 @@ static void a_deleted_key_can_come_back(void)
     hmap_free(map, NULL);
 }
 
+static void churn_does_not_use_up_the_slots(void)
+{
+    struct hmap *map = hmap_new(0);
+    for (int i = 0; i < 10000; i++) {
+        CHECK(hmap_put(map, key_of(i), &numbers[0]) == 0);
+        CHECK(hmap_del(map, key_of(i)) == &numbers[0]);
+    }
+    CHECK(hmap_count(map) == 0);
+    CHECK(hmap_capacity(map) <= 16);
+    hmap_free(map, NULL);
+}
+
+static void churn_keeps_what_is_live(void)
+{
+    struct hmap *map = hmap_new(0);
+    for (int i = 0; i < 5000; i++) {
+        CHECK(hmap_put(map, key_of(i), &numbers[i % 64]) == 0);
+        if (i >= 20)
+            CHECK(hmap_del(map, key_of(i - 20)) == &numbers[(i - 20) % 64]);
+        for (int j = i < 20 ? 0 : i - 19; j <= i; j++)
+            CHECK(hmap_get(map, key_of(j)) == &numbers[j % 64]);
+    }
+    CHECK(hmap_count(map) == 20);
+    CHECK(hmap_capacity(map) <= 64);
+    hmap_free(map, NULL);
+}
+
 int main(void)
 {
+    RUN(churn_does_not_use_up_the_slots);
+    RUN(churn_keeps_what_is_live);
     RUN(deleting_leaves_the_others);
     RUN(a_deleted_key_can_come_back);
     return check_failures != 0;
EOF_114329324912
: '>>>>> Start Test Output'
make -s check
: '>>>>> End Test Output'
git checkout cd8a42e4745f6ffa4d2dc6f833a60a45f0699a6a tests/test_churn.c
