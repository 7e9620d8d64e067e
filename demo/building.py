"""How any one image of the embedded task set is built: its recipe, its digest, its lock, its errors.

An image is current when it carries its recipe's digest in a label. The engine sets tag and label with the
very last step of a build, so that a build that was cut off leaves nothing that could be taken for done; it
also ends a build, and removes its container, as soon as the process that asked for it is gone.
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

DIGEST_LABEL = "clawbench.demo.digest"
JUNK = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "target"}
"""Folders that a tool run by hand may leave in a task folder; they are not part of any recipe."""

TAIL_LINES = 25
COLOUR = re.compile(r"\x1b\[[0-9;]*m")

Say = Callable[[str], None]
"""Takes one line of progress, meant for a person."""


class ImageBuildError(RuntimeError):
    """An image of the embedded task set could not be had; the message says what to do next."""


@dataclass(frozen=True)
class Recipe:
    """All that determines an image: its build context, and the digest of that and of what it stands on."""

    tag: str
    context: bytes
    """A tar archive that is the same, byte for byte, for the same files."""
    digest: str


def recipe(tag: str, *folders: Path, below: str = "") -> Recipe:
    """The recipe for `tag` whose context is the contents of `folders` (a file stands for itself).

    `below` is the digest of the image that this one is built on.
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
    """Whether the image is there and was made by this very recipe."""
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
    """Build the image of a recipe, `arguments` being the build arguments of its Dockerfile.

    Raises `ImageBuildError` with the end of the build's output.
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
    """The error for a build whose output ends with `output`."""
    return ImageBuildError(
        "\n".join(
            [
                f"Building the image {tag} failed; its output ended with:",
                *(f"  {line}" for line in list(output)[-TAIL_LINES:]),
                "If a package could not be fetched, check that this machine reaches its apt mirror and run the "
                "same command again: finished images are kept, and the build starts over at the failed one.",
            ]
        )
    )


@contextmanager
def exclusive(cache: Path, tag: str, say: Say) -> Iterator[None]:
    """Hold the one lock that all processes of this cache share for an image."""
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
    """Thins a build's output to a line every few seconds, and says how long the build took."""

    def __init__(self, tag: str, say: Say, every: float = 5.0) -> None:
        """Speak for `tag` through `say` at most once in `every` seconds."""
        self._tag, self._say, self._every = tag, say, every
        self._start = self._last = time.monotonic()
        say(f"{tag}: building")

    def tick(self, line: str) -> None:
        """Take note of one line of output."""
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            self._say(f"{self._tag}: {now - self._start:.0f} s: {line[:100]}")

    def done(self) -> None:
        """Say that it is finished."""
        self._say(f"{self._tag}: built in {time.monotonic() - self._start:.0f} s")
