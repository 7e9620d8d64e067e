"""A whole cron expression, parsed but not yet asked anything."""

from dataclasses import dataclass

from . import fields
from .errors import CronSyntaxError

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass(frozen=True)
class Expression:
    """Five fields."""

    text: str
    minute: fields.FieldValue
    hour: fields.FieldValue
    day: fields.FieldValue
    month: fields.FieldValue
    weekday: fields.FieldValue

    @classmethod
    def parse(cls, text):
        """Read an expression such as ``*/5 9-17 * * mon-fri`` or a nickname such as ``@daily``."""
        stripped = text.strip()
        if stripped.startswith("@"):
            try:
                stripped = NICKNAMES[stripped.lower()]
            except KeyError:
                raise CronSyntaxError(f"unknown nickname {stripped!r}") from None
        parts = stripped.split()
        if len(parts) != len(fields.ALL):
            raise CronSyntaxError(f"expected {len(fields.ALL)} fields, got {len(parts)}")
        return cls(text, *(field.parse(part) for field, part in zip(fields.ALL, parts)))

    def __str__(self):
        return " ".join(value.text for value in (self.minute, self.hour, self.day, self.month, self.weekday))
