"""The images that the suite pulled or made: which they are, what room they take, and how one is removed.

Nothing else is ever removed. A pulled image carries no label of ours, and labels are handed on to whatever a user
makes of an image, so it is written down: the name, and what it meant. An image is ours as long as its name still
means that. It is removed by its name and without force: the engine refuses while a container is made of it, and an
image that has another name as well stays under that one.
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
    """The instance's image that it was made from; its own name, where it is that one."""

    @property
    def is_source(self) -> bool:
        """Whether it is an instance's own image."""
        return self.name == self.source


class Inventory:
    """What the processes that share a folder have pulled and made on an engine."""

    def __init__(self, client: docker.DockerClient, home: Path) -> None:
        """Nothing is read yet.

        Args:
            client: the engine.
            home: the folder that all processes on this machine share.
        """
        self._client = client
        self._home = home
        self._layers: dict[str, frozenset[tuple[str, ...]]] = {}

    @cached_property
    def _folder(self) -> Path:
        # another engine's images are others, whatever their names
        return self._home / "own-images" / _digest(str(self._client.info()["ID"]))

    def note(self, name: str, source: str | None = None) -> None:
        """Write down that an image was pulled or made.

        Args:
            name: of the image, which is here.
            source: what it was made from; None: it is an instance's own image.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._path(name)
        fresh = path.with_suffix(f".{os.getpid()}.new")
        row = {"name": name, "image_id": self._client.images.get(name).id, "source": source or name}
        fresh.write_text(json.dumps(row))
        fresh.replace(path)

    def images(self) -> list[OwnImage]:
        """All of ours that are still there, as they were."""
        found = []
        for path in sorted(self._folder.glob("*.json")):
            try:
                text = path.read_text()
                image = OwnImage(**json.loads(text))
            except FileNotFoundError:
                continue  # another run removes it at this moment
            except (ValueError, TypeError):
                path.unlink(missing_ok=True)  # a power cut tore it: what is not known to be ours is not ours
                continue
            if self._id_of(image.name) == image.image_id:
                found.append(image)
            else:
                self._forget(path, text, image.source)
        return found

    def _forget(self, path: Path, text: str, source: str) -> None:
        """Somebody removed an image, or gave its name to another; who pulls it at this moment notes it anew."""
        with suppress(Timeout, FileNotFoundError), image_lock(self._home, source).acquire(timeout=0):
            if path.read_text() == text:
                path.unlink()

    def size(self, images: Iterable[OwnImage]) -> int:
        """The bytes that images take together; a layer that several have counts once."""
        layers: set[tuple[str, ...]] = set()
        for image in images:
            layers |= self._layers_of(image.image_id)
        return sum(int(layer[-1]) for layer in layers)

    def _layers_of(self, image_id: str) -> frozenset[tuple[str, ...]]:
        """The steps that made an image, each with its bytes.

        The engine does not tell the size of a layer by its name; images that share a layer share the step that
        made it.
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
        """Remove an image, with the layers that nothing else has.

        Returns:
            whether it is gone: not where a container is made of it, or a process pulls it.
        """
        lock = image_lock(self._home, image.source)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return False
        try:
            with suppress(ImageNotFound):  # another run was quicker
                if self._id_of(image.name) == image.image_id:
                    self._client.images.remove(image.name)
            # before the lock is given back: whoever pulls it next writes it down anew
            self._path(image.name).unlink(missing_ok=True)
        except APIError as error:
            if error.status_code == _IN_USE:
                return False
            raise
        finally:
            lock.release()
        return True

    def _id_of(self, name: str) -> str | None:
        try:
            return str(self._client.images.get(name).id)
        except ImageNotFound:
            return None

    def _path(self, name: str) -> Path:
        return self._folder / f"{_digest(name)}.json"


def image_lock(home: Path, name: str) -> FileLock:
    """The lock of whoever pulls or removes an image."""
    return home_lock(home, f"image-{_digest(name)}")


def home_lock(home: Path, name: str) -> FileLock:
    """A lock that all processes on this machine share."""
    (home / "locks").mkdir(parents=True, exist_ok=True)
    return FileLock(home / "locks" / f"{name}.lock")


def _digest(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:16]
