"""Digests of the claws' runtimes: what runs in the containers, and whether it is still what was installed.

There are two. The marker of an installed runtime has the digest of all its files, so that a changed or damaged one is
refused. The manifest has the digest of the program alone, which is the same wherever the same packages are installed; a
run that is resumed with another program is refused, also where the runtime is the user's own and has no marker.

The digests of a folder are stored with a stamp: a digest of the names, sizes and times of all its files. The files are
only read again if the stamp has changed. A program can set a file's modification time back, but not the time of its last
change of status, which is part of the stamp.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from adapters.base import Adapter
from adapters.runtimes import MARKER
from common.canonical_json import canonical_digest, canonical_json
from common.errors import LastingError
from records.files import digest_of, write_atomically

DIGEST = "sha256"
"""The marker's key for the digest of an installed runtime."""

_STAMPS = "runtime-digests"
"""The folder of the stored digests, in the folder of all runtimes."""
_MAY_CHANGE_UNSEEN = 2.0
"""Seconds. A file that was changed so shortly ago could change again at the same time, so its stamp is not stored."""
_INSTALLERS_NOTES = {"INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json"}
_NOT_THE_PROGRAM = {".git", "__pycache__", *_INSTALLERS_NOTES}
"""Names of files and folders that differ between installs of the same program."""


class DamagedRuntimeError(LastingError):
    """A claw's runtime is not what was installed; the message says how to install it again."""


def runtime_digest(claw: Adapter, home: Path, *, whole: bool = False) -> str:
    """The digest of the program that a claw's container gets from the host.

    Args:
        claw: the claw.
        home: the folder of all runtimes.
        whole: whether every file is read, even if the stamp has not changed.

    Raises:
        NotInstalledError: it is not installed.
        DamagedRuntimeError: an installed part of it has changed since, or can't be read.
    """
    found = {}
    for name, part in _parts(claw).items():
        try:
            digests = part_digests(part, home, whole=whole)
        except OSError as error:
            raise DamagedRuntimeError(
                f"{claw.name}'s runtime can't be read ({error}); {claw.install_hint}"
            ) from error
        if digests.files != (installed_digest(part) or digests.files):
            raise DamagedRuntimeError(
                f"{claw.name}'s runtime in {part} is not what was installed: files were changed, added or removed. "
                f"`clawbench install {claw.name}` installs it again"
            )
        found[name] = digests.program
    return canonical_digest(found)


@dataclass(frozen=True)
class PartDigests:
    """The digests of one part of a runtime. They cover names, contents, links, and which files can be executed."""

    files: str
    """Of all files but the marker."""
    program: str
    """Without what differs between installs of the same program."""


def installed_digest(part: Path) -> str | None:
    """The digest of the files of an installed part of a runtime when it was made.

    Args:
        part: its folder.

    Returns:
        None if it has no marker, or an older version of the suite installed it.
    """
    found: str | None = _object(part / MARKER).get(DIGEST)
    return found


def part_digests(part: Path, home: Path | None, *, whole: bool = False) -> PartDigests:
    """The digests of a part of a runtime.

    Args:
        part: the file or folder.
        home: the folder of all runtimes, where the digests are stored; None if the part will be moved.
        whole: whether every file is read, even if the stamp has not changed.

    Raises:
        OSError: it can't be read.
    """
    files = {name: (path, status) for name, path, status in _files(part)}
    stamp = sha256()
    for name, (_, seen) in sorted(files.items()):
        line = f"{name}\0{seen.st_size} {seen.st_mtime_ns} {seen.st_ctime_ns} {seen.st_mode}\n"
        stamp.update(line.encode("utf-8", "surrogateescape"))
    store = home / _STAMPS / f"{sha256(os.fsencode(part)).hexdigest()[:16]}.json" if home is not None else None
    stored = _object(store) if store is not None and not whole else {}
    if stored.get("stamp") == stamp.hexdigest():
        return PartDigests(stored["files"], stored["program"])
    # group and others may have other rights after a copy
    rows = {
        name: {**digest_of(Path(path)), "runs": bool(seen.st_mode & stat.S_IXUSR)}
        for name, (path, seen) in files.items()
    }
    program = {name: row for name, row in rows.items() if not _NOT_THE_PROGRAM.intersection(name.split("/"))}
    found = PartDigests(canonical_digest(rows), canonical_digest(program))
    newest = max((max(seen.st_mtime_ns, seen.st_ctime_ns) for _, seen in files.values()), default=0)
    if store is not None and newest < time.time_ns() - _MAY_CHANGE_UNSEEN * 1e9:
        with suppress(OSError):  # without them it only takes longer
            write_atomically(store, canonical_json({"stamp": stamp.hexdigest(), **asdict(found)}))
    return found


def _parts(claw: Adapter) -> dict[str, Path]:
    """The installed pieces that its container gets, and the folders and files of the user's own, by name."""
    version, found = claw.runtime().version, {}
    for mount in claw.container_arguments().mounts:
        source = mount.source.resolve()
        above = [folder for folder in (source, *source.parents) if (folder / MARKER).is_file()]
        # a Python claw has a piece for each version of Python, side by side
        below = [path.parent for path in source.glob(f"*/{MARKER}")]
        pieces = above[:1] or [piece for piece in below if _object(piece / MARKER).get("version") == version]
        found.update({piece.name: piece for piece in pieces} or {mount.target: source})
    return found


def _object(file: Path) -> Mapping[str, Any]:
    """The JSON object in a file; {} if there is none."""
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _files(part: Path) -> Iterator[tuple[str, str, os.stat_result]]:
    """All files and links of a part, each with its name, path and status (raises OSError)."""
    if not part.is_dir():
        yield "", str(part), part.stat()
        return
    waiting = [(str(part), "")]
    while waiting:
        folder, prefix = waiting.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, f"{prefix}{entry.name}/"))
                elif entry.is_symlink() or (entry.is_file() and (prefix or entry.name != MARKER)):
                    yield f"{prefix}{entry.name}", entry.path, entry.stat(follow_symlinks=False)
