"""Makes other patches from a gold patch: some of its hunks, or an edit at the same place that fixes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile, PatchSet

MIN_NEEDLE = 8
"""Shorter lines may occur anywhere."""
MAX_NEEDLES = 20


def parse(patch: str) -> PatchSet:
    """Read a patch; one that cannot be read counts as empty."""
    try:
        return PatchSet(patch)
    except UnidiffParseError:
        return PatchSet("")


def count_hunks(patch: str) -> int:
    """How many hunks a patch has."""
    return sum(len(file) for file in parse(patch))


def half(patch: str) -> str:
    """The first half of the patch's hunks, rounded down, in their order; "" for a patch of one hunk."""
    left = count_hunks(patch) // 2
    kept: list[str] = []
    for file in parse(patch):
        hunks = list(file)[:left]
        left -= len(hunks)
        if hunks:
            kept.append(_header(file) + "".join(str(hunk) for hunk in hunks))
    return "".join(kept)


def harmless(patch: str) -> str:
    """A patch that adds one empty line where the gold patch has its first change to an existing file.

    It applies, breaks no syntax, and fixes nothing. "" if there is no such place.
    """
    for file in parse(patch):
        if file.is_added_file or file.is_removed_file or file.is_rename:
            continue
        for hunk in file:
            edit = _blank_line(hunk)
            if edit:
                return f"--- {file.source_file}\n+++ {file.target_file}\n{edit}"
    return ""


def paths(patch: str) -> list[str]:
    """The paths that a patch touches."""
    return [file.path for file in parse(patch)]


def needles(patch: str) -> list[str]:
    """The patch's longest added lines, longest first, stripped: what a search for the fix looks for."""
    lines = {text.strip() for text in _added(patch)}
    long_ones = [line for line in lines if len(line) >= MIN_NEEDLE and "\r" not in line]
    return sorted(long_ones, key=lambda line: (-len(line), line))[:MAX_NEEDLES]


def _added(patch: str) -> Iterator[str]:
    for file in parse(patch):
        for hunk in file:
            yield from (line.value for line in hunk if line.is_added)


def _header(file: PatchedFile) -> str:
    info = "".join(file.patch_info or [])
    return f"{info}--- {file.source_file}\n+++ {file.target_file}\n"


def _blank_line(hunk: Hunk) -> str:
    """A hunk with the same source lines and one more, empty, before the first change.

    If no line precedes the first change, or that line continues in the next one, it comes after the last source
    line.
    """
    before: list[str] = []
    after: list[str] = []
    changed = False
    for line in hunk:
        if line.line_type == "\\":
            # the file's last line has no newline: nothing can be added after it without changing it
            return ""
        changed = changed or not line.is_context
        if not line.is_added:
            (after if changed else before).append(f" {line.value}")
    if not before or before[-1].rstrip().endswith("\\"):
        before, after = before + after, []
    if not before:
        return ""
    size = len(before) + len(after)
    end = "\r\n" if before[-1].endswith("\r\n") else "\n"
    start = hunk.source_start
    return f"@@ -{start},{size} +{start},{size + 1} @@\n{''.join(before)}+{end}{''.join(after)}"
