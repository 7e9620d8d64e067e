"""Double-entry book-keeping in plain text."""

from .amount import Amount
from .journal import Journal, Posting, Transaction, UnbalancedError
from .parser import ParseError, parse_journal
from .balance import balances, register, total

__all__ = [
    "Amount",
    "Journal",
    "ParseError",
    "Posting",
    "Transaction",
    "UnbalancedError",
    "balances",
    "parse_journal",
    "register",
    "total",
]
