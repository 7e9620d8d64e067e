<?php

declare(strict_types=1);

namespace Coinbox;

/** An amount of one currency, in its minor units. */
final class Money implements \JsonSerializable
{
    public function __construct(public readonly int $minor, public readonly Currency $currency)
    {
    }

    public static function zero(string $code): self
    {
        return new self(0, Currency::of($code));
    }

    /** Reads '19.99 EUR'. More decimals than the currency has are refused. */
    public static function parse(string $text): self
    {
        if (!preg_match('/^(?<sign>[+-]?)(?<major>\d+)(?:\.(?<minor>\d+))? (?<code>[A-Z]{3})$/', $text, $parts)) {
            throw new \InvalidArgumentException("'$text' is not an amount");
        }
        $currency = Currency::of($parts['code']);
        if (strlen($parts['minor']) > $currency->decimals) {
            throw new \InvalidArgumentException("'$text' has more decimals than {$currency->code}");
        }
        $minor = (int) ($parts['major'] . str_pad($parts['minor'], $currency->decimals, '0'));

        return new self($parts['sign'] === '-' ? -$minor : $minor, $currency);
    }

    public function plus(self $other): self
    {
        return $this->with($this->minor + $this->same($other));
    }

    public function minus(self $other): self
    {
        return $this->with($this->minor - $this->same($other));
    }

    public function times(int $factor): self
    {
        return $this->with($this->minor * $factor);
    }

    /** The amount times $numerator / $denominator. */
    public function ratio(int $numerator, int $denominator, Rounding $rounding = Rounding::HalfUp): self
    {
        return $this->with($rounding->divide($this->minor * $numerator, $denominator));
    }

    public function negated(): self
    {
        return $this->with(-$this->minor);
    }

    public function absolute(): self
    {
        return $this->with(abs($this->minor));
    }

    public function isNegative(): bool
    {
        return $this->minor < 0;
    }

    public function isZero(): bool
    {
        return $this->minor === 0;
    }

    public function compare(self $other): int
    {
        return $this->minor <=> $this->same($other);
    }

    public function equals(self $other): bool
    {
        return $this->currency === $other->currency && $this->minor === $other->minor;
    }

    /**
     * Shares the amount out in proportion to weights. What is left over after rounding goes, one minor unit
     * each, to the shares that rounding took most from; between equals, to the earlier one.
     *
     * @param array<array-key, int> $weights whole, not negative, not all zero; keys are kept
     *
     * @return array<array-key, self>
     */
    public function allocate(array $weights): array
    {
        $whole = array_sum($weights);
        if ($whole <= 0 || min($weights) < 0) {
            throw new \InvalidArgumentException('weights must not be negative, nor all zero');
        }
        $shares = [];
        $lost = [];
        foreach ($weights as $key => $weight) {
            $shares[$key] = intdiv($this->minor * $weight, $whole);
            $lost[$key] = $this->minor * $weight % $whole;
        }
        arsort($lost);
        $left = $this->minor - array_sum($shares);
        foreach (array_keys($lost) as $key) {
            if ($left <= 0) {
                break;
            }
            ++$shares[$key];
            --$left;
        }

        return array_map(fn (int $minor): self => $this->with($minor), $shares);
    }

    /**
     * Shares the amount out evenly.
     *
     * @return list<self>
     */
    public function split(int $parts): array
    {
        if ($parts < 1) {
            throw new \InvalidArgumentException('there must be at least one part');
        }

        return $this->allocate(array_fill(0, $parts, 1));
    }

    /** @return array{amount: string, currency: string} */
    public function jsonSerialize(): array
    {
        return ['amount' => $this->decimal(), 'currency' => $this->currency->code];
    }

    /** The amount in major units, such as -0.05. */
    public function decimal(): string
    {
        $digits = str_pad((string) abs($this->minor), $this->currency->decimals + 1, '0', STR_PAD_LEFT);
        $sign = $this->minor < 0 ? '-' : '';
        if ($this->currency->decimals === 0) {
            return $sign . $digits;
        }

        return $sign . substr($digits, 0, -$this->currency->decimals) . '.'
            . substr($digits, -$this->currency->decimals);
    }

    public function __toString(): string
    {
        return $this->decimal() . ' ' . $this->currency->code;
    }

    private function with(int $minor): self
    {
        return new self($minor, $this->currency);
    }

    private function same(self $other): int
    {
        if ($this->currency !== $other->currency) {
            throw CurrencyMismatch::between($this->currency, $other->currency);
        }

        return $other->minor;
    }
}
