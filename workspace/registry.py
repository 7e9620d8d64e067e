"""When a registry that refuses pulls will let them be again: asked of the registry itself.

The engine hands on no header of the registry's answer. So the manifest is asked for once more, by HEAD, which
Docker documents for its hub (docs.docker.com/docker-hub/usage/pulls: `ratelimit-limit: 100;w=21600`, the window
in seconds) and does not count as a pull. Other registries answer a HEAD with the same 429 and its Retry-After
(RFC 9110, section 10.2.3). Where neither tells, nothing is known, and nothing is made up.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from ipaddress import ip_address

import requests
from docker.auth import load_config, resolve_repository_name
from docker.errors import DockerException
from docker.utils import parse_repository_tag
from requests.utils import parse_dict_header

_PATIENCE = 15.0
"""Seconds for each of at most three requests; the answer is worth no more."""
_HUB = "docker.io"
_HUB_HOST = "registry-1.docker.io"
_MANIFESTS = ", ".join(
    [
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.index.v1+json",
    ]
)
_RESET = ("Retry-After", "X-Retry-After", "RateLimit-Reset", "X-RateLimit-Reset")
_EPOCH = 1_000_000_000
"""A number above it is a time in Unix seconds; none below it is, and no wait is that long."""
_TOLD = re.compile(r"retry-after: ((?:[0-9.]+(?:h|m|s|ms|us|µs|ns))+)", re.IGNORECASE)
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Throttle:
    """What is known of a registry's limit."""

    until: float | None = None
    """The time, in Unix seconds, at which it lets pulls be again."""
    pulls: int | None = None
    """How many it lets be in a window."""
    window: float | None = None
    """The window's length in seconds: at its end at the latest pulls are let be again."""


def registry_of(name: str) -> str:
    """The registry that an image's name means."""
    return str(resolve_repository_name(parse_repository_tag(name)[0])[0])


def throttle_of(name: str, said: str) -> Throttle:
    """What is known of the limit that an image could not be pulled for.

    Args:
        name: the image's.
        said: what the engine said; some registries tell the time in it.
    """
    found = _TOLD.search(said)
    if found:
        parts = re.findall(r"([0-9.]+)([a-zµ]+)", found[1].lower())
        with suppress(ValueError, KeyError):
            return Throttle(until=time.time() + sum(float(number) * _UNITS[unit] for number, unit in parts))
    with suppress(requests.RequestException, DockerException, ValueError, KeyError):
        return _read(_head(name))
    return Throttle()


def _read(headers: Mapping[str, str]) -> Throttle:
    until = next((_moment(headers[header]) for header in _RESET if header in headers), None)
    # as in `100;w=21600`, where the window is there at all
    limit = re.fullmatch(r"\s*(\d+)\s*;\s*w=(\d+)\s*", headers.get("RateLimit-Limit", ""))
    return Throttle(until, int(limit[1]), float(limit[2])) if limit else Throttle(until)


def _moment(value: str) -> float | None:
    """A time in Unix seconds, from a header that has it, or a date, or seconds from now."""
    if re.fullmatch(r"\s*\d+(\.\d+)?\s*", value):
        number = float(value)
        return number if number > _EPOCH else time.time() + number
    try:
        return parsedate_to_datetime(value).timestamp()
    except ValueError:
        return None


def _head(name: str) -> Mapping[str, str]:
    """The headers with which the registry answers for an image's manifest."""
    repository, tag = parse_repository_tag(name)
    registry, path = resolve_repository_name(repository)
    if registry == _HUB and "/" not in path:
        path = f"library/{path}"
    host = _HUB_HOST if registry == _HUB else registry
    address = f"{_scheme(host)}://{host}/v2/{path}/manifests/{tag or 'latest'}"
    login = load_config().resolve_authconfig(registry) or {}
    given = (login["username"], login["password"]) if login.get("password") else None
    ask = {"Accept": _MANIFESTS}
    answer = requests.head(address, headers=ask, auth=given, timeout=_PATIENCE)
    kind, _, challenge = answer.headers.get("WWW-Authenticate", "").partition(" ")
    if answer.status_code == 401 and kind.lower() == "bearer":
        wanted: dict[str, str] = parse_dict_header(challenge)  # type: ignore[no-untyped-call]
        query = {key: wanted[key] for key in ("service", "scope") if key in wanted}
        granted = requests.get(wanted["realm"], params=query, auth=given, timeout=_PATIENCE).json()
        ask["Authorization"] = f"Bearer {granted.get('token') or granted['access_token']}"
        answer = requests.head(address, headers=ask, timeout=_PATIENCE)
    return answer.headers


def _scheme(host: str) -> str:
    """What the engine speaks with a registry: plain text with this machine's own alone, by its default."""
    name = host.partition(":")[0]
    try:
        local = ip_address(name).is_loopback
    except ValueError:
        local = name == "localhost"
    return "http" if local else "https"
