<?php

declare(strict_types=1);

namespace Coinbox\Tests;

use Coinbox\Money;
use PHPUnit\Framework\TestCase;

final class AllocationTest extends TestCase
{
    /** @param array<array-key, int> $weights */
    private static function minors(string $amount, array $weights): array
    {
        return array_map(fn (Money $share): int => $share->minor, Money::parse($amount)->allocate($weights));
    }

    public function testSharesAreInProportion(): void
    {
        self::assertSame([1999, 3998], self::minors('59.97 EUR', [1, 2]));
    }

    public function testLeftOverGoesWhereMostWasLost(): void
    {
        self::assertSame([33, 67], self::minors('1.00 EUR', [1, 2]));
        self::assertSame([17, 33, 50], self::minors('1.00 EUR', [1, 2, 3]));
    }

    public function testBetweenEqualsTheEarlierShareGetsMore(): void
    {
        self::assertSame([34, 33, 33], self::minors('1.00 EUR', [1, 1, 1]));
    }

    public function testKeysAreKept(): void
    {
        self::assertSame(['rent' => 67, 'food' => 33], self::minors('1.00 EUR', ['rent' => 2, 'food' => 1]));
    }

    public function testWeightsOfZeroGetNothing(): void
    {
        self::assertSame([0, 1], self::minors('0.01 EUR', [0, 1]));
    }

    public function testSplitsEvenly(): void
    {
        $shares = Money::parse('0.05 EUR')->split(3);
        self::assertSame(['0.02 EUR', '0.02 EUR', '0.01 EUR'], array_map('strval', $shares));
    }

    public function testBadWeightsAreRefused(): void
    {
        foreach ([[], [0, 0], [2, -1]] as $weights) {
            try {
                self::minors('1.00 EUR', $weights);
                self::fail('allocated by ' . json_encode($weights));
            } catch (\InvalidArgumentException) {
                self::addToAssertionCount(1);
            }
        }
    }
}
