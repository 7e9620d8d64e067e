<?php

declare(strict_types=1);

namespace Coinbox\Tests;

use Coinbox\Money;
use Coinbox\Rounding;
use Coinbox\Tax;
use PHPUnit\Framework\TestCase;

final class TaxTest extends TestCase
{
    public function testTaxOnTop(): void
    {
        self::assertSame('1.90 EUR', (string) (new Tax(19_00))->on(Money::parse('10.00 EUR')));
    }

    public function testNetAndTaxAddUpToGross(): void
    {
        $tax = new Tax(19_00);
        foreach (range(1, 300) as $minor) {
            $gross = Money::zero('EUR')->plus(Money::parse(sprintf('%d.%02d EUR', intdiv($minor, 100), $minor % 100)));
            self::assertTrue($tax->netOf($gross)->plus($tax->in($gross))->equals($gross));
        }
    }

    public function testRoundingCanBeChosen(): void
    {
        self::assertSame(1, (new Tax(10_00))->on(Money::parse('0.05 EUR'))->minor);
        self::assertSame(0, (new Tax(10_00, Rounding::HalfEven))->on(Money::parse('0.05 EUR'))->minor);
    }
}
