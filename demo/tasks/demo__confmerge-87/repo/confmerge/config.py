"""The layers of a configuration, and what they add up to."""

import os
from collections.abc import Mapping

from . import formats
from .merge import flatten, lookup, merge, nest
from .scalars import guess


class Config(Mapping):
    """A stack of named layers. Reading sees the merged result; dotted keys reach into tables."""

    def __init__(self):
        self._layers = []
        self._merged = {}

    @classmethod
    def load(cls, *paths, prefix=None, defaults=None, overrides=(), environ=None, missing_ok=True):
        """Defaults, then files, then the environment, then overrides such as ``server.port=80``.

        A missing file is passed over unless ``missing_ok`` is false.
        """
        config = cls()
        config.push("defaults", defaults or {})
        for path in paths:
            if missing_ok and not os.path.exists(os.path.expanduser(os.fspath(path))):
                continue
            config.push(str(path), formats.read(path))
        if prefix:
            config.push("environment", environment_layer(prefix, os.environ if environ is None else environ))
        for override in overrides:
            key, _, value = override.partition("=")
            config.push("overrides", nest(key, guess(value)))
        return config

    def push(self, name, tree):
        """Lay a tree on top."""
        self._layers.append((name, tree))
        self._merged = merge(self._merged, tree)

    def __getitem__(self, key):
        return lookup(self._merged, key)

    def __iter__(self):
        return iter(self._merged)

    def __len__(self):
        return len(self._merged)

    def origin(self, key):
        """The name of the topmost layer that says something about a key."""
        lookup(self._merged, key)
        for name, tree in reversed(self._layers):
            try:
                lookup(tree, key)
            except KeyError:
                continue
            return name
        raise KeyError(key)

    def origins(self):
        """Every dotted key with its value and its layer."""
        for key, value in flatten(self._merged):
            yield key, value, self.origin(key)

    def as_dict(self):
        return merge({}, self._merged)


def environment_layer(prefix, environ):
    """``APP_SERVER__PORT=80`` becomes ``{"server": {"port": 80}}``."""
    tree = {}
    start = prefix.rstrip("_") + "_"
    for name in sorted(environ):
        if name.startswith(start):
            dotted = name[len(start):].lower().replace("__", ".")
            tree = merge(tree, nest(dotted, guess(environ[name])))
    return tree
