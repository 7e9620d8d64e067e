"""JSON files."""

import json

from ..errors import ConfigSyntaxError


def load(text, source):
    """Parse a JSON document whose top level is an object."""
    try:
        tree = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigSyntaxError(source, error.msg, error.lineno) from error
    if not isinstance(tree, dict):
        raise ConfigSyntaxError(source, "the top level must be an object")
    return tree
