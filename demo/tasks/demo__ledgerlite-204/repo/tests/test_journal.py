from datetime import date

import pytest

from ledgerlite import Amount, ParseError, Posting, Transaction, UnbalancedError, parse_journal
from ledgerlite.journal import is_negligible


def transaction(*postings):
    return Transaction(date(2022, 3, 1), "Test", tuple(Posting(a, q and Amount.of(*q)) for a, q in postings))


def test_missing_amount_is_filled_in():
    filled = transaction(("A", ("12.50", "EUR")), ("B", None)).balanced()
    assert filled.postings[1] == Posting("B", Amount.of("-12.50", "EUR"))


def test_unbalanced():
    with pytest.raises(UnbalancedError, match="off by 0.01 EUR"):
        transaction(("A", ("12.51", "EUR")), ("B", ("-12.50", "EUR"))).balanced()


def test_two_missing_amounts():
    with pytest.raises(UnbalancedError, match="more than one"):
        transaction(("A", None), ("B", None)).balanced()


def test_less_than_half_a_cent_is_negligible():
    assert is_negligible(Amount.of("0.0049", "EUR").quantity, "EUR")
    transaction(("A", ("3.3333", "EUR")), ("B", ("-3.33", "EUR"))).balanced()


def test_days_are_sorted(books):
    assert [t.day.day for t in books.transactions] == [1, 4, 9]
    assert books.transactions[1].note == "three ways"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("    Assets:Bank  1.00 EUR", "line 1: a posting outside"),
        ("2022-02-30 No such day\n  A  1 EUR\n  B", "line 1: day is out of range"),
        ("2022-03-01 Lonely\n    Assets:Bank  1.00 EUR", "line 1: a transaction needs"),
        ("2022-03-01 Typo\n    Assets:Bank  1.00 Euro\n    B", "line 2: expected an account"),
        ("2022-03-01 Off\n    A  1.00 EUR\n    B  1.00 EUR", "line 1: 2022-03-01 Off: off by 2.00 EUR"),
    ],
)
def test_parse_errors(text, message):
    with pytest.raises(ParseError, match=message):
        parse_journal(text.splitlines())
