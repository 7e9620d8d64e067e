"""Taking the patch from repository state: exact, in bytes, and by the host's own git.

Nothing that an agent can touch takes part: not the container's git, config, hooks, attributes, index nor its
`.git`. The final tree is put together on the host from the start tree and the changed files, and the patch
is git's difference of the two. Before it is handed on, the uncleaned patch is applied to the start tree and
must give the final tree exactly.

What is left out of the patch is listed with its reason: new files that the repository's `.gitignore` files
name as the agent left them (so the caches that test tools hide from git stay out, as with `git add`), what
git can't hold, and the claw's own droppings.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from docker.models.containers import Container

from workspace.attributes import Conversions
from workspace.changes import ChangeReader, Changes, FinalFile
from workspace.errors import ExportError
from workspace.ignore import ignored, matching
from workspace.prepare import WORKDIR
from workspace.start_tree import StartTree
from workspace.tree import GITLINK, GONE, Entry, ancestors, git

_LeftOut = list[tuple[str, set[bytes]]]
"""Reasons, each with the paths that were left out for it."""
_REFUSED = re.compile(rb"(\.git|git~1)[. ]*([:\\].*)?", re.IGNORECASE | re.DOTALL)
"""Names of one component that any git takes for `.git`: by default it looks with the eyes of all systems."""


@dataclass(frozen=True)
class Dropped:
    """Something that the agent left and the patch does not carry."""

    path: str
    """As git quotes it where it is not plain text; a folder ends with `/`."""
    reason: str
    files: int = 1


@dataclass(frozen=True)
class Export:
    """An exported patch."""

    raw: str
    """All that changed. Files that are not UTF-8 are in git's binary form, so that a prediction, which is
    JSON, carries them whole."""
    patch: str
    """`raw` without the claw's droppings: what is judged."""
    dropped: tuple[Dropped, ...]
    droppings: tuple[str, ...]
    """The files (relative paths) of the claw that were saved to the folder given."""
    changed_files: int
    start_tree: str
    final_tree: str
    seconds: float


