"""openclaw's state folder on the host, and the API keys of its own credential store.

Of the store (`state/openclaw.sqlite` in the state folder) only API keys go into a container. A login would be lost
to its owner if the container refreshed it and took the new one with it when it was removed.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from adapters.base import BadOptionError
from adapters.openclaw.openclaw_runtime import STATE_VARIABLE

STORE = Path("state", "openclaw.sqlite")
"""In a state folder."""
CREDENTIALS = ("config.json*", "openclaw.json*", "state/openclaw.json*", "state/state/*", "state/**/models.json*")
"""The files in a case's folder that may hold credentials."""

_SETTINGS = "config_machine_state"
_PROFILES, _LOCATION = "authProfiles.store", "auth.sharedStore"


def state_folder() -> Path:
    """The user's own."""
    return Path(os.environ.get(STATE_VARIABLE) or "~/.openclaw").expanduser().absolute()


def own_store() -> bytes | None:
    """The credential store reduced to its API keys; None if there is none.

    Raises:
        BadOptionError: this version can't read it.
    """
    file = state_folder() / STORE
    if not file.exists():
        return None
    try:
        # not simply read, since what was written last is in a log beside the file
        with (
            closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(":memory:")) as copy,
        ):
            source.backup(copy)
            _reduce(copy)
            return copy.serialize()
    except (sqlite3.Error, ValueError, LookupError, TypeError, AttributeError) as error:
        raise BadOptionError(
            f"{file} is not a credential store that this version of the suite can read"
        ) from error


def _reduce(store: sqlite3.Connection) -> None:
    tables = store.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    for (table,) in tables.fetchall():
        if table not in (_SETTINGS, "schema_meta"):
            store.execute(f'DELETE FROM "{table}"')  # noqa: S608 - the database's own name
    store.execute("DELETE FROM config_machine_state WHERE state_key NOT IN (?, ?)", (_PROFILES, _LOCATION))
    found = store.execute("SELECT value_json FROM config_machine_state WHERE state_key = ?", (_PROFILES,))
    if (row := found.fetchone()) is not None:
        content = json.loads(row[0])
        profiles = content["profiles"].items()
        content["profiles"] = {name: kept for name, kept in profiles if kept["type"] == "api_key"}
        reduced = (json.dumps(content), _PROFILES)
        store.execute("UPDATE config_machine_state SET value_json = ? WHERE state_key = ?", reduced)
    store.commit()
    store.execute("VACUUM")  # what was deleted would still be in the file
