"""The gateway as its clients meet it: a real process, real sockets, streams read by hand."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.waiting import wait_for

from gateway.case_models import ENDINGS, CaseSpec
from gateway.client import Gateway, GatewayClient, GatewayError, control_in, short_folder
from gateway.config import GatewayConfig

ROOT = Path(__file__).parents[2]
EXEC = {
    "type": "function",
    "function": {
        "name": "exec",
        "description": "Execute a shell command.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}, "timeout": {"type": "integer"}},
        },
    },
}
READ = {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}
PATCH = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"


class Answer:
    """One HTTP answer, whole."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The stream's chunks; it must end with [DONE]."""
        *events, done, rest = self.body.split(b"\n\n")
        assert (done, rest) == (b"data: [DONE]", b"")
        assert all(event.startswith(b"data: ") for event in events)
        return [json.loads(event.removeprefix(b"data: ")) for event in events]


def connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(120)
    connection.connect(str(path))
    return connection


def send(connection: socket.socket, method: str, target: str, body: bytes, key: str = "placeholder") -> None:
    head = (
        f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connection.sendall(head.encode() + body)


def ask(path: Path, method: str, target: str, body: bytes = b"", key: str = "placeholder") -> Answer:
    with connect(path) as connection:
        send(connection, method, target, body, key)
        response = http.client.HTTPResponse(connection, method=method)
        response.begin()
        return Answer(response.status, response.read())


def chat(path: Path, messages: list[dict[str, Any]], **settings: Any) -> Answer:
    """Ask as nanobot does: its request's shape, streaming with usage unless told otherwise."""
    body = {
        "model": "some-model",
        "messages": messages,
        "temperature": 0.1,
        "max_tokens": 8192,
        "tools": [EXEC, READ],
        "tool_choice": "auto",
        "stream": True,
        "stream_options": {"include_usage": True},
    } | settings
    return ask(path, "POST", "/v1/chat/completions", json.dumps(body).encode())


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with Gateway.start(tmp_path_factory.mktemp("run")) as started:
        yield started


@pytest.fixture
def client(gateway: Gateway) -> GatewayClient:
    return GatewayClient(gateway.control)


@pytest.fixture
def serve(client: GatewayClient, tmp_path: Path) -> Callable[..., Path]:
    def open_case(behaviour: str, case_id: str = "case", **more: Any) -> Path:
        log = tmp_path / "logs" / f"{case_id}.jsonl"
        spec = CaseSpec(case_id=case_id, model=f"scripted:{behaviour}", request_log=log, **more)
        return client.open_case(spec)

    return open_case


def logged(tmp_path: Path, case_id: str = "case") -> list[dict[str, Any]]:
    lines = (tmp_path / "logs" / f"{case_id}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_stream_has_the_shapes_of_chat_completions(serve: Callable[..., Path]) -> None:
    path = serve("oracle", gold_patch=PATCH)
    events = chat(path, [user("fix it")]).events
    assert len({event["id"] for event in events}) == 1
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    *chunks, usage = events
    assert usage["choices"] == []
    assert all(chunk["usage"] is None for chunk in chunks)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0]["role"] == "assistant"
    assert deltas[-1] == {}
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[-2:]] == [None, "tool_calls"]
    calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert calls[0]["id"].startswith("call_")
    assert calls[0]["function"] == {"name": "exec", "arguments": ""}
    assert len(calls) > 2
    assert all("id" not in call for call in calls[1:])
    arguments = json.loads("".join(call["function"]["arguments"] for call in calls))
    assert set(arguments) == {"command", "timeout"}
    text = "".join(delta.get("content") or "" for delta in deltas)
    assert usage["usage"]["completion_tokens"] > len(text) // 4


def test_stream_without_usage_has_none(serve: Callable[..., Path]) -> None:
    events = chat(serve("noop"), [user("x")], stream_options=None).events
    assert all("usage" not in event and event["choices"] for event in events)
    assert events[-1]["choices"][0]["finish_reason"] == "stop"


def test_both_forms_say_the_same(serve: Callable[..., Path]) -> None:
    path = serve("chatty", gold_patch=PATCH)
    whole = chat(path, [user("fix it")], stream=False).json
    streamed = chat(path, [user("fix it")]).events
    text = "".join(e["choices"][0]["delta"].get("content") or "" for e in streamed if e["choices"])
    assert whole["choices"][0]["message"]["content"] == text
    assert PATCH in text
    assert whole["object"] == "chat.completion"
    assert whole["choices"][0]["finish_reason"] == "stop"
    assert whole["id"] != streamed[0]["id"]


