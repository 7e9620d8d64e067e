<?php

declare(strict_types=1);

namespace Coinbox;

/** Two amounts in different currencies were put together. */
final class CurrencyMismatch extends \LogicException
{
    public static function between(Currency $left, Currency $right): self
    {
        return new self("{$left->code} and {$right->code} do not mix");
    }
}
