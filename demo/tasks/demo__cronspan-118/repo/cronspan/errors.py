"""What can go wrong."""


class CronSyntaxError(ValueError):
    """The expression is not one that cron would take."""

    def __init__(self, message, field=None):
        self.field = field
        super().__init__(f"{field}: {message}" if field else message)


class NoOccurrence(LookupError):
    """No moment within reach matches the schedule."""
