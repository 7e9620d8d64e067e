"""openclaw without the gateway: its user's own config, and the API keys of its own credential store.

Of the config only what says where models are goes along, not the user's channels, agents and secrets of other
kinds. Of the store (`state/openclaw.sqlite` in the state folder) only API keys do: a login that the container
refreshed, and took with it when it was removed, would be lost to its owner.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from adapters import own
from adapters.base import BadOptionError, Task
from adapters.configs import read_object
from adapters.openclaw_config import fixed_for_all
from adapters.openclaw_runtime import STATE_VARIABLE

STORE = Path("state", "openclaw.sqlite")
"""In a state folder."""
CREDENTIALS = ("config.json*", "openclaw.json*", "state/openclaw.json*", "state/state/*", "state/**/models.json*")
"""The files in a case's folder that may hold credentials."""

_SECTIONS = ("auth", "env", "models", "plugins")
_SETTINGS = "config_machine_state"
_PROFILES, _LOCATION = "authProfiles.store", "auth.sharedStore"


def state_folder() -> Path:
    """The user's own."""
    return Path(os.environ.get(STATE_VARIABLE) or "~/.openclaw").expanduser().absolute()


def own_config(found: Path, task: Task) -> dict[str, Any]:
    """The user's own config, with what a case fixes set over it: all but where the models are.

    Args:
        found: what `Adapter.config_file` tells; where that is the template, the state folder's config is taken.
        task: Which model, if it says.

    Raises:
        BadOptionError: there is none, or it is not JSON.
    """
    file = state_folder() / "openclaw.json"
    if ".local" in found.suffixes or not file.exists():
        file = own.own_file(found)
    content = read_object(file)
    agents = content.get("agents")
    defaults = agents.get("defaults") if isinstance(agents, dict) else None
    kept: dict[str, Any] = {name: content[name] for name in _SECTIONS if name in content}
    kept["agents"] = {"defaults": defaults if isinstance(defaults, dict) else {}}
    model = {"agents": {"defaults": {"model": {"primary": task.model}}}} if task.model else {}
    return own.set_over(own.set_over(kept, fixed_for_all(task)), model)


def own_store() -> bytes | None:
    """The credential store with nothing but its API keys; None where there is none.

    Raises:
        BadOptionError: it is not one that this version can read.
    """
    file = state_folder() / STORE
    if not file.exists():
        return None
    try:
        # what was written last is in a log beside the file, which is why it is not simply read
        with (
            closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(":memory:")) as copy,
        ):
            source.backup(copy)
            _reduce(copy)
            return copy.serialize()
    except (sqlite3.Error, ValueError, LookupError, TypeError, AttributeError) as error:
        raise BadOptionError(f"{file} is not a credential store as this version of the suite knows it") from error


def _reduce(store: sqlite3.Connection) -> None:
    tables = store.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    for (table,) in tables.fetchall():
        if table not in (_SETTINGS, "schema_meta"):
            store.execute(f'DELETE FROM "{table}"')  # noqa: S608 - a name that the database has
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
