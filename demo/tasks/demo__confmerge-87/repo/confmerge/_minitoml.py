"""A reader for the part of TOML that most configuration files need.

Not a complete implementation: no dotted keys, no multi-line values, no dates, no arrays of tables.
"""

import re

KEY = re.compile(r"[A-Za-z0-9_-]+")
TABLE = re.compile(r"\[\s*([A-Za-z0-9_.-]+)\s*\]")
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


class TOMLError(ValueError):
    def __init__(self, message, line):
        self.line = line
        super().__init__(message)


def loads(text):
    """Parse a document into dicts."""
    root = {}
    table = root
    for number, raw in enumerate(text.splitlines(), 1):
        line = _strip_comment(raw).strip()
        if not line:
            continue
        match = TABLE.fullmatch(line)
        if match:
            table = _open_table(root, match.group(1), number)
            continue
        key, equals, value = line.partition("=")
        key = key.strip().strip('"')
        if not equals or not KEY.fullmatch(key):
            raise TOMLError("expected key = value or [table]", number)
        if key in table:
            raise TOMLError(f"{key} is set twice", number)
        table[key] = _value(value.strip(), number)
    return root


def _open_table(root, name, number):
    table = root
    for part in name.split("."):
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise TOMLError(f"{name} is not a table", number)
    return table


def _strip_comment(line):
    quoted = False
    for position, character in enumerate(line):
        if character == '"' and (position == 0 or line[position - 1] != "\\"):
            quoted = not quoted
        elif character == "#" and not quoted:
            return line[:position]
    return line


def _value(text, number):
    if text in ("true", "false"):
        return text == "true"
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        return re.sub(r"\\(.)", lambda m: ESCAPES.get(m.group(1), m.group(0)), text[1:-1])
    if text.startswith("'") and text.endswith("'") and len(text) > 1:
        return text[1:-1]
    if text.startswith("[") and text.endswith("]"):
        return [_value(item, number) for item in _items(text[1:-1])]
    for kind in (int, float):
        try:
            return kind(text.replace("_", ""))
        except ValueError:
            pass
    raise TOMLError(f"can't read the value {text!r}", number)


def _items(text):
    """Split the inside of an array at its commas."""
    depth, quoted, item = 0, False, ""
    for character in text:
        if character == '"':
            quoted = not quoted
        elif not quoted:
            depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and not quoted and not depth:
            yield item.strip()
            item = ""
        else:
            item += character
    if item.strip():
        yield item.strip()
