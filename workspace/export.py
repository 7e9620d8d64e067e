"""Export the patch from the final state of the repository: exact to the byte, and by the host's own git.

Nothing that an agent can touch takes part: not the container's git, config, hooks, attributes or index, nor its
`.git`. The final tree is put together on the host from the start tree and the changed files, and the patch is
git's difference between the two. Before the patch is used, it is applied uncleaned to the start tree and must
give the final tree exactly.

What is left out of the patch is listed with the reason: new files that the repository's `.gitignore` files
ignore (as the agent left these files, so that the caches of test tools stay out, as with `git add`), what git
can't store, and the claw's own files.
"""

from __future__ import annotations

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

from workspace.changes import MAX_FILE, MAX_NEW_FILES, ChangeReader, Changes, FinalFile
from workspace.git_rules import ignored, matching, stored_forms
from workspace.host_git import GITLINK, GONE, LINK, Entry, ancestors, git
from workspace.prepare import WORKDIR
from workspace.start_tree import StartTree
from workspace.workspace_errors import ExportError

_LeftOut = dict[str, set[bytes]]
"""The paths that were left out, by reason."""
MAX_PATCH = 256 * 1024 * 1024
"""The most bytes of all changed files together: a patch is held in memory, and predictions are JSON."""
_REFUSED = re.compile(rb"(\.git|git~1)[. ]*([:\\].*)?", re.IGNORECASE | re.DOTALL)
"""The names that git takes for `.git` on some system, and therefore refuses on all."""


@dataclass(frozen=True)
class Dropped:
    """Something that the agent left and the patch leaves out."""

    path: str
    """As `quoted` writes it; a folder ends with `/`."""
    reason: str
    files: int = 1


@dataclass(frozen=True)
class Export:
    """An exported patch."""

    raw: str
    """Everything that changed. Files that are not UTF-8 are in git's binary form, so that a prediction, which is
    JSON, can hold them."""
    patch: str
    """`raw` without the claw's own files: what is judged."""
    dropped: tuple[Dropped, ...]
    agent_files: tuple[str, ...]
    """The relative paths of the claw's own files, which were saved."""
    changed_files: int
    start_tree: str
    final_tree: str
    patch_tree: str
    """What `patch` gives: the final tree without the claw's own files."""
    seconds: float


