"""Transactions, and the rule that they balance."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Optional

from .amount import CENT, Amount


class UnbalancedError(ValueError):
    """The postings of a transaction do not add up to zero."""


@dataclass(frozen=True)
class Posting:
    """One line of a transaction. Without an amount it takes what the others leave."""

    account: str
    amount: Optional[Amount] = None


@dataclass(frozen=True)
class Transaction:
    """What happened on a day, and which accounts it moved money between."""

    day: date
    payee: str
    postings: tuple
    note: str = ""

    def balanced(self):
        """The same transaction with every amount filled in.

        Raises UnbalancedError if the amounts do not cancel out, or cannot be filled in.
        """
        sums = self._sums()
        open_postings = [p for p in self.postings if p.amount is None]
        if len(open_postings) > 1:
            raise UnbalancedError(f"{self._title()}: more than one posting without an amount")
        if not open_postings:
            for currency, quantity in sums.items():
                if not is_negligible(quantity, currency):
                    raise UnbalancedError(f"{self._title()}: off by {quantity} {currency}")
            return self
        filled = [p for p in self.postings if p.amount is not None]
        for currency, quantity in sorted(sums.items()):
            if not is_negligible(quantity, currency):
                filled.append(Posting(open_postings[0].account, Amount(-quantity, currency)))
        return Transaction(self.day, self.payee, tuple(filled), self.note)

    def _sums(self):
        sums = defaultdict(Decimal)
        for posting in self.postings:
            if posting.amount is not None:
                sums[posting.amount.currency] += posting.amount.quantity
        return sums

    def _title(self):
        return f"{self.day.isoformat()} {self.payee}"


def is_negligible(quantity, currency):
    """Whether a difference is too small to be paid: prices may have more places than money has."""
    return abs(quantity) < CENT / 2


@dataclass
class Journal:
    """Transactions in the order of their days."""

    transactions: list = field(default_factory=list)

    def add(self, transaction):
        """Check a transaction and put it in its place."""
        self.transactions.append(transaction.balanced())
        self.transactions.sort(key=lambda t: t.day)

    def between(self, first=None, last=None):
        """The transactions from one day to another, both included."""
        for transaction in self.transactions:
            if (first is None or transaction.day >= first) and (last is None or transaction.day <= last):
                yield transaction

    def accounts(self):
        return sorted({p.account for t in self.transactions for p in t.postings})
