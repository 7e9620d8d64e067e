from decimal import Decimal

import pytest

from ledgerlite.amount import Amount, CurrencyMismatch


def test_arithmetic():
    ten = Amount.of("10.00", "EUR")
    assert ten + ten - Amount.of(5, "EUR") == Amount.of(15, "EUR")
    assert 3 * ten == Amount.of(30, "EUR")
    assert not Amount.zero("EUR")


def test_currencies_do_not_mix():
    with pytest.raises(CurrencyMismatch):
        Amount.of(1, "EUR") + Amount.of(1, "USD")


def test_floats_are_refused():
    with pytest.raises(TypeError):
        Amount.of(0.1, "EUR")


def test_rounding_is_half_to_even():
    assert Amount.of("2.345", "EUR").rounded().quantity == Decimal("2.34")
    assert Amount.of("2.355", "EUR").rounded().quantity == Decimal("2.36")