def test_cache_is_the_longest_prefix_seen_before(serve: Callable[..., Path], client: GatewayClient) -> None:
    path = serve("noop")
    first, second = [user("a" * 400)], [user("a" * 400), {"role": "assistant", "content": "b" * 80}, user("c")]
    usages = [chat(path, messages, stream=False).json["usage"] for messages in (first, second, first)]
    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in usages]
    assert cached == [0, usages[0]["prompt_tokens"], usages[0]["prompt_tokens"]]
    assert usages[1]["prompt_tokens"] > usages[0]["prompt_tokens"]
    other_tools = chat(path, first, stream=False, tools=[EXEC]).json["usage"]
    assert other_tools["prompt_tokens_details"]["cached_tokens"] == 0
    counts = client.counts("case")
    usages.append(other_tools)
    prompts = sum(usage["prompt_tokens"] for usage in usages)
    assert counts.tokens.input == prompts - sum(cached)
    assert counts.tokens.cache_read == sum(cached)
    assert counts.tokens.cache_write == 0
    assert counts.tokens.output == sum(usage["completion_tokens"] for usage in usages)
    assert (counts.requests, counts.turns) == (4, 4)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"model": "m"}',
        b'{"model": "m", "messages": []}',
        b'{"model": "m", "messages": [1]}',
        b'{"model": "m", "messages": [{}]}',
        b'{"messages": [{"role": "user"}]}',
        b'{"model": "m", "messages": [{"role": "user"}], "tools": [{"function": {}}]}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_bad_requests_are_refused_in_openai_shape(
    serve: Callable[..., Path], client: GatewayClient, body: bytes
) -> None:
    answer = ask(serve("noop"), "POST", "/v1/chat/completions", body)
    assert answer.status == 400
    assert answer.json["error"]["type"] == "invalid_request_error"
    counts = client.counts("case")
    assert (counts.last_ending, counts.endings["refused"], counts.turns) == ("refused", 1, 0)


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/limit"),
        ("POST", "/open"),
        ("POST", "/counts"),
        ("POST", "/close"),
        ("GET", "/"),
        ("GET", "/v1/../limit"),
        ("GET", "/%2e%2e/control/s"),
        ("GET", "http://192.0.2.1/limit"),
        ("CONNECT", "192.0.2.1:443"),
        ("GET", "/api/v1/models"),
        ("DELETE", "/v1/models"),
        ("GET", "/v1/chat/completions"),
    ],
)
def test_a_case_socket_has_no_other_endpoints(serve: Callable[..., Path], method: str, target: str) -> None:
    assert ask(serve("noop"), method, target).status in (400, 404, 405)


def test_a_list_of_models_is_not_counted_as_a_request(
    serve: Callable[..., Path], client: GatewayClient, tmp_path: Path
) -> None:
    path = serve("noop")
    assert ask(path, "GET", "/v1/models").json["data"][0]["id"] == "scripted:noop"
    assert ask(path, "GET", "/api/v1/models").status == 404
    assert client.counts("case").requests == 0
    assert [line["status"] for line in logged(tmp_path)] == [200, 404]


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [("broken", (500, "server_error")), ("unauthorized", (401, "unauthorized"))],
)
@pytest.mark.parametrize("stream", [True, False])
def test_provider_errors(
    serve: Callable[..., Path],
    client: GatewayClient,
    behaviour: str,
    expected: tuple[int, str],
    stream: bool,
) -> None:
    answer = chat(serve(behaviour), [user("x")], stream=stream)
    assert (answer.status, client.counts("case").last_ending) == expected
    assert answer.json["error"]["message"]


def test_garbage_is_invalid_json_in_both_forms(serve: Callable[..., Path], client: GatewayClient) -> None:
    path = serve("garbage")
    with pytest.raises(json.JSONDecodeError):
        _ = chat(path, [user("x")], stream=False).json
    with pytest.raises(http.client.IncompleteRead) as cut:
        chat(path, [user("x")])
    with pytest.raises(json.JSONDecodeError):
        json.loads(cut.value.partial.removeprefix(b"data: "))
    counts = client.counts("case")
    assert (counts.endings["malformed"], counts.turns) == (2, 0)


def test_hang_counts_while_it_hangs_and_ends_with_the_case(
    serve: Callable[..., Path], client: GatewayClient, tmp_path: Path
) -> None:
    path = serve("hang")
    body = json.dumps({"model": "m", "messages": [user("x")], "stream": True}).encode()
    with connect(path) as left, connect(path) as kept:
        send(left, "POST", "/v1/chat/completions", body)
        send(kept, "POST", "/v1/chat/completions", body)
        wait_for(lambda: client.counts("case").endings["hung"] == 2)
        left.close()
        wait_for(lambda: (tmp_path / "logs/case.jsonl").exists() and len(logged(tmp_path)) == 1)
        counts = client.close_case("case")
        assert kept.recv(100) == b""
    assert (counts.requests, counts.endings["hung"], counts.last_ending) == (2, 2, "hung")
    assert [line["ending"] for line in logged(tmp_path)] == ["hung", "hung"]


