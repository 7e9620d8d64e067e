"""Amounts of money: a decimal quantity and a currency."""

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

CENT = Decimal("0.01")


class CurrencyMismatch(TypeError):
    """Two amounts in different currencies were added or compared."""


@dataclass(frozen=True)
class Amount:
    """So much of one currency. Immutable, exact until it is rounded."""

    quantity: Decimal
    currency: str

    @classmethod
    def of(cls, quantity, currency):
        """An amount from anything that Decimal takes, floats excepted."""
        if isinstance(quantity, float):
            raise TypeError("floats are not exact; pass a string or a Decimal")
        return cls(Decimal(quantity), currency)

    @classmethod
    def zero(cls, currency):
        return cls(Decimal(0), currency)

    def _same(self, other):
        if self.currency != other.currency:
            raise CurrencyMismatch(f"{self.currency} and {other.currency} do not mix")
        return other.quantity

    def __add__(self, other):
        return Amount(self.quantity + self._same(other), self.currency)

    def __sub__(self, other):
        return Amount(self.quantity - self._same(other), self.currency)

    def __neg__(self):
        return Amount(-self.quantity, self.currency)

    def __mul__(self, factor):
        if isinstance(factor, float):
            raise TypeError("floats are not exact; multiply by an int or a Decimal")
        return Amount(self.quantity * factor, self.currency)

    __rmul__ = __mul__

    def __lt__(self, other):
        return self.quantity < self._same(other)

    def __bool__(self):
        return bool(self.quantity)

    def rounded(self):
        """To what can be paid, half to even as banks do."""
        return Amount(self.quantity.quantize(CENT, rounding=ROUND_HALF_EVEN), self.currency)

    def __str__(self):
        return f"{self.quantity} {self.currency}"
