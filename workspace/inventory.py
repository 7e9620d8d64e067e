"""The images that the suite pulled or made, which of them runs still need, and the locks around both.

Nothing else is ever removed. A pulled image carries no label of ours, and labels are inherited by whatever a user
builds on an image, so each image is recorded in a file: its name and its id. An image is ours as long as its name
still means that id. It is removed by name and without force: the engine refuses while a container uses it, and an
image that also has another name stays under that one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

import docker
from docker.errors import APIError, ImageNotFound
from filelock import FileLock, Timeout

_IN_USE = 409


@dataclass(frozen=True)
class OwnImage:
    """An image of ours."""

    name: str
    image_id: str
    source: str
    """The name of the instance's image that it was made from; its own name if it is that image."""

    @property
    def is_source(self) -> bool:
        """Whether it is an instance's own image."""
        return self.name == self.source


class Inventory:
    """What the processes that share a folder have pulled and made on an engine."""

    def __init__(self, client: docker.DockerClient, home: Path) -> None:
        """Read nothing yet.

        Args:
            client: the engine.
            home: the folder that all processes on this machine share.
        """
        self._client = client
        self._home = home
        self._layers: dict[str, frozenset[tuple[str, ...]]] = {}

    @cached_property
    def _folder(self) -> Path:
        # the same name means another image on another engine
        return self._home / "own-images" / _digest(str(self._client.info()["ID"]))

    def note(self, name: str, source: str | None = None) -> None:
        """Record that an image was pulled or made.

        Args:
            name: of the image, which the engine has.
            source: the image that it was made from; None if it is an instance's own image.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        row = {"name": name, "image_id": self._client.images.get(name).id, "source": source or name}
        _replace(self._path(name), row)

    def images(self) -> list[OwnImage]:
        """Our images that are still as they were recorded; the records of all others are removed."""
        found = []
        for path in sorted(self._folder.glob("*.json")):
            try:
                text = path.read_text()
                image = OwnImage(**json.loads(text))
            except FileNotFoundError:
                continue  # another run has just removed it
            except (ValueError, TypeError):
                path.unlink(missing_ok=True)  # torn by a power cut: what is not known to be ours is not ours
                continue
            if self._id_of(image.name) == image.image_id:
                found.append(image)
                continue
            # removed by somebody, or its name given to another image; a process that is pulling it records it anew
            with suppress(Timeout, FileNotFoundError), image_lock(self._home, image.source).acquire(timeout=0):
                if path.read_text() == text:
                    path.unlink()
        return found

    def size(self, images: Iterable[OwnImage]) -> int:
        """The bytes that some images take together; a layer that they share counts once."""
        layers: set[tuple[str, ...]] = set()
        for image in images:
            layers |= self._layers_of(image.image_id)
        return sum(int(layer[-1]) for layer in layers)

    def _layers_of(self, image_id: str) -> frozenset[tuple[str, ...]]:
        """The build steps of an image, each with its bytes.

        The engine tells the sizes of steps, not of layers; images that share a layer share the step that made it.
        """
        if image_id not in self._layers:
            try:
                steps = self._client.images.get(image_id).history()
            except ImageNotFound:
                return frozenset()
            self._layers[image_id] = frozenset(
                (str(step["Created"]), str(step["CreatedBy"]), str(step["Size"])) for step in steps if step["Size"]
            )
        return self._layers[image_id]

    def remove(self, image: OwnImage) -> bool:
        """Remove an image together with the layers that no other image has.

        Returns:
            whether it is gone: False if a container uses it or a process is pulling it.
        """
        try:
            with image_lock(self._home, image.source).acquire(timeout=0):
                with suppress(ImageNotFound):  # another run was quicker
                    if self._id_of(image.name) == image.image_id:
                        self._client.images.remove(image.name)
                # still under the lock: whoever pulls it next records it anew
                self._path(image.name).unlink(missing_ok=True)
        except Timeout:
            return False
        except APIError as error:
            if error.status_code == _IN_USE:
                return False
            raise
        return True

    def _id_of(self, name: str) -> str | None:
        try:
            return str(self._client.images.get(name).id)
        except ImageNotFound:
            return None

    def _path(self, name: str) -> Path:
        return self._folder / f"{_digest(name)}.json"


class Needs:
    """The images that one run still needs, published for the other runs on this machine.

    The controller holds a lock beside its list. The kernel releases the lock when the process ends for whatever
    reason, so that a killed run needs nothing any more, and no process id has to be checked.
    """

    def __init__(self, home: Path) -> None:
        """Take the lock; `close` releases it.

        Args:
            home: the folder that all processes on this machine share.
        """
        self._folder = home / "needed-images"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._path = self._folder / f"{os.getpid()}-{token_hex(4)}.json"
        # it may be closed by another thread than the one that opened it
        self._lock = FileLock(self._path.with_suffix(".lock"), thread_local=False)
        self._lock.acquire()

    def tell(self, names: Iterable[str]) -> None:
        """Publish the images that are still needed, under every name that they may have."""
        _replace(self._path, sorted(names))

    def of_others(self) -> frozenset[str]:
        """What all other live runs need; the lists of dead runs are removed."""
        needed: set[str] = set()
        for path in set(self._folder.glob("*.json")) - {self._path}:
            lock = path.with_suffix(".lock")
            try:
                with FileLock(lock).acquire(timeout=0):
                    path.unlink(missing_ok=True)
                    lock.unlink(missing_ok=True)
            except Timeout:
                with suppress(FileNotFoundError):  # it has just been closed
                    needed.update(json.loads(path.read_text()))
        return frozenset(needed)

    def close(self) -> None:
        """Need nothing any more."""
        self._path.unlink(missing_ok=True)
        self._path.with_suffix(".lock").unlink(missing_ok=True)
        self._lock.release()


def image_lock(home: Path, name: str) -> FileLock:
    """The lock that a process holds while it pulls or removes an image."""
    return home_lock(home, f"image-{_digest(name)}")


def home_lock(home: Path, name: str) -> FileLock:
    """A lock that all processes on this machine share."""
    (home / "locks").mkdir(parents=True, exist_ok=True)
    return FileLock(home / "locks" / f"{name}.lock")


def _digest(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:16]


def _replace(path: Path, content: object) -> None:
    """Write a JSON file so that readers see the old content or the new, never a part."""
    fresh = path.with_suffix(f".{os.getpid()}.new")
    fresh.write_text(json.dumps(content))
    fresh.replace(path)
