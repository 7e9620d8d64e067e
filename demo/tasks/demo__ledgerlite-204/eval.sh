#!/bin/bash
set -uxo pipefail
cd /testbed
git config --global --add safe.directory /testbed
cd /testbed
git status
git show
git -c core.fileMode=false diff 86b92371e83a6be1660454e5ba7271be22a8175d
git checkout 86b92371e83a6be1660454e5ba7271be22a8175d tests/test_amount.py tests/test_journal.py tests/test_report.py tests/test_split.py
git apply -v - <<'EOF_114329324912'
diff --git a/tests/test_amount.py b/tests/test_amount.py
index 654eba7..054c4f6 100644
--- a/tests/test_amount.py
+++ b/tests/test_amount.py
@@ -25,3 +25,13 @@ def test_floats_are_refused():
 def test_rounding_is_half_to_even():
     assert Amount.of("2.345", "EUR").rounded().quantity == Decimal("2.34")
     assert Amount.of("2.355", "EUR").rounded().quantity == Decimal("2.36")
+
+
+def test_currencies_without_decimals_round_to_whole_units():
+    assert str(Amount.of("1234.5", "JPY").rounded()) == "1234 JPY"
+    assert str(Amount.of("1235.5", "KRW").rounded()) == "1236 KRW"
+
+
+def test_currencies_with_three_decimals_keep_them():
+    assert str(Amount.of("0.125", "KWD").rounded()) == "0.125 KWD"
+    assert str(Amount.of("0.1255", "BHD").rounded()) == "0.126 BHD"
diff --git a/tests/test_journal.py b/tests/test_journal.py
index d35f81d..2154645 100644
--- a/tests/test_journal.py
+++ b/tests/test_journal.py
@@ -30,6 +30,13 @@ def test_less_than_half_a_cent_is_negligible():
     transaction(("A", ("3.3333", "EUR")), ("B", ("-3.33", "EUR"))).balanced()
 
 
+def test_negligible_depends_on_the_currency():
+    assert not is_negligible(Amount.of("0.004", "KWD").quantity, "KWD")
+    with pytest.raises(UnbalancedError, match="off by 0.004 KWD"):
+        transaction(("A", ("1.004", "KWD")), ("B", ("-1.000", "KWD"))).balanced()
+    transaction(("A", ("151.3", "JPY")), ("B", ("-151", "JPY"))).balanced()
+
+
 def test_days_are_sorted(books):
     assert [t.day.day for t in books.transactions] == [1, 4, 9]
     assert books.transactions[1].note == "three ways"
diff --git a/tests/test_report.py b/tests/test_report.py
index 70e7316..93a58b4 100644
--- a/tests/test_report.py
+++ b/tests/test_report.py
@@ -9,6 +9,11 @@ def test_money_has_thousands_separators():
     assert money(Amount.of("-1234567.5", "EUR")) == "-1,234,567.50 EUR"
 
 
+def test_money_has_the_places_of_its_currency():
+    assert money(Amount.of(1500, "JPY")) == "1,500 JPY"
+    assert money(Amount.of("1.2345", "KWD")) == "1.234 KWD"
+
+
 def test_balance_report(books):
     assert balance_report(books, last=date(2022, 3, 4)) == (
         "Assets:Bank      -1,042.10 EUR\n"
diff --git a/tests/test_split.py b/tests/test_split.py
index 2d6af6b..371f961 100644
--- a/tests/test_split.py
+++ b/tests/test_split.py
@@ -16,6 +16,11 @@ def test_weights_of_zero_get_nothing():
     assert quantities(split(Amount.of("1.00", "EUR"), [0, 1, 2])) == ["0.00", "0.34", "0.66"]
 
 
+def test_smallest_unit_of_the_currency():
+    assert quantities(split(Amount.of(100, "JPY"), [1, 1, 1])) == ["34", "33", "33"]
+    assert quantities(split(Amount.of("0.010", "KWD"), [1, 1, 1])) == ["0.004", "0.003", "0.003"]
+
+
 def test_negative_amounts():
     assert quantities(split(Amount.of("-0.05", "EUR"), [1, 1])) == ["-0.03", "-0.02"]
 
EOF_114329324912
: '>>>>> Start Test Output'
python3 -m pytest -rA -p no:cacheprovider tests
: '>>>>> End Test Output'
git checkout 86b92371e83a6be1660454e5ba7271be22a8175d tests/test_amount.py tests/test_journal.py tests/test_report.py tests/test_split.py
