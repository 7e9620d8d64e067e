"""Pulls one image once, and determines why a pull failed.

docker-py's own `pull` skips an error that arrives in the middle of a pull, and waits forever for an engine that
has gone silent. The engine does not pass on the status or headers of the registry's reply, only a text (mostly with
its own status 500), so the cause is derived from that text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import docker
from docker.auth import get_config_header, resolve_repository_name
from docker.errors import APIError
from docker.utils import parse_repository_tag
from requests.exceptions import RequestException

from common.errors import InfrastructureError, LastingError

PATIENCE = 300.0
"""Seconds without an event from the engine after which a pull is given up. It sends several a second while it
downloads and unpacks; verifying the checksum of a large layer keeps it silent for some seconds."""


class PullError(InfrastructureError):
    """An image could not be pulled; this class itself means a server error, a broken connection or a timeout."""

    quotes_engine = True


class PullThrottledError(PullError):
    """The registry refuses the pull because of its rate limit."""


class PullRefusedError(PullError, LastingError):
    """The image does not exist, access is denied (many registries don't say which), or the engine's disk is full."""


def pull(
    client: docker.DockerClient,
    name: str,
    *,
    platform: str | None = None,
    patience: float = PATIENCE,
    on_event: Callable[[Mapping[str, Any]], None] = lambda _: None,
) -> None:
    """Pull an image, with the credentials that the user's Docker configuration has for its registry.

    Args:
        client: the engine.
        name: the image's name with a tag or digest; without either, the tag is `latest`.
        platform: such as `linux/amd64`; None means the engine's own.
        patience: seconds of silence after which the pull is given up.
        on_event: called with each event of the engine (see its API, "Create an image"); if it raises, the pull
            ends.

    Raises:
        PullError: the pull failed; `is_retried` says whether another attempt may succeed.
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
        # closing the connection ends the pull
        with closing(answer):
            if not answer.ok:
                raise _failure(answer.status_code, answer.text)
            for line in filter(None, answer.iter_lines()):
                event = json.loads(line)
                if "error" in event:
                    raise _failure(500, str(event["error"]))
                on_event(event)
    except (RequestException, ValueError) as error:
        raise PullError(f"the engine's answer broke off: {error}") from error
    try:
        client.images.get(name)
    except APIError as error:
        raise PullError(f"the pull ended without an image: {error.explanation}") from error


_THROTTLED = ("toomanyrequests", "too many requests", "http status: 429", "rate limit")
_REFUSED = (
    *("manifest unknown", "name unknown", "no matching manifest", "repository does not exist"),
    *("denied", "unauthorized", "authentication required", "no basic auth credentials", "http 403"),
    *("no space left on device", "disk quota exceeded"),
)


def _failure(status: int, text: str) -> PullError:
    try:
        text = str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        text = text.strip()
    words = text.lower()
    # rate limits are checked first: their text may suggest to log in, in words like those of a denial
    if any(word in words for word in _THROTTLED):
        return PullThrottledError(text)
    if status in {400, 404} or any(word in words for word in _REFUSED):
        return PullRefusedError(text)
    return PullError(text)
