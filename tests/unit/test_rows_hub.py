"""Rows from the hub, at one commit: the real client against a hub of our own on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.rows_world import IDS, as_json, as_parquet, rows, take

from evaluation.instances import InstanceError

__all__ = ["rows"]

COMMIT = "a" * 40
FILE = "data/test-00000-of-00001.parquet"


class _Hub(BaseHTTPRequestHandler):
    """As much of the hub's interface as downloading a dataset's files takes."""

    def __init__(self, file: bytes, asked: list[str], *arguments: Any) -> None:
        self.file, self.asked = file, asked
        super().__init__(*arguments)

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if "/tree/" in self.path:
            entry = {"type": "file", "path": FILE, "size": len(self.file), "oid": "0" * 40}
            self._answer(json.dumps([entry]).encode(), "application/json")
        elif self.path.startswith("/api/datasets/SWE-bench/SWE-bench_Verified"):
            files = [{"rfilename": "README.md"}, {"rfilename": FILE}]
            answer = {"id": "SWE-bench/SWE-bench_Verified", "sha": COMMIT, "siblings": files}
            self._answer(json.dumps(answer).encode(), "application/json")
        elif self.path.endswith(f"/resolve/{COMMIT}/{FILE}"):
            self._answer(self.file, "application/octet-stream")
        else:
            self.send_error(404)

    do_HEAD = do_GET  # noqa: N815 - the names are the library's

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("X-Repo-Commit", COMMIT),
            ("ETag", '"0123456789abcdef"'),
        ):
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Hub:
    """A hub that has the rows of Verified; it is asked by a process of its own, as variables name it."""

    address: str
    folder: Path
    asked: list[str]

    def take(self, *, address: str = "", revision: str = "", count: int = 2) -> dict[str, Any]:
        """Take rows; returns what the process says of them, or of its failure."""
        told = {"ids": IDS[:count], "into": str(self.folder / "into"), "revision": revision}
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, json.dumps(told)],
            cwd=Path(__file__).resolve().parents[2],
            env=os.environ | {"HF_ENDPOINT": address or self.address, "HF_HOME": str(self.folder / "cache")},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        said: dict[str, Any] = json.loads(done.stdout)
        return said


_PROGRAM = """
import json, sys, time
time.sleep = lambda seconds: None  # the library's pauses between its tries
from pathlib import Path
from demo.task_images import TASK_REPO
from evaluation.instances import InstanceError
from evaluation.lists import by_id
from evaluation.rows import take_rows
told = json.loads(sys.argv[1])
selected = [by_id()[name] for name in told["ids"]]
revisions = {"verified_mini": told["revision"]} if told["revision"] else {}
try:
    taken = take_rows(selected, demo=TASK_REPO, into=Path(told["into"]), revisions=revisions)["verified_mini"]
    print(json.dumps({"revision": taken.source.revision, "ids": sorted(taken.instances)}))
except InstanceError as error:
    print(json.dumps({"error": str(error)}))
"""


@pytest.fixture
def hub(rows: list[dict[str, Any]], tmp_path: Path) -> Iterator[Hub]:
    asked: list[str] = []
    file = as_parquet(rows, tmp_path).read_bytes()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Hub, file, asked))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Hub(f"http://127.0.0.1:{server.server_port}", tmp_path, asked)
    server.shutdown()
    server.server_close()


def test_the_head_is_resolved_once_and_files_are_fetched_at_that_commit(hub: Hub) -> None:
    assert hub.take() == {"revision": COMMIT, "ids": sorted(IDS[:2])}
    assert any(f"/resolve/{COMMIT}/" in path for path in hub.asked)
    assert not any("/resolve/main/" in path for path in hub.asked)


def test_a_named_revision_is_fetched(hub: Hub) -> None:
    assert hub.take(revision="v2")["revision"] == COMMIT
    assert any(path.startswith("/api/datasets/SWE-bench/SWE-bench_Verified/revision/v2") for path in hub.asked)


def test_without_the_hub_only_the_cache_is_used(hub: Hub) -> None:
    nowhere = "http://127.0.0.1:9"
    assert "use --dataset with" in hub.take(address=nowhere)["error"]
    hub.take()
    assert hub.take(address=nowhere, revision=COMMIT)["revision"] == COMMIT
    assert "at 0000000" in hub.take(address=nowhere, revision="0" * 40)["error"]


def test_a_local_source_has_no_revisions(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match="no revisions"):
        take(as_json(rows, tmp_path), tmp_path / "into", IDS[:1], revisions={"verified_mini": "v2"})
