"""What the gateway lets through to a provider, refuses, and adds up: raw requests over a case's socket."""

from __future__ import annotations

import gzip
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.dialects.clients import Wire
from support.dialects.delivery import Trouble
from support.dialects.profiles import ANTHROPIC, OPENAI, OPENROUTER, VLLM
from support.dialects.server import KEY, MODEL, Brain, DialectServer
from support.relay_world import PATHS, PRICES, World, canned, named, post, relaying, request_of, socket_of
from support.waiting import wait_for

from gateway.case_models import Api, CaseSpec
from gateway.tally import counts_of

VERSION = {"anthropic_version": "2023-06-01"}
PIXEL = "data:image/png;base64,iVBORw0KGgo="


DEEP = b'{"model": "%b", "messages": %b0%b, "input": %b0%b}' % (
    MODEL.encode(),
    *(b'[{"content": ' * 400, b"}]" * 400) * 2,
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A provider that speaks all three wire formats."""
    with (
        DialectServer(OPENROUTER, Brain("noop")) as server,
        relaying(server, tmp_path_factory.mktemp("all"), apis=tuple(PATHS), headers={"X-Title": "t"}) as started,
    ):
        yield started


@pytest.fixture
def fresh(world: World) -> World:
    world.server.reset(Brain("noop"))
    return world


IMAGES: list[tuple[Api, Any]] = [
    ("chat", {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]}),
    (
        "chat",
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]},
    ),
    ("responses", {"role": "user", "content": [{"type": "input_image", "image_url": PIXEL}]}),
    (
        "responses",
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": PIXEL}]},
    ),
    ("responses", {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}}),
    ("messages", {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "u"}}]}),
    (
        "messages",
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image"}]}]},
    ),
]


@pytest.mark.parametrize(("api", "message"), IMAGES)
def test_images_are_refused_clearly(fresh: World, api: Api, message: Any) -> None:
    path = socket_of(fresh)
    status, answer = post(
        path, PATHS[api], request_of(api, **{"input" if api == "responses" else "messages": [message]})
    )
    assert (status, b"Images are not passed on" in answer) == (400, True)
    assert not fresh.server.received
    assert fresh.client.close_case("case").last_ending == "refused"


def test_what_only_looks_like_an_image_passes(fresh: World) -> None:
    used = {"type": "tool_use", "id": "t", "name": "draw", "input": {"content": [{"type": "image"}]}}
    spoken = [
        {"role": "user", "content": "An image_url, please: {'type': 'image'}"},
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "image"}]},
    ]
    assert post(socket_of(fresh), PATHS["messages"], request_of("messages", messages=spoken))[0] == 200


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"", 400, "not valid JSON"),
        (b"[]", 400, "not a JSON object"),
        (b"{}", 400, "'model'"),
        (b'{"model": 7}', 400, "'model'"),
        (b'{"model": "another"}', 404, "'another' is not served here"),
        (b"\xff", 400, "not valid JSON"),
        (b"[" * 100_000, 400, "not valid JSON"),
        (DEEP, 400, "nested too deep"),
    ],
)
def test_a_bad_request_is_refused_in_the_shape_of_its_format(
    fresh: World, api: Api, body: bytes, status: int, told: str
) -> None:
    got, answer = post(socket_of(fresh), PATHS[api], body)
    error = json.loads(answer)
    assert (got, told in error["error"]["message"]) == (status, True), answer
    assert (error.get("type") == "error") == (api == "messages")
    assert not fresh.server.received
    (line,) = fresh.log()
    assert (line["api"], line["status"], line["ending"], line["tries"]) == (api, status, "refused", 0)


@pytest.mark.parametrize(
    "target", ["/v1/completions", "/v1/embeddings", "/v1/messages/batches", "/chat/completions"]
)
def test_unknown_paths_get_404(fresh: World, target: str) -> None:
    assert post(socket_of(fresh), target, request_of("chat"))[0] == 404
    assert not fresh.server.received


def test_a_format_that_the_provider_lacks_is_refused(tmp_path: Path) -> None:
    with DialectServer(VLLM) as server, relaying(server, tmp_path, apis=("chat",)) as world:
        status, answer = post(socket_of(world), PATHS["responses"], request_of("responses"))
        assert (status, b"does not speak responses" in answer) == (404, True)
        status, answer = post(socket_of(world), PATHS["messages"], request_of("messages"))
        assert (status, json.loads(answer)["error"]["type"]) == (404, "not_found_error")
        assert not server.received


def test_only_the_runs_model_can_be_opened(fresh: World, tmp_path: Path) -> None:
    for model in (MODEL, f"other/{MODEL}", "openrouter/other", ""):
        with pytest.raises(ValueError, match="the run's model is openrouter"):
            fresh.client.open_case(CaseSpec(case_id="x", model=model, request_log=tmp_path / "log"))
    socket = fresh.client.open_case(CaseSpec(case_id="s", model="scripted:noop", request_log=tmp_path / "log"))
    assert post(socket, PATHS["chat"], request_of("chat"))[0] == 200
    assert not fresh.server.received
    fresh.client.close_case("s")


def test_a_compressed_request_is_refused(fresh: World) -> None:
    body = gzip.compress(json.dumps(request_of("chat")).encode())
    status, answer = post(socket_of(fresh), PATHS["chat"], body, Content_Encoding="gzip")
    assert (status, b"without Content-Encoding" in answer) == (415, True)
    assert not fresh.server.received
    assert fresh.client.close_case("case").last_ending == "refused"


SERVERS: dict[Api, dict[str, Any]] = {
    "chat": {"type": "web_search"},
    "responses": {"type": "web_search"},
    "messages": {"type": "web_search_20250305", "name": "web_search"},
}
CHOICES: dict[Api, tuple[Any, Any]] = {
    "chat": ({"type": "function", "function": {"name": "cron"}}, "auto"),
    "responses": ({"type": "function", "name": "cron"}, "auto"),
    "messages": (
        {"type": "tool", "name": "cron", "disable_parallel_tool_use": True},
        {"type": "auto", "disable_parallel_tool_use": True},
    ),
}


@pytest.mark.parametrize("api", PATHS)
def test_tools_are_filtered_in_each_formats_shape(fresh: World, api: Api) -> None:
    path = socket_of(fresh, allowed_tools=("exec",))
    tools = [named(api, "exec"), named(api, "cron"), SERVERS[api]]
    before, after = CHOICES[api]
    assert post(path, PATHS[api], request_of(api, tools=tools, tool_choice=before))[0] == 200
    assert fresh.server.received[0].json == request_of(api, tools=tools[:1], tool_choice=after)
    assert post(path, PATHS[api], request_of(api, tools=tools[1:], tool_choice=before))[0] == 200
    assert fresh.server.received[1].json == request_of(api)
    assert fresh.client.close_case("case").removed_tools == ["cron", "web_search"]


def test_a_flat_tool_choice_of_several_tools_is_filtered() -> None:
    from gateway.tool_filter import filter_tools  # noqa: PLC0415

    tools = [named("responses", "exec"), named("responses", "cron")]
    choice = {"type": "allowed_tools", "mode": "required", "tools": tools}
    left = filter_tools({"tools": tools, "tool_choice": choice}, {"exec"}).request
    assert left == {"tools": tools[:1], "tool_choice": choice | {"tools": tools[:1]}}


def test_count_tokens_is_forwarded_and_free(tmp_path: Path) -> None:
    limits = {"spend_limit": Decimal(1), "spent_before": Decimal(2)}
    with (
        DialectServer(ANTHROPIC) as server,
        relaying(server, tmp_path, limits=limits, prices={MODEL: PRICES}) as world,
    ):
        server.canned.append(canned(200, b'{"input_tokens": 9}'))
        path = socket_of(world)
        answer = post(path, "/v1/messages/count_tokens?beta=true&key=secret", request_of("messages"))
        assert answer == (200, b'{"input_tokens": 9}')
        assert server.received[0].target == "/v1/messages/count_tokens?beta=true"
        assert post(path, PATHS["messages"], request_of("messages"), **VERSION)[0] == 402
        counts = world.client.close_case("case")
        assert (counts.requests, counts.turns, counts.unknown_usage, counts.cost.unpriced) == (2, 0, 0, 0)
        assert (counts.endings["ok"], counts.endings["cost_limit"], counts.last_ending) == (1, 1, "cost_limit")
        assert world.client.cost_limit_reached()


@pytest.mark.parametrize(
    ("status", "ending"),
    [
        (301, "server_error"),
        (400, "refused"),
        (401, "unauthorized"),
        (402, "unauthorized"),
        (403, "unauthorized"),
        (404, "server_error"),
        (422, "refused"),
        (429, "rate_limited"),
        (500, "server_error"),
        (529, "server_error"),
    ],
)
def test_each_status_has_its_ending(fresh: World, status: int, ending: str) -> None:
    fresh.server.canned.append(canned(status, b"<html>no</html>", Location="http://192.0.2.1/"))
    assert post(socket_of(fresh), PATHS["chat"], request_of("chat")) == (status, b"<html>no</html>")
    assert len(fresh.server.received) == 1, "nothing is followed"
    counts = fresh.client.close_case("case")
    assert (counts.last_ending, counts.turns, counts.cost.unpriced) == (ending, 0, 0)
    (line,) = fresh.log()
    assert line["error"] == f"HTTP {status}: <html>no</html>"


@pytest.mark.parametrize(
    ("message", "ending"),
    [
        ("vendor/model-1 is not a valid model ID", "server_error"),
        ("Model Not Exist", "server_error"),
        ("The model `vendor/model-1` does not exist or you do not have access to it.", "server_error"),
        ("This model's maximum context length is 8192 tokens.", "refused"),
        ("tool_choice is not supported by this model", "refused"),
    ],
)
def test_an_unknown_model_is_not_the_claws_fault(fresh: World, message: str, ending: str) -> None:
    error = json.dumps({"error": {"message": message, "code": 400}}).encode()
    fresh.server.canned.append(canned(400, error))
    assert post(socket_of(fresh), PATHS["chat"], request_of("chat")) == (400, error)
    counts = fresh.client.close_case("case")
    assert counts.last_ending == ending
    assert message in counts.last_error


def test_a_silent_provider_is_hung(tmp_path: Path) -> None:
    with DialectServer(OPENAI, Brain("hang")) as server, relaying(server, tmp_path, timeout=0.3) as world:
        status, answer = post(socket_of(world), PATHS["chat"], request_of("chat"))
        assert (status, b"did not answer within 0.3 s" in answer) == (504, True)
        assert world.client.close_case("case").last_ending == "hung"


def test_an_overload_in_place_of_a_reply_is_retried(tmp_path: Path) -> None:
    overload = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}\n\n'
    with DialectServer(ANTHROPIC) as server, relaying(server, tmp_path, retries=1) as world:
        server.canned.append(lambda _http: (200, {"Content-Type": "text/event-stream"}, [overload]))
        status, answer = post(socket_of(world), PATHS["messages"], request_of("messages", stream=True), **VERSION)
        assert (status, b"overloaded" in answer, b"message_stop" in answer) == (200, False, True)
        counts = world.client.close_case("case")
        assert (counts.retries, counts.turns, counts.endings["ok"]) == (1, 1, 1)
        assert counts.waited >= 1
        (line,) = world.log()
        assert (line["tries"], line["waited"] >= 1) == (2, True)


@pytest.mark.parametrize("fields", [{"rate_limit": {"requests_per_minute": 1}}, {"retries": 1}], ids=str)
def test_a_request_abandoned_while_it_waits_costs_nothing(tmp_path: Path, fields: dict[str, Any]) -> None:
    with DialectServer(OPENAI) as server, relaying(server, tmp_path, **fields) as world:
        path = socket_of(world)
        assert post(path, PATHS["chat"], request_of("chat"))[0] == 200
        server.troubles.append(Trouble(429, headers={"Retry-After": "100"}))
        with socket.socket(socket.AF_UNIX) as leaving:
            leaving.connect(str(path))
            body = json.dumps(request_of("chat")).encode()
            leaving.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
            )
            leaving.sendall(body)
            wait_for(lambda: world.client.counts("case").waited > 0)
        wait_for(lambda: world.client.counts("case").endings["held_back"] == 1)
        tries = int("retries" in fields)
        counts = world.client.close_case("case")
        assert (counts.turns, counts.unknown_usage, len(server.received)) == (1, 0, 1 + tries)
        assert [line["tries"] for line in world.log()] == [1, tries]


SYSTEM: dict[Api, dict[str, Any]] = {
    "chat": {"messages": [{"role": "system", "content": "Be brief."}, *request_of("chat")["messages"]]},
    "responses": {"instructions": "Be brief."},
    "messages": {"system": "Be brief."},
}
"""A request with a system prompt, in each wire format."""


@pytest.mark.parametrize("api", PATHS)
def test_the_first_request_is_described_as_it_went_out(fresh: World, api: Api, tmp_path: Path) -> None:
    texts = tmp_path / "requests"
    path = socket_of(fresh, allowed_tools=("exec",), request_texts=texts)
    tools = [named(api, "exec"), named(api, "web_search")]
    more = {**SYSTEM[api], "tools": tools, "temperature": 0.25, "metadata": {"a": [1]}}
    assert post(path, PATHS[api], request_of(api, **more), **VERSION)[0] == 200
    assert post(path, PATHS[api], request_of(api, temperature=1), **VERSION)[0] == 200
    counts = fresh.client.close_case("case")
    first = counts.first_request
    assert first is not None
    assert first.api == api
    assert first.settings == {"max_tokens": 20, "temperature": 0.25, "metadata": '{"a": [1]}'}
    assert (counts.models, counts.served_models) == ([MODEL], [fresh.log()[0]["served_model"]])
    assert counts_of(fresh.log_path()).first_request == first
    stored = {found.stem: found.read_bytes() for found in texts.iterdir()}
    assert stored.keys() == {first.system_sha256, first.tools_sha256}
    assert all(sha256(text).hexdigest() == name for name, text in stored.items())
    assert json.loads(stored[str(first.tools_sha256)]) == {"tools": [named(api, "exec")]}
    assert b"Be brief." in stored[str(first.system_sha256)]
    assert b"Hello." not in stored[str(first.system_sha256)]


def test_an_odd_first_request_is_described_too(fresh: World, tmp_path: Path) -> None:
    """Whatever a claw sends, the case's counts can be read."""
    path = socket_of(fresh, request_texts=tmp_path)
    odd = {
        "temperature": float("nan"),
        "seed": 1 << 80,
        "user": "\ud800\x1b" * 1000,
        "a\ud800": None,
        "top_p": 1.0,
    }
    many = {f"x{number}": number for number in range(200)}
    tool = named("chat", "exec") | {"limit": float("inf"), KEY: KEY}
    post(path, PATHS["chat"], json.dumps(request_of("chat", tools=[tool], **odd, **many)).encode())
    counts = fresh.client.close_case("case")
    first = counts.first_request
    assert first is not None
    assert len(first.settings) == 50
    assert first.settings["temperature"] == "NaN"
    assert first.settings["seed"] == str(1 << 80)
    assert first.settings["top_p"] == 1.0
    assert str(first.settings["user"]).startswith("sha256:")
    assert "a\\ud800" in first.settings
    assert counts_of(fresh.log_path()).first_request == first
    (text,) = tmp_path.iterdir()
    assert KEY.encode() not in text.read_bytes()


def test_the_log_adds_up_to_the_counts(tmp_path: Path) -> None:
    with (
        DialectServer(OPENROUTER, Brain("noop")) as server,
        relaying(server, tmp_path, apis=tuple(PATHS), prices={MODEL: PRICES}) as world,
    ):
        cases = ("a", "b", "c")
        for case_id in cases:
            path = socket_of(world, case_id)
            server.canned.extend([canned(200, b'{"half": '), canned(200, b'{"choices": []}'), canned(500, b"")])
            for api in (*PATHS, *PATHS):
                post(path, PATHS[api], request_of(api))
            post(path, "/v1/none", b"")
        closed = {case_id: world.client.close_case(case_id) for case_id in cases}
        for case_id, counts in closed.items():
            lines = [line for line in world.log(case_id) if line["method"] == "POST"]
            replies = [line for line in lines if line["replied"]]
            for name, value in counts.tokens.model_dump().items():
                known = [line["tokens"][name] for line in replies if line["tokens"]]
                assert sum(part for part in known if part is not None) == (value or 0)
            assert len(lines) == counts.requests == 7
            assert sum(line["ending"] in ("ok", "empty") for line in lines) == counts.turns
            assert sum(line["tokens"] is None for line in replies) == counts.unknown_usage == 2
            assert sum(line["cost"]["unpriced"] for line in replies) == counts.cost.unpriced == 2
            told = [line["cost"]["priced"] for line in replies]
            assert sum(Decimal(one) for one in told if one is not None) == counts.cost.priced
            assert sum(counts.endings.values()) == counts.requests
            again = counts_of(world.log_path(case_id))
            assert again == counts.model_copy(update={"upstream_seconds": again.upstream_seconds})


def test_a_torn_last_line_of_the_log_is_ended_first(fresh: World) -> None:
    socket_of(fresh)
    fresh.log_path().parent.mkdir(exist_ok=True)
    fresh.log_path().write_text('{"torn": ')
    path = fresh.client.open_case(
        CaseSpec(case_id="case", model=f"openrouter/{MODEL}", request_log=fresh.log_path())
    )
    assert post(path, PATHS["chat"], request_of("chat"))[0] == 200
    fresh.client.close_case("case")
    torn, whole = fresh.log_path().read_text().splitlines()
    assert (torn, json.loads(whole)["ending"]) == ('{"torn": ', "ok")


def test_declared_headers_go_out_and_the_provider_sets_no_cookies(fresh: World) -> None:
    def answer(http: web.Request) -> tuple[int, dict[str, str], list[bytes]]:
        return 200, {"Content-Type": "application/json", "Set-Cookie": "a=b", "x-request-id": "r"}, [b"{}"]

    fresh.server.canned.append(answer)
    wire = fresh.open()
    wire_socket = fresh.sockets["case"]
    assert isinstance(wire, Wire)
    post(wire_socket, PATHS["chat"], request_of("chat"), Cookie="c=d", X_Title="claw's")
    post(wire_socket, PATHS["chat"], request_of("chat"))
    assert [received.header("X-Title") for received in fresh.server.received] == ["t", "t"]
    assert [received.header("Cookie") for received in fresh.server.received] == [None, None]


class ClosingServer:
    """A provider that reads each request whole, and closes the connection without a byte."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):  # closed at the end
            while True:
                connection, _ = self._listener.accept()
                with connection:
                    self.requests.append(_request(connection))

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


def _request(connection: socket.socket) -> bytes:
    """A request whole, or nothing where the connection ends."""
    data = b""
    while not data.endswith(b"}") and (more := connection.recv(65536)):
        data += more
    return data


def test_a_request_that_may_have_been_charged_is_not_sent_again_and_counts(tmp_path: Path) -> None:
    """Nobody knows what the provider did with it, so its cost is unknown, and the most that it may be is held."""
    closing = ClosingServer()
    with DialectServer(OPENAI) as server:
        base_url = f"http://127.0.0.1:{closing.port}/v1"
        with relaying(server, tmp_path, base_url=base_url, retries=8, prices={MODEL: PRICES}) as world:
            path = socket_of(world)
            request = request_of("chat") | {"max_tokens": 1000}
            assert post(path, PATHS["chat"], request)[0] == 502
            counts = world.client.close_case("case")
    closing.close()
    assert [bool(one) for one in closing.requests] == [True]
    assert (counts.endings["dropped"], counts.retries, counts.unknown_usage) == (1, 0, 1)
    assert counts.cost.priced is None
    assert counts.cost.unpriced == 1
    assert counts.cost.held is not None
    assert counts.cost.held >= 1000 * PRICES.output / 1_000_000


def test_a_request_that_never_left_costs_nothing(tmp_path: Path) -> None:
    with socket.socket() as taken, DialectServer(OPENAI) as server:
        taken.bind(("127.0.0.1", 0))  # nobody listens on it, and nobody else can
        base_url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with relaying(server, tmp_path, base_url=base_url, prices={MODEL: PRICES}) as world:
            assert post(socket_of(world), PATHS["chat"], request_of("chat"))[0] == 502
            counts = world.client.close_case("case")
    assert (counts.endings["dropped"], counts.unknown_usage, counts.cost.held) == (1, 0, None)


SURROGATE = "\ud800"
ESCAPE = "\x1b[2J\u202eevil"
HOSTILE: dict[str, tuple[str, dict[str, Any], int]] = {
    "a tool's name is half a surrogate pair": (PATHS["chat"], {"tools": [named("chat", SURROGATE)]}, 200),
    "a tool's name moves the cursor": (PATHS["chat"], {"tools": [named("chat", ESCAPE)]}, 200),
    "another model": (PATHS["chat"], {"model": f"{ESCAPE}{SURROGATE}"}, 404),
    "80,000 tools": (PATHS["chat"], {"tools": [named("chat", f"tool-{number}") for number in range(80_000)]}, 400),
    "50 MiB": (PATHS["chat"], {"messages": [{"role": "user", "content": "x" * (50 << 20)}]}, 413),
    "a path that moves the cursor": ("/v1/%1B%5B2J", {}, 404),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_request_breaks_the_gateway_or_its_records(name: str, tmp_path: Path) -> None:
    """It is the claw's own doing: the case's counts can be read, and another case is answered."""
    target, more, status = HOSTILE[name]
    with DialectServer(OPENAI) as server, relaying(server, tmp_path) as world:
        path = socket_of(world, allowed_tools=("exec",))
        assert post(path, target, request_of("chat") | more)[0] == status
        assert post(socket_of(world, "other"), PATHS["chat"], request_of("chat"))[0] == 200
        counts = world.client.close_case("case")
        assert counts.requests == 1
        assert counts.last_ending in {"ok", "refused"}
        log = world.log_path().read_bytes().decode()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff]", log + json.loads(log)["path"])
    assert not re.search("\x1b|\u202e", "".join([*counts.removed_tools, counts.last_error]))
