#!/bin/bash
set -uxo pipefail
cd /testbed
git config --global --add safe.directory /testbed
cd /testbed
git status
git show
git -c core.fileMode=false diff 877cd5c39f855084c5569d51e34debbc1b270f10
git checkout 877cd5c39f855084c5569d51e34debbc1b270f10 tests/test_minitoml.py
rm -f tests/test_toml.py
git apply -v - <<'EOF_114329324912'
diff --git a/tests/test_minitoml.py b/tests/test_minitoml.py
deleted file mode 100644
index 92235c1..0000000
--- a/tests/test_minitoml.py
+++ /dev/null
@@ -1,26 +0,0 @@
-import pytest
-
-from confmerge import Config, ConfigSyntaxError
-from confmerge._minitoml import TOMLError, loads
-
-
-def test_tables_and_scalars():
-    assert loads('a = 1\n[b.c]\nd = "x # y"  # comment\ne = true\nf = 1_000.5\n') == {
-        "a": 1,
-        "b": {"c": {"d": "x # y", "e": True, "f": 1000.5}},
-    }
-
-
-def test_arrays_on_one_line():
-    assert loads('a = [1, [2, 3], "x, y"]') == {"a": [1, [2, 3], "x, y"]}
-
-
-def test_errors():
-    with pytest.raises(TOMLError):
-        loads("a = 1\na = 2")
-
-
-def test_through_config(tmp_path):
-    (tmp_path / "x.toml").write_text("a = 1\nb\n")
-    with pytest.raises(ConfigSyntaxError, match=r"x\.toml:2: "):
-        Config.load(tmp_path / "x.toml")
diff --git a/tests/test_toml.py b/tests/test_toml.py
new file mode 100644
index 0000000..48b3b71
--- /dev/null
+++ b/tests/test_toml.py
@@ -0,0 +1,53 @@
+import datetime
+import importlib.util
+
+import pytest
+
+from confmerge import Config, ConfigSyntaxError
+
+
+@pytest.fixture()
+def load(tmp_path):
+    def load_text(text):
+        (tmp_path / "x.toml").write_text(text)
+        return Config.load(tmp_path / "x.toml")
+
+    return load_text
+
+
+def test_tables_and_scalars(load):
+    config = load('a = 1\n[b.c]\nd = "x # y"  # comment\ne = true\nf = 1_000.5\n')
+    assert config.as_dict() == {"a": 1, "b": {"c": {"d": "x # y", "e": True, "f": 1000.5}}}
+
+
+def test_arrays_over_several_lines(load):
+    assert load("hosts = [\n  'a',\n  'b', # the second\n]\n")["hosts"] == ["a", "b"]
+
+
+def test_arrays_of_tables(load):
+    assert load("[[servers]]\nport = 1\n[[servers]]\nport = 2\n")["servers"] == [{"port": 1}, {"port": 2}]
+
+
+def test_dotted_keys_and_inline_tables(load):
+    config = load("server.port = 80\nclient = { retries = 3 }\n")
+    assert config["server.port"] == 80
+    assert config["client.retries"] == 3
+
+
+def test_dates(load):
+    assert load("day = 2022-05-01\n")["day"] == datetime.date(2022, 5, 1)
+
+
+def test_hash_in_a_literal_string(load):
+    assert load("colour = '#ff0000'\n")["colour"] == "#ff0000"
+
+
+def test_errors_name_file_and_line(load):
+    with pytest.raises(ConfigSyntaxError, match=r"x\.toml:2: ") as raised:
+        load("a = 1\nb\n")
+    assert raised.value.line == 2
+
+
+def test_the_old_reader_is_gone():
+    assert importlib.util.find_spec("confmerge._minitoml") is None
+    assert importlib.util.find_spec("confmerge.formats.toml_format") is not None
EOF_114329324912
: '>>>>> Start Test Output'
python3 -m pytest -rA -p no:cacheprovider tests
: '>>>>> End Test Output'
git checkout 877cd5c39f855084c5569d51e34debbc1b270f10 tests/test_minitoml.py
rm -f tests/test_toml.py
