<?php

declare(strict_types=1);

namespace Coinbox;

/** Writes amounts for people. */
final class Formatter
{
    public function __construct(
        private readonly string $point = '.',
        private readonly string $thousands = ',',
        private readonly string $pattern = '%s %s',
    ) {
    }

    /** With the amount in parentheses if it is negative, as accountants do. */
    public function accounting(Money $money): string
    {
        $text = $this->format($money->absolute());

        return $money->isNegative() ? "($text)" : $text;
    }

    public function format(Money $money): string
    {
        [$major, $minor] = explode('.', $money->absolute()->decimal() . '.');
        $grouped = strrev(implode(strrev($this->thousands), str_split(strrev($major), 3)));
        $number = ($money->isNegative() ? '-' : '') . $grouped . ($minor === '' ? '' : $this->point . $minor);

        return sprintf($this->pattern, $number, $money->currency->code);
    }
}
