"""Pulling an image once, and why it could not be pulled.

docker-py reads past an error that comes in the middle of a pull, and would wait for ever for an engine that says
nothing more. The engine in turn hands on no status or header of the registry's answer, only a text (mostly under
its own status 500), so what went wrong is told from that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from enum import StrEnum
from typing import Any

import docker
from docker.auth import get_config_header, resolve_repository_name
from docker.errors import APIError
from docker.utils import parse_repository_tag
from requests.exceptions import RequestException

PATIENCE = 300.0
"""Seconds without a word from the engine after which a pull is given up. While it downloads and unpacks it speaks
several times a second; a large layer whose checksum is verified keeps it silent for some seconds."""


class Fault(StrEnum):
    """What kept an image from being pulled."""

    REFUSED = "refused"
    """The registry has no such image or denies it, which many do not tell apart, or the name is none."""
    THROTTLED = "throttled"
    """The registry lets no more be pulled for a while."""
    FULL = "full"
    """The engine's disk is full."""
    BROKEN = "broken"
    """A server's error, a broken connection, silence: another attempt may do."""


class PullError(RuntimeError):
    """An image could not be pulled."""

    def __init__(self, fault: Fault, why: str) -> None:
        """Say why, in the engine's words."""
        super().__init__(why)
        self.fault = fault


def pull(
    client: docker.DockerClient,
    name: str,
    *,
    platform: str | None = None,
    patience: float = PATIENCE,
    heard: Callable[[Mapping[str, Any]], None] = lambda _: None,
) -> None:
    """Pull an image, with the credentials that the user's Docker configuration has for its registry.

    Args:
        client: the engine.
        name: with its tag or digest; the tag is `latest` where there is none.
        platform: as in `linux/amd64`; None: the engine's own.
        patience: seconds of silence that are waited for.
        heard: gets each event of the engine's, see its API, "Create an image". What it raises ends the pull.

    Raises:
        PullError: it did not come to its end.
    """
    repository, tag = parse_repository_tag(name)
    parameters = {"fromImage": repository, "tag": tag or "latest"} | ({"platform": platform} if platform else {})
    api = client.api
    header = get_config_header(api, resolve_repository_name(repository)[0])
    try:
        answer = api.post(
            f"{api.base_url}/v{api.api_version}/images/create",
            params=parameters,
            headers={"X-Registry-Auth": header} if header else {},
            stream=True,
            timeout=patience,
        )
        # the engine ends a pull as soon as nobody listens
        with closing(answer):
            if not answer.ok:
                raise _failed(answer.status_code, _message(answer.content))
            for line in filter(None, answer.iter_lines()):
                event = json.loads(line)
                if "error" in event:
                    raise _failed(500, str(event["error"]))
                heard(event)
    except (RequestException, ValueError) as error:
        raise PullError(Fault.BROKEN, f"the engine gave no answer to its end: {error}") from error
    try:
        client.images.get(name)
    except APIError as error:
        raise PullError(Fault.BROKEN, f"the pull ended without an image: {error.explanation}") from error


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace").strip()


_SAID = {
    # a registry may refuse in the words of another refusal, so the order counts
    Fault.THROTTLED: ("toomanyrequests", "too many requests", "http status: 429", "rate limit"),
    Fault.FULL: ("no space left on device", "disk quota exceeded"),
    Fault.REFUSED: (
        *("manifest unknown", "name unknown", "no matching manifest", "repository does not exist"),
        *("denied", "unauthorized", "authentication required", "no basic auth credentials", "http 403"),
    ),
}


def _failed(status: int, text: str) -> PullError:
    low = text.lower()
    fault = next((fault for fault, words in _SAID.items() if any(word in low for word in words)), None)
    if fault is None:
        fault = Fault.REFUSED if status in {400, 404} else Fault.BROKEN
    return PullError(fault, text)
