<?php

declare(strict_types=1);

namespace Coinbox\Tests;

use Coinbox\CurrencyMismatch;
use Coinbox\Money;
use Coinbox\Rounding;
use PHPUnit\Framework\TestCase;

final class MoneyTest extends TestCase
{
    public function testParsesAndWrites(): void
    {
        foreach (['19.99 EUR', '-0.05 EUR', '1500 JPY', '1.234 KWD', '0.00 USD'] as $text) {
            self::assertSame($text, (string) Money::parse($text));
        }
        self::assertSame('7.50 EUR', (string) Money::parse('+7.5 EUR'));
    }

    public function testRefusesWhatIsNotAnAmount(): void
    {
        foreach (['', '1 euro', '1.234 EUR', '1.5 JPY', '1,50 EUR', '.5 EUR'] as $text) {
            try {
                Money::parse($text);
                self::fail("'$text' was read");
            } catch (\InvalidArgumentException) {
                self::addToAssertionCount(1);
            }
        }
    }

    public function testArithmetic(): void
    {
        $price = Money::parse('19.99 EUR');
        self::assertSame('59.97 EUR', (string) $price->times(3));
        self::assertTrue($price->minus($price)->isZero());
        self::assertSame(-1, $price->compare(Money::parse('20.00 EUR')));
    }

    public function testCurrenciesDoNotMix(): void
    {
        $this->expectException(CurrencyMismatch::class);
        Money::parse('1.00 EUR')->plus(Money::parse('1.00 USD'));
    }

    public function testRatioRounds(): void
    {
        $amount = Money::parse('0.05 EUR');
        self::assertSame(3, $amount->ratio(1, 2)->minor);
        self::assertSame(2, $amount->ratio(1, 2, Rounding::HalfEven)->minor);
        self::assertSame(2, $amount->ratio(1, 2, Rounding::Down)->minor);
        self::assertSame(-3, $amount->negated()->ratio(1, 2)->minor);
    }

    public function testSerializesToJson(): void
    {
        self::assertSame('{"amount":"-0.05","currency":"EUR"}', json_encode(Money::parse('-0.05 EUR')));
    }
}
