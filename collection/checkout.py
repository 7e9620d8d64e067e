"""Applies patches to a small repository on the host, in the ways that judges do. Only for patches that are trusted."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from common.errors import NotReadyError
from evaluation.collection import Change
from workspace.host_git import git
from workspace.workspace_errors import ExportError


@dataclass(frozen=True)
class Applied:
    """What applying a patch gave."""

    change: Change
    is_applied: bool
    message: str
    """What the last command said."""


class Checkout:
    """A repository with one commit; it is as before after each call."""

    def __init__(self, folder: Path, files: Mapping[str, bytes]) -> None:
        """Create the repository.

        Args:
            folder: must not exist yet.
            files: the start tree's content by path.

        Raises:
            NotReadyError: the program `patch` is missing.
            ExportError: git failed.
        """
        if shutil.which("patch") is None:
            raise NotReadyError("the program `patch` is missing: install it (`apt-get install patch`)")
        self._repository, self._index, self.folder = folder / "repository.git", folder / "index", folder / "tree"
        self.folder.mkdir(parents=True)
        git(folder, "init", "--quiet", "--bare", "--template=", str(self._repository))
        self._patch = folder / "collected.patch"
        self._names = frozenset(files)
        self._write(files)
        self.start = self._tree()

    def _git(self, *words: str) -> bytes:
        return git(self._repository, *words, index=self._index, work_tree=self.folder)

    def _write(self, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def _tree(self) -> str:
        self._git("add", "--all", "--force", ".")
        return self._git("write-tree").decode().strip()

    def _reset(self) -> None:
        """Go back to the start tree; `_tree` must have put everything into the index."""
        self._git("read-tree", "--reset", "-u", self.start)

    def _change(self) -> Change:
        tree = self._tree()
        is_same = tree == self.start
        return Change(tree, b"" if is_same else self._git("diff", "--binary", "--no-renames", self.start, tree))

    def edited(self, files: Mapping[str, bytes]) -> Change:
        """What writing some files gives: the export of an agent's work."""
        self._write(files)
        try:
            return self._change()
        finally:
            self._reset()

    def files_of(self, tree: str) -> dict[str, bytes]:
        """The files of a tree by path."""
        names = self._git("ls-tree", "-r", "-z", "--name-only", tree).decode("utf-8", "surrogateescape")
        return {name: self._git("cat-file", "blob", f"{tree}:{name}") for name in names.split("\0")[:-1]}

    def difference(self, first: str, second: str) -> str:
        """Git's diff between two trees."""
        return self._git("diff", "--no-renames", first, second).decode(errors="replace")

    def apply(self, patch: bytes, commands: tuple[tuple[str, ...], ...]) -> Applied:
        """Apply a patch.

        Args:
            patch: the patch.
            commands: tried in this order, until one succeeds.
        """
        self._patch.write_bytes(patch)
        said = "the message has no diff"
        try:
            is_applied = False
            for number, command in enumerate(commands if patch else ()):
                if number:
                    self._tree()
                    self._reset()
                is_applied, said = self._try(command)
                if is_applied:
                    break
            for path in self.folder.rglob("*"):
                is_own = str(path.relative_to(self.folder)) in self._names
                if path.suffix in (".rej", ".orig") and not is_own:  # what the commands leave for a reader
                    path.unlink()
            return Applied(self._change(), is_applied, said)
        finally:
            self._reset()

    def _try(self, command: tuple[str, ...]) -> tuple[bool, str]:
        if command[0] == "git":
            try:
                return True, self._git(*command[1:], str(self._patch)).decode(errors="replace")
            except ExportError as error:
                return False, str(error)
        done = subprocess.run(
            [*command, str(self._patch)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        return done.returncode == 0, done.stdout + done.stderr
