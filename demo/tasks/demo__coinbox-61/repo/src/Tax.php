<?php

declare(strict_types=1);

namespace Coinbox;

/** A tax rate in basis points. */
final class Tax
{
    private const WHOLE = 100_00;

    public function __construct(
        private readonly int $rate,
        private readonly Rounding $rounding = Rounding::HalfUp,
    ) {
        if ($rate < 0) {
            throw new \InvalidArgumentException('a tax rate must not be negative');
        }
    }

    /** The tax on a net amount. */
    public function on(Money $net): Money
    {
        return $net->ratio($this->rate, self::WHOLE, $this->rounding);
    }

    /** What is left of a gross amount without the tax in it. */
    public function netOf(Money $gross): Money
    {
        return $gross->ratio(self::WHOLE, self::WHOLE + $this->rate, $this->rounding);
    }

    /** The tax inside a gross amount; with netOf it always adds up to the gross amount. */
    public function in(Money $gross): Money
    {
        return $gross->minus($this->netOf($gross));
    }
}
