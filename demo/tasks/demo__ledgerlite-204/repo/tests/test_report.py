from datetime import date

from ledgerlite import Amount, total
from ledgerlite.cli import main
from ledgerlite.report import balance_report, money, register_report


def test_money_has_thousands_separators():
    assert money(Amount.of("-1234567.5", "EUR")) == "-1,234,567.50 EUR"


def test_balance_report(books):
    assert balance_report(books, last=date(2022, 3, 4)) == (
        "Assets:Bank      -1,042.10 EUR\n"
        "Assets:Cash         -30.00 EUR\n"
        "Expenses:Food     1,042.10 EUR\n"
        "Expenses:Guests      10.00 EUR\n"
        "Expenses:Travel      20.00 EUR\n"
    )


def test_register_has_a_running_total(books):
    assert register_report(books, "Assets:Bank") == (
        "2022-03-01  Groceries      -1,042.10 EUR  -1,042.10 EUR\n"
        "2022-03-09  Changed money     -58.75 EUR  -1,100.85 EUR\n"
    )


def test_total_covers_the_accounts_below(books):
    assert total(books, "Expenses")["EUR"] == Amount.of("1072.85", "EUR")


def test_command_line(tmp_path, capsys):
    journal = tmp_path / "books.txt"
    journal.write_text("2022-03-01 Tea\n    Expenses:Food  2.50 GBP\n    Assets:Cash\n")
    assert main(["balance", str(journal)]) == 0
    assert capsys.readouterr().out == "Assets:Cash    -2.50 GBP\nExpenses:Food   2.50 GBP\n"
    assert main(["balance", str(tmp_path / "missing.txt")]) == 1
