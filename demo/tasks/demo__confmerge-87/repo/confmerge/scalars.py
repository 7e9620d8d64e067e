"""Values that arrive as bare text: from the environment, the command line, INI files."""

import re

INTEGER = re.compile(r"[+-]?\d+")
FLOAT = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?")
WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False, "null": None}


def guess(text):
    """The likeliest value that somebody meant by a text."""
    stripped = text.strip()
    if stripped.lower() in WORDS:
        return WORDS[stripped.lower()]
    if INTEGER.fullmatch(stripped):
        return int(stripped)
    if FLOAT.fullmatch(stripped):
        return float(stripped)
    if len(stripped) > 1 and stripped[0] == stripped[-1] and stripped[0] in "\"'":
        return stripped[1:-1]
    return stripped
