"""Reading what a run left."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from adapters.runtimes import default_home
from clawbench.conformance.finished import Finished
from clawbench.conformance.repository import Files
from gateway.removed_calls import restore


def changed_files(run: Finished) -> Files:
    """What a run's patch makes of the start tree: the files that differ, by path, with mode and content.

    Raises:
        ValueError: git does not apply it.
    """
    tree = run.facts["start_tree"]
    image = _prepared_image(run)
    repository = default_home() / "start-trees" / image / "repository.git"
    with tempfile.TemporaryDirectory(prefix="clawbench-conformance-") as folder:
        objects = Path(folder, "objects")
        objects.mkdir()
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "GIT_DIR": str(repository),
            "GIT_INDEX_FILE": str(Path(folder, "index")),
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(repository / "objects"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": folder,
        }

        def git(*arguments: str, stdin: bytes = b"") -> bytes:
            done = subprocess.run(
                ["git", *arguments], input=stdin, capture_output=True, env=environment, check=False
            )
            if done.returncode != 0:
                raise ValueError(done.stderr.decode("utf-8", "replace").strip()[:300])
            return done.stdout

        def entries() -> dict[bytes, tuple[str, str]]:
            rows = git("ls-files", "-s", "-z").split(b"\0")[:-1]
            split = (row.partition(b"\t") for row in rows)
            return {path: (head.decode().split()[0], head.decode().split()[1]) for head, _, path in split}

        git("read-tree", tree)
        before = entries()
        if run.patch:
            git("apply", "--cached", "--whitespace=nowarn", "-", stdin=run.patch.encode())
        after = entries()
        changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
        return {
            path: (after[path][0], git("cat-file", "blob", after[path][1])) if path in after else None
            for path in changed
        }


def _prepared_image(run: Finished) -> str:
    manifest = json.loads((run.folder / "manifest.json").read_bytes())
    return str(manifest["prepared_image"]["id"]).removeprefix("sha256:")[:32]


def user_text(request: Mapping[str, Any]) -> str:
    """All that the user says in a request."""
    return "\n".join(_texts(request))


def _texts(request: Mapping[str, Any]) -> Iterator[str]:
    for message in request["messages"]:
        if message["role"] == "user":
            yield _text(message["content"])


def answers(run: Finished) -> list[tuple[str, str]]:
    """What the claw told the model of each call, in their order: the tool's name as the model said it, the answer.

    The name is taken out of each answer, so that those to unknown tools can be compared.
    """
    told: list[tuple[str, str, list[str]]] = []
    conversations: list[list[dict[str, Any]]] = [request["messages"] for request in run.requests]
    for message in max(conversations, key=len, default=[]):
        if calls := _called(message):
            told.append((restore({"": calls[0]})[""], calls[0], []))
        elif told:
            told[-1][2].append(_text(message["content"]))
    return [(name, "\n".join(texts).replace(called, "…")) for name, called, texts in told]


def _called(message: Mapping[str, Any]) -> list[str]:
    """The names of the tools that an assistant's message calls, in either of the shapes that claws send."""
    calls = [call["function"] for call in message.get("tool_calls") or []]
    if isinstance(message["content"], list):
        calls += [part for part in message["content"] if part.get("type") == "tool_use"]
    return [str(call["name"]) for call in calls]


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content) if isinstance(content, list) else ""


def files_with(folder: Path, needle: str) -> list[str]:
    """The files below a folder that hold a text, in their names or contents."""
    wanted = needle.encode()
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if needle in path.name or (path.is_file() and wanted in path.read_bytes())
    ]
