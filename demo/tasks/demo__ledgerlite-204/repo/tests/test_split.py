import pytest

from ledgerlite.amount import Amount
from ledgerlite.split import split


def quantities(shares):
    return [str(share.quantity) for share in shares]


def test_left_over_cents_go_to_the_first():
    assert quantities(split(Amount.of("10.00", "EUR"), [1, 1, 1])) == ["3.34", "3.33", "3.33"]


def test_weights_of_zero_get_nothing():
    assert quantities(split(Amount.of("1.00", "EUR"), [0, 1, 2])) == ["0.00", "0.34", "0.66"]


def test_negative_amounts():
    assert quantities(split(Amount.of("-0.05", "EUR"), [1, 1])) == ["-0.03", "-0.02"]


@pytest.mark.parametrize("weights", [[], [0, 0], [1, -1, 3]])
def test_bad_weights(weights):
    with pytest.raises(ValueError):
        split(Amount.of(1, "EUR"), weights)