def test_client_that_leaves_a_slow_stream(serve: Callable[..., Path], client: GatewayClient) -> None:
    path = serve("slow", gold_patch=PATCH)
    body = json.dumps({"model": "m", "messages": [user("x")], "stream": True, "tools": [EXEC]}).encode()
    with connect(path) as connection:
        send(connection, "POST", "/v1/chat/completions", body)
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    wait_for(lambda: client.counts("case").last_ending == "client_gone")
    counts = client.counts("case")
    assert (counts.turns, counts.tokens.output) == (0, 0)


def test_a_client_that_leaves_once_it_has_all_of_a_slow_stream_is_counted(
    serve: Callable[..., Path], client: GatewayClient
) -> None:
    path = serve("slow", gold_patch=PATCH)
    body = json.dumps({"model": "m", "messages": [user("x")], "stream": True, "tools": [EXEC]}).encode()
    received = b""
    with connect(path) as connection:
        send(connection, "POST", "/v1/chat/completions", body)
        while b"data: [DONE]\n\n" not in received:
            received += connection.recv(4096)
    wait_for(lambda: client.counts("case").last_ending is not None)
    counts = client.counts("case")
    assert (counts.last_ending, counts.turns) == ("ok", 1)
    assert counts.tokens.output


def test_cases_do_not_mix_and_reopening_starts_over(serve: Callable[..., Path], client: GatewayClient) -> None:
    one, two = serve("noop", "one"), serve("broken", "two")
    for _ in range(3):
        chat(one, [user("x")])
    chat(two, [user("x")], model="another")
    assert (client.counts("one").requests, client.counts("two").requests) == (3, 1)
    assert client.counts("one").models == ["some-model"]
    assert client.counts("two").models == ["another"]
    assert client.counts("one").tool_surface == ["exec", "read_file"]
    again = serve("noop", "one")
    assert not one.parent.exists()
    assert client.counts("one").requests == 0
    assert chat(again, [user("x")]).status == 200
    assert client.close_case("one").endings == dict.fromkeys(ENDINGS, 0) | {"ok": 1}
    assert not again.parent.exists()
    with pytest.raises(LookupError):
        client.counts("one")
    with pytest.raises(LookupError):
        client.close_case("one")


