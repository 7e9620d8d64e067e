"""Sharing an amount out without losing any of it."""

from decimal import ROUND_DOWN, Decimal

from .amount import CENT, Amount


def split(amount, weights):
    """Share an amount in proportion to weights, in amounts that can be paid and add up exactly.

    What rounding leaves over goes, one smallest unit each, to the first shares.
    """
    weights = [Decimal(w) for w in weights]
    whole = sum(weights)
    if not weights or whole <= 0 or min(weights) < 0:
        raise ValueError("weights must be non-negative, and not all zero")
    shares = [(amount.quantity * w / whole).quantize(CENT, rounding=ROUND_DOWN) for w in weights]
    left = amount.quantity - sum(shares)
    step = CENT if left > 0 else -CENT
    position = 0
    while abs(left) >= CENT:
        if weights[position % len(weights)]:
            shares[position % len(weights)] += step
            left -= step
        position += 1
    return [Amount(share, amount.currency) for share in shares]
