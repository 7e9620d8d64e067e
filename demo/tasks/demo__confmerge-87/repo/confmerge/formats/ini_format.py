"""INI files. Sections become tables; a dot in a section's name nests them."""

import configparser

from ..errors import ConfigSyntaxError
from ..merge import merge, nest
from ..scalars import guess


def load(text, source):
    """Parse an INI document."""
    parser = configparser.ConfigParser(interpolation=None, default_section=None)
    parser.optionxform = str
    try:
        parser.read_string(text, source)
    except configparser.Error as error:
        raise ConfigSyntaxError(source, error.message.splitlines()[0], getattr(error, "lineno", None)) from error
    tree = {}
    for section in parser.sections():
        values = {key: guess(value) for key, value in parser.items(section)}
        tree = merge(tree, nest(section, values))
    return tree
