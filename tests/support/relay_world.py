"""The gateway in front of a provider's dialect: a real process, real sockets, the official client libraries."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
from pydantic import SecretStr

from gateway.behaviours.base import Job
from gateway.case_models import Api, CaseSpec, TokenCounts
from gateway.client import Gateway, GatewayClient
from gateway.config import GatewayConfig, Upstream
from gateway.metering.prices import PriceTable
from gateway.providers import Prices, Provider
from support.dialects.clients import (
    Said,
    Wire,
    anthropic_client,
    ask_chat,
    ask_messages,
    ask_responses,
    openai_client,
)
from support.dialects.server import MODEL, Brain, Canned, DialectServer
from support.waiting import wait_for

TURN = "Please run the first command, in the caf\u00e9."
COMMANDS = ("ls 'caf\u00e9' \u65e5\u672c\u8a9e", "echo \U0001f600 > x")
PRICES = Prices(input=Decimal(2), cache_read=Decimal("0.2"), cache_write=Decimal("2.5"), output=Decimal(8))


def runs(*commands: str) -> Brain:
    """A model that has these commands run, then ends."""
    return Brain("commands", Job("case", "/testbed", "", commands))


def provider_of(server: DialectServer, **fields: Any) -> Provider:
    """The entry that declares the server; it retries nothing unless told to."""
    return Provider.model_validate(
        {
            "name": server.dialect.name,
            "base_url": server.base_url,
            "apis": server.dialect.apis,
            "auth": "x-api-key" if server.dialect.name == "anthropic" else "bearer",
            "retries": 0,
        }
        | fields
    )


@dataclass
class World:
    """A gateway and its provider."""

    server: DialectServer
    gateway: Gateway
    folder: Path
    sockets: dict[str, Path] = field(default_factory=dict)

    @property
    def client(self) -> GatewayClient:
        return GatewayClient(self.gateway.control)

    def open(self, case_id: str = "case", **spec: Any) -> Wire:
        """Open a case; the wire goes to its socket."""
        # of an earlier one, a line may be still to come
        with suppress(LookupError):
            self.client.close_case(case_id)
        given: dict[str, Any] = {
            "request_log": self.log_path(case_id),
            "model": f"{self.server.dialect.name}/{MODEL}",
        } | spec
        self.log_path(case_id).unlink(missing_ok=True)
        self.sockets[case_id] = self.client.open_case(CaseSpec(case_id=case_id, **given))
        return Wire(self.sockets[case_id])

    def settle(self, case_id: str = "case") -> None:
        """Wait until replies are counted: a stream's is, a moment after its client has read the last event."""

        def is_settled() -> bool:
            counts = self.client.counts(case_id)
            return counts.requests == sum(counts.endings.values())

        wait_for(is_settled)

    def log_path(self, case_id: str = "case") -> Path:
        return self.folder / "logs" / f"{case_id}.jsonl"

    def log(self, case_id: str = "case") -> list[dict[str, Any]]:
        """The case's request log, line by line; a request gets its line a moment after its reply has come."""
        wait_for(lambda: self._is_logged(case_id))
        return self._lines(case_id)

    def _is_logged(self, case_id: str) -> bool:
        if self.gateway._process.poll() is not None:  # gone: nothing comes any more
            return True
        try:
            begun = self.client.counts(case_id).requests
        except LookupError:  # closed: nor here
            return True
        return sum(line["method"] == "POST" for line in self._lines(case_id)) >= begun

    def _lines(self, case_id: str) -> list[dict[str, Any]]:
        path = self.log_path(case_id)
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def everything(self) -> str:
        """All that the gateway left in files."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return "\n".join(path.read_bytes().decode("latin-1") for path in files)


@contextmanager
def relaying(
    server: DialectServer, folder: Path, *, limits: dict[str, Any] | None = None, **fields: Any
) -> Iterator[World]:
    """A gateway for a running server.

    Args:
        server: the provider.
        folder: gets the gateway's files.
        limits: spend limits and the like of `GatewayConfig`.
        fields: of the provider's entry.
    """
    provider = provider_of(server, **fields)
    prices = PriceTable.find(provider, MODEL, folder / "no-overrides.yaml") if provider.prices else None
    upstream = Upstream(provider=provider, model=MODEL, key=SecretStr(server.key))
    config = GatewayConfig(upstream=upstream, prices=prices, **(limits or {}))
    with Gateway.start(folder, config) as gateway:
        yield World(server, gateway, folder)


def ask(wire: Wire, api: Api, messages: list[Any], *, stream: bool, **more: Any) -> Said:
    """One turn through a case's socket, by the wire format's own library."""
    if api == "messages":
        return ask_messages(anthropic_client(wire), MODEL, messages, stream=stream, **more)
    asker = ask_chat if api == "chat" else ask_responses
    return asker(openai_client(wire), MODEL, messages, stream=stream, **more)


def user(text: str = TURN) -> list[dict[str, Any]]:
    """A conversation's beginning, the same in all formats."""
    return [{"role": "user", "content": text}]


