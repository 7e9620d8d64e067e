<?php

declare(strict_types=1);

namespace Coinbox;

/** How a quotient of whole numbers becomes a whole number. */
enum Rounding
{
    case HalfUp;
    case HalfEven;
    case Down;

    /** Rounds $numerator / $denominator; "up" is away from zero. $denominator must be positive. */
    public function divide(int $numerator, int $denominator): int
    {
        $quotient = intdiv($numerator, $denominator);
        $rest = abs($numerator % $denominator);
        $away = match ($this) {
            self::HalfUp => 2 * $rest >= $denominator,
            self::HalfEven => 2 * $rest > $denominator || (2 * $rest === $denominator && $quotient % 2 !== 0),
            self::Down => false,
        };

        return $away ? $quotient + ($numerator < 0 ? -1 : 1) : $quotient;
    }
}