def export(
    container: Container,
    start: StartTree,
    *,
    agent_files: Sequence[str],
    save_agent_files_to: Path,
    workdir: str = WORKDIR,
) -> Export:
    """Export what was done in a container.

    Args:
        container: ended, with all its processes.
        start: what the patch is taken against.
        agent_files: the claw's own files, as .gitignore patterns from the repository's root. A file that the start
            commit tracks is never one of them.
        save_agent_files_to: a folder on the host; made if necessary.
        workdir: the repository's folder inside the container.

    Raises:
        ExportError: the patch does not reproduce the final tree.
    """
    began = time.monotonic()
    scratch = Path(tempfile.mkdtemp(prefix="clawbench-export-"))
    try:
        return _Exporter(start, scratch).run(container, agent_files, save_agent_files_to, workdir, began=began)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class _Exporter:
    """One export, in a repository of its own that borrows the objects of the start tree's."""

    def __init__(self, start: StartTree, scratch: Path) -> None:
        self._start = start
        self._scratch = scratch
        self._git_dir = scratch / "repository.git"
        self._contents = scratch / "contents"
        self._contents.mkdir()
        # the shared repository is never written to, so it needs neither lock nor cleaning up
        shutil.copytree(start.repository, self._git_dir, ignore=shutil.ignore_patterns("objects"))
        (self._git_dir / "objects" / "info").mkdir(parents=True)
        (self._git_dir / "objects" / "info" / "alternates").write_text(f"{start.repository / 'objects'}\n")
        (self._git_dir / "info").mkdir(exist_ok=True)
        shutil.copyfile(start.exclude, self._git_dir / "info" / "exclude")

    def run(
        self,
        container: Container,
        patterns: Sequence[str],
        save_agent_files_to: Path,
        workdir: str,
        *,
        began: float,
    ) -> Export:
        changes = ChangeReader(container, self._start, self._contents, workdir).read()
        agent_files = self._agent_files(changes, patterns)
        dropped = _summarised(agent_files, "left by the claw itself")
        left_out = (
            self._leave_out_ignored(changes) | self._leave_out_unfit(changes) | self._leave_out_large(changes)
        )
        for reason, paths in left_out.items():
            dropped += _summarised(paths - agent_files.keys(), reason)
        final = self._final_entries(changes)
        tree, raw = self._difference(final)
        self._check(raw, tree)
        kept = {path: entry for path, entry in final.items() if path not in agent_files}
        patch_tree, patch = self._difference(kept) if agent_files else (tree, raw)
        saved = _save(agent_files, save_agent_files_to)
        return Export(
            raw.decode(),
            patch.decode(),
            tuple(sorted(dropped, key=lambda item: item.path)),
            saved,
            len(kept),
            self._start.tree,
            tree,
            patch_tree,
            time.monotonic() - began,
        )

    def _agent_files(self, changes: Changes, patterns: Sequence[str]) -> dict[bytes, FinalFile]:
        new = {path for path in changes.files if path not in self._start.entries}
        found = matching(self._git_dir, patterns, new, self._scratch / "agent_files")
        return {path: changes.files[path] for path in found}

    def _leave_out_ignored(self, changes: Changes) -> _LeftOut:
        new = {path for path in changes.files if path not in self._start.entries}
        left_out = ignored(self._git_dir, self._start, changes, new, self._scratch / "rules")
        for path in left_out:
            del changes.files[path]
        return {"ignored by the repository's own rules": left_out}

    def _leave_out_unfit(self, changes: Changes) -> _LeftOut:
        """Take out what no patch against the start commit can express."""
        entries = self._start.entries
        # another repository inside the image's is listed as one folder
        untracked = {path.rstrip(b"/") for path in self._start.untracked}
        in_use = {folder for path in untracked for folder in ancestors(path)}
        reasons: _LeftOut = {
            "not a file: git can't hold pipes, sockets and devices": changes.special,
            "part of another repository's .git": changes.of_git,
        }
        for path, file in list(changes.files.items()):
            lineage = {path, *ancestors(path)}
            if any(map(_REFUSED.fullmatch, path.split(b"/"))):
                reason = "git refuses the name, which other systems take for .git"
            elif path.rpartition(b"/")[2].lower() == b".gitmodules" and file.mode == LINK:
                reason = "git takes no link as .gitmodules"
            elif any((entry := entries.get(step)) and entry.mode == GITLINK for step in lineage):
                reason = "inside a submodule, which is a repository of its own"
            elif b" /" in path and _is_without_text(file):
                reason = "empty or binary, in a folder whose name ends with a space: git can't apply such a patch"
            elif lineage & untracked or path in in_use:
                reason = "a file of the image that no commit knows is there: a patch can't change it"
            else:
                continue
            del changes.files[path]
            reasons.setdefault(reason, set()).add(path)
        return reasons

    def _leave_out_large(self, changes: Changes) -> _LeftOut:
        """Take out what would make the patch larger than `MAX_PATCH`, the largest files first."""
        sizes = {path: file.content.stat().st_size for path, file in changes.files.items()}
        total, left_out = sum(sizes.values()), set()
        for path in sorted(sizes, key=lambda path: (-sizes[path], path)):
            if total <= MAX_PATCH:
                break
            total -= sizes[path]
            left_out.add(path)
            del changes.files[path]
        limits = f"{MAX_FILE >> 20} MiB, {MAX_PATCH >> 20} MiB in all or {MAX_NEW_FILES:,} new files"
        return {f"more than {limits}": left_out | changes.excessive}

    def _final_entries(self, changes: Changes) -> dict[bytes, Entry]:
        """What differs from the start tree, by path."""
        paths = sorted(changes.files)
        names = "".join(f"{changes.files[path].content}\n" for path in paths).encode()
        hashed = git(self._git_dir, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=names)
        ids = dict(zip(paths, hashed.decode().split(), strict=True))
        known = self._start.entries
        touched = [path for path in paths if path in known and ids[path] != known[path].object_id]
        ids |= stored_forms(self._git_dir, self._start, touched, changes.files, self._scratch / "attributes")
        entries = {path: Entry(changes.files[path].mode, ids[path]) for path in paths}
        final = {path: entry for path, entry in entries.items() if known.get(path) != entry}
        return {**dict.fromkeys(changes.deleted, GONE), **final}

    def _difference(self, final: dict[bytes, Entry]) -> tuple[str, bytes]:
        """The tree that has these entries, and the patch to it, which is always UTF-8."""
        tree = self._tree(final)
        patch = self._diff(self._start.tree, tree)
        try:
            patch.decode()
        except UnicodeDecodeError:
            middle = self._tree(self._text_part(final))
            patch = self._diff(self._start.tree, middle) + self._diff(middle, tree, binary=True)
        return tree, patch

    def _tree(self, final: dict[bytes, Entry]) -> str:
        """Write the tree that differs from the start tree by these entries."""
        index = self._start_index()
        # deletions first: a folder may have taken the place of a file, or a file that of a folder
        rows = sorted(final.items(), key=lambda row: row[1] != GONE)
        feed = b"".join(f"{entry.mode} {entry.object_id}\t".encode() + path + b"\0" for path, entry in rows)
        git(self._git_dir, "update-index", "-z", "--index-info", stdin=feed, index=index)
        return git(self._git_dir, "write-tree", index=index).decode().strip()

    def _start_index(self) -> Path:
        index = self._scratch / "index"
        git(self._git_dir, "read-tree", self._start.tree, index=index)
        return index

    def _diff(self, before: str, after: str, *, binary: bool = False) -> bytes:
        attributes = self._scratch / "binary-attributes"
        attributes.write_text("* -diff\n" if binary else "")
        # no renames: plain `patch`, the official harness's last resort, does not understand them
        options = ["--patch", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv"]
        config = {"core.attributesFile": str(attributes), "core.quotePath": "true"}
        if binary:
            config["diff.default.binary"] = "true"  # attributes do not apply to links
        return git(self._git_dir, "diff-tree", "-r", *options, before, after, config=config)

    def _text_part(self, final: dict[bytes, Entry]) -> dict[bytes, Entry]:
        """The entries that are UTF-8, without those in the way of others: a file where a folder is, or was."""
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

    def _check(self, patch: bytes, tree: str) -> None:
        """Apply the uncleaned patch to the start tree: it must give the final tree exactly."""
        index = self._start_index()
        if patch:
            git(self._git_dir, "apply", "--cached", "--whitespace=nowarn", "-", stdin=patch, index=index)
        applied = git(self._git_dir, "write-tree", index=index).decode().strip()
        if applied != tree:
            differing = git(self._git_dir, "diff-tree", "-r", "-z", "--name-only", applied, tree)
            names = ", ".join(map(quoted, differing.split(b"\0")[:-1]))
            raise ExportError(f"the exported patch does not reproduce what the agent left: {names}")


def _is_without_text(file: FinalFile) -> bool:
    """Whether a patch that adds a file has no lines of text, so that only its header names the file."""
    content = file.content.read_bytes()
    try:
        content.decode()
    except UnicodeDecodeError:
        return True
    return not content or b"\0" in content[:8000]


def _save(agent_files: dict[bytes, FinalFile], folder: Path) -> tuple[str, ...]:
    """Save the claw's own files; a link becomes a plain file that holds its target."""
    saved = []
    for path, file in sorted(agent_files.items()):
        target = folder / os.fsdecode(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.content, target)
        saved.append(quoted(path))
    return tuple(saved)


def quoted(path: bytes) -> str:
    """A path as text, with backslash escapes if it is not UTF-8 or has control characters."""
    try:
        text = path.decode()
    except UnicodeDecodeError:
        return path.decode("utf-8", "backslashreplace")
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def _summarised(paths: Iterable[bytes], reason: str, most: int = 200) -> list[Dropped]:
    """One row per path; if there are many, one row per top folder, with its count."""
    paths = sorted(paths)
    if len(paths) <= most:
        return [Dropped(quoted(path), reason) for path in paths]
    tops = Counter(path.partition(b"/")[0] + (b"/" if b"/" in path else b"") for path in paths)
    return [Dropped(quoted(top), reason, count) for top, count in tops.items()]
