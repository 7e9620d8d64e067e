"""openclaw: what it says that it used and ended with, and the relay that keeps it to its turns."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from adapters.base import NotInstalledError, TokenUsage
from adapters.openclaw import openclaw_adapter, openclaw_runtime
from adapters.openclaw.openclaw_adapter import OpenclawAdapter

REPLY = {"role": "assistant", "stopReason": "toolUse", "content": [{"type": "toolCall", "name": "exec"}]}
USED = {"input": 60, "output": 7, "cacheRead": 40, "cacheWrite": 1, "totalTokens": 108}
LAST = {
    "role": "assistant",
    "stopReason": "stop",
    "content": [{"type": "thinking", "text": "hm"}, {"type": "text", "text": " Done.\n"}],
}


def make_session(folder: Path, *events: object) -> Path:
    """A state folder as a killed openclaw leaves it: what it wrote is in the write-ahead log alone."""
    live, session = folder / "live", folder / "session"
    live.mkdir()
    with closing(sqlite3.connect(live / "openclaw-agent.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT)")
        rows = [("s", seq, event) for seq, event in enumerate(events)]
        connection.executemany("INSERT INTO transcript_events VALUES (?, ?, ?)", rows)
        connection.commit()
        shutil.copytree(live, session / "state" / "agents" / "main" / "agent")
    return session


def message(fields: dict[str, Any]) -> str:
    return json.dumps({"type": "message", "message": fields})


EVENTS = (
    json.dumps({"type": "session"}),
    message({"role": "user", "content": "x"}),
    message({**REPLY, "usage": USED}),
    message({"role": "toolResult", "usage": 3}),
    message({**LAST, "usage": USED}),
)


def test_the_usage_is_what_it_printed(tmp_path: Path) -> None:
    printed = json.dumps({"ok": True, "usage": {"input": 1, "output": 4, "cacheRead": 2, "cacheWrite": 3}})
    assert OpenclawAdapter().usage(tmp_path, printed.encode()) == TokenUsage(1, 2, 3, 4)


def test_the_usage_of_a_killed_run_is_the_sum_over_its_transcript(tmp_path: Path) -> None:
    session = make_session(tmp_path, *EVENTS)
    assert OpenclawAdapter().usage(session, b"") == TokenUsage(120, 80, 2, 14)
    assert OpenclawAdapter().usage(session, b'{"ok": false}') == TokenUsage(120, 80, 2, 14)
    next(session.rglob("*-wal")).unlink()
    assert OpenclawAdapter().usage(session, b"") is None


@pytest.mark.parametrize(
    "events",
    [
        (),
        (*EVENTS, None),
        (*EVENTS, "{"),
        (*EVENTS, message(REPLY)),
        (message({**LAST, "usage": {**USED, "input": "9"}}),),
        (message({**LAST, "usage": dict.fromkeys(USED, 0)}),),
    ],
    ids=["empty", "compressed", "no JSON", "a reply without", "no number", "nothing"],
)
def test_a_transcript_that_does_not_tell_it_all_gives_no_usage(tmp_path: Path, events: tuple[object, ...]) -> None:
    assert OpenclawAdapter().usage(make_session(tmp_path, *events), b"") is None


@pytest.mark.parametrize("printed", [b"", b"x", b"[]", b'{"usage": 3}', b"[" * 100_000])
def test_no_session_gives_no_usage(tmp_path: Path, printed: bytes) -> None:
    assert OpenclawAdapter().usage(tmp_path, printed) is None
    (tmp_path / "openclaw-agent.sqlite").write_bytes(b"no database" * 100)
    assert OpenclawAdapter().usage(tmp_path, printed) is None
    assert OpenclawAdapter().final_message(tmp_path, printed) == ""


def test_the_final_message_is_the_last_replys_text_as_it_was(tmp_path: Path) -> None:
    assert OpenclawAdapter().final_message(make_session(tmp_path, *EVENTS), b"") == " Done.\n"


def test_a_run_that_came_to_no_end_has_no_final_message(tmp_path: Path) -> None:
    assert OpenclawAdapter().final_message(make_session(tmp_path, *EVENTS[:4]), b"") == ""


def test_without_a_transcript_the_final_message_is_what_it_printed(tmp_path: Path) -> None:
    assert OpenclawAdapter().final_message(tmp_path, b'{"final": "Done."}') == "Done."


# Stands for openclaw: asks what it is told to, and prints the status and the text of each reply.
ASKING = r"""
import { readFileSync } from "node:fs";
const [, , , , , file, questions] = process.argv;
const { baseUrl } = JSON.parse(readFileSync(file, "utf8")).models.providers.gateway;
const said = [];
for (const question of JSON.parse(questions)) {
  const body = typeof question === "string" ? question : JSON.stringify(question);
  try {
    const path = question.path ?? "/chat/completions";
    const reply = await fetch(`${baseUrl}${path}`, { method: "POST", body });
    let text = "";
    for await (const piece of reply.body) {
      text += Buffer.from(piece).toString("utf8");
      if (question.leaves && /(\[DONE\]|completed"}|message_stop"})\n\n$/.test(text)) break;
    }
    said.push([reply.status, text]);
  } catch (error) {
    said.push(["dropped", ""]);
  }
}
console.log(JSON.stringify(said));
process.exit(7);
"""
WHOLE = b'data: {"choices": [{"finish_reason": "stop", "x": "\xc3\xa9"}]}\n\ndata: [DONE]\n\n'
FORMATS = {
    "/chat/completions": WHOLE,
    "/responses": b'event: response.completed\ndata: {"type":"response.completed"}\n\n',
    "/messages?beta=true": b'event: message_stop\ndata: {"type": "message_stop"}\n\n',
}
"""For each wire format what only a whole stream ends with."""
TOOLS = {"model": "m", "stream": True, "tools": [{"type": "function"}]}


@contextmanager
def model(
    *replies: tuple[int, bytes] | None, is_over: threading.Event | None = None
) -> Iterator[tuple[str, list[bytes]]]:
    """A model that gives these replies in turn, None drops the connection; its address and what it was asked.

    A reply's connection stays open until it is over, where that is given.
    """
    asked: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["Content-Length"])))
            reply = replies[len(asked) - 1]
            if reply is None:
                self.close_connection = True
                return
            self.send_response(reply[0])
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(reply[1])
            if is_over is not None:
                is_over.wait()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def relayed(folder: Path, address: str, turns: int, questions: list[object]) -> list[tuple[object, str]]:
    """What comes back through the relay."""
    try:
        node = openclaw_runtime.find_runtime().node
    except NotInstalledError as error:
        pytest.skip(str(error))
    (folder / "asking.mjs").write_text(ASKING)
    config = {"models": {"providers": {"gateway": {"baseUrl": address}}}}
    (folder / "config.json").write_text(json.dumps(config))
    launcher = Path(openclaw_adapter.__file__).with_name("openclaw_launch.mjs")
    command = [node, launcher, folder, folder / "asking.mjs", str(turns), json.dumps(questions)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=300)
    assert done.returncode == 7, done
    return [(status, text) for status, text in json.loads(done.stdout)]


def test_the_relay_hands_on_every_byte_and_stops_at_the_limit(tmp_path: Path) -> None:
    with model(*[(200, WHOLE)] * 4) as (address, asked):
        plain = {**TOOLS, "tools": []}
        last = {**TOOLS, "stream": False}
        told = relayed(tmp_path, address, 2, [TOOLS, plain, "no JSON é", TOOLS, TOOLS, last])
    assert [status for status, _ in told] == [200] * 6
    assert [text for _, text in told[:4]] == [WHOLE.decode()] * 4
    assert asked == [
        json.dumps(TOOLS, separators=(",", ":")).encode(),
        *asked[1:2],
        "no JSON é".encode(),
        asked[0],
    ]
    assert "limit of 2 turns" in told[4][1]
    assert told[4][1].endswith("data: [DONE]\n\n")
    closing_text = json.loads(told[5][1])["choices"][0]
    assert closing_text["finish_reason"] == "stop"


@pytest.mark.parametrize("path", FORMATS)
def test_a_reply_that_is_left_at_its_last_word_is_a_turn(tmp_path: Path, path: str) -> None:
    """Before the connection's end, which says no more."""
    is_over = threading.Event()
    with model(*[(200, FORMATS[path])] * 2, is_over=is_over) as (address, asked):
        told = relayed(tmp_path, address, 2, [{**TOOLS, "path": path, "leaves": True}] * 3)
        is_over.set()
    assert [text for _, text in told[:2]] == [FORMATS[path].decode()] * 2
    assert "limit of 2 turns" in told[2][1]
    assert len(asked) == 2


