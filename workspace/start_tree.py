"""The start commit's tree on the host: what patches are taken against, out of reach of any container.

A small bare repository beside the other caches holds the tree and its files, without their history. It is filled
from a fresh container of the prepared image. Object ids are hashes of the content, so what is in it can't differ
from the commit.
"""

from __future__ import annotations

import shutil
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

import docker
from filelock import FileLock

from workspace.container_files import open_archive
from workspace.host_git import LINK, Entry, git
from workspace.prepare import WORKDIR, PreparedImage
from workspace.throwaway import run_script, script, throwaway


class TreeFiles(Mapping[bytes, Entry]):
    """The files of a tree by path, submodules included."""

    def __init__(self, repository: Path, tree: str) -> None:
        """Read them.

        Args:
            repository: a bare repository that has the tree.
            tree: its object id.
        """
        rows = git(repository, "ls-tree", "-r", "-z", tree).split(b"\0")[:-1]
        self._entries: dict[bytes, Entry] = {}
        for row in rows:
            head, _, path = row.partition(b"\t")
            mode, _, object_id = head.decode().split(" ")
            self._entries[path] = Entry(mode, object_id)
        self._sorted = sorted(self._entries)

    def __getitem__(self, path: bytes) -> Entry:
        return self._entries[path]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._sorted)

    def __len__(self) -> int:
        return len(self._entries)

    def below(self, path: bytes) -> set[bytes]:
        """The paths of all files at and below a path; b"" is the root."""
        # in ASCII, "0" follows "/"
        first, last = (bisect_left(self._sorted, path + end) if path else None for end in (b"/", b"0"))
        return {*self._sorted[first:last], *({path} & self._entries.keys())}

    def children(self, folder: bytes) -> list[bytes]:
        """The paths of the files and folders directly inside a folder, sorted; b"" is the root."""
        start = len(folder) + 1 if folder else 0
        inside = self.below(folder) - {folder}
        return sorted({path[:start] + path[start:].partition(b"/")[0] for path in inside})


class StartTree:
    """The tree of a prepared image's start commit, and what else the image has in its repository's folder."""

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
        """Find the tree in the cache, or read it from a fresh container of the prepared image.

        Args:
            client: the engine.
            prepared: the image.
            cache: a folder that all workers on this machine share.
            labels: for the container that this needs.
            say: told before anything slow.
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
    def entries(self) -> TreeFiles:
        """The tree's files by path."""
        return TreeFiles(self.repository, self.tree)

    @cached_property
    def untracked(self) -> frozenset[bytes]:
        """Files that the image has and no commit knows."""
        return frozenset((self._folder / "untracked").read_bytes().split(b"\0")[:-1])

    def read(self, path: bytes) -> bytes | None:
        """A file's content; None if there is no such file, or if it is a link."""
        entry = self.entries.get(path)
        if entry is None or entry.mode == LINK:
            return None
        return git(self.repository, "cat-file", "blob", entry.object_id)


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
    git(folder, "init", "--quiet", "--bare", "--template=", str(repository))
    pack = folder / "start.pack"
    git(repository, "index-pack", "--stdin", stdin=pack.read_bytes())
    pack.unlink()
    git(repository, "cat-file", "-e", tree)
    (folder / "tree").write_text(tree)