def answered(api: Api, said: Said, result: str) -> list[dict[str, Any]]:
    """What a claw adds to a conversation after it ran a command."""
    ((call_id, name, arguments),) = said.calls
    match api:
        case "chat":
            call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            thoughts = {"reasoning_content": said.thoughts} if said.thoughts else {}
            spoken = {"role": "assistant", "content": said.text, "tool_calls": [call], **thoughts}
            return [spoken, {"role": "tool", "tool_call_id": call_id, "content": result}]
        case "responses":
            call = {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
            return [call, {"type": "function_call_output", "call_id": call_id, "output": result}]
        case "messages":
            used = {"type": "tool_use", "id": call_id, "name": name, "input": json.loads(arguments)}
            text = {"type": "text", "text": said.text}
            told = {"type": "tool_result", "tool_use_id": call_id, "content": result}
            return [{"role": "assistant", "content": [text, used]}, {"role": "user", "content": [told]}]


def converse(
    wire: Wire, api: Api, *, stream: bool, between: Callable[[], object] = lambda: None, **more: Any
) -> list[str]:
    """A whole conversation: the commands that the model asked for. `between` is called between two turns."""
    messages, commands = user(), []
    while (said := ask(wire, api, messages, stream=stream, **more)).calls:
        commands.append(json.loads(said.calls[0][2])["command"])
        messages += answered(api, said, f"done \u00e9 {len(commands)}")
        between()
    return commands


def leave_in_the_middle(wire: Wire, api: Api) -> None:
    """Ask for a stream and leave once its first piece is there."""
    path = "messages" if api == "messages" else "chat/completions"
    body = {"model": MODEL, "messages": user(), "stream": True, "max_tokens": 50}
    options = {} if api == "messages" else {"stream_options": {"include_usage": True}}
    headers = {"anthropic-version": "2023-06-01"}
    request = httpx2.Request("POST", f"http://gateway/v1/{path}", json=body | options, headers=headers)
    answer = wire.handle_request(request)
    assert isinstance(answer.stream, httpx2.SyncByteStream)
    next(iter(answer.stream))
    answer.close()
    wire.close()


def charged(server: DialectServer) -> tuple[int, int, int, int]:
    """What the server says that it charged in all: input, cache read, cache write, output."""
    sums = [(one.input, one.cache_read, one.cache_write, one.output) for one in server.charges]
    return tuple(map(sum, zip(*sums, strict=True)))  # type: ignore[return-value]


def classes(tokens: TokenCounts) -> tuple[int | None, int | None, int | None, int | None]:
    """The same four of the gateway's counts."""
    return tokens.input, tokens.cache_read, tokens.cache_write, tokens.output


PATHS: dict[Api, str] = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


def post(path: Path, target: str, body: Any, **headers: str) -> tuple[int, bytes]:
    """One request by hand over a Unix socket."""
    connection = http.client.HTTPConnection("gateway")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", target, data, {"Content-Type": "application/json", **named_headers})
    answer = connection.getresponse()
    read = answer.status, answer.read()
    connection.close()
    return read


def socket_of(world: World, case_id: str = "case", **spec: Any) -> Path:
    """Open a case; its socket."""
    world.open(case_id, **spec)
    return world.sockets[case_id]


def request_of(api: Api, **more: Any) -> dict[str, Any]:
    """The body of a small request."""
    said = [{"role": "user", "content": "Hello."}]
    key = "input" if api == "responses" else "messages"
    return {"model": MODEL, key: said, "max_tokens": 20} | more


def named(api: Api, name: str) -> dict[str, Any]:
    """A tool as a request offers it."""
    match api:
        case "chat":
            return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        case "responses":
            return {"type": "function", "name": name, "parameters": {"type": "object"}}
        case "messages":
            return {"name": name, "input_schema": {"type": "object"}}


def canned(status: int, body: bytes, **headers: str) -> Canned:
    """A whole JSON answer."""
    return lambda _http: (status, {"Content-Type": "application/json", **headers}, [body])
