"""Readers of files, one per format, chosen by the end of the file's name."""

import os

from .. import _minitoml
from ..errors import ConfigSyntaxError, UnknownFormat
from . import ini_format, json_format


def _load_toml(text, source):
    try:
        return _minitoml.loads(text)
    except _minitoml.TOMLError as error:
        raise ConfigSyntaxError(source, str(error), error.line) from error


READERS = {
    ".json": json_format.load,
    ".ini": ini_format.load,
    ".cfg": ini_format.load,
    ".toml": _load_toml,
}


def read(path):
    """The tree in a file."""
    expanded = os.path.expanduser(os.fspath(path))
    ending = os.path.splitext(expanded)[1].lower()
    if ending not in READERS:
        raise UnknownFormat(f"{path}: no reader for {ending or 'a name without an ending'}; there are: {', '.join(sorted(READERS))}")
    with open(expanded, encoding="utf-8") as stream:
        return READERS[ending](stream.read(), str(path))
