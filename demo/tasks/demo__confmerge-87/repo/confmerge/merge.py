"""Merging one layer over another, and dotted keys."""


def merge(base, over):
    """A new dict with ``over`` laid on ``base``: tables are merged, anything else is replaced.

    A list replaces a list. To drop a key that a lower layer sets, set it to None.
    """
    merged = dict(base)
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge(merged[key], value)
        elif isinstance(value, dict):
            merged[key] = merge({}, value)
        else:
            merged[key] = value
    return merged


def flatten(tree, prefix=""):
    """Every leaf of a tree with its dotted key."""
    for key, value in tree.items():
        dotted = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            yield from flatten(value, dotted + ".")
        else:
            yield dotted, value


def nest(dotted, value):
    """The tree that has just one leaf."""
    for part in reversed(dotted.split(".")):
        value = {part: value}
    return value


def lookup(tree, dotted):
    """The value under a dotted key; KeyError if there is none."""
    found = tree
    for part in dotted.split("."):
        if not isinstance(found, dict) or part not in found:
            raise KeyError(dotted)
        found = found[part]
    return found
