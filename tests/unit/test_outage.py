"""An engine or a provider that is gone in the middle of a run costs time, not cases."""

from __future__ import annotations

import io
import json
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.dialects import profiles
from support.dialects.server import MODEL, DialectServer
from support.relay_world import canned, relaying
from support.waiting import wait_for

from adapters.base import CommandResult
from clawbench.controller.progress_printer import ProgressPrinter
from clawbench.run import outage
from clawbench.run.endings import ending_of
from clawbench.run.settings import Served, Settings
from clawbench.run.worker_context import WorkerContext
from common.errors import NotBegunError
from evaluation.outcomes import Ending
from gateway.case_models import CaseCounts
from records.progress import Progress
from records.run_folder import RunDirectory
from workspace.workspace_errors import WorkspaceError

GONE = WorkspaceError("the engine went away")
FAILED = outage.ProviderError("the provider failed")


class Answer(BaseHTTPRequestHandler):
    """As much of an engine as a probe asks for."""

    def do_GET(self) -> None:
        body = json.dumps({"ApiVersion": "1.41"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "socket"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass


class Time:
    """A clock that only waiting moves; something may happen after so many waits."""

    def __init__(self, after: int = 0, happens: Any = None) -> None:
        self.now = 0.0
        self.waits = 0
        self._after = after
        self._happens = happens

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.waits += 1
        if self.waits == self._after:
            self._happens()


@pytest.fixture
def at_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Starts an engine at the address that DOCKER_HOST names; before that, nothing is there."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/engine.sock")
    servers: list[socketserver.ThreadingUnixStreamServer] = []

    def start() -> None:
        server = socketserver.ThreadingUnixStreamServer(str(tmp_path / "engine.sock"), Answer)
        server.daemon_threads = True
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def broken_case(folder: Path, control: Path | None = None, **settings: Any) -> Any:
    """A case that has just broken."""
    given: dict[str, Any] = {
        "run_id": "run",
        "artifacts": folder,
        "model": "scripted:oracle",
        "agent_timeout": 60,
        "max_turns": 9,
        "llm_no": 0,
        "eval_timeout": 60,
        "resume": True,
        "keep_container": "never",
        "pids_limit": 9,
        "memory": "1g",
        **settings,
    }
    context = WorkerContext(Settings.model_validate(given), "gw0", control)
    context.run.path.mkdir(exist_ok=True)
    said: list[str] = []
    return SimpleNamespace(
        context=context, api="chat", served=context.settings.endpoint, say=said.append, said=said
    )


def test_a_case_waits_until_the_engine_is_back(tmp_path: Path, at_engine: Any) -> None:
    case, time = broken_case(tmp_path), Time(3, at_engine)
    assert outage.wait_out(case, GONE, clock=time, sleep=time.sleep) is True
    assert time.waits == 3
    reason = "paused: the Docker engine does not answer (No such file or directory); it is tried again for at most 30 min"
    assert case.said[0] == reason
    assert case.said[-1] == "going on after an outage"
    case.context.require_no_outage()
    assert outage.wait_out(case, GONE, clock=time, sleep=time.sleep) is None, (
        "an error without an outage is not waited for"
    )
    assert time.waits == 3


@pytest.mark.usefixtures("at_engine")
def test_after_the_limit_no_further_case_begins(tmp_path: Path) -> None:
    case, time = broken_case(tmp_path, outage_limit=40), Time()
    assert outage.wait_out(case, GONE, clock=time, sleep=time.sleep) is False
    assert time.now == 40
    with pytest.raises(
        NotBegunError, match=r"not begun: the Docker engine .* for 40 s. Run the same command again"
    ):
        case.context.require_no_outage()
    assert outage.wait_out(case, GONE, clock=time, sleep=time.sleep) is False, (
        "other workers do not wait as long again"
    )
    assert time.now == 40


def test_a_case_waits_until_the_provider_is_back(tmp_path: Path, at_engine: Any) -> None:
    at_engine()
    with DialectServer(profiles.OPENROUTER) as server, relaying(server, tmp_path / "gateway") as world:
        name = server.dialect.name
        served = Served(name=MODEL, apis=("chat",), behind={"provider": name})
        case = broken_case(tmp_path, world.gateway.control, model=f"{name}/{MODEL}", served=served)
        assert outage.wait_out(case, FAILED) is None
        assert outage.answers(case)

        server.always = canned(502, b"{}")
        assert not outage.answers(case)
        time = Time(2, lambda: setattr(server, "always", None))
        asked = len(server.received)
        assert outage.wait_out(case, GONE) is None, "what the provider has no part in is not asked of it"
        assert len(server.received) == asked
        assert outage.wait_out(case, FAILED, clock=time, sleep=time.sleep) is True
        assert time.waits == 2
        assert "paused: the provider does not answer" in case.said[0]

        server.always = canned(429, b"{}")
        assert outage.wait_out(case, FAILED) is None, "a provider that limits the rate is there"
    assert outage.wait_out(case, FAILED) is None, "without its gateway, a run has nothing to wait for"


def test_an_outage_is_told_once_when_it_begins_and_once_when_it_ends(tmp_path: Path) -> None:
    run, out = RunDirectory(tmp_path), io.StringIO()
    printer = ProgressPrinter(run, out, has_price=False, every=0.01)
    printer.start()
    workers = [Progress(tmp_path, name) for name in ("gw0", "gw1")]
    for worker in workers:
        worker.say("nanobot-acme__tool-1", "paused: the provider does not answer")
    wait_for(lambda: "paused" in out.getvalue(), "the pause")
    for worker in workers:
        worker.say("nanobot-acme__tool-1", "nanobot works")
    wait_for(lambda: "going on" in out.getvalue(), "the end of the pause")
    printer.stop()
    assert out.getvalue().splitlines() == ["paused: the provider does not answer", "the outage is over: going on"]


@pytest.mark.parametrize("last", ["server_error", "malformed", "dropped", "hung"])
def test_a_last_request_that_fails_alone_is_the_claws_own(last: Any) -> None:
    """Otherwise a claw could turn its failure into an infrastructure error by a request that the provider can't bear."""
    counts = CaseCounts(requests=5, turns=4, last_ending=last, last_error="HTTP 500: too odd")
    for exit_code, own in ((0, Ending.AGENT_ERROR), (1, Ending.AGENT_ERROR), (None, Ending.TIMEOUT)):
        result = CommandResult(exit_code, b"", b"", 1.0)
        ending, why = ending_of(result, counts, provider_answers=lambda: True)
        assert ending is own
        if (last, exit_code) != ("hung", None):
            assert "HTTP 500: too odd" in why
            assert "answered another request right afterwards" in why
            assert ending_of(result, counts, provider_answers=lambda: False)[0] is Ending.INFRASTRUCTURE


@pytest.mark.parametrize("last", ["unauthorized", "rate_limited"])
def test_an_account_or_a_rate_limit_is_never_the_claws(last: Any) -> None:
    counts = CaseCounts(requests=5, turns=4, last_ending=last)
    result = CommandResult(1, b"", b"", 1.0)
    assert ending_of(result, counts, provider_answers=lambda: True)[0] is Ending.INFRASTRUCTURE


def test_a_claw_that_used_up_its_turns_is_said_to_have() -> None:
    for turns, exit_code, said in ((9, 0, True), (9, 1, True), (8, 0, False)):
        counts = CaseCounts(requests=turns, turns=turns, last_ending="ok")
        _, why = ending_of(CommandResult(exit_code, b"", b"", 1.0), counts, max_turns=9)
        assert ("it used up its 9 turns" in why) is said
