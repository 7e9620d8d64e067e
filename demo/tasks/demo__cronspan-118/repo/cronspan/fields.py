"""One field of a cron expression: what may be written in it, and which values it selects."""

from dataclasses import dataclass

from .errors import CronSyntaxError

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True)
class FieldValue:
    """The values that one field of an expression selects.

    ``starred`` is true when the field was written with a leading ``*``, that is, when its author did not
    mean to restrict it (``*``) or only to thin it out (``*/2``).
    """

    text: str
    values: frozenset
    starred: bool

    def __contains__(self, value):
        return value in self.values

    def sorted(self):
        return sorted(self.values)


@dataclass(frozen=True)
class Field:
    """The kind of a field: its bounds and its names."""

    name: str
    low: int
    high: int
    names: tuple = ()
    first_name: int = 0
    wraps_to: int = None

    def parse(self, text):
        """Read the text of this field."""
        if not text:
            raise CronSyntaxError("is empty", self.name)
        values = set()
        for part in text.split(","):
            values.update(self._parse_part(part))
        return FieldValue(text, frozenset(values), text.startswith("*"))

    def _parse_part(self, part):
        span, slash, step_text = part.partition("/")
        step = self._step(step_text) if slash else 1
        if span == "*":
            low, high = self.low, self.high
        elif "-" in span:
            low_text, _, high_text = span.partition("-")
            low, high = self._number(low_text), self._number(high_text)
            if low > high:
                raise CronSyntaxError(f"range {span!r} runs backwards", self.name)
        else:
            low = self._number(span)
            # As in Vixie cron, '5/15' means from 5 to the end in steps of 15.
            high = self.high if slash else low
        return (self._normal(value) for value in range(low, high + 1, step))

    def _step(self, text):
        if not text.isdigit() or int(text) == 0:
            raise CronSyntaxError(f"step {text!r} is not a positive number", self.name)
        return int(text)

    def _number(self, text):
        lowered = text.lower()
        if lowered in self.names:
            return self.names.index(lowered) + self.first_name
        if not text.isdigit():
            raise CronSyntaxError(f"{text!r} is not a number or a name", self.name)
        number = int(text)
        highest = self.high if self.wraps_to is None else self.high + 1
        if not self.low <= number <= highest:
            raise CronSyntaxError(f"{number} is not between {self.low} and {highest}", self.name)
        return number

    def _normal(self, value):
        """Both 0 and 7 are Sunday."""
        return self.wraps_to if self.wraps_to is not None and value > self.high else value


MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day of month", 1, 31)
MONTH = Field("month", 1, 12, names=MONTHS, first_name=1)
WEEKDAY = Field("day of week", 0, 6, names=DAYS, wraps_to=0)

ALL = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)
