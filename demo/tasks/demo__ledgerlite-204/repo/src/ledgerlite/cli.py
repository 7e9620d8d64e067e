"""The command line."""

import argparse
import sys
from datetime import date

from .parser import ParseError, parse_journal
from .report import balance_report, register_report


def main(argv=None):
    parser = argparse.ArgumentParser(prog="ledgerlite", description="Double-entry book-keeping in plain text.")
    parser.add_argument("--from", dest="first", type=date.fromisoformat, help="first day (YYYY-MM-DD)")
    parser.add_argument("--to", dest="last", type=date.fromisoformat, help="last day (YYYY-MM-DD)")
    commands = parser.add_subparsers(dest="command", required=True)
    balance = commands.add_parser("balance", help="the balance of every account")
    balance.add_argument("journal")
    register = commands.add_parser("register", help="the postings to one account")
    register.add_argument("journal")
    register.add_argument("account")
    options = parser.parse_args(argv)
    try:
        with open(options.journal, encoding="utf-8") as lines:
            journal = parse_journal(lines)
    except (OSError, ParseError) as error:
        print(f"ledgerlite: {error}", file=sys.stderr)
        return 1
    if options.command == "balance":
        report = balance_report(journal, options.first, options.last)
    else:
        report = register_report(journal, options.account, options.first, options.last)
    sys.stdout.write(report)
    return 0
