#!/bin/bash
set -uxo pipefail
cd /testbed
git config --global --add safe.directory /testbed
cd /testbed
git status
git show
git -c core.fileMode=false diff 1232f650007da55b883e2dba04f29aa8a926ca8f
git checkout 1232f650007da55b883e2dba04f29aa8a926ca8f test/cli_test.rb test/graph_test.rb
git apply -v - <<'EOF_114329324912'
diff --git a/test/cli_test.rb b/test/cli_test.rb
index 5455451..9003613 100644
--- a/test/cli_test.rb
+++ b/test/cli_test.rb
@@ -23,6 +23,11 @@ class CliTest < Test::Unit::TestCase
     assert_equal([0, "a b\nc\n", ""], taskdag("stages", "a:\nb:\nc: a b\n"))
   end
 
+  def test_reports_a_cycle
+    status, out, err = taskdag("order", "a: b\nb: c\nc: b\n")
+    assert_equal([1, "", "taskdag: tasks wait for each other: b -> c -> b\n"], [status, out, err])
+  end
+
   def test_usage
     status, out, err = taskdag("dance", "")
     assert_equal([2, "", "usage: taskdag order|stages FILE\n"], [status, out, err])
diff --git a/test/graph_test.rb b/test/graph_test.rb
index 883d92d..d98a60a 100644
--- a/test/graph_test.rb
+++ b/test/graph_test.rb
@@ -62,6 +62,28 @@ class GraphTest < Test::Unit::TestCase
     assert_equal("tasks wait for each other: a -> b -> c -> a", error.message)
   end
 
+  def test_a_cycle_has_only_its_own_tasks
+    graph = Taskdag::Graph.define do
+      task :deploy, after: :package
+      task :package, after: :compile
+      task :compile, after: %i[headers codegen]
+      task :headers
+      task :codegen, after: :compile
+    end
+    error = assert_raise(Taskdag::CycleError) { graph.order }
+    assert_equal(%i[compile codegen], error.cycle)
+    assert_equal("tasks wait for each other: compile -> codegen -> compile", error.message)
+  end
+
+  def test_a_task_that_waits_for_itself
+    graph = Taskdag::Graph.define do
+      task :b, after: :a
+      task :a, after: :a
+    end
+    assert_equal([:a], assert_raise(Taskdag::CycleError) { graph.order }.cycle)
+    assert_raise(Taskdag::CycleError) { graph.dependencies(:b) }
+  end
+
   def test_adding_a_task_changes_the_order
     graph = build
     graph.order
EOF_114329324912
: '>>>>> Start Test Output'
ruby -Ilib -Itest test/run.rb --verbose=verbose --no-use-color
: '>>>>> End Test Output'
git checkout 1232f650007da55b883e2dba04f29aa8a926ca8f test/cli_test.rb test/graph_test.rb
