"""The ways in which a patch gets from the agent to the judge, and what each gave: trees are compared, not texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from unidiff.constants import LINE_TYPE_ADDED, LINE_TYPE_REMOVED
from unidiff.patch import PatchedFile, PatchSet


class Arm(StrEnum):
    """A way in which the patch gets to the judge."""

    WORKSPACE = "workspace"
    """The runner's diff of the agent's files."""
    STRICT = "message-strict"
    """The diff in the final message, by `git apply`."""
    FUZZY = "message-fuzzy"
    """The same diff, by all the commands that the official harness tries."""


class AdapterPart(StrEnum):
    """What the suite does around a claw, so that each part's worth can be measured by leaving it out."""

    PREPARATION = "preparation"
    """The workspace has no commits after the start commit. Without it, the instance's own image is used."""
    PROMPT = "prompt"
    """The shared prompt. Without it, the prompt is the issue and a request for a diff."""
    EXPORT = "export"
    """The patch is the runner's diff. Without it, the diff in the final message, by the official harness's commands."""
    CLEANING = "cleaning"
    """The claw's own files are left out of the export; only with it."""


FUZZY = (
    ("git", "apply", "--verbose"),
    ("git", "apply", "--verbose", "--3way"),
    ("git", "apply", "--verbose", "--reject"),
    ("patch", "--batch", "--forward", "--fuzz=5", "-p1", "-i"),
)
"""The official harness's commands (`swebench.harness.run_evaluation.GIT_APPLY_CMDS`), each tried on a fresh tree."""
STRICT = FUZZY[:1]


class Kind(StrEnum):
    """What became of the agent's work."""

    EXACT = "exact"
    REJECTED = "rejected"
    UNDER_EDIT = "under_edit"
    OVER_EDIT = "over_edit"
    WRONG_FILE = "wrong_file"
    OTHER_TREE = "other_tree"
    HALF_APPLIED = "half_applied"

    @property
    def is_silent(self) -> bool:
        """Whether files that the agent did not write reach the judge without any error."""
        return self in {Kind.UNDER_EDIT, Kind.OVER_EDIT, Kind.WRONG_FILE, Kind.OTHER_TREE}


MEANINGS = {
    Kind.EXACT: "the files are those that the agent left",
    Kind.REJECTED: "the patch was refused, or there was none, and nothing changed",
    Kind.UNDER_EDIT: "only a part of the agent's changes is there, and nothing else",
    Kind.OVER_EDIT: "all of the agent's changes are there, and others in the same files",
    Kind.WRONG_FILE: "a file changed that the agent did not change",
    Kind.OTHER_TREE: "the agent's files changed, but in another way",
    Kind.HALF_APPLIED: "the patch was refused, and a part of it stayed in the files",
}


@dataclass(frozen=True)
class Change:
    """A tree, and git's diff of the start tree and this one."""

    tree: str
    """Its object id."""
    diff: bytes


def kind_of(wanted: Change, got: Change, *, is_applied: bool) -> Kind:
    """Compare what an arm gave with what the agent left.

    Args:
        wanted: what the agent left.
        got: what applying the collected patch gave.
        is_applied: whether the applying command said that it succeeded.
    """
    changed = set(_edits(got.diff))
    if not is_applied:
        return Kind.HALF_APPLIED if changed else Kind.REJECTED
    if got.tree == wanted.tree:
        return Kind.EXACT
    asked = set(_edits(wanted.diff))
    if {edit[0] for edit in changed} - {edit[0] for edit in asked}:
        return Kind.WRONG_FILE
    if changed < asked:
        return Kind.UNDER_EDIT
    return Kind.OVER_EDIT if changed > asked else Kind.OTHER_TREE


Edit = tuple[str, int, str, str]
"""A run of changed lines: the file, its place in the start tree, the lines removed, the lines added."""


def _edits(diff: bytes) -> Iterator[Edit]:
    """The runs of changed lines, and changes that have no lines (modes, binary files)."""
    text = diff.decode("latin-1")  # any bytes; they are only compared
    for file in PatchSet(f"{line}\n" for line in text.removesuffix("\n").split("\n")):
        head = str(file.patch_info)
        if not file or "\nnew mode" in head or file.is_binary_file:
            yield file.path, 0, "", head
        yield from _runs(file)


def _runs(file: PatchedFile) -> Iterator[Edit]:
    for hunk in file:
        place, removed, added = hunk.source_start, "", ""
        for line in hunk:
            if line.line_type == LINE_TYPE_REMOVED:
                removed += line.value
            elif line.line_type == LINE_TYPE_ADDED:
                added += line.value
            elif line.source_line_no is not None:
                if removed or added:
                    yield file.path, place, removed, added
                place, removed, added = line.source_line_no + 1, "", ""
        if removed or added:
            yield file.path, place, removed, added