def export(
    container: Container,
    start: StartTree,
    *,
    droppings: Sequence[str],
    save_droppings_to: Path,
    workdir: str = WORKDIR,
) -> Export:
    """Export what was done in a container.

    Args:
        container: ended; every process in it is gone.
        start: what the patch is taken against.
        droppings: the claw's own files, as .gitignore patterns from the repository's root; a file that the
            start commit tracks is never one of them.
        save_droppings_to: a folder on the host, made where needed.
        workdir: the repository, inside the container.

    Raises:
        ExportError: the patch does not give the final tree.
    """
    began = time.monotonic()
    scratch = Path(tempfile.mkdtemp(prefix="clawbench-export-"))
    try:
        return _Exporter(start, scratch).run(container, droppings, save_droppings_to, workdir, began=began)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class _Exporter:
    """One export: a repository of its own that borrows the start tree's objects, and what is put into it."""

    def __init__(self, start: StartTree, scratch: Path) -> None:
        self._start = start
        self._scratch = scratch
        self._git_dir = scratch / "repository.git"
        self._contents = scratch / "contents"
        self._contents.mkdir()
        # nothing is ever written to the shared repository, so nothing there needs a lock or cleaning up
        shutil.copytree(start.repository, self._git_dir, ignore=shutil.ignore_patterns("objects"))
        (self._git_dir / "objects" / "info").mkdir(parents=True)
        (self._git_dir / "objects" / "info" / "alternates").write_text(f"{start.repository / 'objects'}\n")
        (self._git_dir / "info").mkdir(exist_ok=True)
        shutil.copyfile(start.exclude, self._git_dir / "info" / "exclude")

    def run(
        self,
        container: Container,
        patterns: Sequence[str],
        save_droppings_to: Path,
        workdir: str,
        *,
        began: float,
    ) -> Export:
        changes = ChangeReader(container, self._start, self._contents, workdir).read()
        droppings = self._droppings(changes, patterns)
        dropped = _summarised(droppings, "left by the claw itself")
        for reason, paths in (*self._leave_out_ignored(changes), *self._leave_out_unfit(changes)):
            dropped += _summarised(paths - droppings.keys(), reason)
        final = self._final_entries(changes)
        tree, raw = self._difference(final)
        self._check(raw, final)
        kept = {path: entry for path, entry in final.items() if path not in droppings}
        _, patch = self._difference(kept) if droppings else (tree, raw)
        saved = _save(droppings, save_droppings_to)
        return Export(
            raw.decode(),
            patch.decode(),
            tuple(sorted(dropped, key=lambda item: item.path)),
            saved,
            len(kept),
            self._start.tree,
            tree,
            time.monotonic() - began,
        )

    def _droppings(self, changes: Changes, patterns: Sequence[str]) -> dict[bytes, FinalFile]:
        new = {path for path in changes.files if path not in self._start.entries}
        found = matching(self._git_dir, patterns, new, self._scratch / "droppings")
        return {path: changes.files[path] for path in found}

    def _leave_out_ignored(self, changes: Changes) -> _LeftOut:
        new = {path for path in changes.files if path not in self._start.entries}
        left_out = ignored(self._git_dir, self._start, changes, new, self._scratch / "rules")
        for path in left_out:
            del changes.files[path]
        return [("ignored by the repository's own rules", left_out)]

    def _leave_out_unfit(self, changes: Changes) -> _LeftOut:
        """Take out what no patch against the start commit can carry."""
        entries = self._start.entries
        # a repository inside the image's is told as one folder
        untracked = {path.rstrip(b"/") for path in self._start.untracked}
        in_use = {folder for path in untracked for folder in ancestors(path)}
        reasons: dict[str, set[bytes]] = {
            "not a file: git can't hold pipes, sockets and devices": changes.special,
            "part of another repository's .git": changes.of_git,
        }
        for path, file in list(changes.files.items()):
            lineage = {path, *ancestors(path)}
            if any(map(_REFUSED.fullmatch, path.split(b"/"))):
                reason = "git refuses the name, which other systems take for .git"
            elif path.rpartition(b"/")[2].lower() == b".gitmodules" and file.mode == "120000":
                reason = "git takes no link as .gitmodules"
            elif any((entry := entries.get(step)) and entry.mode == GITLINK for step in lineage):
                reason = "inside a submodule, which is a repository of its own"
            elif lineage & untracked or path in in_use:
                reason = "a file of the image that no commit knows is there: a patch can't change it"
            else:
                continue
            del changes.files[path]
            reasons.setdefault(reason, set()).add(path)
        return list(reasons.items())

    def _final_entries(self, changes: Changes) -> dict[bytes, Entry]:
        """What differs from the start tree, by path."""
        paths = sorted(changes.files)
        names = "".join(f"{changes.files[path].content}\n" for path in paths).encode()
        hashed = git(self._git_dir, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=names)
        ids = dict(zip(paths, hashed.decode().split(), strict=True))
        entries = {path: Entry(changes.files[path].mode, ids[path]) for path in paths}
        known = self._start.entries
        conversions = Conversions(self._git_dir, self._start, self._scratch / "attributes")
        touched = [path for path, entry in entries.items() if path in known and entry != known[path]]
        for path, object_id in conversions.stored_as(touched, changes.files).items():
            entries[path] = Entry(entries[path].mode, object_id)
        final = {path: entry for path, entry in entries.items() if known.get(path) != entry}
        return {**dict.fromkeys(changes.deleted, GONE), **final}

    def _difference(self, final: dict[bytes, Entry]) -> tuple[str, bytes]:
        """The tree with these entries, and the patch to it, which is always UTF-8."""
        tree = self._tree(final)
        patch = self._diff(self._start.tree, tree)
        try:
            patch.decode()
        except UnicodeDecodeError:
            middle = self._tree(self._text_part(final))
            patch = self._diff(self._start.tree, middle) + self._diff(middle, tree, binary=True)
        return tree, patch

    def _tree(self, final: dict[bytes, Entry]) -> str:
        """The tree with these entries: new objects for the folders that change, and no others."""
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        count = itertools.count()
        tree = self._start.entries.changed(final, lambda content: _keep(folder / str(next(count)), content))
        names = "".join(f"{path}\n" for path in folder.iterdir()).encode()
        git(self._git_dir, "hash-object", "-t", "tree", "-w", "--literally", "--stdin-paths", stdin=names)
        return tree

    def _diff(self, before: str, after: str, *, binary: bool = False) -> bytes:
        attributes = self._scratch / "binary-attributes"
        attributes.write_text("* -diff\n" if binary else "")
        # no rename detection: plain `patch`, the official harness's last resort, can't follow renames
        options = ["--patch", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv"]
        config = {"core.attributesFile": str(attributes), "core.quotePath": "true"}
        if binary:
            config["diff.default.binary"] = "true"  # attributes say nothing of links
        return git(self._git_dir, "diff-tree", "-r", *options, before, after, config=config)

    def _text_part(self, final: dict[bytes, Entry]) -> dict[bytes, Entry]:
        """The entries that are UTF-8, but for those in the way of others: a file where a folder is, or was."""
        others = {path for path, entry in final.items() if not self._is_utf8(path, entry)}
        in_use = {folder for path in others for folder in ancestors(path)}
        return {
            path: entry
            for path, entry in final.items()
            if path not in others and path not in in_use and others.isdisjoint(ancestors(path))
        }

    def _is_utf8(self, path: bytes, entry: Entry) -> bool:
        sides = [side for side in (self._start.entries.get(path), entry) if side and side != GONE]
        try:
            for side in sides:
                git(self._git_dir, "cat-file", "blob", side.object_id).decode()
        except UnicodeDecodeError:
            return False
        return True

    def _check(self, patch: bytes, final: dict[bytes, Entry]) -> None:
        """Apply the uncleaned patch to the start tree: it must give the final tree exactly.

        It is applied to the start tree's entries of the paths that it is about, which are all that it can touch.
        """
        index = self._scratch / "check"
        before = {path: entry for path in final if (entry := self._start.entries.get(path))}
        rows = (f"{entry.mode} {entry.object_id}\t".encode() + path + b"\0" for path, entry in before.items())
        git(self._git_dir, "update-index", "-z", "--index-info", stdin=b"".join(rows), index=index)
        if patch:
            git(self._git_dir, "apply", "--cached", "--whitespace=nowarn", "-", stdin=patch, index=index)
        applied = {}
        for row in git(self._git_dir, "ls-files", "-s", "-z", index=index).split(b"\0")[:-1]:
            head, _, path = row.partition(b"\t")
            mode, object_id, _ = head.decode().split(" ")
            applied[path] = Entry(mode, object_id)
        wanted = {path: entry for path, entry in final.items() if entry != GONE}
        if applied != wanted:
            wrong = sorted(path for path in {*applied, *wanted} if applied.get(path) != wanted.get(path))
            raise ExportError(
                f"the exported patch does not give what the agent left: {', '.join(map(quoted, wrong))}"
            )


def _keep(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _save(droppings: dict[bytes, FinalFile], folder: Path) -> tuple[str, ...]:
    """Keep the claw's droppings as artifacts, links as plain files that hold their target."""
    saved = []
    for path, file in sorted(droppings.items()):
        target = folder / os.fsdecode(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.content, target)
        saved.append(quoted(path))
    return tuple(saved)


def quoted(path: bytes) -> str:
    """A path as text: itself where it is UTF-8 without control characters, else with backslash escapes."""
    try:
        text = path.decode()
    except UnicodeDecodeError:
        return path.decode("utf-8", "backslashreplace")
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def _summarised(paths: Iterable[bytes], reason: str, most: int = 200) -> list[Dropped]:
    """One row a path, or where they are many, one row a top folder with its count."""
    paths = sorted(paths)
    if len(paths) <= most:
        return [Dropped(quoted(path), reason) for path in paths]
    tops = Counter(path.partition(b"/")[0] + (b"/" if b"/" in path else b"") for path in paths)
    return [Dropped(quoted(top), reason, count) for top, count in tops.items()]