def test_what_failed_or_broke_off_is_no_turn(tmp_path: Path) -> None:
    half = (
        b'data: {"choices": [{"delta": {"content": "\\"finish_reason\\": \\"stop"}, "finish_reason": null}]}\n\n'
    )
    failures = [(500, b"no"), (429, b"wait"), None, (200, half)]
    with model(*failures, (200, WHOLE)) as (address, asked):
        told = relayed(tmp_path, address, 1, [TOOLS] * 6)
    assert [status for status, _ in told] == [500, 429, "dropped", 200, 200, 200]
    assert len(asked) == 5


@pytest.mark.parametrize("path", FORMATS)
def test_turns_are_counted_and_closed_in_every_format(tmp_path: Path, path: str) -> None:
    question = {**TOOLS, "path": path}
    asked_last = {**question, "stream": False}
    with model((200, b"data: {}\n\n"), (200, FORMATS[path]), (200, FORMATS[path])) as (address, asked):
        told = relayed(tmp_path, address, 2, [question, question, question, question, asked_last])
    assert [status for status, _ in told] == [200] * 5
    assert len(asked) == 3
    closing = "The limit of 2 turns is reached, so the work ends here."
    streamed, whole = told[3][1].encode(), json.loads(told[4][1])
    kind = path.partition("?")[0]
    texts = {
        "/chat/completions": lambda: whole["choices"][0]["message"]["content"],
        "/responses": lambda: whole["output"][0]["content"][0]["text"],
        "/messages": lambda: whole["content"][0]["text"],
    }
    assert texts[kind]() == closing
    events = [json.loads(line[6:]) for line in streamed.decode().splitlines() if line.startswith("data: {")]
    assert closing in json.dumps(events)
    end = {"/chat/completions": b"data: [DONE]", "/responses": b"response.completed", "/messages": b"message_stop"}
    assert end[kind] in streamed.split(b"\n\n")[-2]
