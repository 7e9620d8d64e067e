"""What a case's first request really asks of the model, apart from the task: system prompt, tools, settings.

It is taken from the request as it goes out, after the tool filter and the provider's transforms. The texts are long and
mostly the same in all cases, so they are stored once for each digest.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from gateway.case_models import Api, FirstRequest, Scalar
from gateway.exchange import plain
from gateway.redact import mask, mask_bytes
from gateway.tool_filter import TOOL_LISTS

_SYSTEM_ROLES = ("system", "developer")
_SYSTEM_KEYS = ("system", "instructions")
_CONVERSATION = ("messages", "input")
_MOST_SETTINGS = 50
_LONGEST = 200
"""Characters of a setting's name and value; a longer value is replaced by its digest."""


def first_request(
    api: Api, body: Mapping[str, Any], *, store: Path | None, secrets: Iterable[str]
) -> FirstRequest:
    """Describe a request, and store its texts.

    Args:
        api: the wire format.
        body: the request as it goes out.
        store: the folder of the texts; None: they are not kept.
        secrets: what no file may hold.

    Raises:
        OSError: a text can't be stored.
    """
    system = {key: body[key] for key in _SYSTEM_KEYS if body.get(key)}
    for key in _CONVERSATION:
        rows = body[key] if isinstance(body.get(key), list) else []
        if found := [row for row in rows if isinstance(row, Mapping) and row.get("role") in _SYSTEM_ROLES]:
            system[key] = found
    tools = {key: body[key] for key in TOOL_LISTS if body.get(key)}
    left_out = {"model", *_SYSTEM_KEYS, *_CONVERSATION, *TOOL_LISTS}
    names = sorted(key for key in body if key not in left_out)[:_MOST_SETTINGS]
    secrets = tuple(secrets)
    return FirstRequest(
        api=api,
        system_sha256=_stored(system, store, secrets),
        tools_sha256=_stored(tools, store, secrets),
        settings={plain(mask(name, secrets))[:_LONGEST]: _setting(body[name], secrets) for name in names},
    )


def _stored(value: Mapping[str, Any], store: Path | None, secrets: Iterable[str]) -> str | None:
    """The digest of a text that is stored; None if the request has none (raises OSError)."""
    if not value:
        return None
    # without indentation, which is slow: a claw may send megabytes, and no other case should wait for them
    text = mask_bytes(json.dumps(value, sort_keys=True).encode(), secrets)
    digest = sha256(text).hexdigest()
    path = store / f"{digest}.json" if store is not None else None
    if path is not None and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_name(f".{digest}.{os.getpid()}.half")
        with half.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        half.replace(path)
    return digest


def _setting(value: Any, secrets: Iterable[str]) -> Scalar:
    """A setting as it may be kept: a number, a truth value, or a text of limited length without any secret."""
    match value:
        case None | bool():
            return value
        case int() if abs(value) < 1 << 53:
            return value
        case float() if math.isfinite(value):
            return value
    text = plain(mask(value if isinstance(value, str) else json.dumps(value, sort_keys=True), secrets))
    return text if len(text) <= _LONGEST else f"sha256:{sha256(text.encode()).hexdigest()}"
