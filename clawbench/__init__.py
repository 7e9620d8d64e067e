"""The front door: the pytest plugin, the command line, and the rooms behind them."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The checkout that the suite runs from."""
