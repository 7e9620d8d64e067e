"""What a case left, file by file: sizes and digests, by which a change made afterwards is found."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from hashlib import file_digest
from pathlib import Path
from typing import Any

from records.files import is_leftover, see_onto_disk


def digests_of(folder: Path, without: Collection[str] = ()) -> dict[str, dict[str, Any]]:
    """Every file below a folder, by its path from there.

    Args:
        folder: whose files are told.
        without: paths that are left out.

    Returns:
        `size` in bytes and `sha256` of each file; `link`, where it leads, of a symbolic link.

    Raises:
        OSError: one can't be read.
    """
    found = {}
    for path in files_below(folder):
        name = path.relative_to(folder).as_posix()
        if name not in without and not is_leftover(path):
            found[name] = digest_of(path)
    return found


def digest_of(path: Path) -> dict[str, Any]:
    """A file's, as `digests_of` has it (raises OSError)."""
    if path.is_symlink():
        return {"link": str(path.readlink())}
    with path.open("rb") as file:
        return {"size": os.fstat(file.fileno()).st_size, "sha256": file_digest(file, "sha256").hexdigest()}


def see_all_onto_disk(folder: Path) -> None:
    """Have all that is below a folder on the disk (raises OSError)."""
    files = list(files_below(folder))
    folders = {parent for path in files for parent in path.relative_to(folder).parents}
    for path in (*files, *(folder / parent for parent in sorted(folders))):
        see_onto_disk(path)


def files_below(folder: Path) -> Iterator[Path]:
    """Files and symbolic links below a folder, in an order that no timing changes."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            yield from files_below(path)
        elif path.is_symlink() or path.is_file():
            yield path
