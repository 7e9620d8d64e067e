"""The provider's failures and the given commands, asked for over a case's socket as a claw does."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.case_models import CaseCounts, CaseSpec
from gateway.client import Gateway, GatewayClient

SHELL = {
    "type": "function",
    "function": {"name": "exec", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}},
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayClient]:
    with Gateway.start(tmp_path_factory.mktemp("gateway")) as running:
        yield GatewayClient(running.control)


class Claw:
    """A client that keeps a conversation."""

    def __init__(self, gateway: GatewayClient, folder: Path, behaviour: str, *commands: str) -> None:
        self._gateway = gateway
        self.bodies = folder / "bodies"
        spec = CaseSpec(
            case_id="case",
            model=f"scripted:{behaviour}",
            commands=commands,
            request_log=folder / "log",
            request_bodies=self.bodies,
        )
        self._socket = gateway.open_case(spec)
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": "caf\u00e9"}]

    def ask(self, *, timeout: float = 120) -> tuple[int, dict[str, str], Any]:
        connection = http.client.HTTPConnection("gateway", timeout=timeout)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(timeout)
        connection.sock.connect(str(self._socket))
        body = json.dumps({"model": "m", "messages": self.messages, "tools": [SHELL]})
        try:
            connection.request("POST", "/v1/chat/completions", body)
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), json.loads(response.read())
        finally:
            connection.close()

    def command(self) -> str | None:
        """The next command, or None where the final text came."""
        status, _, answer = self.ask()
        assert status == 200
        message = answer["choices"][0]["message"]
        self.messages.append(message)
        if "tool_calls" not in message:
            assert message["content"]
            return None
        (call,) = message["tool_calls"]
        self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": "done"})
        return str(json.loads(call["function"]["arguments"])["command"])

    def close(self) -> CaseCounts:
        return self._gateway.close_case("case")


def test_a_rate_limit_has_a_retry_after(gateway: GatewayClient, tmp_path: Path) -> None:
    claw = Claw(gateway, tmp_path, "limited")
    status, headers, answer = claw.ask()
    assert (status, headers["Retry-After"], answer["error"]["code"]) == (429, "1", "rate_limit_exceeded")
    assert claw.close().last_ending == "rate_limited"


def test_a_dropped_connection_has_no_answer(gateway: GatewayClient, tmp_path: Path) -> None:
    claw = Claw(gateway, tmp_path, "dropped")
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        claw.ask()
    assert claw.close().last_ending == "dropped"


def test_an_empty_answer_is_an_empty_turn(gateway: GatewayClient, tmp_path: Path) -> None:
    claw = Claw(gateway, tmp_path, "empty")
    status, _, answer = claw.ask()
    assert (status, answer["choices"][0]["message"]["content"]) == (200, "")
    counts = claw.close()
    assert (counts.last_ending, counts.turns) == ("empty", 1)


def test_given_commands_are_called_in_order(gateway: GatewayClient, tmp_path: Path) -> None:
    claw = Claw(gateway, tmp_path, "commands", "first", "second; $(third)")
    assert [claw.command() for _ in range(3)] == ["first", "second; $(third)", None]
    assert claw.close().endings["ok"] == 3
    kept = [json.loads(path.read_bytes()) for path in sorted(claw.bodies.iterdir())]
    assert [len(body["messages"]) for body in kept] == [1, 3, 5]
    assert kept[0]["messages"] == [{"role": "user", "content": "caf\u00e9"}]


def test_a_stalling_model_works_first(gateway: GatewayClient, tmp_path: Path) -> None:
    claw = Claw(gateway, tmp_path, "stall", "only")
    assert claw.command() == "only"
    with pytest.raises(TimeoutError):
        claw.ask(timeout=0.5)
    assert claw.close().endings["ok"] == 1


def test_a_flaky_provider_recovers_after_two_failures(gateway: GatewayClient, tmp_path: Path) -> None:
    claw = Claw(gateway, tmp_path, "flaky", "only")
    assert [claw.ask()[0] for _ in range(2)] == [500, 500]
    assert [claw.command(), claw.command()] == ["only", None]
    assert claw.close().last_ending == "ok"
