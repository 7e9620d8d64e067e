"""Build one image of the embedded task set: its recipe, digest, lock and errors.

An image is current if a label has its recipe's digest. The engine sets tag and label in the very last step of a
build, so that an interrupted build leaves nothing that looks complete. It also ends a build, and removes its
container, as soon as the process that asked for it is gone.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import docker
from docker.errors import APIError, ImageNotFound
from filelock import FileLock, Timeout
from requests.exceptions import RequestException

from common.errors import InfrastructureError

DIGEST_LABEL = "clawbench.demo.digest"
JUNK = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "target"}
"""Folders that tools may leave in a task folder; they are not part of any recipe."""

TAIL_LINES = 25
COLOUR = re.compile(r"\x1b\[[0-9;]*m")

Say = Callable[[str], None]
"""Shows a line of progress to the user."""


class ImageBuildError(InfrastructureError):
    """An image of the embedded task set could not be built; the message says what to do next."""

    quotes_engine = True


@dataclass(frozen=True)
class Recipe:
    """Everything that determines an image: its build context, and a digest of that and of its base image."""

    tag: str
    context: bytes
    """A tar archive that is the same byte for byte for the same files."""
    digest: str


def recipe(tag: str, *folders: Path, below: str = "") -> Recipe:
    """Make a recipe.

    Args:
        tag: of the image.
        folders: whose contents are the build context; a file stands for itself.
        below: the digest of the image that this one is built on.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in folders:
            for path in [folder] if folder.is_file() else sorted(folder.rglob("*")):
                name = path.name if folder.is_file() else path.relative_to(folder).as_posix()
                if (path.is_dir() and not path.is_symlink()) or JUNK & set(Path(name).parts):
                    continue
                _add(tar, path, name)
    context = buffer.getvalue()
    return Recipe(tag, context, hashlib.sha256(below.encode() + b"\n" + context).hexdigest())


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    member = tar.gettarinfo(path, name)
    executable = bool(member.mode & 0o100)
    member.mode = 0o755 if executable else 0o644
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    tar.addfile(member, io.BytesIO(path.read_bytes()) if member.isreg() else None)


def is_current(client: docker.DockerClient, wanted: Recipe) -> bool:
    """Whether the engine has the image, made by exactly this recipe."""
    try:
        labels = client.images.get(wanted.tag).labels
    except ImageNotFound:
        return False
    return bool(labels.get(DIGEST_LABEL) == wanted.digest)


def build(
    client: docker.DockerClient,
    wanted: Recipe,
    say: Say,
    *,
    labels: Mapping[str, str],
    arguments: Mapping[str, str] | None = None,
) -> None:
    """Build the image of a recipe.

    Args:
        client: the engine.
        wanted: the recipe.
        say: gets progress.
        labels: for the image.
        arguments: build arguments of the Dockerfile.

    Raises:
        ImageBuildError: with the end of the build's output.
    """
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    progress = Progress(wanted.tag, say)
    try:
        events = client.api.build(
            fileobj=io.BytesIO(wanted.context),
            custom_context=True,
            tag=wanted.tag,
            labels={**labels, DIGEST_LABEL: wanted.digest},
            buildargs=dict(arguments or {}),
            rm=True,
            forcerm=True,
            decode=True,
        )
        for event in events:
            text = COLOUR.sub("", str(event.get("stream") or event.get("error") or ""))
            for line in filter(str.strip, text.splitlines()):
                tail.append(line.rstrip())
                progress.tick(line.strip())
            if "error" in event:
                raise failure(wanted.tag, tail)
    except (APIError, RequestException) as error:
        raise failure(wanted.tag, [*tail, str(error)]) from error
    if not is_current(client, wanted):
        raise failure(wanted.tag, [*tail, "the build ended without an image"])
    progress.done()


def failure(tag: str, output: deque[str] | list[str]) -> ImageBuildError:
    """The error for a failed build, with the end of its output."""
    return ImageBuildError(
        "\n".join(
            [
                f"Building the image {tag} failed; its output ended with:",
                *(f"  {line}" for line in list(output)[-TAIL_LINES:]),
                "If a package could not be fetched, check that this machine reaches its apt mirror, then run the "
                "same command again: finished images are kept, and building continues with the failed one.",
            ]
        )
    )


@contextmanager
def exclusive(cache: Path, tag: str, say: Say) -> Iterator[None]:
    """Hold the lock for an image that all processes with this cache share."""
    folder = cache / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"{tag.replace('/', '_').replace(':', '_')}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"{tag}: waiting for another process that builds it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


class Progress:
    """Shows a line of a build's output every few seconds, and finally how long the build took."""

    def __init__(self, tag: str, say: Say, every: float = 5.0) -> None:
        """Show progress on `tag` through `say`, at most every `every` seconds."""
        self._tag, self._say, self._every = tag, say, every
        self._start = self._last = time.monotonic()
        say(f"{tag}: building")

    def tick(self, line: str) -> None:
        """Note one line of output."""
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            self._say(f"{self._tag}: {now - self._start:.0f} s: {line[:100]}")

    def done(self) -> None:
        """Say that it is finished."""
        self._say(f"{self._tag}: built in {time.monotonic() - self._start:.0f} s")
