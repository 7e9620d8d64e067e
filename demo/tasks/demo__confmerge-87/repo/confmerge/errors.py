"""What can go wrong, all of it a ConfigError."""


class ConfigError(Exception):
    """The configuration can't be used."""


class UnknownFormat(ConfigError):
    """No reader knows the end of a file's name."""


class ConfigSyntaxError(ConfigError):
    """A file is not well-formed."""

    def __init__(self, source, message, line=None):
        self.source = source
        self.line = line
        where = f"{source}:{line}" if line else str(source)
        super().__init__(f"{where}: {message}")
