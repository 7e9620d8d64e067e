"""Cron expressions in words, for logs and user interfaces."""

from .fields import DAYS, MONTHS

DAY_NAMES = {"sun": "Sunday", "mon": "Monday", "tue": "Tuesday", "wed": "Wednesday", "thu": "Thursday",
             "fri": "Friday", "sat": "Saturday"}
MONTH_NAMES = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
               "October", "November", "December")


def describe(expression):
    """A short phrase, such as ``at 02:30, Monday to Friday``."""
    parts = [_time(expression)]
    if expression.day.text != "*":
        parts.append(f"on day {_listed(expression.day.sorted(), str)} of the month")
    if expression.weekday.text != "*":
        parts.append(_listed(expression.weekday.sorted(), _day_name))
    if expression.month.text != "*":
        parts.append(f"in {_listed(expression.month.sorted(), _month_name)}")
    return ", ".join(parts)


def _time(expression):
    minutes, hours = expression.minute.sorted(), expression.hour.sorted()
    if len(minutes) == 1 and len(hours) == 1:
        return f"at {hours[0]:02}:{minutes[0]:02}"
    if expression.hour.text == "*":
        if expression.minute.text == "*":
            return "every minute"
        if len(minutes) == 1:
            return f"every hour at minute {minutes[0]}"
        return f"at minutes {_listed(minutes, str)} of every hour"
    return f"at minutes {_listed(minutes, str)} of hours {_listed(hours, str)}"


def _listed(values, name):
    """``1, 2 and 5``, or ``1 to 5`` where at least three values follow each other."""
    if len(values) > 2 and values == list(range(values[0], values[-1] + 1)):
        return f"{name(values[0])} to {name(values[-1])}"
    names = [name(value) for value in values]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _day_name(number):
    return DAY_NAMES[DAYS[number]]


def _month_name(number):
    assert len(MONTHS) == len(MONTH_NAMES)
    return MONTH_NAMES[number - 1]
