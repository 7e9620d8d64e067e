"""What can be wrong with the diff that an agent types into its final message. None of it touches the agent's files.

The collection study uses these, and the scripted model `typist`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_HUNK = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")
_DRIFT = 4
"""Lines by which a typed hunk header is off."""


def _intact(diff: str) -> str:
    return diff


def _drifted_header(diff: str) -> str:
    """Each hunk begins some lines later than it says."""

    def moved(found: re.Match[str]) -> str:
        old, new = int(found[1]) + _DRIFT, int(found[3]) + _DRIFT
        return f"@@ -{old}{found[2] or ''} +{new}{found[4] or ''} @@"

    return _HUNK.sub(moved, diff)


def _tabs(diff: str) -> str:
    """Spaces at the beginning of lines became tabs."""
    return re.sub(
        r"^([ +-])((?:    )+)", lambda found: found[1] + "\t" * (len(found[2]) // 4), diff, flags=re.MULTILINE
    )


def _stale_context(diff: str) -> str:
    """The first context line of each hunk is from another version of the file."""
    parts = re.split(r"(?m)^(?=@@ )", diff)
    return parts[0] + "".join(
        re.sub(r"(?m)^ (.*\S.*)$", r" \1  # as it was before", part, count=1) for part in parts[1:]
    )


def _wrong_root(diff: str) -> str:
    """Paths are taken from another folder."""
    return re.sub(
        r"(?m)^(?:diff --git |--- |\+\+\+ ).*$", lambda found: re.sub(r" ([ab])/", r" \1/src/", found[0]), diff
    )


def _crlf(diff: str) -> str:
    """The message has Windows line ends."""
    return diff.replace("\n", "\r\n")


def _fenced(diff: str) -> str:
    """The diff is in a fenced block, with prose around it."""
    return f"I found the cause. This is the fix:\n\n```diff\n{diff}```\n\nThe tests pass - I ran all of them.\n"


def _dropped_hunk(diff: str) -> str:
    """The first hunk is missing."""
    head, _, *rest = re.split(r"(?m)^(?=@@ )", diff)
    return head + "".join(rest)


def _truncated(diff: str) -> str:
    """The message ends where its last hunk would begin; what ends within a hunk is refused by any command."""
    return "".join(re.split(r"(?m)^(?=@@ )", diff)[:-1])


CONDITIONS: dict[str, Callable[[str], str]] = {
    "intact": _intact,
    "drifted header": _drifted_header,
    "tabs for spaces": _tabs,
    "stale context": _stale_context,
    "wrong path root": _wrong_root,
    "CRLF": _crlf,
    "fence with prose": _fenced,
    "dropped hunk": _dropped_hunk,
    "truncated": _truncated,
}
"""By name, what becomes of the diff. The last two take a hunk away, so they need a diff with two."""
INTACT = "intact"
SILENT = ("dropped hunk", "truncated")
"""Conditions whose messages apply without any error, and give files that the agent did not write."""
