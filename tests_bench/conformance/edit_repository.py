"""A repository for every kind of edit: an embedded task's, with one more commit.

The commit adds a file for each kind of edit, and files with the names of those that claws write themselves.
"""

from __future__ import annotations

import base64
import io
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import docker
from docker.errors import ImageNotFound
from filelock import FileLock

from gateway.behaviours.base import run_script
from workspace.prepare import WORKDIR

FOLDER = "conformance"
_NAME = "clawbench/conformance"
_USUAL = ("AGENTS.md", "HEARTBEAT.md", "IDENTITY.md", "MEMORY.md", "SOUL.md", "USER.md")
"""Files that claws write into the root of a repository."""

START: dict[str, bytes] = {
    "modified.txt": b"before\n",
    "deleted.txt": b"gone soon\n",
    "old name.txt": b"the same text\n" * 20,
    "mode.sh": b"#!/bin/sh\necho hello\n",
    "binary.bin": bytes(range(256)),
    "crlf.txt": b"one\r\ntwo\r\n",
    "latin.txt": b"caf\xe9\n",
    "becomes-link.txt": b"a file\n",
}
"""The files of the folder before any edit."""

Files = dict[bytes, tuple[str, bytes] | None]
"""Mode and content by path; None: the file was deleted."""


@dataclass(frozen=True)
class Edit:
    """One kind of edit."""

    kind: str
    script: str
    """A bash script that is run in the folder."""
    leaves: Files
    """What it changes, by path inside the folder."""


EDITS = (
    Edit("modify", "printf 'after\\n' > modified.txt", {b"modified.txt": ("100644", b"after\n")}),
    Edit(
        "add",
        "mkdir sub; printf 'no end of line' > sub/added.txt",
        {b"sub/added.txt": ("100644", b"no end of line")},
    ),
    Edit("delete", "rm deleted.txt", {b"deleted.txt": None}),
    Edit(
        "rename",
        "mv 'old name.txt' 'new name.txt'",
        {b"old name.txt": None, b"new name.txt": ("100644", START["old name.txt"])},
    ),
    Edit("mode", "chmod 755 mode.sh", {b"mode.sh": ("100755", START["mode.sh"])}),
    Edit(
        "symlink",
        "ln -s ../no/such/place link; rm becomes-link.txt; ln -s modified.txt becomes-link.txt",
        {b"link": ("120000", b"../no/such/place"), b"becomes-link.txt": ("120000", b"modified.txt")},
    ),
    Edit(
        "binary",
        "printf '\\000\\001\\377' >> binary.bin",
        {b"binary.bin": ("100644", START["binary.bin"] + b"\0\1\xff")},
    ),
    Edit("CRLF", "printf 'three\\r\\n' >> crlf.txt", {b"crlf.txt": ("100644", b"one\r\ntwo\r\nthree\r\n")}),
    Edit("not UTF-8", "printf 'th\\351\\n' >> latin.txt", {b"latin.txt": ("100644", b"caf\xe9\nth\xe9\n")}),
    Edit(
        "odd names",
        "for name in ' space ' -dash $'new\\nline' $'tab\\there' 'quote\"'\"'\" 'back\\slash' $'caf\\xc3\\xa9' "
        "$'bytes\\xff\\xfe' '*glob?' '$(id)'; do printf 'x\\n' > \"./$name\"; done",
        dict.fromkeys(
            (
                b" space ",
                b"-dash",
                b"new\nline",
                b"tab\there",
                b"quote\"'",
                b"back\\slash",
                "café".encode(),
                b"bytes\xff\xfe",
                b"*glob?",
                b"$(id)",
            ),
            ("100644", b"x\n"),
        ),
    ),
)
"""Every kind of edit."""


def edit_command(edit: Edit) -> str:
    """The shell command that makes an edit."""
    return run_script(f"cd {WORKDIR}/{FOLDER} || exit 1\n{edit.script}\n")


def expected_edits() -> Files:
    """The result of all edits together, by path in the repository."""
    folder = f"{FOLDER}/".encode()
    return {folder + path: left for edit in EDITS for path, left in edit.leaves.items()}


def own_files(agent_files: Sequence[str]) -> list[str]:
    """Files that a repository could have under the names of a claw's own.

    Args:
        agent_files: the claw's patterns.
    """
    named = [
        f"{pattern.strip('/')}/kept.txt" if pattern.endswith("/") else pattern.strip("/")
        for pattern in agent_files
    ]
    return sorted({*_USUAL, *(name for name in named if not set("*?[!") & set(name))})


def ensure_repository(
    client: docker.DockerClient, source: str, agent_files: Sequence[str], locks: Path, say: Callable[[str], None]
) -> tuple[str, str]:
    """Make the image with that repository, unless it exists.

    Args:
        client: the engine.
        source: the image of an embedded task.
        agent_files: the claw's patterns.
        locks: a folder of lock files.
        say: prints a line of progress.

    Returns:
        the image's name, and its commit.
    """
    script = _making(own_files(agent_files))
    source_id = str(client.images.get(source).id)
    name = f"{_NAME}:{sha256(f'{source_id} {script}'.encode()).hexdigest()[:16]}"
    locks.mkdir(parents=True, exist_ok=True)
    with FileLock(locks / f"{name.replace('/', '-').replace(':', '-')}.lock"):
        try:
            client.images.get(name)
        except ImageNotFound:
            say("making the repository of the conformance suite")
            encoded = base64.b64encode(script.encode()).decode()
            recipe = f"FROM {source}\nRUN echo {encoded} | base64 -d | bash\n"
            client.images.build(fileobj=io.BytesIO(recipe.encode()), tag=name, network_mode="none", rm=True)
        commit = client.containers.run(
            name, ["-C", WORKDIR, "rev-parse", "HEAD"], entrypoint="git", network_mode="none", remove=True
        )
    return name, commit.decode().strip()


def _making(own: Sequence[str]) -> str:
    files = {f"{FOLDER}/{name}": content for name, content in START.items()}
    files |= {name: f"The repository's own {name}.\n".encode() for name in own}
    lines = ["set -eu", f"cd {WORKDIR}"]
    for name, content in files.items():
        path, encoded = shlex.quote(name), base64.b64encode(content).decode()
        lines.append(f'mkdir -p "$(dirname {path})"; echo {encoded} | base64 -d > {path}; git add -f -- {path}')
    who = "-c user.name=clawbench -c user.email=clawbench@example.invalid -c commit.gpgsign=false"
    lines += [
        "export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z'",
        f"git {who} commit --quiet --no-verify -m 'Files to be edited'",
    ]
    return "\n".join(lines) + "\n"
