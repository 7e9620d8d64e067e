#!/bin/bash
set -uxo pipefail
cd /testbed
git config --global --add safe.directory /testbed
cd /testbed
git status
git show
git -c core.fileMode=false diff 108f5869184eb02010fa2392d9fc73e451f70622
git checkout 108f5869184eb02010fa2392d9fc73e451f70622 tests/test_schedule.py
git apply -v - <<'EOF_114329324912'
diff --git a/tests/test_schedule.py b/tests/test_schedule.py
index abea5f8..83e8027 100644
--- a/tests/test_schedule.py
+++ b/tests/test_schedule.py
@@ -43,6 +43,24 @@ def test_between_includes_start_and_leaves_out_end():
     assert [moment.hour for moment in found] == [0, 1, 2]
 
 
+def test_either_day_field_is_enough_when_both_are_restricted():
+    schedule = Schedule.parse("30 4 1,15 * 5")
+    found = list(schedule.between(datetime(2023, 5, 2), datetime(2023, 6, 2)))
+    assert [moment.day for moment in found] == [5, 12, 15, 19, 26, 1]
+    assert all((moment.hour, moment.minute) == (4, 30) for moment in found)
+
+
+def test_either_day_field_backwards():
+    schedule = Schedule.parse("0 0 13 * fri")
+    assert schedule.previous_before(datetime(2023, 5, 13)) == datetime(2023, 5, 12)
+    assert schedule.previous_before(datetime(2023, 5, 14)) == datetime(2023, 5, 13)
+
+
+def test_a_full_range_is_a_restriction_but_a_star_is_none():
+    assert Schedule.parse("0 0 1-31 * mon").matches(datetime(2023, 5, 2))
+    assert not Schedule.parse("0 0 * * mon").matches(datetime(2023, 5, 2))
+
+
 def test_thinned_days_still_respect_the_weekday():
     schedule = Schedule.parse("0 0 */2 * sun")
     found = list(schedule.between(datetime(2023, 5, 1), datetime(2023, 6, 1)))
EOF_114329324912
: '>>>>> Start Test Output'
python3 -m pytest -rA -p no:cacheprovider tests/test_schedule.py tests/test_fields.py tests/test_humanize.py
: '>>>>> End Test Output'
git checkout 108f5869184eb02010fa2392d9fc73e451f70622 tests/test_schedule.py
