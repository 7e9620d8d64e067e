"""A run that is over, read from its files."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from adapters.runtimes import default_home
from common.errors import ClawbenchError
from tests_bench.conformance.edit_repository import Files


@dataclass(frozen=True)
class FinishedRun:
    """A run that is over."""

    name: str
    folder: Path
    """The case's artifacts."""
    refused: str
    """Why the adapter refused the run; "" if the claw ran."""
    failed: str
    """What the suite reported about the provider if that ended the case."""
    budget: float
    """The time limit, in seconds."""
    began: float
    ended: float
    """When the claw worked, in seconds since the epoch."""
    seen: str
    """What was found in the container, under headings."""

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The export's facts; {} if there is no export."""
        path = self.folder / "export.json"
        return dict(json.loads(path.read_bytes())) if path.exists() else {}

    @cached_property
    def usage(self) -> dict[str, Any]:
        """What the gateway counted, and what the claw reports."""
        return dict(json.loads((self.folder / "usage.json").read_bytes()))

    @cached_property
    def requests(self) -> list[dict[str, Any]]:
        """The bodies of the chat requests, in order."""
        return [json.loads(path.read_bytes()) for path in sorted((self.folder / "bodies").glob("*.json"))]

    @cached_property
    def log(self) -> list[dict[str, Any]]:
        """The gateway's log of all requests."""
        path = self.folder / "requests.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @cached_property
    def session(self) -> bytes:
        """The contents of all files of the saved session."""
        paths = sorted((self.folder / "session").rglob("*"))
        return b"\n".join(path.read_bytes() for path in paths if path.is_file())

    @cached_property
    def sections(self) -> dict[str, list[str]]:
        """What was found in the container: lines by heading."""
        found: dict[str, list[str]] = {}
        lines: list[str] = []
        for line in self.seen.splitlines():
            if line.startswith("=== "):
                lines = found.setdefault(line.removeprefix("=== "), [])
            elif line:
                lines.append(line)
        return found

    @cached_property
    def changed_files(self) -> Files:
        """The files that differ from the start tree after the patch is applied, by path, with mode and content.

        Raises:
            ClawbenchError: git can't apply the patch.
        """
        manifest = json.loads((self.folder / "manifest.json").read_bytes())
        image = str(manifest["prepared_image"]["id"]).removeprefix("sha256:")[:32]
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
                command = ["git", *arguments]
                done = subprocess.run(command, input=stdin, capture_output=True, env=environment, check=False)
                if done.returncode != 0:
                    raise ClawbenchError(done.stderr.decode("utf-8", "replace").strip()[:300])
                return done.stdout

            def entries() -> dict[bytes, list[str]]:
                rows = [row.partition(b"\t") for row in git("ls-files", "-s", "-z").split(b"\0")[:-1]]
                return {path: head.decode().split()[:2] for head, _, path in rows}

            git("read-tree", self.facts["start_tree"])
            before = entries()
            if patch := (self.folder / "git.patch").read_bytes():
                git("apply", "--cached", "--whitespace=nowarn", "-", stdin=patch)
            after = entries()
            return {
                path: (after[path][0], git("cat-file", "blob", after[path][1])) if path in after else None
                for path in before | after
                if before.get(path) != after.get(path)
            }

    def answers(self) -> list[str]:
        """What the claw answered to each tool call, in order; the tool's name is cut out, so that answers compare."""
        found: list[tuple[str, list[str]]] = []
        conversations: list[list[dict[str, Any]]] = [request["messages"] for request in self.requests]
        for message in max(conversations, key=len, default=[]):
            if calls := _called(message):
                found.append((calls[0], []))
            elif found:
                found[-1][1].append(_text(message["content"]))
        return ["\n".join(texts).replace(called, "…") for called, texts in found]

    def files_with(self, needle: str) -> list[str]:
        """The artifacts that have a text in their name or content."""
        wanted = needle.encode()
        return [
            str(path.relative_to(self.folder))
            for path in sorted(self.folder.rglob("*"))
            if needle in path.name or (path.is_file() and wanted in path.read_bytes())
        ]


def user_text(request: Mapping[str, Any]) -> str:
    """Everything that the user says in a request."""
    return "\n".join(_text(message["content"]) for message in request["messages"] if message["role"] == "user")


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
