<?php

declare(strict_types=1);

namespace Coinbox\Tests;

use Coinbox\Formatter;
use Coinbox\Money;
use PHPUnit\Framework\TestCase;

final class FormatterTest extends TestCase
{
    public function testGroupsThousands(): void
    {
        $formatter = new Formatter();
        self::assertSame('1,234,567.80 EUR', $formatter->format(Money::parse('1234567.80 EUR')));
        self::assertSame('-999.00 EUR', $formatter->format(Money::parse('-999 EUR')));
        self::assertSame('15,000 JPY', $formatter->format(Money::parse('15000 JPY')));
    }

    public function testPunctuationCanBeChosen(): void
    {
        $german = new Formatter(',', '.');
        self::assertSame('1.234,50 EUR', $german->format(Money::parse('1234.50 EUR')));
    }

    public function testAccountingPutsNegativeAmountsInParentheses(): void
    {
        self::assertSame('(5.00 EUR)', (new Formatter())->accounting(Money::parse('-5.00 EUR')));
    }
}
