"""What is in the accounts."""

from collections import defaultdict

from .amount import Amount


def balances(journal, first=None, last=None):
    """Account to a dict of currency to amount, for the transactions of a period."""
    found = defaultdict(dict)
    for transaction in journal.between(first, last):
        for posting in transaction.postings:
            currency = posting.amount.currency
            so_far = found[posting.account].get(currency, Amount.zero(currency))
            found[posting.account][currency] = so_far + posting.amount
    return dict(found)


def total(journal, prefix, first=None, last=None):
    """The sum over an account and all accounts below it, by currency."""
    sums = {}
    for account, amounts in balances(journal, first, last).items():
        if account == prefix or account.startswith(prefix + ":"):
            for currency, amount in amounts.items():
                sums[currency] = sums.get(currency, Amount.zero(currency)) + amount
    return sums


def register(journal, account, first=None, last=None):
    """The postings to one account, each with its transaction and the running total in its currency."""
    running = {}
    for transaction in journal.between(first, last):
        for posting in transaction.postings:
            if posting.account == account:
                currency = posting.amount.currency
                running[currency] = running.get(currency, Amount.zero(currency)) + posting.amount
                yield transaction, posting, running[currency]
