#!/bin/bash
set -uxo pipefail
cd /testbed
git config --global --add safe.directory /testbed
cd /testbed
git status
git show
git -c core.fileMode=false diff 608f6c2a7a48dd5d0dac15f55e1ca290ec08a811
git checkout 608f6c2a7a48dd5d0dac15f55e1ca290ec08a811 tests/AllocationTest.php
git apply -v - <<'EOF_114329324912'
diff --git a/tests/AllocationTest.php b/tests/AllocationTest.php
index 3d463ee..414753c 100644
--- a/tests/AllocationTest.php
+++ b/tests/AllocationTest.php
@@ -31,6 +31,26 @@ final class AllocationTest extends TestCase
         self::assertSame([34, 33, 33], self::minors('1.00 EUR', [1, 1, 1]));
     }
 
+    public function testNegativeAmountsAddUp(): void
+    {
+        self::assertSame([-34, -33, -33], self::minors('-1.00 EUR', [1, 1, 1]));
+        self::assertSame([-17, -33, -50], self::minors('-1.00 EUR', [1, 2, 3]));
+        self::assertSame([-2, -2, -1], array_column(Money::parse('-0.05 EUR')->split(3), 'minor'));
+    }
+
+    public function testNegativeAmountsMirrorPositiveOnes(): void
+    {
+        foreach ([[1, 1, 1], [1, 2, 3], ['a' => 5, 'b' => 0, 'c' => 7], [97, 1, 2]] as $weights) {
+            foreach (range(0, 120, 7) as $minor) {
+                $amount = Money::zero('JPY')->plus(Money::parse("$minor JPY"));
+                $shares = $amount->allocate($weights);
+                $mirrored = array_map(fn (Money $share): Money => $share->negated(), $shares);
+                self::assertEquals($mirrored, $amount->negated()->allocate($weights));
+                self::assertSame($minor, array_sum(array_column($shares, 'minor')));
+            }
+        }
+    }
+
     public function testKeysAreKept(): void
     {
         self::assertSame(['rent' => 67, 'food' => 33], self::minors('1.00 EUR', ['rent' => 2, 'food' => 1]));
EOF_114329324912
: '>>>>> Start Test Output'
phpunit --testdox
: '>>>>> End Test Output'
git checkout 608f6c2a7a48dd5d0dac15f55e1ca290ec08a811 tests/AllocationTest.php
