import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

BOOKS = """\
; a household
2022-03-04 Shared taxi  ; three ways
    Expenses:Travel        20.00 EUR
    Expenses:Guests        10.00 EUR
    Assets:Cash           -30.00 EUR

2022-03-01 Groceries
    Expenses:Food          1,042.10 EUR
    Assets:Bank

2022-03-09 Changed money
    Assets:Cash            50.00 GBP
    Assets:Bank           -58.75 EUR
    Expenses:Fees           0.75 EUR
    Equity:Exchange
"""


@pytest.fixture()
def books():
    from ledgerlite import parse_journal

    return parse_journal(BOOKS.splitlines())
