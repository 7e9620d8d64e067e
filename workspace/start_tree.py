"""The start commit's tree on the host: what patches are taken against, out of reach of any container.

A small bare repository beside the other caches holds the tree and its files, without their past. It is filled
from a fresh container of the prepared image; names of objects are hashes of their content, so what is in it
can't differ from what the commit says.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

import docker
from filelock import FileLock

from workspace.archive import open_archive
from workspace.prepare import WORKDIR, PreparedImage
from workspace.throwaway import run_script, script, throwaway
from workspace.tree import TreeEntries, git


class StartTree:
    """The tree of a prepared image's start commit, with what the image has beside it."""

    def __init__(self, folder: Path) -> None:
        """Open the folder that `of` filled."""
        self.repository = folder / "repository.git"
        self.exclude = folder / "exclude"
        """The image's own `.git/info/exclude`."""
        self._folder = folder

    @classmethod
    def of(
        cls,
        client: docker.DockerClient,
        prepared: PreparedImage,
        *,
        cache: Path,
        labels: Mapping[str, str],
        say: Callable[[str], None],
        workdir: str = WORKDIR,
    ) -> StartTree:
        """Find it in the cache, or fetch it from a fresh container of the prepared image.

        Args:
            client: the engine.
            prepared: the image.
            cache: a folder that all workers on this machine share.
            labels: the labels for the container that this needs.
            say: told what takes time.
            workdir: the repository's folder inside the image.

        Raises:
            PreparationError: the tree could not be read from the image.
        """
        folder = cache / prepared.image_id.removeprefix("sha256:")[:32]
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not folder.is_dir():
                say("reading the start tree")
                making = Path(tempfile.mkdtemp(prefix=".making-", dir=cache))
                try:
                    _fill(client, prepared, making, labels, workdir)
                    making.rename(folder)
                finally:
                    shutil.rmtree(making, ignore_errors=True)
        return cls(folder)

    @cached_property
    def tree(self) -> str:
        """The tree's object id."""
        return (self._folder / "tree").read_text().strip()

    @cached_property
    def entries(self) -> TreeEntries:
        """The tree's files by path."""
        return TreeEntries(self.repository, self.tree)

    @cached_property
    def untracked(self) -> frozenset[bytes]:
        """Files that the image has and no commit knows."""
        return frozenset((self._folder / "untracked").read_bytes().split(b"\0")[:-1])

    def read(self, object_id: str) -> bytes:
        """A file's content."""
        return git(self.repository, "cat-file", "blob", object_id)


def _fill(
    client: docker.DockerClient,
    prepared: PreparedImage,
    folder: Path,
    labels: Mapping[str, str],
    workdir: str,
) -> None:
    scripts = {"extract.sh": script("extract.sh")}
    with throwaway(client, prepared.image_id, labels, scripts, platform=prepared.platform) as container:
        command = ["/clawbench/extract.sh", workdir, prepared.proof.start_commit, "/clawbench/out"]
        tree = run_script(container, command)[-1].removeprefix("tree ")
        with open_archive(container, "/clawbench/out") as archive:
            for member in archive:
                source = archive.extractfile(member)
                if source is not None:
                    with (folder / Path(member.name).name).open("wb") as target:
                        shutil.copyfileobj(source, target)
    repository = folder / "repository.git"
    subprocess.run(
        ["git", "init", "--quiet", "--bare", "--template=", str(repository)], check=True, capture_output=True
    )
    pack = folder / "start.pack"
    git(repository, "index-pack", "--stdin", stdin=pack.read_bytes())
    pack.unlink()
    git(repository, "cat-file", "-e", tree)
    (folder / "tree").write_text(tree)
