<?php

declare(strict_types=1);

namespace Coinbox;

/** A currency: its code, and how many decimals its minor unit stands for. */
final class Currency
{
    private const DECIMALS = ['JPY' => 0, 'KRW' => 0, 'ISK' => 0, 'KWD' => 3, 'BHD' => 3];

    /** @var array<string, self> */
    private static array $known = [];

    private function __construct(public readonly string $code, public readonly int $decimals)
    {
    }

    public static function of(string $code): self
    {
        if (!preg_match('/^[A-Z]{3}$/', $code)) {
            throw new \InvalidArgumentException("'$code' is not a currency code");
        }

        return self::$known[$code] ??= new self($code, self::DECIMALS[$code] ?? 2);
    }

    /** How many minor units make one major unit. */
    public function factor(): int
    {
        return 10 ** $this->decimals;
    }
}
