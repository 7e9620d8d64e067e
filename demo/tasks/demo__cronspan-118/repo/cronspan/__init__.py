"""Cron expressions as values."""

from .errors import CronSyntaxError, NoOccurrence
from .expression import Expression
from .schedule import Schedule

__all__ = ["CronSyntaxError", "Expression", "NoOccurrence", "Schedule"]
__version__ = "1.4.0"