def test_sockets_are_private_and_alone(serve: Callable[..., Path], gateway: Gateway) -> None:
    path = serve("noop")
    assert list(path.parent.iterdir()) == [path]
    for folder in (path.parent, gateway.control.parent, path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert len(os.fsencode(path)) < 60


def test_keys_are_never_written(serve: Callable[..., Path], gateway: Gateway, tmp_path: Path) -> None:
    path = serve("noop", gold_patch=PATCH)
    key = "sk-this-must-not-be-seen-anywhere"
    body = json.dumps({"model": "m", "messages": [user("x")]}).encode()
    ask(path, "POST", "/v1/chat/completions", body, key)
    ask(path, "POST", "/v1/chat/completions", b"{", key)
    lines = logged(tmp_path)
    assert [line["status"] for line in lines] == [200, 400]
    assert set(lines[0]) >= {"time", "path", "stream", "tools", "ending", "tokens", "latency", "finish_reason"}
    assert key not in (tmp_path / "logs/case.jsonl").read_text()


def test_big_requests_pass(serve: Callable[..., Path]) -> None:
    assert chat(serve("noop"), [user("x" * 5_000_000)]).status == 200


@settings(max_examples=60, deadline=None)
@given(text=st.text(), name=st.text(min_size=1, max_size=20))
def test_any_text_is_served_and_counted_the_same(gateway: Gateway, text: str, name: str) -> None:
    client = GatewayClient(gateway.control)
    log = gateway.control.parent.parent / "any.jsonl"
    spec = CaseSpec(case_id=name, model="scripted:noop", gold_patch=text, request_log=log)
    path = client.open_case(spec)
    # Escapes of half surrogate pairs are valid JSON too.
    messages = [user(text), user("\ud800")]
    first, second = (chat(path, messages, stream=False).json["usage"] for _ in range(2))
    assert first["prompt_tokens"] == second["prompt_tokens"]
    assert second["prompt_tokens_details"]["cached_tokens"] == second["prompt_tokens"]
    assert client.close_case(name).turns == 2
    log.unlink()


def test_an_unknown_model_is_refused_with_the_known_ones(serve: Callable[..., Path]) -> None:
    with pytest.raises(ValueError, match="scripted:oracle"):
        serve("no-such")


def test_many_clients_at_once(serve: Callable[..., Path], client: GatewayClient) -> None:
    paths = [serve("noop", f"case-{number}") for number in range(8)]
    threads = [threading.Thread(target=chat, args=(path, [user("x")])) for path in paths * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [client.close_case(f"case-{number}").turns for number in range(8)] == [4] * 8


def test_stop_ends_everything(tmp_path: Path) -> None:
    gateway = Gateway.start(tmp_path)
    client = GatewayClient(gateway.control)
    spec = CaseSpec(case_id="a", model="scripted:hang", request_log=tmp_path / "log")
    path = client.open_case(spec)
    with connect(path) as connection:
        send(connection, "POST", "/v1/chat/completions", b'{"model": "m", "messages": [{"role": "user"}]}')
        wait_for(lambda: client.counts("a").endings["hung"] == 1)
        gateway.stop()
    assert not gateway.alive()
    assert not gateway.control.parent.parent.exists()
    with pytest.raises(GatewayError):
        client.counts("a")
    gateway.stop()


def test_failure_to_start_shows_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "aiohttp.py"
    broken.write_text("raise SystemExit('no aiohttp today')")
    monkeypatch.setattr("gateway.client.__file__", str(tmp_path / "gateway" / "client.py"))
    (tmp_path / "gateway").symlink_to(ROOT / "gateway")
    with pytest.raises(GatewayError, match="no aiohttp today"):
        Gateway.start(tmp_path / "run")


def test_killing_the_controller_ends_the_gateway(tmp_path: Path) -> None:
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom gateway.client import Gateway\n"
        "gateway = Gateway.start(Path(sys.argv[1]))\n"
        "print(gateway._process.pid, gateway.control, flush=True)\ntime.sleep(600)\n"
    )
    controller = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    with controller:
        assert controller.stdout
        pid, control = controller.stdout.readline().split()
        assert GatewayClient(Path(control)).answers()
        controller.send_signal(signal.SIGKILL)
    wait_for(lambda: not Path(control).parent.parent.exists())
    wait_for(lambda: _ended(int(pid)))


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No other gateway has its folder where this test's have theirs, nor looks there for what was left."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # sockets' paths are short
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.mark.usefixtures("alone")
def test_a_gateway_removes_only_what_killed_ones_left(tmp_path: Path) -> None:
    with Gateway.start(tmp_path) as living:
        killed = Gateway.start(tmp_path)
        killed._process.kill()
        killed._process.wait()
        left = killed.control.parents[1]
        assert left.is_dir()
        with Gateway.start(tmp_path):
            assert not left.exists()
            assert GatewayClient(living.control).answers()
        killed.stop()


@pytest.mark.usefixtures("alone")
def test_a_starting_gateway_is_not_taken_for_a_killed_one(tmp_path: Path) -> None:
    slowly = (
        "import runpy, sys, time\nfrom asyncio.base_events import Server\nfrom pathlib import Path\n"
        "listen = Server._start_serving\n"
        "def late(server):\n"
        "    for _ in range(3000):\n"
        "        if Path(sys.argv[2]).exists():\n            break\n"
        "        time.sleep(0.02)\n"
        "    listen(server)\n"
        "Server._start_serving = late\nrunpy.run_module('gateway.server', run_name='__main__')\n"
    )
    folder, released = short_folder(), tmp_path / "released"
    starting = subprocess.Popen(
        [sys.executable, "-c", slowly, str(folder), str(released)],
        stdin=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    with starting:
        assert starting.stdin
        starting.stdin.write(GatewayConfig().line())
        starting.stdin.flush()
        wait_for(lambda: any(folder.glob("control/*")))
        with Gateway.start(tmp_path):
            released.touch()
            wait_for(GatewayClient(control_in(folder)).answers)
        starting.stdin.close()
        assert starting.wait(120) == 0


def _ended(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_it_opens_no_tcp_port(gateway: Gateway, serve: Callable[..., Path]) -> None:
    serve("noop")
    pid = gateway._process.pid
    sockets = {_target(fd) for fd in (Path("/proc") / str(pid) / "fd").iterdir()}
    tables = [Path(f"/proc/{pid}/net/{name}").read_text() for name in ("tcp", "tcp6", "udp", "udp6")]
    inodes = {line.split()[9] for table in tables for line in table.splitlines()[1:]}
    assert not {f"socket:[{inode}]" for inode in inodes} & sockets


def _target(fd: Path) -> str:
    try:
        return str(fd.readlink())
    except FileNotFoundError:
        # A connection that was just closed.
        return ""
