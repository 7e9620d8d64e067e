"""The patch in a claw's final message, for claws that are judged by that.

A message may have prose around the patch, and several blocks, fenced or not; their diffs are joined in order.
Nothing is repaired: a broken patch is judged as it is.
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
    """The unified diffs in a message, joined; "" if there is none.

    In a fenced block, a diff extends from the first file's header to the end of the block; elsewhere it ends
    with its last line. Line ends are kept; a newline is added to the message's last line if it has none.
    """
    lines = [f"{line}\n" for line in message.removesuffix("\n").split("\n")]
    return "".join(line for start, end in _diffs(lines) for line in lines[start:end])


def _diffs(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The first line of each diff and the line after its last."""
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
    """Whether a file's part of a diff begins here. One line is not enough to tell: prose has such lines too."""
    following = lines[at + 1 : at + 3]
    if lines[at].startswith("diff --git "):
        return bool(following) and following[0].startswith((*_EXTENDED, "--- "))
    if len(following) < 2 or not lines[at].startswith("--- "):
        return False
    return following[0].startswith("+++ ") and following[1].startswith("@@")


def _end_of_fence(lines: Sequence[str], start: int, mark: str) -> int:
    """The line that closes a fenced block, or the end of the message."""
    close = re.compile(rf"{mark}{re.escape(mark[0])}*\s*$")
    return next((at for at in range(start, len(lines)) if close.match(lines[at])), len(lines))


def _end_of_lines(lines: Sequence[str], start: int) -> int:
    """The end of a diff outside of fenced blocks: the first line that can't belong to it.

    While a hunk has fewer lines than its header says, an empty line is a context line that lost its space;
    after that, only a new hunk or file may follow an empty line. A line too many does no harm, because applying
    a patch stops at the count as well.
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
            at += 1  # including the empty line
        elif not line.startswith(_HEADERS):
            return at
        at += 1
    return at


def _next_that_goes_on(lines: Sequence[str], at: int) -> int | None:
    """The next line that is not empty, if it continues the diff with a hunk or a file."""
    after = next((here for here in range(at, len(lines)) if lines[here].strip("\r\n")), None)
    goes_on = after is not None and (lines[after].startswith("@@") or _begins_file(lines, after))
    return after if goes_on else None
