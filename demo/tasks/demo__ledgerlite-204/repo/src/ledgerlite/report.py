"""Balances and registers as text."""

from .balance import balances, register


def balance_report(journal, first=None, last=None):
    """One line per account and currency, amounts aligned on the right."""
    rows = []
    for account, amounts in sorted(balances(journal, first, last).items()):
        for currency, amount in sorted(amounts.items()):
            if amount.rounded():
                rows.append((account, money(amount)))
    return _table(rows)


def register_report(journal, account, first=None, last=None):
    """One line per posting: day, payee, amount, running total."""
    rows = [
        (transaction.day.isoformat(), transaction.payee, money(posting.amount), money(running))
        for transaction, posting, running in register(journal, account, first, last)
    ]
    return _table(rows)


def money(amount):
    """An amount for people: rounded, with thousands separators."""
    quantity = amount.rounded().quantity
    return f"{quantity:,.2f} {amount.currency}"


def _table(rows):
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.ljust(w) if not _is_money(cell) else cell.rjust(w) for cell, w in zip(row, widths)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def _is_money(cell):
    return cell[-3:].isupper() and cell[-4:-3] == " " and cell[0] in "-0123456789"
