"""The patch that a claw says in its final message, for claws that are judged by what they say.

A message may have prose around it and several blocks, fenced or not; what is found is put together in order. It is
taken as it was said: nothing is repaired, so that a patch which is broken is judged as a broken one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_FENCE = re.compile(r"(`{3,}|~{3,})[^`]*$")
_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_BINARY = re.compile(r"(literal|delta) \d+\s*$")
_EXTENDED = (
    "index ",
    "old mode ",
    "new mode ",
    "new file mode ",
    "deleted file mode ",
    "similarity index ",
    "dissimilarity index ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
)
_HEADERS = ("diff --git ", "--- ", "+++ ", "@@", "Binary files ", "GIT binary patch", *_EXTENDED)


def patch_in(message: str) -> str:
    """The unified diffs in a message, one after the other; "" where there is none.

    A fenced block counts from its first file's header to its end; elsewhere a diff ends where its lines do.
    The end of each line is the message's own; the last line gets one if the message ends without.
    """
    lines = [f"{line}\n" for line in message.removesuffix("\n").split("\n")]
    return "".join(line for start, end in _diffs(lines) for line in lines[start:end])


def _diffs(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where the diffs are."""
    at = 0
    while at < len(lines):
        if _begins_file(lines, at):
            end = _end_of_lines(lines, at)
            yield at, end
            at = end
        elif fence := _FENCE.match(lines[at]):
            end = _end_of_fence(lines, at + 1, fence[1])
            start = next((here for here in range(at + 1, end) if _begins_file(lines, here)), end)
            if start < end:
                yield start, end
            at = end + 1
        else:
            at += 1


def _begins_file(lines: Sequence[str], at: int) -> bool:
    """Whether a file's part of a diff begins there; no single line is enough, as prose has such lines too."""
    following = lines[at + 1 : at + 3]
    if lines[at].startswith("diff --git "):
        return bool(following) and following[0].startswith((*_EXTENDED, "--- "))
    if len(following) < 2 or not lines[at].startswith("--- "):
        return False
    return following[0].startswith("+++ ") and following[1].startswith("@@")


def _end_of_fence(lines: Sequence[str], start: int, mark: str) -> int:
    """The line that closes a fence, or the end of the message."""
    close = re.compile(rf"{mark}{re.escape(mark[0])}*\s*$")
    return next((at for at in range(start, len(lines)) if close.match(lines[at])), len(lines))


def _end_of_lines(lines: Sequence[str], start: int) -> int:
    """The end of a diff outside of fences: the first line that can't be one of its own.

    As long as a hunk misses lines by its own count, an empty line is one of them whose space was lost; after that
    only a new hunk or file may follow an empty line. What is taken too many does no harm: whoever applies a patch
    stops at the count too.
    """
    at, old, new = start, 0, 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("@@"):
            hunk = _HUNK.match(line)
            old, new = (int(count or 1) for count in hunk.groups()) if hunk else (0, 0)
        elif not line.strip("\r\n"):
            if max(old, new) <= 0:
                after = _next_that_goes_on(lines, at)
                if after is None:
                    return at
                at = after
                continue
            old, new = old - 1, new - 1
        elif line[0] in " +-\\":
            old, new = old - (line[0] in " -"), new - (line[0] in " +")
        elif _BINARY.match(line):
            while at + 1 < len(lines) and lines[at + 1].strip():
                at += 1
            at += 1  # the empty line is part of it
        elif not line.startswith(_HEADERS):
            return at
        at += 1
    return at


def _next_that_goes_on(lines: Sequence[str], at: int) -> int | None:
    """The next line that is not empty, if it begins a hunk or a file of the same diff."""
    after = next((here for here in range(at, len(lines)) if lines[here].strip("\r\n")), None)
    goes_on = after is not None and (lines[after].startswith("@@") or _begins_file(lines, after))
    return after if goes_on else None
