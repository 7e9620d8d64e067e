"""The host's git, run on repositories of the suite's own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from workspace.workspace_errors import ExportError

GITLINK = "160000"
"""The mode of a submodule, whose files are in another repository."""
LINK = "120000"
"""The mode of a symbolic link."""


@dataclass(frozen=True)
class Entry:
    """A file in a tree: its mode as git writes it, and the id of its content."""

    mode: str
    object_id: str


GONE = Entry("0", "0" * 40)
"""Stands for a file that was deleted; `git update-index --index-info` takes it as that."""


def git(
    directory: Path,
    *arguments: str,
    stdin: bytes | None = None,
    index: Path | None = None,
    work_tree: Path | None = None,
    config: Mapping[str, str] | None = None,
    ok: Iterable[int] = (0,),
) -> bytes:
    """Run git on a bare repository, without the configuration of the host or its user.

    Args:
        directory: the repository.
        arguments: the command and its options.
        stdin: the standard input; None is none.
        index: the index file.
        work_tree: the working tree, which git also runs in.
        config: settings.
        ok: exit codes that are no failure.

    Returns:
        its standard output.

    Raises:
        ExportError: git failed.
    """
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_DIR": str(directory),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ATTR_NOSYSTEM": "1",
    }
    if index is not None:
        environment["GIT_INDEX_FILE"] = str(index)
    if work_tree is not None:
        environment["GIT_WORK_TREE"] = str(work_tree)
    # names that are only impossible on other systems are allowed
    settings = {"core.protectNTFS": "false", "core.protectHFS": "false", **(config or {})}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    done = subprocess.run(
        ["git", *options, *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        env=environment,
        cwd=work_tree or directory,
        check=False,
    )
    if done.returncode not in tuple(ok):
        raise ExportError(f"git {arguments[0]} failed: {done.stderr.decode(errors='replace').strip()[-500:]}")
    return done.stdout


def ancestors(path: bytes) -> Iterator[bytes]:
    """The folders that a path lies in, the innermost first, without the repository's root."""
    while path := path.rpartition(b"/")[0]:
        yield path
