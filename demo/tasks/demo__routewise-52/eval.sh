#!/bin/bash
set -uxo pipefail
cd /testbed
git config --global --add safe.directory /testbed
cd /testbed
git status
git show
git -c core.fileMode=false diff 1480ea3b2c062c9264d57a8f0eaf4638d55f1c95
git checkout 1480ea3b2c062c9264d57a8f0eaf4638d55f1c95 test/router.test.js
git apply -v - <<'EOF_114329324912'
diff --git a/test/router.test.js b/test/router.test.js
index ea8fb8e..6affdaf 100644
--- a/test/router.test.js
+++ b/test/router.test.js
@@ -46,6 +46,28 @@ test("router: parameters are decoded", () => {
   assert.deepEqual(router().match("GET", "/users/J%C3%B6rg%20B").params, { id: "Jörg B" });
 });
 
+test("router: an encoded slash stays inside its segment", () => {
+  const match = router().match("GET", "/files/2021%2Freport/meta");
+  assert.equal(match.handler, "meta");
+  assert.deepEqual(match.params, { name: "2021/report" });
+});
+
+test("router: what was built is matched", () => {
+  for (const name of ["a/b", "100%", "%2F", "J\u00f6rg", "a?b#c"]) {
+    const match = router().match("GET", router().build("meta", { name }));
+    assert.deepEqual(match?.params, { name });
+  }
+});
+
+test("router: fixed segments may arrive encoded", () => {
+  assert.equal(router().match("GET", "/%75sers/new").handler, "form");
+});
+
+test("router: broken encoding is taken as it stands", () => {
+  assert.deepEqual(router().match("GET", "/users/100%").params, { id: "100%" });
+  assert.deepEqual(router().match("GET", "/files/%zz/a%20b").params, { path: "%zz/a b" });
+});
+
 test("router: building", () => {
   assert.equal(router().build("posts", { year: 2020 }), "/posts/2020");
   assert.equal(router().build("user", { id: 7 }, { b: 1, a: [2, 3] }), "/users/7?a=2&a=3&b=1");
EOF_114329324912
: '>>>>> Start Test Output'
node --test --test-reporter=tap test/
: '>>>>> End Test Output'
git checkout 1480ea3b2c062c9264d57a8f0eaf4638d55f1c95 test/router.test.js
