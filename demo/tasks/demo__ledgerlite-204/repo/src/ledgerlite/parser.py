"""Reading the text format."""

import re
from datetime import date
from decimal import Decimal

from .amount import Amount
from .journal import Journal, Posting, Transaction, UnbalancedError

HEADER = re.compile(r"(?P<day>\d{4}-\d{2}-\d{2})\s+(?P<payee>[^;]*?)\s*(;\s*(?P<note>.*))?")
POSTING = re.compile(
    r"\s+(?P<account>[A-Z][\w-]*(:[\w-]+)*)"
    r"(\s{2,}(?P<quantity>[+-]?[\d,]+(\.\d+)?)\s+(?P<currency>[A-Z]{3}))?"
    r"\s*(;.*)?"
)


class ParseError(ValueError):
    """A line that does not belong in a journal."""

    def __init__(self, number, message):
        self.number = number
        super().__init__(f"line {number}: {message}")


def parse_journal(lines):
    """Read a journal from an iterable of lines."""
    journal = Journal()
    header, postings, started = None, [], 0
    for number, line in enumerate(lines, 1):
        line = line.rstrip()
        if not line.strip() or line.lstrip().startswith((";", "#")):
            continue
        if line[0].isspace():
            if header is None:
                raise ParseError(number, "a posting outside of any transaction")
            postings.append(_posting(number, line))
        else:
            _finish(journal, header, postings, started)
            header, postings, started = _header(number, line), [], number
    _finish(journal, header, postings, started)
    return journal


def _header(number, line):
    match = HEADER.fullmatch(line)
    if not match:
        raise ParseError(number, "expected a date and a payee")
    try:
        day = date.fromisoformat(match["day"])
    except ValueError as error:
        raise ParseError(number, str(error)) from None
    return day, match["payee"], match["note"] or ""


def _posting(number, line):
    match = POSTING.fullmatch(line)
    if not match:
        raise ParseError(number, "expected an account, two spaces, and an amount such as 12.50 EUR")
    if match["quantity"] is None:
        return Posting(match["account"])
    quantity = Decimal(match["quantity"].replace(",", ""))
    return Posting(match["account"], Amount(quantity, match["currency"]))


def _finish(journal, header, postings, started):
    if header is None:
        return
    if len(postings) < 2:
        raise ParseError(started, "a transaction needs at least two postings")
    day, payee, note = header
    try:
        journal.add(Transaction(day, payee, tuple(postings), note))
    except UnbalancedError as error:
        raise ParseError(started, str(error)) from error
