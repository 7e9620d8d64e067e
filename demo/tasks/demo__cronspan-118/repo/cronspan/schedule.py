"""When a cron expression fires."""

from calendar import monthrange
from datetime import datetime, timedelta

from .errors import NoOccurrence
from .expression import Expression
from .humanize import describe

# A leap day on a given weekday comes back after at most 40 years (1880-1920, across 1900).
HORIZON_YEARS = 40
ONE_MINUTE = timedelta(minutes=1)


class Schedule:
    """The moments that match an expression, to the minute. Time zones are the caller's affair."""

    def __init__(self, expression):
        self.expression = expression

    @classmethod
    def parse(cls, text):
        return cls(Expression.parse(text))

    def __repr__(self):
        return f"Schedule.parse({str(self.expression)!r})"

    def __eq__(self, other):
        return isinstance(other, Schedule) and self._values() == other._values()

    def __hash__(self):
        return hash(self._values())

    def _values(self):
        e = self.expression
        return tuple(f.values for f in (e.minute, e.hour, e.day, e.month, e.weekday))

    def matches(self, moment):
        """Whether the schedule fires in the minute of ``moment``."""
        e = self.expression
        return moment.minute in e.minute and moment.hour in e.hour and self.matches_date(moment)

    def matches_date(self, date):
        """Whether the schedule fires at some time on ``date``."""
        e = self.expression
        if date.month not in e.month:
            return False
        weekday = (date.weekday() + 1) % 7
        return date.day in e.day and weekday in e.weekday

    def next_after(self, moment):
        """The first occurrence later than ``moment``."""
        start = moment.replace(second=0, microsecond=0) + ONE_MINUTE
        for day in self._days_from(start):
            earliest = start if day.date() == start.date() else day
            found = self._first_time_on(day, earliest)
            if found is not None:
                return found
        raise NoOccurrence(f"{self.expression} does not fire in the {HORIZON_YEARS} years after {moment}")

    def previous_before(self, moment):
        """The last occurrence earlier than ``moment``."""
        end = moment.replace(second=0, microsecond=0)
        if moment == end:
            end -= ONE_MINUTE
        day = end.replace(hour=0, minute=0)
        limit = day.year - HORIZON_YEARS
        while day.year > limit:
            if self.matches_date(day):
                found = self._last_time_on(day, end)
                if found is not None:
                    return found
            day -= timedelta(days=1)
        raise NoOccurrence(f"{self.expression} does not fire in the {HORIZON_YEARS} years before {moment}")

    def between(self, start, end):
        """Every occurrence from ``start`` (included) to ``end`` (not included)."""
        moment = start - ONE_MINUTE if start.second == start.microsecond == 0 else start
        while True:
            try:
                moment = self.next_after(moment)
            except NoOccurrence:
                return
            if moment >= end:
                return
            yield moment

    def describe(self):
        """The expression in words."""
        return describe(self.expression)

    def _days_from(self, start):
        """Midnights of the matching days from ``start`` on; months that don't match are skipped whole."""
        year, month, first = start.year, start.month, start.day
        while year <= start.year + HORIZON_YEARS:
            if month in self.expression.month:
                for day in range(first, monthrange(year, month)[1] + 1):
                    candidate = datetime(year, month, day, tzinfo=start.tzinfo)
                    if self.matches_date(candidate):
                        yield candidate
            first = 1
            year, month = (year + 1, 1) if month == 12 else (year, month + 1)

    def _first_time_on(self, day, earliest):
        for hour in self.expression.hour.sorted():
            for minute in self.expression.minute.sorted():
                candidate = day.replace(hour=hour, minute=minute)
                if candidate >= earliest:
                    return candidate
        return None

    def _last_time_on(self, day, latest):
        for hour in reversed(self.expression.hour.sorted()):
            for minute in reversed(self.expression.minute.sorted()):
                candidate = day.replace(hour=hour, minute=minute)
                if candidate <= latest:
                    return candidate
        return None
