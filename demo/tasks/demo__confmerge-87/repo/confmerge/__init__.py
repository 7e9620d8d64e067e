"""Configuration in layers."""

from .config import Config
from .errors import ConfigError, ConfigSyntaxError, UnknownFormat

__all__ = ["Config", "ConfigError", "ConfigSyntaxError", "UnknownFormat"]
